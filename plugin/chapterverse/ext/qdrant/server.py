"""Requests to the server over REST by the standard library, for the command line and for Lambda.

Every body equals the one that `qdrant-client` sends for the same, as tests with that client check.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import quote

from chapterverse.errors import ConfigurationError, IndexFault, IndexMissing, IndexUnavailable, ProviderError
from chapterverse.ext.net import JsonClient
from chapterverse.ext.net.retry import RetryPolicy
from chapterverse.ext.qdrant.address import QdrantAddress
from chapterverse.ext.qdrant.filters import Where
from chapterverse.store import RequestGuard

#: Points of one request without payloads and vectors. No reply may exceed the size that `net` accepts.
_MAX_IDS = 1000
#: Points of one request with payloads or vectors.
MAX_POINTS = 128

#: Statuses after which the server may answer later.
_RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})


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
        result = self._post(collection, "points/count", {"filter": where, "exact": True})
        return int(self._of_kind(self._field(result, "count"), int))

    def query(self, collection: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        return self._with_scores(self._post(collection, "points/query", body))

    def query_batch(self, collection: str, bodies: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
        result = self._of_kind(self._post(collection, "points/query/batch", {"searches": list(bodies)}), list)
        if len(result) != len(bodies):
            raise qdrant_error(self.place, 200)
        return [self._with_scores(one) for one in result]

    def retrieve(self, collection: str, ids: Sequence[str], vectors: bool | list[str]) -> list[dict[str, Any]]:
        """Return those of these points that exist, with their payloads."""
        body = {"ids": list(ids), "with_payload": True, "with_vector": vectors}
        return self._points(self._post(collection, "points", body))

    def facet(self, collection: str, where: Where, field: str, limit: int) -> list[str | int]:
        """Return at most `limit` distinct values of an indexed field."""
        body = {"key": field, "limit": limit, "filter": where, "exact": True}
        hits = self._of_kind(self._field(self._post(collection, "facet", body), "hits"), list)
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
            result = self._post(collection, "points/scroll", body)
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
            raise qdrant_error(self.place, 200)
        return result

    def _post(self, collection: str, path: str, body: Mapping[str, Any]) -> Any:
        return self._ask("POST", f"/{path}", body, collection)

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
        return qdrant_error(self.place, status, collection)


def qdrant_error(place: QdrantAddress, status: int, collection: str = "") -> Exception:
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
