"""Requests to the server over REST: those of readers, and those of publishers.

Every body equals the one that `qdrant-client` sends for the same, as tests with that client check. A write may be sent
twice, and counts only when a majority has it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from urllib.parse import quote

from chapterverse.errors import ConfigurationError, IndexFault, IndexMissing, IndexUnavailable, ProviderError
from chapterverse.ext.net import JsonClient
from chapterverse.ext.net.client import CONNECT_SECONDS
from chapterverse.ext.net.retry import RetryPolicy
from chapterverse.ext.qdrant.address import QdrantAddress
from chapterverse.ext.qdrant.record import Where
from chapterverse.store import RequestGuard

#: Points of one request without payloads and vectors. No reply may exceed the size that `net` accepts.
_MAX_IDS = 1000
#: Points of one request with payloads or vectors.
MAX_POINTS = 128

#: Statuses after which the server may answer later.
_RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
#: The first server that weighs words by the points of a filter (`params.idf.corpus`, qdrant/qdrant#9661).
_MIN_VERSION = (1, 19)
#: A write is answered when it is done, and all writes have one order.
_ORDERED = "wait=true&ordering=strong"


@dataclass(frozen=True, slots=True)
class QdrantRetry(RetryPolicy):
    """How a publisher tries again. No further try begins after `total_seconds`, which are fewer than those of a lease.

    Attributes:
        try_seconds: seconds that one try may take after connecting, which has a limit of its own.
    """

    total_seconds: float = 15.0
    first_pause: float = 0.25
    max_pause: float = 8.0
    spread: tuple[float, float] = (0.5, 1.0)
    try_seconds: float = 10.0


#: A reader does not try again, because a person is waiting.
ONCE = QdrantRetry(tries=1)


class NoCollection(IndexMissing):
    """The collection of a request does not exist."""


class QdrantServer:
    """Requests to one server. Each method sends one request, and `scroll` one a page.

    Attributes:
        request_guard: returns the context manager around each request.

    Raises (all methods):
        IndexMissing: the collection is not there.
        IndexUnavailable: the server can't be reached, or failed.
        IndexFault: it rejected the request, or is no Qdrant server.
        ConfigurationError: it rejected the key.
    """

    def __init__(self, place: QdrantAddress, retry: QdrantRetry = ONCE) -> None:
        self.place = place
        self.request_guard: RequestGuard = nullcontext
        self._retry = retry
        headers = {"api-key": place.key} if place.key else {}
        # `retry` alone decides how often a request is sent.
        self._client = JsonClient(place.url, headers, total_seconds=retry.try_seconds, tries=1)

    def count(self, collection: str, where: Where) -> int:
        result = self._post(collection, "/points/count", {"filter": where, "exact": True})
        return int(self._of_kind(self._field(result, "count"), int))

    def query(self, collection: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        return self._with_scores(self._post(collection, "/points/query", body))

    def query_batch(self, collection: str, bodies: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
        result = self._of_kind(self._post(collection, "/points/query/batch", {"searches": list(bodies)}), list)
        if len(result) != len(bodies):
            raise _qdrant_error(self.place, 200)
        return [self._with_scores(one) for one in result]

    def retrieve(self, collection: str, ids: Sequence[str], vectors: bool | list[str]) -> list[dict[str, Any]]:
        """Return those of these points that exist, with their payloads."""
        body = {"ids": list(ids), "with_payload": True, "with_vector": vectors}
        return self._points(self._post(collection, "/points", body))

    def facet(self, collection: str, where: Where, field: str, limit: int) -> list[str | int]:
        """Return at most `limit` distinct values of an indexed field."""
        body = {"key": field, "limit": limit, "filter": where, "exact": True}
        hits = self._of_kind(self._field(self._post(collection, "/facet", body), "hits"), list)
        return [self._of_kind(self._field(hit, "value"), str | int) for hit in hits]

    def scroll(
        self, collection: str, where: Where | None, payload: bool | list[str], vectors: bool | list[str]
    ) -> Iterator[dict[str, Any]]:
        """Yield the points that match a filter, in the order of their ids; None yields all."""
        limit = _MAX_IDS if not vectors and payload is not True else MAX_POINTS
        body: dict[str, Any] = {"limit": limit, "with_payload": payload, "with_vector": vectors}
        if where is not None:
            body["filter"] = where
        while True:
            result = self._post(collection, "/points/scroll", body)
            yield from self._points(self._field(result, "points"))
            if result.get("next_page_offset") is None:
                return
            body = {**body, "offset": result["next_page_offset"]}

    def _with_scores(self, result: Any) -> list[dict[str, Any]]:
        points = self._points(self._field(result, "points"))
        return [{**point, "score": float(self._of_kind(point.get("score"), float | int))} for point in points]

    def _points(self, result: Any) -> list[dict[str, Any]]:
        return [point for point in self._of_kind(result, list) if self._field(point, "id")]

    def _field(self, result: Any, name: str) -> Any:
        return self._of_kind(result, dict).get(name)

    def _of_kind(self, result: Any, kind: Any) -> Any:
        if not isinstance(result, kind):
            raise _qdrant_error(self.place, 200)
        return result

    def _post(self, collection: str, path: str, body: Mapping[str, Any]) -> Any:
        return self._ask("POST", path, body, collection)

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        collection: str = "",
        guard: RequestGuard | None = None,
    ) -> Any:
        """Return the result of a request, which is tried as often as `retry` says.

        Args:
            path: below the collection, or below the server if that is empty.
            guard: returns the context manager around each try; None for that of all requests.
        """
        where = f"/collections/{quote(collection, safe='')}{path}" if collection else path
        started, failure = time.monotonic(), None
        for failed in count(1):
            try:
                with (guard or self.request_guard)():
                    result, failure, asked_pause = self._try(method, where, body, collection)
                    if isinstance(failure, IndexUnavailable):
                        raise failure
            except IndexUnavailable as error:
                # What the guard itself raises is not tried again.
                pause = self._retry.pause(failed, time.monotonic() - started, asked_pause) if error is failure else None
                if pause is None:
                    raise
                self._retry.sleep(pause)
                continue
            if failure:
                raise failure
            return result
        raise AssertionError("the last try returns or raises")

    def _try(
        self, method: str, path: str, body: Mapping[str, Any] | None, collection: str
    ) -> tuple[Any, Exception | None, float | None]:
        """Return the result of one try, or its error, and the pause that the server asks for."""
        try:
            reply = self._client.send(method, path, body)
        except ProviderError as error:
            return None, self._unreachable(error), None
        document = reply.body if reply.status == 200 and isinstance(reply.body, dict) else {}
        result = document.get("result") if collection else document or None
        failure = self._failure(reply.status, collection, reply.pause) if result is None else None
        return result, failure, reply.pause

    def _unreachable(self, error: ProviderError) -> IndexUnavailable:
        return IndexUnavailable(f"The index can't be read: {error}")

    def _failure(self, status: int, collection: str, _: float | None) -> Exception:
        return _qdrant_error(self.place, status, collection)


def _qdrant_error(place: QdrantAddress, status: int, collection: str = "") -> Exception:
    """Return the error for a reply that doesn't fit its request. It never quotes the server's words."""
    if status in {401, 403}:
        return ConfigurationError(f"{place.host} refused the key: set QDRANT_API_KEY to one that it accepts.")
    if status == 404 and collection:
        return NoCollection(f"There is no collection {collection} on {place.host}: index the site again.")
    if status == 200:
        return IndexFault(f"{place.host} answered with something that no Qdrant server says: check the address.")
    if 400 <= status < 500 and status not in _RETRIED_STATUSES:
        return IndexFault(
            f"{place.host} refused what was asked (status {status}): give the index a collection of its own,"
            " by ?collection=NAME."
        )
    return IndexUnavailable(f"{place.host} failed with status {status}: the index is not harmed, try again later.")


class QdrantWriter(QdrantServer):
    """The requests of a publisher. They raise as those of `QdrantServer` do.

    Attributes:
        fence: returns the context manager around each try of a write without conditions. It raises if the lease may
            expire before the write arrives.
    """

    def __init__(self, place: QdrantAddress, retry: QdrantRetry) -> None:
        super().__init__(place, retry)
        self.fence: RequestGuard = nullcontext

    @property
    def max_try_seconds(self) -> float:
        """The most seconds that one try may take."""
        return self._retry.try_seconds + CONNECT_SECONDS

    def stop_retrying(self) -> None:
        """Try each request only once from now on. The next publication does what fails."""
        self._retry = replace(self._retry, tries=1)

    def check_version(self) -> None:
        """Raise `IndexFault` if the server is too old to weigh words by the points of a filter."""
        number = re.match(r"(\d+)\.(\d+)", self._of_kind(self._field(self._ask("GET", "/"), "version"), str))
        if number and (int(number[1]), int(number[2])) < _MIN_VERSION:
            minimum = ".".join(map(str, _MIN_VERSION))
            raise IndexFault(
                f"{self.place.host} runs Qdrant {number[0]}, which is too old: upgrade it to {minimum} or later."
            )

    def ensure(
        self, collection: str, config: Mapping[str, Any], indexes: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Create a collection and indexes of its fields, as far as they are missing; return its description."""
        try:
            found = self.describe(collection)
        except NoCollection:
            self.create(collection, config)
            found = self.describe(collection)
        for field, schema in indexes.items():
            if field not in found["payload_schema"]:
                self.index(collection, field, schema)
        return found

    def create(self, collection: str, config: Mapping[str, Any]) -> None:
        """Create a collection, unless another publisher has created it meanwhile."""
        try:
            self._ask("PUT", "", config, collection)
        except IndexFault:
            if not self._field(self._ask("GET", "/exists", collection=collection), "exists"):
                raise

    def drop(self, collection: str) -> None:
        self._ask("DELETE", "", collection=collection, guard=self.fence)

    def describe(self, collection: str) -> dict[str, Any]:
        """Return the server's description of a collection."""
        found: dict[str, Any] = self._of_kind(self._ask("GET", "", collection=collection), dict)
        self._of_kind(found.get("payload_schema"), dict)
        return found

    def index(self, collection: str, field: str, schema: Mapping[str, Any]) -> None:
        self._ask("PUT", "/index?wait=true", {"field_name": field, "field_schema": schema}, collection)

    def upsert(self, collection: str, points: Sequence[Mapping[str, Any]], *, only_new: bool = False) -> None:
        mode = {"update_mode": "insert_only"} if only_new else {}
        self._write(collection, "", {"points": list(points), **mode}, method="PUT")

    def set_payload(self, collection: str, payload: Mapping[str, Any], where: Where) -> None:
        self._write(collection, "/payload", {"payload": payload, "filter": where})

    def delete_payload(self, collection: str, key: str, where: Where) -> None:
        self._write(collection, "/payload/delete", {"keys": [key], "filter": where})

    def delete(self, collection: str, where: Where) -> None:
        self._write(collection, "/delete", {"filter": where})

    def delete_points(self, collection: str, ids: Sequence[str]) -> None:
        self._write(collection, "/delete", {"points": list(ids)})

    def payload(self, collection: str, point: str) -> Mapping[str, Any] | None:
        """Return a point as a majority of replicas holds it; None if it is missing."""
        body = {"ids": [point], "with_payload": True, "with_vector": False}
        points = self._points(self._ask("POST", "/points?consistency=majority", body, collection))
        return (points[0].get("payload") or {}) if points else None

    def _write(self, collection: str, path: str, body: Mapping[str, Any], method: str = "POST") -> None:
        # Writes to the collection of heads need no fence, because each has its conditions.
        guard = nullcontext if collection == self.place.heads else self.fence
        self._ask(method, f"/points{path}?{_ORDERED}", body, collection, guard)

    def _unreachable(self, _: ProviderError) -> IndexUnavailable:
        return IndexUnavailable(
            f"{self.place.host} could not be reached or broke off: readers see no change, or all of it; run it again."
        )

    def _failure(self, status: int, collection: str, pause: float | None) -> Exception:
        if status == 429 and pause is not None:
            return IndexUnavailable(f"{self.place.host} allows no more requests for now: try again later.")
        error = _qdrant_error(self.place, status, collection)
        # What answered in the server's place, such as a gateway, may be gone at the next try.
        return IndexUnavailable(str(error)) if status == 200 else error
