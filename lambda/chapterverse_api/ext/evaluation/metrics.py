"""Metrics: of a search by the ranks of the expected places, and of the confidence of answers.

Ranks start at 1, and None is "not found". Several chunks of one expected section count once, at the first rank (see
`places.ranks`). All figures are from 0 to 1, look at the first ten results and are averaged over questions with equal
weight. They follow Manning, Raghavan and Schütze, "Introduction to Information Retrieval" (2008), chapter 8, with nDCG
by Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002).

brier          mean squared difference of confidence and outcome, lower is better (Brier, 1950)
ece            difference of mean confidence and share of right answers in ten bins of width .1, weighted by the number
               of answers: expected calibration error (Naeini, Cooper and Hauskrecht, 2015)
risk-coverage  share of wrong answers among the most confident ones, by their number (El-Yaniv and Wiener, 2010)
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple, TypeAlias

from pydantic import Field

#: From 1; None for "not found".
Rank: TypeAlias = Annotated[int, Field(ge=1)] | None
Ranks: TypeAlias = Sequence[Rank]

#: Results that the figures look at.
DEPTH = 10
#: Prefix of a figure that counts pages instead of sections.
PAGE_PREFIX = "page."
#: Share of the unanswerable questions that were refused, and of the answerable ones that were not.
REFUSED, ANSWERED = "refused", "answered"
_BINS = 10


def recall(ranks: Ranks, k: int) -> float:
    """Return the share of the expected places among the first `k` results."""
    return sum(1 for _ in _within(ranks, k)) / len(ranks)


def hit(ranks: Ranks, k: int) -> float:
    """Return 1 if any expected place is among the first `k` results, else 0."""
    return float(any(True for _ in _within(ranks, k)))


def reciprocal_rank(ranks: Ranks) -> float:
    """Return 1 over the rank of the first expected place, 0 if none is among the first ten; its mean is MRR."""
    return 1 / min(_within(ranks, DEPTH), default=math.inf)


def ndcg(ranks: Ranks) -> float:
    """Return the discounted cumulated gain of the first ten results over that of the best order.

    Gains are binary and discounted by log2(rank + 1), the usual form since Burges et al. (2005). The best order has as
    many expected places first as ten results can hold.
    """
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(ranks), DEPTH) + 1))
    return math.fsum(1 / math.log2(rank + 1) for rank in _within(ranks, DEPTH)) / best


def _within(ranks: Ranks, k: int) -> Iterable[int]:
    return (rank for rank in ranks if rank is not None and rank <= k)


#: Metrics of one question's ranks, by name.
RANKED: Mapping[str, Callable[[Ranks], float]] = {
    "recall@3": partial(recall, k=3),
    "recall@5": partial(recall, k=5),
    "recall@10": partial(recall, k=10),
    "hit@1": partial(hit, k=1),
    "hit@5": partial(hit, k=5),
    "mrr": reciprocal_rank,
    "ndcg@10": ndcg,
}
#: Every retrieval figure that may have a bar; higher is better.
METRICS = (*RANKED, *(PAGE_PREFIX + name for name in RANKED), REFUSED, ANSWERED)


def of_ranks(anchor: Ranks, page: Ranks) -> dict[str, float]:
    """Return the figures of one answerable question, from the ranks of its sections and of its pages."""
    return {
        **{name: measure(anchor) for name, measure in RANKED.items()},
        **{PAGE_PREFIX + name: measure(page) for name, measure in RANKED.items()},
    }


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None for no values."""
    return math.fsum(values) / len(values) if values else None


class AnswerOutcome(NamedTuple):
    """Confidence of an answer, 0 to 1, and whether it was right."""

    confidence: float
    right: bool


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers of similar confidence: mean confidence, share of right ones, number."""

    confidence: float
    right: float
    answers: int


@dataclass(frozen=True, slots=True)
class Risk:
    """Share of wrong answers (`risk`) among the most confident share of all answers (`coverage`)."""

    coverage: float
    risk: float


def brier(outcomes: Sequence[AnswerOutcome]) -> float:
    return math.fsum((o.confidence - o.right) ** 2 for o in outcomes) / len(outcomes)


def bins(outcomes: Sequence[AnswerOutcome]) -> list[Bin]:
    """Return the non-empty bins, least confident first."""
    by_bin: defaultdict[int, list[AnswerOutcome]] = defaultdict(list)
    for outcome in outcomes:
        by_bin[min(_BINS - 1, int(outcome.confidence * _BINS))].append(outcome)
    return [
        Bin(
            math.fsum(o.confidence for o in group) / len(group),
            sum(o.right for o in group) / len(group),
            len(group),
        )
        for _, group in sorted(by_bin.items())
    ]


def ece(outcomes: Sequence[AnswerOutcome]) -> float:
    return math.fsum(b.answers * abs(b.confidence - b.right) for b in bins(outcomes)) / len(outcomes)


def risks(outcomes: Sequence[AnswerOutcome]) -> list[Risk]:
    """Return the risk at each tenth of the answers. Answers of equal confidence count with their mean."""
    shares = _smooth(outcomes)
    tenths = (max(1, round(len(shares) * tenth / _BINS)) for tenth in range(1, _BINS + 1)) if shares else ()
    return [Risk(count / len(shares), 1 - math.fsum(shares[:count]) / count) for count in dict.fromkeys(tenths)]


def _smooth(outcomes: Sequence[AnswerOutcome]) -> list[float]:
    """Return for each answer, most confident first, the share of right answers of its confidence."""
    tied: defaultdict[float, list[bool]] = defaultdict(list)
    for outcome in outcomes:
        tied[outcome.confidence].append(outcome.right)
    return [sum(results) / len(results) for _, results in sorted(tied.items(), reverse=True) for _ in results]
