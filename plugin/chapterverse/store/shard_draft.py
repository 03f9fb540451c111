"""A private shard folder that one publication writes, until it is sealed and never written again.

Everything is checked before it reaches the engine: a sparse vector of unequal lengths makes it panic and the shard
unloadable, and a batch with one bad point is half applied (qdrant-edge-py 0.9.0). After any error of the engine the
state of the draft is unknown, so it is thrown away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import qdrant_edge as edge

from chapterverse.filters import FIELDS, NUMBERS, SELDOM
from chapterverse.model import Point
from chapterverse.store import files, preallocation
from chapterverse.store.files import Manifest
from chapterverse.store.points import check_point, slices
from chapterverse.store.shard import SHARD, TERMS, Shard, TermCounts, engine_at, sparse

#: Fields with an index, except those in which all points have the same: each index makes a shard open some ms later.
_INDEXED = tuple(name for name in FIELDS if name not in SELDOM)
_BATCH = 500
#: What the disk must have for each character of text, with payload, vectors and indexes (2.5 to 4 were measured).
_BYTES_OF_A_CHARACTER = 16


class ShardDraft(Shard):
    """A shard with `write` and `delete`; it can be searched between them, after `settle`."""

    def __init__(self, folder: Path, engine: Any, terms: TermCounts, dense_size: int, manifest: Manifest) -> None:
        super().__init__(folder, engine, terms, dense_size, manifest.constants)
        self._slots = manifest.slots
        self._added: Counter[int] = Counter()
        self._settled = False

    @classmethod
    def create(cls, folder: Path, dense_size: int) -> ShardDraft:
        """Make an empty one."""
        dense = {"dense": edge.EdgeVectorParams(size=dense_size, distance=edge.Distance.Cosine)} if dense_size else {}
        config = edge.EdgeConfig(
            vectors=dense,
            sparse_vectors={"lexical": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            # Without a log there is no lock, so that any number of readers may open the sealed shard.
            wal_enabled=False,
            # More are for several segments, and this has one. Woken for each search, eight take a tenth of what a
            # busy service has.
            max_search_threads=1,
        )
        files.need(folder.parent, 0)
        folder.mkdir()
        engine = edge.EdgeShard.create(str(folder / SHARD), config)
        for name in _INDEXED:
            engine.update(_new_index(name))
        return cls(folder, engine, TermCounts.empty(), dense_size, Manifest({}, 0))

    @classmethod
    def copy(cls, source: Path, folder: Path, dense_size: int) -> ShardDraft:
        """Make one of a sealed folder."""
        files.need(folder.parent, files.allocated_bytes(source))
        files.copy(source, folder)
        with engine_at(folder):
            preallocation.restore(folder / SHARD)
            engine = edge.EdgeShard.load(str(folder / SHARD))
            return cls(folder, engine, TermCounts.load(folder / TERMS), dense_size, Manifest.load(folder))

    def write(self, points: Sequence[Point]) -> None:
        """Add points, or replace those with the same id. Raises `IndexMismatch` if a vector is malformed."""
        batch = {p.chunk.chunk_id: p for p in points}
        for point in batch.values():
            check_point(point, self._dense_size)
        self._index_varying(batch.values())
        for ids in slices(list(batch), _BATCH):
            files.need(self._folder, sum(_BYTES_OF_A_CHARACTER * len(batch[i].chunk.text) for i in ids))
            self._forget(ids)
            for i in ids:
                self._added.update(batch[i].lexical.indices)
            self._update(edge.UpdateOperation.upsert_points([_engine_point(batch[i]) for i in ids]))
            self._slots += len(ids)

    def delete(self, chunk_ids: Sequence[str]) -> None:
        for ids in slices(list(dict.fromkeys(chunk_ids)), _BATCH):
            self._forget(ids)
            self._update(edge.UpdateOperation.delete_points([*ids]))

    def settle(self) -> None:
        """Make everything visible to searches as every later reader will see it.

        The engine counts deleted points in its term statistics until it is opened again, and what it keeps in journals
        goes to its place at the first opening, which must not happen while others read.
        """
        if self._settled:
            return
        self._terms = self._terms.add(self._added)
        self._added = Counter()
        self._drop_indexes()
        self._engine.flush()
        self._engine.close()
        self._engine = edge.EdgeShard.load(str(self._folder / SHARD))
        self._settled = True

    def seal(self) -> None:
        """Write everything out and close; a power cut may still take it (see `files.sync`)."""
        self.settle()
        self._engine.flush()
        self._engine.close()
        preallocation.trim(self._folder / SHARD)
        self._terms.save(self._folder / TERMS)
        manifest = Manifest.of(self._folder, self._slots, self._constants)
        manifest.save(self._folder)
        preallocation.release(self._folder, manifest.files)

    def _index_varying(self, points: Collection[Point]) -> None:
        """Make the index of each constant in which a point differs."""
        for name, values in tuple(self._constants.items()):
            if any(set(_field_values(point, name)) != set(values) for point in points):
                self._engine.update(_new_index(name))
                del self._constants[name]

    def _drop_indexes(self) -> None:
        """Turn each field in which all points have the same into a constant."""
        chunks = self._engine.count(edge.CountRequest(exact=True))
        if not chunks:
            self._constants = {name: [] for name in self._constants}
        for name in _INDEXED:
            if name not in self._constants:
                # The most frequent come first; those of deleted points are still there.
                hits = self._engine.facet(edge.FacetRequest(name, 2, exact=True)).hits
                counts = {hit.value: hit.count for hit in hits if hit.count}
                if not counts or list(counts.values()) == [chunks]:
                    self._engine.update(edge.UpdateOperation.delete_field_index(name))
                    self._constants[name] = list(counts)

    def _forget(self, ids: Sequence[str]) -> None:
        """Take the terms of what is replaced or deleted out of the counts."""
        for record in self._engine.retrieve([UUID(i) for i in ids], False, ["lexical"]):
            self._added.subtract(sparse(record.vector).indices)

    def _update(self, operation: Any) -> None:
        self._engine.update(operation)
        self._points.clear()
        self._pages.clear()
        self._settled = False


def _new_index(name: str) -> Any:
    kind = edge.PayloadSchemaType.Integer if name in NUMBERS else edge.PayloadSchemaType.Keyword
    return edge.UpdateOperation.create_field_index(name, kind)


def _field_values(point: Point, name: str) -> tuple[str | int, ...]:
    value = getattr(point.chunk, name)
    return value if isinstance(value, tuple) else (value,)


def _engine_point(point: Point) -> Any:
    lexical = edge.SparseVector(list(point.lexical.indices), list(point.lexical.values))
    vectors: dict[str, Any] = {"lexical": lexical}
    if point.dense is not None:
        vectors["dense"] = list(point.dense)
    return edge.Point(point.chunk.chunk_id, vectors, point.chunk.payload())
