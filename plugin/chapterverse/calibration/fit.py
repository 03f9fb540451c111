"""Fits the coefficients to labelled questions: which of them the index answers, and which it doesn't.

What is known of a question is a set of candidates, and which of them speaks of it is not said. So the fit goes in
rounds: each question is taken for its strongest candidate, the coefficients are fitted, and the strongest chosen anew
(as in multiple-instance learning; Andrews, Tsochantaridis & Hofmann, 2003). No coefficient but the bias may be
negative, so a candidate that another one exceeds in everything is never the strongest, and is not looked at.

The floor is where the most unanswerable questions are refused while no more answerable ones are than is allowed. The
bias is moved so that it lies at one half, with the embedder and without: then one number says what is enough.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from chapterverse.calibration.coefficients import Calibration, Weights
from chapterverse.calibration.evidence import Features
from chapterverse.calibration.regression import auc, rising

FLOOR = 0.5
#: Parts that the questions are divided into, each of which is judged by a fit to the others.
FOLDS = 5
#: From .05 to 3 the six sets that were measured hardly differ; less follows chance where questions are few.
_RIDGE = 0.3
_ROUNDS = 6

#: The rows of one question's candidates, each with a leading 1 for the bias.
_Bag: TypeAlias = list[tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Example:
    """A question, and what the index has of it; without a candidate it is refused whatever the fit."""

    answerable: bool
    candidates: tuple[Features, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """How well answerable questions are told from others.

    Attributes:
        refused: share of the unanswerable questions that are refused.
        false_refusals: share of the answerable ones that are.
        auc: how often an answerable question has more evidence than an unanswerable one.
    """

    refused: float
    false_refusals: float
    auc: float


def fit(examples: Sequence[Example], most_false: float) -> Calibration:
    """Return the calibration that tells these questions apart.

    Args:
        examples: some of either kind.
        most_false: share of the answerable ones that may be refused.
    """
    embedded = any(f.nearness is not None for e in examples for f in e.candidates)
    words = _fitted(examples, most_false, embedded=False)
    both = _fitted(examples, most_false, embedded=True) if embedded else None
    return Calibration(words, both, FLOOR, len(examples))


def measure(examples: Sequence[Example], calibration: Calibration) -> Figures:
    """Return how well a calibration tells them apart."""
    return _figures(examples, [_evidence(e, calibration) - calibration.floor for e in examples])


def held_out(examples: Sequence[Example], most_false: float) -> Figures:
    """Return how well fits tell apart questions that they were not made from, each judged by a fit to four fifths."""
    margins = dict[int, float]()
    for rest, part in _folds(examples):
        calibration = fit([examples[i] for i in rest], most_false)
        margins |= {i: _evidence(examples[i], calibration) - calibration.floor for i in part}
    return _figures(examples, [margins[i] for i in range(len(examples))])


def _folds(examples: Sequence[Example]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield what each fit is made from and what it judges; all folds have as many questions of either kind."""
    kinds = [[i for i, e in enumerate(examples) if e.answerable is kind] for kind in (True, False)]
    for fold in range(FOLDS):
        part = sorted(i for kind in kinds for i in kind[fold::FOLDS])
        yield sorted(set(range(len(examples))).difference(part)), part


def _evidence(example: Example, calibration: Calibration) -> float:
    return max(map(calibration.of, example.candidates), default=0.0)


def _figures(examples: Sequence[Example], margins: Sequence[float]) -> Figures:
    """Return the figures, by how far the evidence of each example is above the floor."""
    good, bad = ([m for e, m in zip(examples, margins, strict=True) if e.answerable is kind] for kind in (True, False))
    refused, wrongly = (sum(m < 0 for m in kind) / len(kind) for kind in (bad, good))
    return Figures(refused, wrongly, auc(good, bad))


def _fitted(examples: Sequence[Example], most_false: float, *, embedded: bool) -> Weights:
    bags = [_outstanding(e.candidates, embedded) for e in examples]
    told = [(bag, e.answerable) for bag, e in zip(bags, examples, strict=True) if bag]
    if len({answerable for _, answerable in told}) < 2:
        # All that has a candidate at all is answered, or nothing is.
        return Weights(bias=10.0 if told and told[0][1] else -10.0)
    beta = _learned([bag for bag, _ in told], [int(answerable) for _, answerable in told])
    best = [max(_product(beta, row) for row in bag) if bag else -math.inf for bag in bags]
    cut = _cut(best, [e.answerable for e in examples], most_false)
    weights = Weights(*(round(b, 4) for b in beta))
    return replace(weights, bias=weights.bias - cut)


def _outstanding(candidates: Sequence[Features], embedded: bool) -> _Bag:
    """Return the rows of the candidates that no other exceeds in everything."""
    # What is 0 for all learns no weight.
    near = {f: (f.nearness or 0.0) if embedded else 0.0 for f in candidates}
    rows = {(1.0, f.coverage, f.strength, f.length, f.familiarity, near[f], f.names, f.title) for f in candidates}
    kept: _Bag = []
    # In falling order no row comes before one that exceeds it.
    for row in sorted(rows, reverse=True):
        if not any(all(a >= b for a, b in zip(other, row, strict=True)) for other in kept):
            kept.append(row)
    return kept


def _learned(bags: Sequence[_Bag], labels: Sequence[int]) -> list[float]:
    # Either kind counts as much as the other, however many there are of each.
    share = {kind: len(labels) / 2 / labels.count(kind) for kind in (0, 1)}
    weights = [share[label] for label in labels]
    chosen, beta = [max(bag, key=sum) for bag in bags], list[float]()
    for _ in range(_ROUNDS):
        beta = rising(chosen, labels, _RIDGE, weights)
        strongest = [max(bag, key=lambda row: _product(beta, row)) for bag in bags]
        if strongest == chosen:
            break
        chosen = strongest
    return beta


def _cut(scores: Sequence[float], answerable: Sequence[bool], most_false: float) -> float:
    """Return the score below which is refused: of equally good places the widest gap, in the middle."""
    good = sorted(s for s, a in zip(scores, answerable, strict=True) if a)
    bad = sorted(s for s, a in zip(scores, answerable, strict=True) if not a)
    values = sorted(set(filter(math.isfinite, scores)))
    edges = [values[0] - 1.0, *values, values[-1] + 1.0]
    places = [((low + high) / 2, high - low) for low, high in pairwise(edges)]

    def worth(place: tuple[float, float]) -> tuple[bool, int, int, float]:
        cut, gap = place
        refused, wrongly = bisect_left(bad, cut), bisect_left(good, cut)
        allowed = wrongly <= most_false * len(good)
        return allowed, refused if allowed else -wrongly, -wrongly, gap

    return max(places, key=worth)[0]


def _product(beta: Sequence[float], row: Sequence[float]) -> float:
    return sum(b * x for b, x in zip(beta, row, strict=True))
