"""The results of a search: candidates in their order, and whether to answer from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from chapterverse.calibration import Calibration, WeightedQuestion
from chapterverse.errors import ProviderError
from chapterverse_api.budget.daily_budget import BudgetSpent
from chapterverse_api.retrieval.answerability import NO_ANSWER, Answerability, AnswerVerdict, verdict
from chapterverse_api.retrieval.ranking import Candidate, once_a_text

#: From this share of the best score on, a chunk is a source even without evidence of its own.
MIN_RELATIVE_SCORE = 0.6
#: Sources of an answer if the docs only perhaps hold one.
MAX_UNSURE_CHUNKS = 3
#: Below this probability of a good answer, short quotes of several sections are shown. Chosen on twelve sites: 102 of
#: 622 questions are below it, and 28 of these were answered from the right section (`benchmarks/reading.py`).
MIN_CONFIDENCE = 0.35
#: What the reader is told if a part failed.
_FAILURE_MESSAGES = {
    "embedder": "The embedder could not be reached; only words were searched.",
    "reranker": "The reranker could not be reached; the order is that of the search.",
}


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The result of a search.

    Attributes:
        candidates: best first, each text once.
        total: how many chunks were considered.
        failures: the errors of parts that failed, by the part: `embedder`, `reranker`.
        timings: seconds by stage: `embed`, `search`, `rank`, `weigh`, `rerank`.
        vector: the vector of the question, for a second search.
        searched: the question with its typing mistakes corrected.
        subject: what of that was searched for by words: of a question for a definition only what is defined.
        answerability: how likely there is an answer (see `answerability`).
        compares: whether the question asks for a comparison.
        sides: ids of the chunks that say what the sides of it are.
        other_language: whether the candidates are in other languages than the reader's, which has no answer.
        model_judges: whether a language model judges the passages (see `verdict`).
        confidence: the probability that quotes from the first candidates answer well; None before it is known.
    """

    candidates: tuple[Candidate, ...]
    question: WeightedQuestion
    calibration: Calibration
    total: int
    algorithm: str
    failures: Mapping[str, ProviderError] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    vector: Sequence[float] | None = None
    searched: str = ""
    subject: str = ""
    answerability: Answerability = NO_ANSWER
    compares: bool = False
    sides: frozenset[str] = frozenset()
    other_language: bool = False
    model_judges: bool = False
    confidence: float | None = None

    @property
    def degraded(self) -> str | None:
        """What failed, in words for the reader; None if nothing did."""
        # The budget has a reason of its own.
        failed = (part for part, error in self.failures.items() if not isinstance(error, BudgetSpent))
        return " ".join(_FAILURE_MESSAGES[part] for part in failed) or None

    @property
    def may_help(self) -> bool:
        """Whether it is doubtful that the docs, or the first candidates, answer."""
        return self.verdict == "perhaps" or (self.confidence is not None and self.confidence < MIN_CONFIDENCE)

    @property
    def verdict(self) -> AnswerVerdict:
        """Whether to answer from this."""
        return verdict(self.answerability, self.evidence, self.calibration, model_judges=self.model_judges)

    @property
    def may_be_quoted(self) -> bool:
        """Whether the candidates may answer without a model that judges them."""
        return replace(self, model_judges=False).verdict != "no"

    @property
    def sure(self) -> bool:
        """Whether the answer needs no reservation."""
        return self.verdict == "yes"

    @property
    def related(self) -> tuple[Candidate, ...]:
        """The candidates with evidence, and those that score near the best."""
        min_score = MIN_RELATIVE_SCORE * max((c.score for c in self.candidates), default=0.0)
        return tuple(c for c in self.candidates if c.evidence >= self.calibration.floor or c.score >= min_score)

    @property
    def strong(self) -> tuple[Candidate, ...]:
        """The candidates to answer from: few if the verdict is "perhaps", none if it is "no"."""
        if self.verdict == "no":
            return ()
        return self.related if self.sure else self.related[:MAX_UNSURE_CHUNKS]

    @property
    def evidence(self) -> float:
        """The strongest evidence that the question is answered at all."""
        return max((c.evidence for c in self.candidates), default=0.0)


def merge_retrievals(question_only: Retrieval, in_context: Retrieval) -> Retrieval:
    """Return what two searches found together, by the mean of their scores; what one did not find has 0 there.

    The evidence of a chunk is the stronger of both.
    """
    merged: dict[str, Candidate] = {}
    for retrieval in (question_only, in_context):
        for c in retrieval.candidates:
            other, half = merged.get(c.chunk.chunk_id), c._replace(score=c.score / 2)
            if other:
                half = half._replace(score=half.score + other.score, evidence=max(half.evidence, other.evidence))
            merged[c.chunk.chunk_id] = half
    return replace(
        question_only,
        candidates=tuple(once_a_text(merged.values())),
        question=in_context.question,
        total=len(merged),
        failures={**question_only.failures, **in_context.failures},
        timings={
            stage: question_only.timings.get(stage, 0.0) + seconds for stage, seconds in in_context.timings.items()
        },
        answerability=question_only.answerability.or_better(in_context.answerability),
        other_language=question_only.other_language or in_context.other_language,
    )
