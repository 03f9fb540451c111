"""From a question to ranked chunks: search both sides, fuse, score by evidence. One order on every store.

Fusion is min-max linear (it beat reciprocal rank fusion on every set measured) with a deterministic tie-break. Fused
values only order; what a score *means* is said by evidence alone, since the best fused value is always 1.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from chapterverse import lexical
from chapterverse.embedding import Embedder
from chapterverse.errors import InputError, ProviderError
from chapterverse.evidence import Calibration, Question, read_question
from chapterverse.model import Chunk, SparseVector
from chapterverse.store import INDEXED_FIELDS, Hit, Snapshot
from chapterverse_api.contract import FilterValue

#: Candidates of each side before fusion.
CANDIDATES = 50
#: What the page with the most hits adds to a fused value: a page about the subject beats a passing mention.
PAGE = 0.2
_PAGE_HITS = 4
#: Largest component of a vector: squares of more, added up, would leave the range of 32-bit numbers.
_LARGEST = 1e15
LEXICAL_ALGORITHM = "bm25-code-aware"
HYBRID_ALGORITHM = "bm25-code-aware + dense, min-max linear"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk with its rank value, its evidence (calibrated, 0 to 1) and what both were made from."""

    chunk: Chunk
    lexical: SparseVector
    rank: float
    evidence: float
    components: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a search found.

    Attributes:
        candidates: best first, without duplicates of one text.
        total: how many chunks were considered.
        degraded: why only one side was searched; None if all went as configured.
        timings: seconds by stage.
    """

    candidates: tuple[Candidate, ...]
    question: Question
    calibration: Calibration
    total: int
    algorithm: str
    degraded: str | None = None
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    def evidence(self) -> float:
        """The strongest evidence that the question is answered at all."""
        return max((c.evidence for c in self.candidates), default=0.0)


def retrieve(
    snapshot: Snapshot,
    embedder: Embedder | None,
    question: str | None,
    *,
    vector: Sequence[float] | None = None,
    filters: Mapping[str, FilterValue] | None = None,
) -> Retrieval:
    """Search one generation of the index.

    Args:
        question: what is asked; None for a search by `vector` alone.
        vector: a dense vector of the index's own embedder.
        filters: payload field to a value or a list of them.

    Raises:
        InputError: a filter names no payload field, or the vector is not of the index's size.
    """
    head = snapshot.head
    where = _checked(filters or {})
    timings: dict[str, float] = {}
    degraded = None
    if vector is not None:
        _check_vector(vector, head.embedder.size)
    started = time.perf_counter()
    if question is not None and embedder is not None:
        try:
            vector = embedder.embed_query(question)
        except ProviderError as error:
            degraded = f"The embedder could not be reached ({type(error).__name__}); only words were searched."
        timings["embed"] = time.perf_counter() - started
    started = time.perf_counter()
    sparse = lexical.query_vector(question or "", head.languages)
    by_words = snapshot.search_lexical(sparse, CANDIDATES, where)
    by_meaning = snapshot.search_dense(vector, CANDIDATES, where) if vector is not None else []
    timings["search"] = time.perf_counter() - started
    asked, idf = read_question(question or "", head.languages, snapshot)
    calibration = Calibration.from_json(head.calibration)
    fused = _fuse(by_words, by_meaning, head.fusion_weight if question is not None else 1.0)
    candidates = tuple(
        Candidate(hit.chunk, hit.lexical, rank, calibration.score(asked, hit.lexical, idf), components)
        for hit, rank, components in fused
    )
    timings["rank"] = time.perf_counter() - started - timings["search"]
    return Retrieval(
        candidates=candidates,
        question=asked,
        calibration=calibration,
        total=len({h.chunk.chunk_id for h in (*by_words, *by_meaning)}),
        algorithm=HYBRID_ALGORITHM if vector is not None else LEXICAL_ALGORITHM,
        degraded=degraded,
        timings=timings,
    )


def _check_vector(vector: Sequence[float], size: int) -> None:
    if not size:
        raise InputError("The index holds no dense vectors: send a query.", field="embedding")
    if len(vector) != size:
        raise InputError(f"The index holds vectors of {size} dimensions.", field="embedding")
    # The engine counts in 32 bits, where a larger number is infinite and a vector of zeros has no direction.
    if not any(vector) or not all(abs(v) <= _LARGEST for v in vector):
        raise InputError("The embedding needs finite numbers that are not all zero.", field="embedding")


def _checked(filters: Mapping[str, FilterValue]) -> dict[str, list[str | int]]:
    where: dict[str, list[str | int]] = {}
    for name, value in filters.items():
        if name not in INDEXED_FIELDS:
            raise InputError(f"A filter names no known field; known are {', '.join(INDEXED_FIELDS)}.", field="filters")
        values = value if isinstance(value, list) else [value]
        kind = int if name == "chunk_index" else str
        if not values or not all(type(v) is kind for v in values):
            raise InputError(f"The filter on {name} needs values of type {kind.__name__}.", field="filters")
        where[name] = list(values)
    return where


def _fuse(
    by_words: Sequence[Hit], by_meaning: Sequence[Hit], weight: float
) -> list[tuple[Hit, float, dict[str, float]]]:
    """Return hits with their rank value and its parts, best first, ties by chunk id, one for each distinct text."""
    # Without another side to be comparable with, a score keeps its own zero.
    words = _scaled(by_words, None if by_meaning else 0.0)
    meaning = _scaled(by_meaning, None)
    hits = {h.chunk.chunk_id: h for h in (*by_meaning, *by_words)}
    # With one side only there is nothing to weigh.
    weight = weight if by_words and by_meaning else float(bool(by_meaning))
    both = {i: (1 - weight) * words.get(i, 0.0) + weight * meaning.get(i, 0.0) for i in hits}
    pages = _pages(hits.values(), both)
    ranked = []
    for chunk_id, hit in hits.items():
        page = pages[hit.chunk.source_file_path]
        parts = {"lexical": words.get(chunk_id, 0.0), "dense": meaning.get(chunk_id, 0.0), "page": page}
        ranked.append((hit, (both[chunk_id] + PAGE * page) / (1 + PAGE), parts))
    ranked.sort(key=lambda row: (-row[1], row[0].chunk.chunk_id))
    return list(_distinct(ranked))


def _pages(hits: Iterable[Hit], values: Mapping[str, float]) -> dict[str, float]:
    """Return for each page how much of it was found, each hit half as much as the one before; 1 for the most."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for hit in hits:
        found[hit.chunk.source_file_path].append(values[hit.chunk.chunk_id])
    sums = {
        path: sum(v / 2**n for n, v in enumerate(sorted(of_page, reverse=True)[:_PAGE_HITS]))
        for path, of_page in found.items()
    }
    most = max(sums.values(), default=0.0) or 1.0
    return {path: value / most for path, value in sums.items()}


def _scaled(hits: Sequence[Hit], zero: float | None) -> dict[str, float]:
    """Return scores scaled to 0..1 by the greatest of the list and by `zero`, or else the least of the list."""
    if not hits:
        return {}
    low = min(h.score for h in hits) if zero is None else zero
    high = max(h.score for h in hits)
    return {h.chunk.chunk_id: (h.score - low) / (high - low) if high > low else 1.0 for h in hits}


def _distinct(
    fused: Iterable[tuple[Hit, float, dict[str, float]]],
) -> Iterable[tuple[Hit, float, dict[str, float]]]:
    """Drop repetitions: an included snippet stands on many pages, and once in an answer is enough."""
    seen: set[str] = set()
    for row in fused:
        text = " ".join(row[0].chunk.text.split())
        if text not in seen:
            seen.add(text)
            yield row
