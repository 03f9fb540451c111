"""One folder of the embedded engine: points, their vectors, and how many chunks hold each term.

Everything is checked before it reaches the engine: a sparse vector of unequal lengths makes it panic and the shard
unloadable, and a batch with one bad point is half applied (qdrant-edge-py 0.9.0).
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import qdrant_edge as edge

from chapterverse.errors import IndexCorrupt, IndexMismatch
from chapterverse.model import Chunk, Point, SparseVector
from chapterverse.store import INDEXED_FIELDS, Filters, Hit

_BATCH = 500
_SCROLL = 1000
_INTEGER_FIELDS = {"chunk_index"}
#: More than is asked for is fetched, so that ties at the edge are cut by chunk id and not by the engine's whim.
_TIE_MARGIN = 16


class Shard:
    """A shard folder, either a private draft that is written or a sealed one that is only read."""

    def __init__(self, folder: Path, engine: Any) -> None:
        self._folder = folder
        self._engine = engine
        self._terms = _Terms.load(folder / "terms.bin")

    @classmethod
    def create(cls, folder: Path, dense_size: int) -> Shard:
        dense = {"dense": edge.EdgeVectorParams(size=dense_size, distance=edge.Distance.Cosine)} if dense_size else {}
        config = edge.EdgeConfig(
            vectors=dense,
            sparse_vectors={"lexical": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            # Without a log there is no lock, so that any number of readers may open the sealed shard.
            wal_enabled=False,
        )
        folder.mkdir()
        engine = edge.EdgeShard.create(str(folder / "shard"), config)
        for name in INDEXED_FIELDS:
            kind = edge.PayloadSchemaType.Integer if name in _INTEGER_FIELDS else edge.PayloadSchemaType.Keyword
            engine.update(edge.UpdateOperation.create_field_index(name, kind))
        return cls(folder, engine)

    @classmethod
    def load(cls, folder: Path) -> Shard:
        """Open a sealed shard. Raises `IndexCorrupt` if the engine can't."""
        if not (folder / "shard").is_dir():
            raise IndexCorrupt(f"{folder} is missing: remove the index and build it again.")
        try:
            return cls(folder, edge.EdgeShard.load(str(folder / "shard")))
        # The engine panics on damaged files, and its panic is no Exception.
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise IndexCorrupt(f"{folder} is damaged: remove the index and build it again.") from None

    @classmethod
    def copy(cls, source: Path, folder: Path) -> Shard:
        """Open a private copy of a sealed shard, keeping the holes of its sparse files."""
        flags = ["-Rc"] if sys.platform == "darwin" else ["-R", "--sparse=always", "--reflink=auto"]
        if subprocess.run(["cp", *flags, str(source), str(folder)], capture_output=True, check=False).returncode:  # noqa: S603, S607
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(source, folder)
        return cls.load(folder)

    def write(self, points: Sequence[Point]) -> None:
        for at in range(0, len(points), _BATCH):
            batch = [_engine_point(p) for p in points[at : at + _BATCH]]
            self._engine.update(edge.UpdateOperation.upsert_points(batch))

    def delete(self, chunk_ids: Sequence[str]) -> None:
        for at in range(0, len(chunk_ids), _BATCH):
            self._engine.update(edge.UpdateOperation.delete_points(list(chunk_ids[at : at + _BATCH])))

    def recount(self) -> tuple[int, int]:
        """Count again in how many chunks each term occurs; return how many pages and chunks there are."""
        counts: Counter[int] = Counter()
        pages: set[str] = set()
        chunks = 0
        for record in self._scroll(None, payload=["source_file_path"], vectors=["lexical"]):
            counts.update(record.vector["lexical"].indices)
            pages.add(record.payload["source_file_path"])
            chunks += 1
        self._terms = _Terms.from_counts(counts)
        self._terms.save(self._folder / "terms.bin")
        return len(pages), chunks

    def seal(self) -> None:
        """Make everything durable and close: nobody writes here again."""
        self._engine.flush()
        self._engine.close()

    def close(self) -> None:
        self._engine.close()

    def document_frequencies(self, indices: Sequence[int]) -> list[int]:
        return [self._terms.count(i) for i in indices]

    def search_lexical(self, vector: SparseVector, limit: int, filters: Filters | None = None) -> list[Hit]:
        if not vector.indices:
            return []
        query = edge.SparseVector(list(vector.indices), list(vector.values))
        return self._search(edge.Query.Nearest(query, using="lexical"), limit, filters)

    def search_dense(self, vector: Sequence[float], limit: int, filters: Filters | None = None) -> list[Hit]:
        return self._search(edge.Query.Nearest(list(vector), using="dense"), limit, filters)

    def _search(self, query: Any, limit: int, filters: Filters | None) -> list[Hit]:
        request = edge.QueryRequest(
            query=query,
            limit=limit + _TIE_MARGIN,
            filter=_engine_filter(filters),
            with_payload=True,
            with_vector=["lexical"],
        )
        hits = [Hit(Chunk.from_payload(r.payload), r.score, _sparse(r.vector)) for r in self._engine.query(request)]
        return sorted(hits, key=lambda h: (-h.score, h.chunk.chunk_id))[:limit]

    def page(self, file_path: str) -> list[Chunk]:
        records = self._scroll({"source_file_path": [file_path]}, payload=True, vectors=False)
        return sorted((Chunk.from_payload(r.payload) for r in records), key=lambda c: c.chunk_index)

    def points(self, file_paths: Iterable[str] | None = None) -> Iterator[Point]:
        wanted = None if file_paths is None else list(file_paths)
        if wanted == []:
            return
        filters = None if wanted is None else {"source_file_path": wanted}
        for r in self._scroll(filters, payload=True, vectors=True):
            dense = r.vector.get("dense")
            yield Point(Chunk.from_payload(r.payload), _sparse(r.vector), None if dense is None else tuple(dense))

    def _scroll(
        self, filters: Filters | None, *, payload: bool | list[str], vectors: bool | list[str]
    ) -> Iterator[Any]:
        after = None
        while True:
            records, after = self._engine.scroll(
                edge.ScrollRequest(
                    offset=after,
                    limit=_SCROLL,
                    filter=_engine_filter(filters),
                    with_payload=payload,
                    with_vector=vectors,
                )
            )
            yield from records
            if after is None:
                return


class _Terms:
    """Document frequencies as two sorted arrays: 8 bytes a term on disk, one binary search to look one up."""

    def __init__(self, terms: array[int], counts: array[int]) -> None:
        self._terms = terms
        self._counts = counts

    @classmethod
    def from_counts(cls, counts: Counter[int]) -> _Terms:
        ordered = sorted(counts.items())
        return cls(array("I", (t for t, _ in ordered)), array("I", (c for _, c in ordered)))

    @classmethod
    def load(cls, path: Path) -> _Terms:
        both = array("I")
        if path.exists():
            raw = path.read_bytes()
            if len(raw) % 8:
                raise IndexCorrupt(f"{path} is damaged: remove the index and build it again.")
            both.frombytes(raw)
        half = len(both) // 2
        return cls(both[:half], both[half:])

    def save(self, path: Path) -> None:
        path.write_bytes(self._terms.tobytes() + self._counts.tobytes())

    def count(self, term: int) -> int:
        at = bisect_left(self._terms, term)
        return self._counts[at] if at < len(self._terms) and self._terms[at] == term else 0


def _engine_point(point: Point) -> Any:
    indices, values = point.lexical.indices, point.lexical.values
    sound = len(indices) == len(values) and len(set(indices)) == len(indices) and all(map(math.isfinite, values))
    if not sound or not all(map(math.isfinite, point.dense or ())):
        raise IndexMismatch(f"The vectors of chunk {point.chunk.chunk_id} are malformed: nothing was published.")
    vectors: dict[str, Any] = {"lexical": edge.SparseVector(list(indices), list(values))}
    if point.dense is not None:
        vectors["dense"] = list(point.dense)
    return edge.Point(point.chunk.chunk_id, vectors, point.chunk.payload())


def _engine_filter(filters: Filters | None) -> Any:
    if not filters:
        return None
    # The stubs want lists of one type; a filter's values are of its field's type.
    conditions: list[Any] = []
    for name, values in sorted(filters.items()):
        anything: list[Any] = list(values)
        conditions.append(edge.FieldCondition(name, match=edge.MatchAny(anything)))
    return edge.Filter(must=conditions)


def _sparse(vectors: dict[str, Any]) -> SparseVector:
    vector = vectors["lexical"]
    return SparseVector(tuple(vector.indices), tuple(vector.values))
