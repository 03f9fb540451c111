"""Writes to the server over the same REST. Each write may be sent twice, and counts only when a majority has it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from chapterverse.errors import IndexFault, IndexUnavailable, ProviderError
from chapterverse.ext.net.client import CONNECT_SECONDS
from chapterverse.ext.qdrant.address import QdrantAddress
from chapterverse.ext.qdrant.filters import Where
from chapterverse.ext.qdrant.server import QdrantRetry, QdrantServer, qdrant_error
from chapterverse.store import RequestGuard

#: The first server that weighs words by the points of a filter (`params.idf.corpus`, qdrant/qdrant#9661).
_MIN_VERSION = (1, 19)
#: A write is answered when it is done, and all writes have one order.
_ORDERED = "wait=true&ordering=strong"


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
        # What answered in the server's place, such as a gateway, may be gone at the next try.
        return (
            IndexUnavailable(str(qdrant_error(self.place, 200)))
            if status == 200
            else qdrant_error(self.place, status, collection)
        )
