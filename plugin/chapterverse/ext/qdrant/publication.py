"""Writes the next generation beside the live one, in the same collection. Implements `chapterverse.store.Publication`.

The field `born` of a new point, and `died` of a removed one, hold the number of the next generation, so readers of the
live one see no change. The commit is one conditional write to the scope's record. An index by another embedder, or a
damaged one, is replaced as a whole, in a collection of its own if the vector spaces differ.

The configuration of a collection that exists is never changed. To undo a publication, or to delete points that nobody
can use, makes no difference for readers of a live or recently retired generation. So both may fail, and the next
publication does it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from chapterverse.errors import ConfigurationError, IndexFault
from chapterverse.ext.qdrant.address import QdrantAddress
from chapterverse.ext.qdrant.lease import QdrantLease
from chapterverse.ext.qdrant.record import (
    CollectionLayout,
    RetiredGeneration,
    ScopeRecord,
    after,
    any_of,
    of_scope,
    scope_key,
    until,
    visible_in,
    with_conditions,
)
from chapterverse.ext.qdrant.server import NoCollection, QdrantWriter
from chapterverse.ext.qdrant.snapshot import QdrantSnapshot
from chapterverse.filters import FIELDS, NUMBERS
from chapterverse.model import EmbedderCard, Head, Point
from chapterverse.store import batches, check_next, check_point, translating_errors

#: Points of one request: about 2 MB with vectors of so many dimensions, which arrive in time at 2 Mbit/s. Fewer if
#: vectors are larger.
_BATCH_POINTS, _BATCH_DIMENSIONS = 100, 1024
#: Ids of one request.
_BATCH_IDS = 500
_KEYWORD, _INTEGER = {"type": "keyword"}, {"type": "integer"}
#: Every field that we filter by has an index, so that servers in strict mode take our requests.
_POINT_INDEXES: Mapping[str, Mapping[str, Any]] = {
    # Points of one scope are stored together, because every query is within one scope.
    "head": {"type": "keyword", "is_tenant": True},
    **dict.fromkeys(FIELDS, _KEYWORD),
    **dict.fromkeys(("chunk_id", "embed_hash"), _KEYWORD),
    **dict.fromkeys((*NUMBERS, "born", "died"), _INTEGER),
}


class QdrantPublication:
    """The next generation of one scope, under a lease."""

    def __init__(self, lease: QdrantLease, previous: QdrantSnapshot | None, embedder: EmbedderCard) -> None:
        self.previous = previous
        self._lease = lease
        self._writer = lease.writer
        self._embedder = embedder
        self._key = scope_key(lease.record.scope)
        self._epoch = lease.record.epoch + 1
        self._layout: CollectionLayout | None = None
        self._committed = False

    def renew(self) -> None:
        self._lease.renew_if_due()

    def write(self, points: Sequence[Point]) -> None:
        batch = {p.chunk.chunk_id: p for p in points}
        for point in batch.values():
            check_point(point, self._embedder.size)
        size = _BATCH_POINTS * _BATCH_DIMENSIONS // max(_BATCH_DIMENSIONS, self._embedder.size)
        for ids in batches(list(batch), max(1, size)):
            self._mark_died(ids)
            stored_points = [_to_stored(batch[i], self._key, self._epoch) for i in ids]
            self._writer.upsert(self._collection(), stored_points)

    def delete(self, chunk_ids: Sequence[str]) -> None:
        for ids in batches(list(dict.fromkeys(chunk_ids)), _BATCH_IDS):
            self._mark_died(ids)
            # Points that this publication wrote itself can be deleted, because no reader has seen them.
            self._writer.delete_points(self._collection(), [_point_id(i, self._key, self._epoch) for i in ids])

    def preview(self) -> QdrantSnapshot:
        chunks = self._writer.count(self._collection(), visible_in(self._key, self._epoch))
        head = Head("", "", 0, 0, chunks, "", self._embedder)
        snapshot = QdrantSnapshot(self._writer, head, self._key, self._epoch, self._layout_once())
        pages, languages = snapshot.values("source_file_path"), snapshot.values("language")
        snapshot.head = replace(head, pages=len(pages), languages=tuple(map(str, languages)))
        return snapshot

    def commit(self, head: Head) -> None:
        check_next(head, self.previous.head if self.previous else None)
        layout = self._layout_once()
        record = self._lease.renew()
        count = self._writer.count(layout.collection, visible_in(self._key, self._epoch))
        if count != head.chunks:
            raise IndexFault(
                f"The server holds {count} chunks of {head.scope} where {head.chunks} were written:"
                " nothing was published, run it again."
            )
        retired = [asdict(r) for r in self._retire(record)]
        self._lease.update_record(self._epoch, head=asdict(head), layout=asdict(layout), retired=retired)
        self._committed = True
        # Readers may still read the last generation. Older ones are deleted now, or the next time.
        with contextlib.suppress(IndexFault, ConfigurationError):
            self._clean_up()

    def discard(self) -> None:
        """Undo the writes, unless they are committed. If that fails, the next publication does it."""
        if self._layout is None or self._committed:
            return
        with contextlib.suppress(IndexFault, ConfigurationError):
            # The record is read again, because a commit whose reply was lost must not be undone.
            self._lease.renew()
            undo(self._lease)

    def _layout_once(self) -> CollectionLayout:
        """Return the layout, which is created at the first write: a publication that writes nothing needs none."""
        self._lease.renew_if_due()
        if self._layout is None:
            self._layout = self._create_layout()
        return self._layout

    def _create_layout(self) -> CollectionLayout:
        record = self._lease.record
        name = collection_name(self._writer.place, record.scope.site, self._embedder)
        if self._reuses_points():
            name = record.layout.collection
        elif name != record.draft:
            self._lease.update_record(record.epoch, draft=name)
        layout = _ensure_collection(self._writer, name, self._embedder)
        if not self._reuses_points():
            self._writer.set_payload(name, {"died": self._epoch}, visible_in(self._key, record.epoch))
        return layout

    def _reuses_points(self) -> bool:
        """Return whether the next generation shares the live points that are neither replaced nor deleted."""
        return self.previous is not None and self.previous.head.embedder.fingerprint == self._embedder.fingerprint

    def _collection(self) -> str:
        return self._layout_once().collection

    def _mark_died(self, chunk_ids: Sequence[str]) -> None:
        """Mark the live points of these chunks as removed by the next generation."""
        collection = self._collection()
        if self._reuses_points():
            live_points = with_conditions(visible_in(self._key, self._epoch - 1), any_of("chunk_id", chunk_ids))
            self._writer.set_payload(collection, {"died": self._epoch}, live_points)

    def _retire(self, record: ScopeRecord) -> list[RetiredGeneration]:
        """Return the generations that are retired when the next one is live."""
        if record.head is None:
            return []
        until = int(self._lease.times.clock()) + self._lease.times.grace
        return [*record.retired, RetiredGeneration(record.epoch, record.layout.collection, until)]

    def _clean_up(self) -> None:
        record, now = self._lease.record, self._lease.times.clock()
        readable = [r for r in record.retired if r.until > now]
        collect_garbage(self._lease, readable)
        if record.draft or len(readable) < len(record.retired):
            self._lease.update_record(record.epoch, retired=[asdict(r) for r in readable], draft="")


def _point_id(chunk_id: str, key: str, born: int) -> str:
    """Return the id of a chunk's point of one generation: UUIDv5 of both, so that a repeated write changes nothing."""
    return str(uuid.uuid5(uuid.UUID(chunk_id), f"{key} {born}"))


def _to_stored(point: Point, key: str, born: int) -> dict[str, Any]:
    """Return a point with the key of its scope (`head`) and its first generation (`born`)."""
    lexical = {"indices": list(point.lexical.indices), "values": list(point.lexical.values)}
    vectors: dict[str, Any] = {"lexical": lexical}
    if point.dense is not None:
        vectors["dense"] = list(point.dense)
    payload = {**point.chunk.payload(), "head": key, "born": born}
    return {"id": _point_id(point.chunk.chunk_id, key, born), "vector": vectors, "payload": payload}


def collection_name(place: QdrantAddress, site: str, embedder: EmbedderCard) -> str:
    """Return the name of a site's collection for one embedder. Points of two vector spaces never share a collection."""
    base = place.base(site)
    return base if not embedder.size else f"{base}-{hashlib.sha256(embedder.fingerprint.encode()).hexdigest()[:8]}"


def _ensure_collection(writer: QdrantWriter, name: str, embedder: EmbedderCard) -> CollectionLayout:
    """Create a collection of points and its indexes, as far as they are missing; return its layout."""
    info = writer.ensure(name, _points_config(writer.place, embedder), _POINT_INDEXES)
    with translating_errors(f"The collection {name} is no index: give the index one of its own, by ?collection=NAME."):
        config = info["config"]
        quantization = "scalar" if config.get("quantization_config") else ""
        return CollectionLayout(name, config["params"].get("shard_number") or 1, quantization)


def _points_config(place: QdrantAddress, embedder: EmbedderCard) -> dict[str, Any]:
    config: dict[str, Any] = {
        "vectors": {"dense": {"size": embedder.size, "distance": "Cosine"}} if embedder.size else {},
        "sparse_vectors": {"lexical": {"modifier": "idf"}},
        **place.copies(place.shards),
    }
    if place.quantization:
        return {**config, "quantization_config": {"scalar": {"type": "int8", "always_ram": True}}}
    # Every search is exact, so no graph is built.
    return {**config, "hnsw_config": {"m": 0}}


def undo(lease: QdrantLease) -> None:
    """Undo the additions and removals since the live generation."""
    writer, record, key = lease.writer, lease.record, scope_key(lease.record.scope)
    for collection in record.collections:
        with contextlib.suppress(NoCollection):
            writer.delete(collection, of_scope(key, after("born", record.epoch)))
            writer.delete_payload(collection, "died", of_scope(key, after("died", record.epoch)))


def collect_garbage(lease: QdrantLease, readable: Iterable[RetiredGeneration]) -> None:
    """Delete the points that are neither in the live generation nor in one of the `readable` retired ones."""
    writer, record, generations = lease.writer, lease.record, [*readable]
    if record.head is not None:
        generations.append(RetiredGeneration(record.epoch, record.layout.collection, 0))
    for collection in record.collections:
        epochs = [r.epoch for r in generations if r.collection == collection]
        with contextlib.suppress(NoCollection):
            if epochs:
                writer.delete(collection, of_scope(scope_key(record.scope), until("died", min(epochs))))
            else:
                _delete_scope(writer, record, collection)


def count_points(lease: QdrantLease) -> int:
    """Return the number of a scope's points, in all generations."""
    count = 0
    for collection in lease.record.collections:
        with contextlib.suppress(NoCollection):
            count += lease.writer.count(collection, of_scope(scope_key(lease.record.scope)))
    return count


def _delete_scope(writer: QdrantWriter, record: ScopeRecord, collection: str) -> None:
    """Delete all points of a scope from a collection, and the collection if no other scope uses it."""
    writer.delete(collection, of_scope(scope_key(record.scope)))
    if writer.count(collection, {}) == 0:
        records = (ScopeRecord.parse(p["payload"]) for p in writer.scroll(writer.place.heads, None, True, False))
        if not any(collection in other.collections for other in records if other.scope != record.scope):
            writer.drop(collection)
