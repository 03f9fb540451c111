"""One sealed folder of the embedded engine, opened for reading.

    shard/         the engine's files (qdrant-edge-py 0.9.0)
    terms.bin      the number of chunks in which each term occurs
    manifest.json  the sizes of these files, and the values of the fields without an index, which all points share

The files are compared with the manifest before the engine opens them, because a truncated file makes it panic, or kills
the interpreter. A panic of the engine is no `Exception`, so `BaseException` is caught and becomes one of our errors.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import weakref
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import qdrant_edge as edge

from chapterverse.errors import ChapterVerseError, IndexCorrupt, IndexFault, IndexMismatch
from chapterverse.filters import SELDOM, And, Filter, In
from chapterverse.model import Chunk, Head, Point, SparseVector
from chapterverse.store import Hit, can_hold, files, rank_with_ties
from chapterverse.store.files import Manifest

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

SHARD, TERMS = "shard", "terms.bin"

#: Points of one reply of the engine.
_SCROLL_POINTS = 1000
#: Points in each half of the cache of points, about 10 kB each, so 50 MB.
_MAX_CACHED_POINTS = 2500
#: Pages in each half of the cache of pages.
_MAX_CACHED_PAGES = 125
#: Chunks of a page that is cached.
_MAX_PAGE_CHUNKS = 50
#: More values than any field has.
_ALL_VALUES = 2**31
#: Matches no point. An empty list of values would read every point, unless the field has an index.
_NO_POINT = edge.HasIdCondition(set())
#: The engine's messages if the system denies it space, rights or handles. The files themselves are intact then.
_OS_ERRORS = re.compile(r"No space left on device|Permission denied|Too many open files|Read-only file system")


class _SegmentedCache(Generic[_Key, _Value]):
    """A cache in two halves. The older half is dropped when the newer one is full. Safe to use from several threads.

    Points are cached because to make one from the engine's payload takes longer than to find it.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._newer: dict[_Key, _Value] = {}
        self._older: dict[_Key, _Value] = {}

    def get(self, key: _Key) -> _Value | None:
        value = self._newer.get(key)
        if value is None and (value := self._older.get(key)) is not None:
            self[key] = value
        return value

    def __setitem__(self, key: _Key, value: _Value) -> None:
        if len(self._newer) >= self._size:
            self._older, self._newer = self._newer, {}
        self._newer[key] = value

    def clear(self) -> None:
        self._older, self._newer = {}, {}


class TermCounts:
    """The number of chunks in which each term occurs. The engine counts them, too, but doesn't provide the counts.

    It is two arrays, sorted by term: 8 bytes a term on disk, and one binary search to look one up.
    """

    def __init__(self, terms: array[int], counts: array[int]) -> None:
        self._terms = terms
        self._counts = counts

    @classmethod
    def empty(cls) -> TermCounts:
        return cls(array("I"), array("I"))

    @classmethod
    def load(cls, path: Path) -> TermCounts:
        """Read a file that `save` wrote. Raises `IndexCorrupt` if it is damaged."""
        numbers = array("I")
        raw = path.read_bytes()
        if len(raw) % (2 * numbers.itemsize):
            raise IndexCorrupt(f"{path} is damaged: remove the index and build it again.")
        numbers.frombytes(raw)
        half = len(numbers) // 2
        return cls(numbers[:half], numbers[half:])

    def save(self, path: Path) -> None:
        path.write_bytes(self._terms.tobytes() + self._counts.tobytes())

    def add(self, differences: Counter[int]) -> TermCounts:
        """Return the sums of these counts and differences, which may be negative."""
        counts = Counter(dict(zip(self._terms, self._counts, strict=True)))
        counts.update(differences)
        pairs = sorted((term, count) for term, count in counts.items() if count)
        return TermCounts(array("I", (t for t, _ in pairs)), array("I", (c for _, c in pairs)))

    def counts(self, terms: Iterable[int]) -> list[int]:
        return [self._count(term) for term in terms]

    def _count(self, term: int) -> int:
        at = bisect_left(self._terms, term)
        return self._counts[at] if at < len(self._terms) and self._terms[at] == term else 0


class Shard:
    """The points of one folder. Implements `chapterverse.store.Snapshot`."""

    def __init__(
        self,
        folder: Path,
        engine: Any,
        terms: TermCounts,
        head: Head,
        constants: Mapping[str, Sequence[str | int]],
    ) -> None:
        self.head = head
        self._folder = folder
        self._engine = engine
        self._terms = terms
        self._constants = dict(constants)
        self._dense_size = head.embedder.size
        #: By ids as numbers, whose hashes cost nothing.
        self._points = _SegmentedCache[int, tuple[Chunk, SparseVector]](_MAX_CACHED_POINTS)
        #: By field and value.
        self._pages = _SegmentedCache[tuple[str, str], tuple[Chunk, ...]](_MAX_CACHED_PAGES)
        self._field_values: dict[str, tuple[Any, ...]] = {}

    @classmethod
    def load(cls, folder: Path, head: Head) -> Shard:
        """Open a sealed folder. Raises `IndexCorrupt` if files are missing or damaged."""
        with translating_read_errors(folder):
            manifest = Manifest.load(folder)
            manifest.check(folder)
            terms, writable = TermCounts.load(folder / TERMS), folder
            # The engine writes to the files that it opens. If it may not, it opens a copy.
            if not os.access(folder / SHARD, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
                writable = Path(tempfile.mkdtemp(prefix="chapterverse-"))
                files.copy_folder(folder / SHARD, writable / SHARD)
            files.allocate(writable / SHARD)
            shard = cls(folder, edge.EdgeShard.load(str(writable / SHARD)), terms, head, manifest.constants)
            if writable != folder:
                weakref.finalize(shard, shutil.rmtree, writable, ignore_errors=True)
            files.release(writable, manifest.files)
            return shard

    def close(self) -> None:
        """Close the files. The shard is not usable afterwards."""
        self._engine.close()

    def document_frequencies(self, indices: Sequence[int]) -> list[int]:
        return self._terms.counts(indices)

    def search_lexical(self, vector: SparseVector, limit: int, filters: Filter | None = None) -> list[Hit]:
        if not vector.indices:
            return []
        query = edge.SparseVector(list(vector.indices), list(vector.values))
        return self._search(edge.Query.Nearest(query, using="lexical"), limit, filters)

    def search_dense(self, vector: Sequence[float], limit: int, filters: Filter | None = None) -> list[Hit]:
        if len(vector) != self._dense_size:
            raise IndexMismatch(f"The index holds vectors of {self._dense_size} dimensions, not of {len(vector)}.")
        return self._search(edge.Query.Nearest(list(vector), using="dense"), limit, filters)

    def values(self, field: str) -> tuple[str | int, ...]:
        if field not in self._field_values:
            self._field_values[field] = tuple(self._list_values(field))
        return self._field_values[field]

    def page(self, value: str, field: str = "source_file_path") -> list[Chunk]:
        chunks = self._pages.get((field, value))
        if chunks is None:
            ids = [r.id for r in self._scroll(In(field, (value,)), payload=False, vectors=False)]
            with translating_read_errors(self._folder):
                points = self._fetch(ids)
            chunks = tuple(sorted((points[i.int][0] for i in ids), key=lambda c: c.chunk_index))
            if len(chunks) <= _MAX_PAGE_CHUNKS:
                self._pages[field, value] = chunks
        return list(chunks)

    def points(self, file_paths: Iterable[str] | None = None) -> Iterator[Point]:
        filters = None if file_paths is None else In("source_file_path", tuple(file_paths))
        for r in self._scroll(filters, payload=True, vectors=True):
            yield Point(Chunk.from_payload(r.payload), sparse(r.vector), _dense(r.vector))

    def vectors(self, embed_hashes: Collection[str]) -> dict[str, tuple[float, ...] | None]:
        records = self._scroll(In("embed_hash", tuple(embed_hashes)), payload=["embed_hash"], vectors=True)
        return {r.payload["embed_hash"]: _dense(r.vector) for r in records}

    def _list_values(self, name: str, *, exact: bool = False) -> list[Any]:
        """Return the distinct values of a field, ascending.

        Without exact counts the engine is thirty times as fast. The values of a sealed shard are exact all the same.
        """
        if name in SELDOM:
            points = self._scroll(None, payload=[name], vectors=False)
            return sorted({p.payload[name] for p in points if name in p.payload})
        if name in self._constants:
            return [*self._constants[name]]
        with translating_read_errors(self._folder):
            return sorted(
                hit.value for hit in self._engine.facet(edge.FacetRequest(name, _ALL_VALUES, exact=exact)).hits
            )

    def _search(self, query: Any, limit: int, filters: Filter | None) -> list[Hit]:
        """Return the best hits. The engine only ranks; payloads are fetched for the best hits alone."""
        where = self._where(filters)

        def rank(size: int) -> list[tuple[float, Any]]:
            # The engine makes a new object for an id at each access.
            return [
                (-r.score, r.id) for r in self._engine.query(edge.QueryRequest(query=query, limit=size, filter=where))
            ]

        with translating_read_errors(self._folder):
            ranked = rank_with_ties(rank, lambda result: result, limit)
            points = self._fetch([i for _, i in ranked])
            return [Hit(points[i.int][0], -negated, points[i.int][1]) for negated, i in ranked]

    def _fetch(self, ids: Sequence[Any]) -> dict[int, tuple[Chunk, SparseVector]]:
        """Return points by their ids as numbers; the engine loads those that are not in the cache."""
        points = {i.int: point for i in ids if (point := self._points.get(i.int))}
        missing = [i for i in ids if i.int not in points]
        for record in self._engine.retrieve(missing, True, ["lexical"]) if missing else ():
            number = record.id.int
            points[number] = self._points[number] = Chunk.from_payload(record.payload), sparse(record.vector)
        return points

    def _scroll(self, filters: Filter | None, *, payload: bool | list[str], vectors: bool) -> Iterator[Any]:
        where, after = self._where(filters), None
        while True:
            with translating_read_errors(self._folder):
                records, after = self._engine.scroll(
                    edge.ScrollRequest(
                        offset=after, limit=_SCROLL_POINTS, filter=where, with_payload=payload, with_vector=vectors
                    )
                )
            yield from records
            if after is None:
                return

    def _where(self, filters: Filter | None) -> Any:
        return None if filters is None else edge.Filter(must=[self._condition(filters)])

    def _condition(self, filters: Filter) -> Any:
        if isinstance(filters, In):
            # Any, because the stubs ask for lists of one type. A value that can't be stored can't be found either.
            values: list[Any] = [value for value in filters.values if can_hold(value)]
            constant = self._constants.get(filters.field)
            if constant is not None:
                return edge.Filter() if set(constant).intersection(values) else _NO_POINT
            return edge.FieldCondition(filters.field, match=edge.MatchAny(values)) if values else _NO_POINT
        if isinstance(filters, And):
            return edge.Filter(must=[self._condition(part) for part in filters.parts])
        # The engine takes an empty list for no condition.
        return edge.Filter(should=[self._condition(part) for part in filters.parts] or [_NO_POINT])


@contextlib.contextmanager
def translating_read_errors(folder: Path) -> Iterator[None]:
    """Turn any error of the engine into an error with one sentence.

    Raises:
        IndexFault: the system did not allow reading the files, which are intact.
        IndexCorrupt: the index is damaged.
    """
    try:
        yield
    except (ChapterVerseError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        os_error = _OS_ERRORS.search(str(error))
        if os_error:
            raise IndexFault(
                f"The index in {folder} can't be opened ({os_error.group()}): it is not harmed."
            ) from error
        raise IndexCorrupt(f"The index in {folder} is damaged: build it again.") from error


def sparse(vectors: Mapping[str, Any]) -> SparseVector:
    vector = vectors["lexical"]
    return SparseVector(tuple(vector.indices), tuple(vector.values))


def _dense(vectors: Mapping[str, Any]) -> tuple[float, ...] | None:
    dense = vectors.get("dense")
    return None if dense is None else tuple(dense)
