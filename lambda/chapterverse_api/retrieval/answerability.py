"""Decides whether a search found an answer: yes, perhaps, or no.

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
from functools import cache
from typing import Literal, NamedTuple

from chapterverse.calibration import Calibration, WeightedQuestion, match_word
from chapterverse.calibration.regression import logistic
from chapterverse.text.json_text import load_json
from chapterverse_api.retrieval.ranking import Candidate

AnswerVerdict = Literal["yes", "perhaps", "no"]

#: How many of the first results are read, and how many of these for their headings.
TOP_RESULTS, TOP_HEADINGS = 10, 5
#: Without passages, a question below this answerability is about another subject: 1 % of 607 questions on twelve sites
#: are below, and 18 % of 1,183 about other sites (`benchmarks/answerability.py`). A model judges all others itself.
MIN_ON_TOPIC = 0.05
#: Probabilities are kept this far from 0 and 1 before their logits are taken.
_MARGIN = 1e-4


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
NO_ANSWER = Answerability(0.0, 0.0)


def answer_features(
    candidates: Sequence[Candidate], question: WeightedQuestion, calibration: Calibration, chunks: int
) -> AnswerFeatures | None:
    """Return the features of a result; None without candidates, or for a search without words.

    Args:
        candidates: best first.
        chunks: how many the index holds.
    """
    first = candidates[:TOP_RESULTS]
    if not first or not question.has_words:
        return None
    shares_by_chunk = [_shares_with_synonyms(candidate, question) for candidate in first]
    weights = question.weights
    parts = [candidate.components for candidate in first]
    headed = parts[:TOP_HEADINGS]
    page = first[0].chunk.source_file_path
    return AnswerFeatures(
        evidence=_logit(max(c.evidence for c in first)) - _logit(calibration.floor),
        matched=max(sum(shares) for shares in shares_by_chunk) / len(weights),
        rarity=max(sum(s * w for s, w in zip(shares, weights, strict=True)) for shares in shares_by_chunk)
        / math.log(max(2, chunks)),
        heading=max(p.get("heading", 0.0) for p in headed),
        title=max(p.get("title", 0.0) for p in headed),
        names=max((c.features.names for c in first if c.features), default=0.0),
        concentration=sum(c.chunk.source_file_path == page for c in first) / TOP_RESULTS,
        lead=first[0].score - max((c.score for c in candidates if c.chunk.source_file_path != page), default=0.0),
        defines=parts[0].get("defines", 0.0),
    )


def answerability(features: AnswerFeatures | None) -> Answerability:
    """Return how likely there is an answer; 0 without features."""
    if features is None:
        return NO_ANSWER
    docs, first = (
        logistic(weights["bias"] + sum(weights[name] * value for name, value in features._asdict().items()))
        for weights in (_model()["docs"], _model()["first"])
    )
    return Answerability(docs, first)


def verdict(
    probabilities: Answerability, evidence: float, calibration: Calibration, *, model_judges: bool
) -> AnswerVerdict:
    """Return whether to answer.

    If the index was calibrated with people's questions, its own floor says yes, because they are of this very site.

    Args:
        model_judges: whether a language model judges the passages, so that only another subject means no.
    """
    least = _model()["least"]
    sure = probabilities.docs >= least["docs"] and probabilities.first >= least["first"]
    if calibration.questions:
        sure = evidence >= calibration.floor
    perhaps = probabilities.docs >= (MIN_ON_TOPIC if model_judges else least["perhaps"])
    return "yes" if sure else "perhaps" if perhaps else "no"


@cache
def _model() -> Mapping[str, Mapping[str, float]]:
    model: dict[str, dict[str, float]] = load_json("chapterverse_api.retrieval", "answerability.json")
    return model


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


def _logit(probability: float) -> float:
    value = min(max(probability, _MARGIN), 1 - _MARGIN)
    return math.log(value / (1 - value))
