"""The read side: REST by the standard library, the same for the command line and for Lambda.

Every body equals the one that `qdrant-client` sends for the same question (tested with the client as oracle).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import quote

from chapterverse.errors import ConfigurationError, IndexFault, IndexMissing, IndexUnavailable, ProviderError
from chapterverse.net import JsonClient, Reply
from chapterverse.net.retry import RetryPolicy
from chapterverse.store.protocols import Asking
from chapterverse.store.qdrant.address import QdrantAddress
from chapterverse.store.qdrant.filters import Where

#: Points of one request, without and with their payloads, so that no reply exceeds the size that `net` accepts.
PAGE, SLICE = 1000, 128


#: Statuses of a server that may answer later.
RETRIED = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class QdrantRetry(RetryPolicy):
    """How a publisher tries again. No further try begins after `seconds`, which a lease outlives.

    Attributes:
        request: seconds that one try may take; connecting has its own, shorter bound.
    """

    seconds: float = 15.0
    first: float = 0.25
    longest: float = 8.0
    spread: tuple[float, float] = (0.5, 1.0)
    request: int = 10


#: How a reader does: a person is waiting, so there is no further try.
ONCE = QdrantRetry(tries=1)


class NoCollection(IndexMissing):
    """The collection of a request does not exist."""


class QdrantServer:
    """Answers of one server, each method one request but for `scroll`.

    Attributes:
        asking: in which each request runs.

    Raises (all methods):
        IndexMissing: the collection is not there.
        IndexUnavailable: the server can't be reached, or failed.
        IndexFault: it refused, or is no Qdrant server.
        ConfigurationError: it refused the key.
    """

    def __init__(self, place: QdrantAddress, retry: QdrantRetry = ONCE) -> None:
        self.place = place
        self.asking: Asking = nullcontext
        self._retry = retry
        headers = {"api-key": place.key} if place.key else {}
        self._client = JsonClient(place.url, headers, total_seconds=retry.request)

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
        """Return distinct values of an indexed field, at most so many."""
        body = {"key": field, "limit": limit, "filter": where, "exact": True}
        hits = self._of_kind(self._field(self._post(collection, "facet", body), "hits"), list)
        return [self._of_kind(self._field(hit, "value"), str | int) for hit in hits]

    def scroll(
        self, collection: str, where: Where | None, payload: bool | list[str], vectors: bool | list[str]
    ) -> Iterator[dict[str, Any]]:
        """Yield the points that match, by their own ids."""
        limit = PAGE if not vectors and payload is not True else SLICE
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
        where = f"/collections/{quote(collection, safe='')}/{path}"
        return self._ask(lambda: self._client.post(where, body), collection)

    def _ask(self, send: Callable[[], Reply], collection: str) -> Any:
        started = time.monotonic()
        for failed in count(1):
            asked = None
            try:
                with self.asking():
                    reply = _reply_to(send)
                    asked = reply.pause
                    failure = _failure(reply, self.place, collection)
                    if isinstance(failure, IndexUnavailable):
                        raise failure
            except IndexUnavailable:
                pause = self._retry.pause(failed, time.monotonic() - started, asked)
                if pause is None:
                    raise
                self._retry.sleep(pause)
                continue
            if failure:
                raise failure
            return reply.body["result"]
        raise AssertionError("the last try returns or raises")


def _reply_to(send: Callable[[], Reply]) -> Reply:
    try:
        return send()
    except ProviderError as error:
        raise IndexUnavailable(f"The index can't be read: {error}") from None


def _failure(reply: Reply, place: QdrantAddress, collection: str) -> Exception | None:
    """Return the error that a reply is; None where it holds a result."""
    if reply.status == 200 and isinstance(reply.body, dict) and reply.body.get("result") is not None:
        return None
    return qdrant_error(place, reply.status, collection)


def qdrant_error(place: QdrantAddress, status: int, collection: str = "") -> Exception:
    """Return the error for a reply that doesn't fit its request; it never quotes the server's words."""
    if status in {401, 403}:
        return ConfigurationError(f"{place.host} refused the key: set QDRANT_API_KEY to one that it accepts.")
    if status == 404 and collection:
        return NoCollection(f"There is no collection {collection} on {place.host}: index the site again.")
    if status == 200:
        return IndexFault(f"{place.host} answered with something that no Qdrant server says: check the address.")
    if 400 <= status < 500 and status not in RETRIED:
        return IndexFault(
            f"{place.host} refused what was asked (status {status}): give the index a collection of its own,"
            " by ?collection=NAME."
        )
    return IndexUnavailable(f"{place.host} failed with status {status}: the index is not harmed, try again later.")
