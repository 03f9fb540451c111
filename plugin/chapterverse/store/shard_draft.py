"""A private shard folder that one publication writes, until it is sealed and never written again.

Everything is checked before it reaches the engine. A sparse vector of unequal lengths makes it panic and the shard
unloadable, and of a batch with one bad point it applies a part (qdrant-edge-py 0.9.0). After any error of the engine
the state of the draft is unknown, so it is thrown away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import qdrant_edge as edge

from chapterverse.filters import FIELDS, NUMBERS, SELDOM
from chapterverse.model import EmbedderCard, Head, Point
from chapterverse.store import batches, check_point, files
from chapterverse.store.files import Manifest
from chapterverse.store.shard import SHARD, TERMS, Shard, TermCounts, sparse, translating_read_errors

#: Fields that may have an index. Those in which all points have the same value have none, because each index makes a
#: shard open some ms later.
_INDEXED = tuple(name for name in FIELDS if name not in SELDOM)
_BATCH_POINTS = 500
#: Bytes that must be free on the disk for each character of text, with payload, vectors and indexes (2.5 to 4 were
#: measured).
_DISK_BYTES_PER_CHAR = 16
#: Bytes of one component of a dense vector, which the segment may hold twice while it is written.
_DISK_BYTES_PER_COMPONENT = 8


class ShardDraft(Shard):
    """A shard with `write` and `delete`. It can be searched after `settle`, when its head has the numbers."""

    def __init__(self, folder: Path, engine: Any, terms: TermCounts, card: EmbedderCard, manifest: Manifest) -> None:
        super().__init__(folder, engine, terms, Head("", "", 0, 0, 0, "", card), manifest.constants)
        self._slots = manifest.slots
        self._count_differences: Counter[int] = Counter()
        self._is_settled = False

    @classmethod
    def create(cls, folder: Path, card: EmbedderCard) -> ShardDraft:
        """Make an empty draft."""
        dense = {"dense": edge.EdgeVectorParams(size=card.size, distance=edge.Distance.Cosine)} if card.size else {}
        config = edge.EdgeConfig(
            vectors=dense,
            sparse_vectors={"lexical": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            # Without a log there is no lock, so any number of readers may open the sealed shard.
            wal_enabled=False,
            # One segment needs one thread; eight would cost a busy service a tenth of its processor time.
            max_search_threads=1,
        )
        files.require_space(folder.parent, 0)
        folder.mkdir()
        engine = edge.EdgeShard.create(str(folder / SHARD), config)
        for name in _INDEXED:
            engine.update(_new_index(name))
        return cls(folder, engine, TermCounts.empty(), card, Manifest({}, 0))

    @classmethod
    def copy(cls, source: Path, folder: Path, card: EmbedderCard) -> ShardDraft:
        """Make a draft with the points of a sealed folder."""
        files.require_space(folder.parent, files.allocated_bytes(source))
        files.copy_folder(source, folder)
        with translating_read_errors(folder):
            files.restore(folder / SHARD)
            engine = edge.EdgeShard.load(str(folder / SHARD))
            return cls(folder, engine, TermCounts.load(folder / TERMS), card, Manifest.load(folder))

    def write(self, points: Sequence[Point]) -> None:
        """Add points, or replace those with the same id. Raises `IndexMismatch` if a vector is malformed."""
        batch = {p.chunk.chunk_id: p for p in points}
        for point in batch.values():
            check_point(point, self._dense_size)
        self._index_varying(batch.values())
        for ids in batches(list(batch), _BATCH_POINTS):
            files.require_space(self._folder, sum(map(self._needed_bytes, map(batch.__getitem__, ids))))
            self._subtract_terms(ids)
            for i in ids:
                self._count_differences.update(batch[i].lexical.indices)
            self._update(edge.UpdateOperation.upsert_points([_engine_point(batch[i]) for i in ids]))
            self._slots += len(ids)

    def _needed_bytes(self, point: Point) -> int:
        return _DISK_BYTES_PER_CHAR * len(point.chunk.text) + _DISK_BYTES_PER_COMPONENT * self._dense_size

    def delete(self, chunk_ids: Sequence[str]) -> None:
        for ids in batches(list(dict.fromkeys(chunk_ids)), _BATCH_POINTS):
            self._subtract_terms(ids)
            self._update(edge.UpdateOperation.delete_points([*ids]))

    def settle(self) -> None:
        """Make all writes visible to searches, as every later reader will see them.

        The engine is opened again, because it counts deleted points in its term statistics until then. It also applies
        its journals at the first opening, which must not happen while others read.
        """
        if self._is_settled:
            return
        self._terms = self._terms.add(self._count_differences)
        self._count_differences = Counter()
        self._drop_indexes()
        self._engine.flush()
        self._engine.close()
        files.require_space(self._folder, 0)
        self._engine = edge.EdgeShard.load(str(self._folder / SHARD))
        pages, languages = (self._list_values(name, exact=True) for name in ("source_file_path", "language"))
        with translating_read_errors(self._folder):
            # Of what was opened again, so that a write that was lost shows.
            chunks = self._engine.count(edge.CountRequest(exact=True))
        self.head = replace(self.head, pages=len(pages), chunks=chunks, languages=tuple(languages))
        self._is_settled = True

    def seal(self) -> None:
        """Write everything out and close. A power cut may still lose it (see `files.sync`)."""
        self.settle()
        self._engine.flush()
        self._engine.close()
        files.trim(self._folder / SHARD)
        self._terms.save(self._folder / TERMS)
        manifest = Manifest(files.sizes(self._folder), self._slots, self._constants)
        manifest.save(self._folder)
        files.release(self._folder, manifest.files)

    def _index_varying(self, points: Collection[Point]) -> None:
        """Make the index of each constant in which a point differs."""
        for name, values in tuple(self._constants.items()):
            if any(set(_field_values(point, name)) != set(values) for point in points):
                self._engine.update(_new_index(name))
                del self._constants[name]

    def _drop_indexes(self) -> None:
        """Turn each field in which all points have the same value into a constant."""
        chunks = self._engine.count(edge.CountRequest(exact=True))
        if not chunks:
            self._constants = {name: [] for name in self._constants}
        for name in _INDEXED:
            if name not in self._constants:
                # The most frequent values come first. Values of deleted points are among them, with a count of 0.
                hits = self._engine.facet(edge.FacetRequest(name, 2, exact=True)).hits
                counts = {hit.value: hit.count for hit in hits if hit.count}
                if not counts or list(counts.values()) == [chunks]:
                    self._engine.update(edge.UpdateOperation.delete_field_index(name))
                    self._constants[name] = list(counts)

    def _subtract_terms(self, ids: Sequence[str]) -> None:
        """Subtract the terms of points that are replaced or deleted from the counts."""
        for record in self._engine.retrieve([UUID(i) for i in ids], False, ["lexical"]):
            self._count_differences.subtract(sparse(record.vector).indices)

    def _update(self, operation: Any) -> None:
        self._engine.update(operation)
        self._points.clear()
        self._pages.clear()
        self._field_values.clear()
        self._is_settled = False


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
