"""The results of a search: candidates in their order, and whether to answer from them: yes, perhaps, or no.

Two logistic regressions over nine features of the whole result say how likely the docs answer the question, and how
likely the first page does. Readers seldom use the docs' own words, but the right page shows in several ways at once.
`benchmarks/answerability.py` fitted both on 12 sites to 607 questions that the docs answer, and 1,183 of other sites or
of none. `answerability.json` keeps them.

    evidence       calibrated evidence of the best chunk, less the index's floor, as logits
    matched        largest share of the question's words that one chunk holds, all words alike
    rarity         idf of the words that one chunk holds, over the largest idf in the index
    heading        largest share of a heading's words that the question holds, among the first five
    title          the same of a page's title
    names          largest share of the question's names that a chunk holds
    concentration  share of the first ten that are of the first one's page
    lead           how far the first one's score is above that of the best chunk of another page
    defines        1 if the best chunk defines the subject of the question, else 0
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, NamedTuple

from chapterverse.calibration import Calibration, WeightedQuestion, logistic, match_word
from chapterverse.errors import BudgetSpent, ProviderError
from chapterverse.text.json_text import load_json
from chapterverse_api.conversation.detection import ContextualQuery
from chapterverse_api.search.ranking import Candidate, once_a_text

AnswerVerdict = Literal["yes", "perhaps", "no"]

#: How many of the first results are read, and how many of these for their headings.
_TOP_RESULTS, _TOP_HEADINGS = 10, 5
#: Without passages, a question below this answerability is about another subject: 1 % of 607 questions on twelve sites
#: are below, and 18 % of 1,183 about other sites (`benchmarks/answerability.py`). A model judges all others itself.
MIN_ON_TOPIC = 0.05
#: How near to 0 and 1 a probability counts before its logit is taken.
_MARGIN = 1e-4
#: From this share of the best score on, a chunk is a source even without evidence of its own.
_MIN_RELATIVE_SCORE = 0.6
#: Sources of an answer if the docs only perhaps hold one.
_MAX_UNSURE_CHUNKS = 3
#: Below this probability of a good answer, short quotes of several sections are shown. Chosen on two of four sites, on
#: whose 96 questions, judged by reading, wrong answers went from 11 to 6 (`benchmarks/README.md`).
MIN_CONFIDENCE = 0.55
#: How much of a follow-up's scores come from the search with the earlier questions; the rest from the question alone.
#: Two thirds cite the right page first for 91 of 155 follow-ups, a half for 86 (`benchmarks/understanding.py`).
_CONTEXT_WEIGHT = 2 / 3
#: What the reader is told if a part failed.
_FAILURE_MESSAGES = {
    "embedder": "The embedder could not be reached; only words were searched.",
    "reranker": "The reranker could not be reached; the order is that of the search.",
}


class AnswerFeatures(NamedTuple):
    """The features of a result, as the module describes them."""

    evidence: float
    matched: float
    rarity: float
    heading: float
    title: float
    names: float
    concentration: float
    lead: float
    defines: float


class Answerability(NamedTuple):
    """Two probabilities, 0 to 1.

    Attributes:
        docs: the probability that the docs answer the question.
        first: the probability that the page of the best chunk does.
    """

    docs: float
    first: float

    def or_better(self, other: Answerability) -> Answerability:
        """Return the larger of each."""
        return Answerability(*map(max, self, other))


#: The answerability of a search without words.
_NO_ANSWER = Answerability(0.0, 0.0)


def answer_features(
    candidates: Sequence[Candidate], question: WeightedQuestion, calibration: Calibration, chunks: int
) -> AnswerFeatures | None:
    """Return the features of a result; None without candidates, or for a search without words.

    Args:
        candidates: best first.
        chunks: how many the index holds.
    """
    first = candidates[:_TOP_RESULTS]
    if not first or not question.has_words:
        return None
    shares_by_chunk = [_shares_with_synonyms(candidate, question) for candidate in first]
    weights = question.weights
    parts = [candidate.components for candidate in first]
    headed = parts[:_TOP_HEADINGS]
    page = first[0].chunk.source_file_path
    return AnswerFeatures(
        evidence=logit(max(c.evidence for c in first)) - logit(calibration.floor),
        matched=max(sum(shares) for shares in shares_by_chunk) / len(weights),
        rarity=max(sum(s * w for s, w in zip(shares, weights, strict=True)) for shares in shares_by_chunk)
        / math.log(max(2, chunks)),
        heading=max(p.get("heading", 0.0) for p in headed),
        title=max(p.get("title", 0.0) for p in headed),
        names=max((c.features.names for c in first if c.features), default=0.0),
        concentration=sum(c.chunk.source_file_path == page for c in first) / _TOP_RESULTS,
        lead=first[0].score - max((c.score for c in candidates if c.chunk.source_file_path != page), default=0.0),
        defines=parts[0].get("defines", 0.0),
    )


def answerability(features: AnswerFeatures | None) -> Answerability:
    """Return how likely there is an answer; 0 without features."""
    if features is None:
        return _NO_ANSWER
    docs, first = (
        logistic(weights["bias"] + sum(weights[name] * value for name, value in features._asdict().items()))
        for weights in (load_weights("answerability.json")[name] for name in ("docs", "first"))
    )
    return Answerability(docs, first)


@cache
def load_weights(name: str) -> Mapping[str, Any]:
    """Return the weights in a file of this package."""
    weights: dict[str, Any] = load_json("chapterverse_api.search", name)
    return weights


def matched_share(candidate: Candidate, question: WeightedQuestion) -> float:
    """Return the share of a question's words that a chunk holds; 1 of a question without words."""
    shares = _word_shares(frozenset(candidate.lexical.indices), question)
    return sum(shares) / len(shares) if shares else 1.0


def _shares_with_synonyms(candidate: Candidate, question: WeightedQuestion) -> list[float]:
    """Return how much of each word the chunk holds, 0 to 1. A synonym counts like its word."""
    terms = frozenset(candidate.lexical.indices)
    shares = _word_shares(terms, question)
    for synonym in question.synonyms:
        if synonym.term in terms:
            for place in synonym.word_indices:
                shares[place] = 1.0
    return shares


def _word_shares(terms: AbstractSet[int], question: WeightedQuestion) -> list[float]:
    """Return how much of each word is among these terms, 0 to 1."""
    return [match_word(word, terms) for word in question.words]


def logit(probability: float) -> float:
    """Return the log-odds of a probability, which is kept a little away from 0 and 1."""
    return math.log(max(_MARGIN, probability) / max(_MARGIN, 1 - probability))


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
        answerability: how likely there is an answer (see the module).
        compares: whether the question asks for a comparison.
        sides: ids of the chunks that say what the sides of it are.
        other_language: whether the candidates are in other languages than the reader's, which has no answer.
        model_judges: whether a language model judges the passages.
        confidence: the probability that quotes from the first candidates answer well; None before it is known.
        language: BCP 47 tag of the reader's language, if it is known.
        contextual_query: what a follow-up was also searched for as; None if the question stands alone.
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
    answerability: Answerability = _NO_ANSWER
    compares: bool = False
    sides: frozenset[str] = frozenset()
    other_language: bool = False
    model_judges: bool = False
    confidence: float | None = None
    language: str | None = None
    contextual_query: ContextualQuery | None = None

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
    def unread_confidence(self) -> float:
        """The confidence that the words alone give, where no model has read the candidates.

        The more the docs are sure to answer beside a first candidate that isn't, the likelier another page does: `docs`
        has a negative weight. Without it 19 of 144 held questions are answered as if sure from another page, with it
        13.
        """
        weights, words = load_weights("reading.json"), self.answerability
        by_words = logistic(
            weights["unread_bias"]
            + weights["unread_first"] * logit(words.first)
            + weights["unread_docs"] * logit(words.docs)
        )
        # Where the owner has fitted a floor, that decides what is answered.
        is_fitted = self.calibration.questions > 0 and self.sure
        return max(by_words, MIN_CONFIDENCE) if is_fitted else by_words

    @property
    def verdict(self) -> AnswerVerdict:
        """Whether to answer from this. If a language model judges the passages, only another subject means no."""
        return self._judge(model_judges=self.model_judges)

    def _judge(self, *, model_judges: bool) -> AnswerVerdict:
        """Return the verdict.

        If the index was calibrated with people's questions, its own floor says yes, because they are of this very site.
        """
        least = load_weights("answerability.json")["least"]
        if self.calibration.questions:
            is_sure = self.evidence >= self.calibration.floor
        else:
            is_sure = self.answerability.docs >= least["docs"] and self.answerability.first >= least["first"]
        if is_sure:
            return "yes"
        least_docs = MIN_ON_TOPIC if model_judges else least["perhaps"]
        return "perhaps" if self.answerability.docs >= least_docs else "no"

    @property
    def may_be_quoted(self) -> bool:
        """Whether the candidates may answer without a model that judges them."""
        return self._judge(model_judges=False) != "no"

    @property
    def sure(self) -> bool:
        """Whether the answer needs no reservation."""
        return self.verdict == "yes"

    @property
    def related(self) -> tuple[Candidate, ...]:
        """The candidates with evidence, and those that score near the best."""
        min_score = _MIN_RELATIVE_SCORE * max((c.score for c in self.candidates), default=0.0)
        return tuple(c for c in self.candidates if c.evidence >= self.calibration.floor or c.score >= min_score)

    @property
    def strong(self) -> tuple[Candidate, ...]:
        """The candidates to answer from: few if the verdict is "perhaps", none if it is "no"."""
        if self.verdict == "no":
            return ()
        return self.related if self.sure else self.related[:_MAX_UNSURE_CHUNKS]

    @property
    def evidence(self) -> float:
        """The strongest evidence that the question is answered at all."""
        return max((c.evidence for c in self.candidates), default=0.0)


def merge_retrievals(question_only: Retrieval, in_context: Retrieval) -> Retrieval:
    """Return what two searches found together, by the weighted mean of their scores; what one did not find has 0 there.

    The evidence of a chunk is the stronger of both.
    """
    merged: dict[str, Candidate] = {}
    for retrieval, weight in ((question_only, 1 - _CONTEXT_WEIGHT), (in_context, _CONTEXT_WEIGHT)):
        for c in retrieval.candidates:
            other, part = merged.get(c.chunk.chunk_id), c._replace(score=c.score * weight)
            if other:
                part = part._replace(score=part.score + other.score, evidence=max(part.evidence, other.evidence))
            merged[c.chunk.chunk_id] = part
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
