"""Calibration of confidences: Brier score, calibration error, and risk by coverage.

brier          mean squared difference of confidence and outcome, lower is better (Brier, 1950)
ece            difference of mean confidence and share of right answers in ten bins of width .1, weighted by the number
               of answers: expected calibration error (Naeini, Cooper and Hauskrecht, 2015)
risk-coverage  share of wrong answers among the most confident ones, by their number (El-Yaniv and Wiener, 2010)
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_BINS = 10


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
