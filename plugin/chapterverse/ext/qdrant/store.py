"""The store on a Qdrant server: opens snapshots and publications."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from chapterverse.errors import IndexCorrupt, IndexMissing
from chapterverse.ext.leases import seconds_until_gone
from chapterverse.ext.qdrant.address import QdrantAddress
from chapterverse.ext.qdrant.lease import LeaseTimes, QdrantLease
from chapterverse.ext.qdrant.publication import QdrantPublication, collect_garbage, count_points, undo
from chapterverse.ext.qdrant.record import ScopeRecord, scope_key
from chapterverse.ext.qdrant.server import ONCE, NoCollection, QdrantRetry, QdrantServer, QdrantWriter
from chapterverse.ext.qdrant.snapshot import QdrantSnapshot
from chapterverse.model import EmbedderCard, Head, Scope
from chapterverse.settings import Settings
from chapterverse.store import RequestGuard


class QdrantStore:
    """All generations on one server. Implements `chapterverse.store.Store` and `GuardedStore`."""

    max_age = 10.0

    def __init__(self, place: QdrantAddress, times: LeaseTimes | None = None, retry: QdrantRetry | None = None) -> None:
        self.place = place
        self._times = times or LeaseTimes()
        self._retry = retry or QdrantRetry()
        self._server = QdrantServer(place, replace(ONCE, try_seconds=self._retry.try_seconds))

    @classmethod
    def from_settings(cls, settings: Settings, place: str) -> QdrantStore:
        """Return the store at `URL?option=value&…`. Nothing is sent yet. Raises as `QdrantAddress.parse` does."""
        return cls(QdrantAddress.parse(place, settings))

    @property
    def identity(self) -> str:
        return f"{self.place.url.lower()} {self.place.collection}"

    def guard(self, request_guard: RequestGuard) -> None:
        self._server.request_guard = request_guard

    @property
    def lease_seconds(self) -> float:
        return self._times.lease

    def heads(self) -> list[Head]:
        try:
            points = self._server.scroll(self.place.heads, None, True, False)
            records = [ScopeRecord.parse(p["payload"]) for p in points]
        except NoCollection:
            return []
        return sorted((r.head for r in records if r.head is not None), key=lambda h: h.scope)

    def head(self, scope: Scope) -> Head | None:
        record = self._record(scope)
        return record.head if record else None

    def snapshot(self, scope: Scope) -> QdrantSnapshot:
        record = self._record(scope)
        if record is None or record.head is None:
            raise IndexMissing(f"Nothing was published for {scope} yet: index the site to this server first.")
        return QdrantSnapshot.live(self._server, record.head, record.epoch, record.layout)

    def is_complete(self, scope: Scope) -> bool:
        try:
            return self.snapshot(scope).is_complete()
        except IndexMissing:
            return True
        except IndexCorrupt:
            return False

    def is_publishing(self, scope: Scope) -> bool:
        record = self._record(scope)
        return bool(
            record
            and record.lease
            and record.lease_until > self._times.clock()
            and seconds_until_gone(record.lease) is None
        )

    @contextlib.contextmanager
    def publish(self, scope: Scope, embedder: EmbedderCard) -> Iterator[QdrantPublication]:
        with self._lease(scope) as lease:
            undo(lease)
            publication = QdrantPublication(lease, _previous(lease), embedder)
            try:
                yield publication
            except BaseException:
                lease.writer.stop_retrying()
                raise
            finally:
                publication.discard()

    def unpublish(self, scope: Scope) -> None:
        if self.head(scope) is None:
            return
        with self._lease(scope) as lease:
            undo(lease)
            lease.update_record(lease.record.epoch, head=None)
        self.sweep(scope)

    def sweep(self, scope: Scope) -> int:
        if self._record(scope) is None:
            return 0
        with self._lease(scope) as lease:
            before = count_points(lease)
            undo(lease)
            collect_garbage(lease, ())
            count = before - count_points(lease)
            lease.update_record(lease.record.epoch, retired=[], draft="")
            return count

    def _lease(self, scope: Scope) -> contextlib.AbstractContextManager[QdrantLease]:
        writer = QdrantWriter(self.place, self._retry)
        writer.check_version()
        return QdrantLease.hold(writer, scope, self._times)

    def _record(self, scope: Scope) -> ScopeRecord | None:
        try:
            points = self._server.retrieve(self.place.heads, [scope_key(scope)], vectors=False)
        except NoCollection:
            return None
        return ScopeRecord.parse(points[0]["payload"]) if points else None


def _previous(lease: QdrantLease) -> QdrantSnapshot | None:
    record = lease.record
    if record.head is None:
        return None
    live = QdrantSnapshot.live(lease.writer, record.head, record.epoch, record.layout)
    # A damaged generation can only be replaced as a whole.
    return live if live.is_complete() else None
