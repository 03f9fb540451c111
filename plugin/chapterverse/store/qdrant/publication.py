"""Writing one generation beside the live one, in the same collection. Implements `chapterverse.store.Publication`.

New points are born in the next generation and removed ones die in it, so that readers of the live one see neither. The
commit is one conditional write to the scope's record. An index by another embedder, or one that was damaged, is
written anew, in a collection of its own where the vectors are of another space.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from chapterverse.errors import ConfigurationError, IndexFault
from chapterverse.model import EmbedderCard, Head, Point
from chapterverse.store.heads import check_next
from chapterverse.store.points import check_point, slices
from chapterverse.store.qdrant.collections import collection_name, ensure
from chapterverse.store.qdrant.filters import among, both, view
from chapterverse.store.qdrant.garbage import collect_garbage, undo
from chapterverse.store.qdrant.lease import LeaseTimes, QdrantLease
from chapterverse.store.qdrant.record import Layout, QdrantHead, RetiredGeneration, key_of
from chapterverse.store.qdrant.server import QdrantServer
from chapterverse.store.qdrant.snapshot import QdrantSnapshot
from chapterverse.store.qdrant.writer import QdrantWriter

#: Points, and ids, of one request: about 2 MB with vectors of 1024 dimensions.
_BATCH, _IDS = 100, 500


class QdrantPublication:
    """The next generation of one scope, under a lease."""

    def __init__(
        self,
        lease: QdrantLease,
        writer: QdrantWriter,
        server: QdrantServer,
        previous: QdrantSnapshot | None,
        embedder: EmbedderCard,
        times: LeaseTimes,
    ) -> None:
        self.previous = previous
        self._lease = lease
        self._writer = writer
        self._server = server
        self._embedder = embedder
        self._times = times
        self._key = key_of(lease.record.scope)
        self._epoch = lease.record.epoch + 1
        self._layout: Layout | None = None
        self._committed = False

    def renew(self) -> None:
        self._lease.keep()

    def write(self, points: Sequence[Point]) -> None:
        batch = {p.chunk.chunk_id: p for p in points}
        for point in batch.values():
            check_point(point, self._embedder.size)
        for ids in slices(list(batch), _BATCH):
            self._bury(ids)
            stored_points = [_to_stored(batch[i], self._key, self._epoch) for i in ids]
            self._writer.upsert(self._collection(), stored_points)

    def delete(self, chunk_ids: Sequence[str]) -> None:
        for ids in slices(list(dict.fromkeys(chunk_ids)), _IDS):
            self._bury(ids)
            # What this very publication wrote was never seen by anybody.
            self._writer.delete_points(self._collection(), [_point_id(i, self._key, self._epoch) for i in ids])

    def preview(self) -> QdrantSnapshot:
        collection, where = self._collection(), view(self._key, self._epoch)
        chunks = self._writer.count(collection, where)
        names = ("source_file_path", "language")
        pages, languages = (self._writer.values(collection, name, where, max(1, chunks)) for name in names)
        head = Head("", "", 0, len(pages), chunks, "", self._embedder, tuple(sorted(languages)))
        return QdrantSnapshot(self._server, head, self._key, self._epoch, self._open())

    def commit(self, head: Head) -> None:
        check_next(head, self.previous.head if self.previous else None)
        layout = self._open()
        record = self._lease.confirm()
        count = self._writer.count(layout.collection, view(self._key, self._epoch))
        if count != head.chunks:
            raise IndexFault(
                f"The server holds {count} chunks of {head.scope} where {head.chunks} were written:"
                " nothing was published, run it again."
            )
        retired = [asdict(r) for r in self._retire(record)]
        self._lease.change(self._epoch, head=asdict(head), layout=asdict(layout), retired=retired)
        self._committed = True
        # Those who looked a moment ago still read; older leftovers go now, or the next time.
        with contextlib.suppress(IndexFault, ConfigurationError):
            self._clean_up()

    def discard(self) -> None:
        """Undo the writes, unless they were committed. If that fails, the next publication does it."""
        if self._layout is None or self._committed:
            return
        with contextlib.suppress(IndexFault, ConfigurationError):
            # By the record as it is now: after a commit whose reply was lost there is nothing to take back.
            undo(self._writer, self._lease.confirm())

    def _open(self) -> Layout:
        """Return where points go; prepared at the first write, for a publication that writes nothing needs nothing."""
        self._lease.keep()
        if self._layout is None:
            self._layout = self._prepare()
        return self._layout

    def _prepare(self) -> Layout:
        record = self._lease.record
        name = collection_name(self._server.place, record.scope.site, self._embedder)
        if self._continues():
            name = record.layout.collection
        elif name != record.draft:
            self._lease.change(record.epoch, draft=name)
        layout = ensure(self._writer, name, self._embedder)
        if not self._continues():
            self._writer.set_payload(name, {"died": self._epoch}, view(self._key, record.epoch))
        return layout

    def _continues(self) -> bool:
        """Whether the live points stay but for those that are written anew or deleted."""
        return self.previous is not None and self.previous.head.embedder.fingerprint == self._embedder.fingerprint

    def _collection(self) -> str:
        return self._open().collection

    def _bury(self, chunk_ids: Sequence[str]) -> None:
        """Let the live points of these chunks die with the next generation."""
        collection = self._collection()
        if self._continues():
            living = both(view(self._key, self._epoch - 1), among("chunk_id", chunk_ids))
            self._writer.set_payload(collection, {"died": self._epoch}, living)

    def _retire(self, record: QdrantHead) -> list[RetiredGeneration]:
        """Return the generations that are retired once the next one is live."""
        if record.head is None:
            return []
        until = int(self._times.clock()) + self._times.grace
        return [*record.retired, RetiredGeneration(record.epoch, record.layout.collection, until)]

    def _clean_up(self) -> None:
        record, now = self._lease.record, self._times.clock()
        readable = [r for r in record.retired if r.until > now]
        collect_garbage(self._writer, self._server, record, readable)
        if record.draft or len(readable) < len(record.retired):
            self._lease.change(record.epoch, retired=[asdict(r) for r in readable], draft="")


def _point_id(chunk_id: str, key: str, born: int) -> str:
    """Return the id of a chunk's point of one generation: UUIDv5 of both, so that writing it twice writes it once."""
    return str(uuid.uuid5(uuid.UUID(chunk_id), f"{key} {born}"))


def _to_stored(point: Point, key: str, born: int) -> dict[str, Any]:
    """Return a point with the scope that it belongs to (`head`) and the generation that brings it (`born`)."""
    lexical = {"indices": list(point.lexical.indices), "values": list(point.lexical.values)}
    vectors: dict[str, Any] = {"lexical": lexical}
    if point.dense is not None:
        vectors["dense"] = list(point.dense)
    payload = {**point.chunk.payload(), "head": key, "born": born}
    return {"id": _point_id(point.chunk.chunk_id, key, born), "vector": vectors, "payload": payload}
