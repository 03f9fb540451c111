"""The service as an evaluation asks it. Nothing is charged."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from typing import Any, TypedDict

from chapterverse.knowledge.questions import place_without_page
from chapterverse.model import MEMORY, Chunk
from chapterverse_api.commands.session import History, SearchRow, ServiceSession
from chapterverse_api.ext.evaluation import answer_eval
from chapterverse_api.ext.evaluation.answer_eval import AnswerJudgement, CitedClaim
from chapterverse_api.retrieval.results import Retrieval
from chapterverse_api.retrieval.search import SearchRequest, retrieve
from chapterverse_api.validation import make_query

#: Types of documents that inform an answer and are no results of a search.
_HIDDEN_TYPES = frozenset({MEMORY})
#: Results by which a fusion weight is judged.
_RESULTS_PER_WEIGHT = 10


class Examination(TypedDict):
    """The results of a search and its figures.

    Attributes:
        evidence: the strongest evidence of a result, 0 to 1.
        floor: the least evidence that is answered from, 0 to 1.
        refused: whether there is no answer, or only one with a reservation.
        seconds: the seconds of each stage, and a `total` without the opening of the index.
        degraded: the reason why a part did not work as configured, or None.
        generation: the generation of the index.
    """

    results: list[SearchRow]
    evidence: float
    floor: float
    refused: bool
    seconds: dict[str, float]
    degraded: str | None
    generation: int


class WeightTrial(TypedDict):
    """The `calibration.ChunkFeatures` of every candidate, and the addresses of the ten best by fusion weight."""

    features: list[Any]
    urls: dict[float, list[str]]


class EvaluationSession(ServiceSession):
    """Every method raises `InputError` for an invalid question and `IndexFault` if no index can be read."""

    __slots__ = ()

    def examine(self, question: str, history: History, top_k: int) -> Examination:
        """Return the results of a search and their figures."""
        self.snapshot()
        started = time.perf_counter()
        query = make_query(query=question, conversation_history=history or [])
        retrieval, head = self._search(query, _HIDDEN_TYPES)
        seconds = {**retrieval.timings, "total": time.perf_counter() - started}
        return {
            "results": self._rows(retrieval, head, top_k),
            "evidence": round(retrieval.evidence, 4),
            "floor": retrieval.calibration.floor,
            "refused": not retrieval.sure,
            "seconds": {stage: round(value, 6) for stage, value in seconds.items()},
            "degraded": retrieval.degraded,
            "generation": head.generation,
        }

    def weigh(self, question: str, history: History, weights: Sequence[float]) -> WeightTrial:
        """Search with each fusion weight, and return the candidates. Raises `ProviderError` if the embedder failed."""
        query = make_query(query=question, conversation_history=history or [])
        index, embedder, snapshot = self.resources.index, self.resources.models.embedder, self.snapshot()
        filters = self._filter(query, snapshot, _HIDDEN_TYPES)
        # Embed a question once, however many weights are tried.
        embed = cache(embedder.embed_query) if embedder else lambda _: None

        def search_with(weight: float | None) -> Retrieval:
            return self._search_follow_up(
                query,
                snapshot,
                lambda text: retrieve(snapshot, None, SearchRequest(text, embed(text), filters, weight=weight)),
            )

        def place(chunk: Chunk) -> str:
            page = index.public_url(chunk, snapshot.head)
            return page or place_without_page(chunk.source_file_path, chunk.section_heading)

        features = [c.features for c in search_with(None).candidates if c.features]
        best = {weight: search_with(weight).candidates[:_RESULTS_PER_WEIGHT] for weight in weights}
        urls = {weight: [place(c.chunk) for c in candidates] for weight, candidates in best.items()}
        return {"features": features, "urls": urls}

    def judge_answer(self, question: str, history: History) -> AnswerJudgement:
        """Answer a question, and check its citations, sentences and claims again in the index."""
        return answer_eval.judge_answer(self.resources, question, history)

    def holds(self, claims: Sequence[CitedClaim]) -> list[bool]:
        """Return for each claim whether its section supports it."""
        return answer_eval.holds(self.resources, claims)
