"""Searches one generation: both sides, fusion, ranking, evidence. The order is the same on every store.

A score only orders: the first result may still be irrelevant. The evidence of a chunk, calibrated for the index, is the
probability that it is about the question's subject.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from chapterverse.calibration import Calibration
from chapterverse.embedding import MAX_COMPONENT, Embedder
from chapterverse.errors import InputError, ProviderError, observing_retries
from chapterverse.extensions import load_part
from chapterverse.filters import FilterTree
from chapterverse.model import MEMORY
from chapterverse.store import Snapshot
from chapterverse_api.observability.query_state import QueryProgress
from chapterverse_api.search import ranking
from chapterverse_api.search.hybrid import Wording
from chapterverse_api.search.ranking import Candidate
from chapterverse_api.search.rerankers import Reranker
from chapterverse_api.search.results import Retrieval, answer_features, answerability
from chapterverse_api.search.spelling import correct

LEXICAL_ALGORITHM = "bm25-code-aware + structure"
HYBRID_ALGORITHM = "bm25-code-aware + dense, min-max linear + structure"


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What one search looks for.

    Attributes:
        question: the reader's words; None for a search by `vector` alone.
        vector: a dense vector of the index's own embedder; None if the question is still to be embedded.
        filters: narrow the search (see `filters.parse_filter`).
        page: the page that the reader is on (see `site_index.page_of`), which comes a little earlier.
        weight: share of the dense side in the fusion; None for the index's own.
    """

    question: str | None
    vector: Sequence[float] | None = None
    filters: FilterTree | None = None
    page: str = ""
    weight: float | None = None


def retrieve(
    snapshot: Snapshot, embedder: Embedder | None, request: SearchRequest, progress: QueryProgress | None = None
) -> Retrieval:
    """Search one generation of the index.

    Args:
        progress: the question's states, which a search takes on to `searching`.

    Raises:
        InputError: the vector is not of the index's size.
    """
    progress = progress or QueryProgress("", logged=False)
    corrected, vector = correct(request.question or "", snapshot), request.vector
    failures, clock = dict[str, ProviderError](), _StageClock()
    if vector is not None:
        _check_vector(vector, snapshot.head.embedder.size)
    progress.enter("embedding")
    if vector is not None:
        progress.model = snapshot.head.embedder.name
    elif request.question is not None and embedder is not None:
        try:
            with observing_retries(progress.retry):
                vector = embedder.embed_query(corrected)
            progress.model = embedder.card.name
        # Its words are still searched.
        except ProviderError as error:
            failures["embedder"] = error
            progress.retry()
        clock.end("embed")
    progress.enter("searching")
    return _search(snapshot, request, corrected, vector, failures, clock)


def retrieve_again(before: Retrieval, snapshot: Snapshot, request: SearchRequest) -> Retrieval:
    """Search with other filters for the question of an earlier search, which embedded it, or failed to, for both."""
    return _search(snapshot, request, before.searched, before.vector, before.failures, _StageClock(before.timings))


def _search(
    snapshot: Snapshot,
    request: SearchRequest,
    corrected: str,
    vector: Sequence[float] | None,
    failures: Mapping[str, ProviderError],
    clock: _StageClock,
) -> Retrieval:
    """Find, rank and weigh."""
    head = snapshot.head
    wording = Wording.read(corrected, head.languages)
    hits = wording.find(snapshot, request.filters, vector)
    clock.end("search")
    ranked = hits.rank_hits(head.fusion_weight if request.weight is None else request.weight, request.page)
    clock.end("rank")
    hits = hits.without_details(ranked, snapshot)
    calibration = Calibration.from_json(head.calibration)
    sides = hits.candidates(wording.sides(snapshot, request.filters), calibration)
    candidates = ranking.with_sides(_weigh(hits.candidates(ranked, calibration)), sides)
    features = answer_features(candidates, hits.question, calibration, head.chunks)
    clock.end("weigh")
    return Retrieval(
        candidates=tuple(candidates),
        question=hits.question,
        calibration=calibration,
        total=len(hits.by_id),
        algorithm=HYBRID_ALGORITHM if vector is not None else LEXICAL_ALGORITHM,
        failures=failures,
        timings=clock.timings,
        vector=vector,
        searched=corrected,
        subject=wording.subject,
        answerability=answerability(features),
        compares=wording.compares,
        sides=frozenset(side.chunk.chunk_id for side in sides),
    )


def rerank(retrieval: Retrieval, question: str | None, reranker: Reranker | None) -> Retrieval:
    """Order the candidates by a model, ties as before. Keep the order without a model or a question.

    If the model fails, keep the order too, and note the failure.
    """
    if not (retrieval.candidates and question and reranker):
        return retrieval
    clock = _StageClock(retrieval.timings)
    try:
        relevance = reranker.rerank(question, [c.chunk.embed_text for c in retrieval.candidates])
    except ProviderError as error:
        clock.end("rerank")
        return replace(retrieval, failures={**retrieval.failures, "reranker": error}, timings=clock.timings)
    clock.end("rerank")
    pairs = zip(retrieval.candidates, relevance, strict=True)
    scored = [c._replace(score=v, components={**c.components, "rerank": v}) for c, v in pairs]
    return replace(
        retrieval,
        candidates=tuple(_weigh(sorted(scored, key=lambda c: -c.score))),
        algorithm=f"{retrieval.algorithm} + {reranker.name}",
        timings=clock.timings,
    )


def _weigh(candidates: list[Candidate]) -> list[Candidate]:
    """Return the candidates as the room of memories orders them, if there is one among them."""
    weighed: list[Candidate] = candidates
    if any(candidate.chunk.type == MEMORY for candidate in candidates):
        weighed = load_part("weigh_memories")(candidates)
    return weighed


class _StageClock:
    """Measures how long each stage took, in seconds."""

    def __init__(self, before: Mapping[str, float] | None = None) -> None:
        self.timings = dict(before or {})
        self._started = time.perf_counter()

    def end(self, stage: str) -> None:
        now = time.perf_counter()
        self.timings[stage] = self.timings.get(stage, 0.0) + now - self._started
        self._started = now


def _check_vector(vector: Sequence[float], size: int) -> None:
    if not size:
        raise InputError("The index holds no dense vectors: send a query.", field="embedding")
    if len(vector) != size:
        raise InputError(f"The index holds vectors of {size} dimensions.", field="embedding")
    # The engine counts in 32 bits, so a larger number is infinite. A vector of zeros has no direction.
    if not any(vector) or not all(abs(v) <= MAX_COMPONENT for v in vector):
        raise InputError("The embedding needs finite numbers that are not all zero.", field="embedding")
