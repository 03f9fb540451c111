"""Calibration of confidences: Brier score, calibration error, and the risk at each level.

brier          mean squared distance of confidence and outcome, the less the better (Brier, 1950)
ece            distance of mean confidence and share of right answers in ten bins of width .1, weighted by how many
               answers each has: expected calibration error (Naeini, Cooper and Hauskrecht, 2015)
risk-coverage  share of wrong answers among the surest ones, for ever more of them (El-Yaniv and Wiener, 2010)
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_BINS = 10


class AnswerOutcome(NamedTuple):
    """How sure an answer was, 0 to 1, and whether it was right."""

    confidence: float
    right: bool


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers of about one confidence."""

    confidence: float
    right: float
    answers: int


@dataclass(frozen=True, slots=True)
class Risk:
    """Share of wrong answers among the share of answers that is surest."""

    coverage: float
    risk: float


def brier(outcomes: Sequence[AnswerOutcome]) -> float:
    return math.fsum((o.confidence - o.right) ** 2 for o in outcomes) / len(outcomes)


def bins(outcomes: Sequence[AnswerOutcome]) -> list[Bin]:
    """Return the bins that hold any answer, the least confident first."""
    found: defaultdict[int, list[AnswerOutcome]] = defaultdict(list)
    for outcome in outcomes:
        found[min(_BINS - 1, int(outcome.confidence * _BINS))].append(outcome)
    return [
        Bin(
            math.fsum(o.confidence for o in held) / len(held),
            sum(o.right for o in held) / len(held),
            len(held),
        )
        for _, held in sorted(found.items())
    ]


def ece(outcomes: Sequence[AnswerOutcome]) -> float:
    return math.fsum(b.answers * abs(b.confidence - b.right) for b in bins(outcomes)) / len(outcomes)


def risks(outcomes: Sequence[AnswerOutcome]) -> list[Risk]:
    """Return the risk at every tenth of the answers; those of one confidence are wrong as often as their mean."""
    shares = _smoothed(outcomes)
    tenths = (max(1, round(len(shares) * tenth / _BINS)) for tenth in range(1, _BINS + 1)) if shares else ()
    return [Risk(taken / len(shares), 1 - math.fsum(shares[:taken]) / taken) for taken in dict.fromkeys(tenths)]


def _smoothed(outcomes: Sequence[AnswerOutcome]) -> list[float]:
    """Return for each answer, the surest first, how often those of its confidence are right."""
    tied: defaultdict[float, list[bool]] = defaultdict(list)
    for outcome in outcomes:
        tied[outcome.confidence].append(outcome.right)
    return [sum(held) / len(held) for _, held in sorted(tied.items(), reverse=True) for _ in held]
