"""One generation on the server, read by REST. Implements `chapterverse.store.Snapshot`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from chapterverse.errors import IndexFault, IndexMismatch
from chapterverse.ext.qdrant.record import (
    CollectionLayout,
    Where,
    any_of,
    scope_key,
    visible_in,
    with_conditions,
    with_reader_filter,
)
from chapterverse.ext.qdrant.server import MAX_POINTS, NoCollection, QdrantServer
from chapterverse.filters import Filter
from chapterverse.model import Chunk, Head, Point, SparseVector
from chapterverse.store import Hit, batches, rank_with_ties, translating_errors

#: Values of one filter.
_FILTER_VALUES = 500
#: Queries for a single term in one batch.
_BATCH_TERMS = 64
#: Distinct values of one reply: a megabyte or two of addresses.
_MAX_VALUES = 16_384
#: Sparse vectors have unsigned 32-bit indices.
_INDICES = range(2**32)
#: Distance of a decoded frequency from an integer up to which it is trusted. 32-bit scores are off by .01 at 100,000
#: chunks.
_MAX_ROUNDING = 0.2
_NO_CHUNK = "A point on the server is no chunk of this index: index the site again."


class QdrantSnapshot:
    """One generation: the points that were `born` in it or before, and have not `died` yet."""

    def __init__(self, server: QdrantServer, head: Head, key: str, epoch: int, layout: CollectionLayout) -> None:
        self.head = head
        self._server = server
        self._layout = layout
        self._view = visible_in(key, epoch)
        # A generation never changes, so its counts are cached.
        self._frequencies: dict[int, int] = {}
        self._values: dict[str, tuple[str | int, ...]] = {}

    @classmethod
    def live(cls, server: QdrantServer, head: Head, epoch: int, layout: CollectionLayout) -> QdrantSnapshot:
        return cls(server, head, scope_key(head.scope), epoch, layout)

    @property
    def collection(self) -> str:
        return self._layout.collection

    def is_complete(self) -> bool:
        """Return whether the server holds as many chunks as the head states."""
        try:
            return self._server.count(self.collection, self._view) == self.head.chunks
        except NoCollection:
            return False

    def search_lexical(self, vector: SparseVector, limit: int, filters: Filter | None = None) -> list[Hit]:
        if not vector.indices:
            return []
        return self._search(lexical(self._view, vector, filters), limit)

    def search_dense(self, vector: Sequence[float], limit: int, filters: Filter | None = None) -> list[Hit]:
        if len(vector) != self.head.embedder.size:
            raise IndexMismatch(
                f"The index holds vectors of {self.head.embedder.size} dimensions, not of {len(vector)}."
            )
        return self._search(dense(self._view, vector, filters, self._layout), limit)

    def document_frequencies(self, indices: Sequence[int]) -> list[int]:
        unknown = sorted({i for i in indices if i in _INDICES} - self._frequencies.keys())
        size = _BATCH_TERMS if self._layout.shards == 1 else 1
        for terms in batches(unknown, size):
            self._frequencies.update(self._count(terms))
        return [self._frequencies.get(i, 0) for i in indices]

    def values(self, field: str) -> tuple[str | int, ...]:
        if field not in self._values:
            self._values[field] = tuple(sorted(self._fetch_values(field)))
        return self._values[field]

    def page(self, value: str, field: str = "source_file_path") -> list[Chunk]:
        where = with_conditions(self._view, any_of(field, [value]))
        points = self._server.scroll(self.collection, where, True, False)
        return sorted((_chunk(p) for p in points), key=lambda c: c.chunk_index)

    def points(self, file_paths: Iterable[str] | None = None) -> Iterator[Point]:
        ids = self._ids(None if file_paths is None else sorted(set(file_paths)))
        for batch in batches(ids, MAX_POINTS):
            points = {_chunk_id(p): p for p in self._retrieve([point_id for _, point_id in batch])}
            for chunk_id, _ in batch:
                yield _point(points[chunk_id])

    def vectors(self, embed_hashes: Collection[str]) -> dict[str, tuple[float, ...] | None]:
        with_vectors: bool | list[str] = ["dense"] if self.head.embedder.size else False
        vectors: dict[str, tuple[float, ...] | None] = {}
        for batch in batches(sorted(embed_hashes), _FILTER_VALUES):
            where = with_conditions(self._view, any_of("embed_hash", batch))
            for p in self._server.scroll(self.collection, where, ["embed_hash"], with_vectors):
                vectors[p["payload"]["embed_hash"]] = _dense(p) if with_vectors else None
        return vectors

    def _search(self, body: Mapping[str, Any], limit: int) -> list[Hit]:
        """Return the best hits. The server only ranks; payloads are fetched for the best hits alone."""

        def rank(size: int) -> list[dict[str, Any]]:
            return self._server.query(self.collection, {**body, "limit": size})

        ranked = rank_with_ties(rank, lambda p: (-p["score"], _chunk_id(p)), limit)
        points = {p["id"]: p for p in self._retrieve([p["id"] for p in ranked], ["lexical"])}
        return [Hit(_chunk(points[p["id"]]), p["score"], _sparse(points[p["id"]])) for p in ranked]

    def _count(self, terms: Sequence[int]) -> dict[int, int]:
        """Return the number of chunks in which each term occurs.

        The best hit of a query of one term scores idf * weight, and the frequency follows from idf. So one hit a term
        is enough. If the collection has several shards, or the result is no integer, the hits themselves are counted.
        """
        if self._layout.shards > 1:
            return {term: self._count_hits(term) for term in terms}
        results = self._server.query_batch(self.collection, [single(self._view, term) for term in terms])
        return {term: self._decode(term, points) for term, points in zip(terms, results, strict=True)}

    def _decode(self, term: int, points: Sequence[Mapping[str, Any]]) -> int:
        if not points:
            return 0
        weights = _sparse(points[0])
        idf = points[0]["score"] / weights.values[weights.indices.index(term)]
        # idf = ln((N - df + .5) / (df + .5) + 1) = ln((N + 1) / (df + .5))
        frequency = (self.head.chunks + 1) / math.exp(idf) - 0.5
        rounded = round(frequency)
        return rounded if abs(frequency - rounded) < _MAX_ROUNDING else self._count_hits(term)

    def _count_hits(self, term: int) -> int:
        return len(self._server.query(self.collection, every(self._view, term, max(1, self.head.chunks))))

    def _fetch_values(self, field: str) -> set[Any]:
        """Return the values of a field, by one request if they fit into one reply."""
        values = self._server.facet(self.collection, self._view, field, _MAX_VALUES)
        if len(values) < _MAX_VALUES:
            return set(values)
        payloads = (_payload(p) for p in self._server.scroll(self.collection, self._view, [field], False))
        fields = (payload[field] for payload in payloads if field in payload)
        return {element for value in fields for element in (value if isinstance(value, list) else [value])}

    def _ids(self, file_paths: Sequence[str] | None) -> list[tuple[str, str]]:
        """Return chunk ids and point ids, by chunk id."""
        wheres: list[Where] = [self._view]
        if file_paths is not None:
            wheres = [
                with_conditions(self._view, any_of("source_file_path", batch))
                for batch in batches(file_paths, _FILTER_VALUES)
            ]
        points = (p for where in wheres for p in self._server.scroll(self.collection, where, ["chunk_id"], False))
        return sorted((_chunk_id(p), p["id"]) for p in points)

    def _retrieve(self, ids: Sequence[str], vectors: bool | list[str] = True) -> list[dict[str, Any]]:
        points = [
            p for batch in batches(ids, MAX_POINTS) for p in self._server.retrieve(self.collection, batch, vectors)
        ]
        if len(points) != len(ids):
            raise IndexFault("The generation that was being read is gone by now: ask again.")
        return points


def lexical(where: Where, vector: SparseVector, filters: Filter | None) -> dict[str, Any]:
    """Return the body of a lexical query. A reader's filter chooses points, but never changes the weight of words."""
    nearest = {"indices": list(vector.indices), "values": list(vector.values)}
    return _query(nearest, "lexical", where, filters, {"idf": {"corpus": where}})


def dense(where: Where, vector: Sequence[float], filters: Filter | None, layout: CollectionLayout) -> dict[str, Any]:
    """Return the body of a dense query, exact unless the vectors are quantized."""
    approximate = {"quantization": {"rescore": True, "oversampling": 2.0}}
    return _query(list(vector), "dense", where, filters, approximate if layout.quantization else {"exact": True})


def _query(nearest: object, vector: str, where: Where, filters: Filter | None, params: object) -> dict[str, Any]:
    return {
        "query": {"nearest": nearest},
        "using": vector,
        "filter": with_reader_filter(where, filters),
        "params": params,
        "with_payload": ["chunk_id"],
        "with_vector": False,
    }


def single(where: Where, term: int) -> dict[str, Any]:
    """Return the body of a query for the best hit of one term, with its weight."""
    body = lexical(where, SparseVector((term,), (1.0,)), None)
    return {**body, "limit": 1, "with_payload": False, "with_vector": ["lexical"]}


def every(where: Where, term: int, limit: int) -> dict[str, Any]:
    """Return the body of a query for at most `limit` chunks that hold a term."""
    return {**lexical(where, SparseVector((term,), (1.0,)), None), "limit": limit, "with_payload": False}


@translating_errors(_NO_CHUNK)
def _chunk(point: Mapping[str, Any]) -> Chunk:
    return Chunk.from_payload(point["payload"])


@translating_errors(_NO_CHUNK)
def _payload(point: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(point["payload"])


@translating_errors(_NO_CHUNK)
def _chunk_id(point: Mapping[str, Any]) -> str:
    return str(point["payload"]["chunk_id"])


@translating_errors(_NO_CHUNK)
def _sparse(point: Mapping[str, Any]) -> SparseVector:
    vector = point["vector"]["lexical"]
    # The server returns them in any order.
    pairs = sorted(zip(vector["indices"], vector["values"], strict=True))
    return SparseVector(tuple(i for i, _ in pairs), tuple(v for _, v in pairs))


@translating_errors(_NO_CHUNK)
def _dense(point: Mapping[str, Any]) -> tuple[float, ...] | None:
    vector = point["vector"].get("dense")
    return None if vector is None else tuple(vector)


def _point(point: Mapping[str, Any]) -> Point:
    return Point(_chunk(point), _sparse(point), _dense(point))
