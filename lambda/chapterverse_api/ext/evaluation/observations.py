"""Measures on labelled questions how much evidence an answer needs, and the best weight of the embedder.

The service searches the live index for every question with the configured embedder.

A label doesn't say which candidate of a question answers it. So the fit is iterative, as in multiple-instance learning
(Andrews, Tsochantaridis & Hofmann, 2003): each question is represented by its strongest candidate, the coefficients are
fitted, and the strongest are chosen again. Only the bias may be negative, so a candidate that another one dominates is
never the strongest and is dropped.

The floor refuses the most unanswerable questions at the allowed share of refused answerable ones. The bias is shifted
so that the floor is one half, with and without an embedder.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from chapterverse.calibration import Calibration, ChunkFeatures, Coefficients
from chapterverse.errors import IndexLocked, InputError
from chapterverse.indexing.evidence_fit import dot, regress
from chapterverse.model import Head
from chapterverse.progress import Progress, track
from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse_api.ext.evaluation.metrics import reciprocal_rank
from chapterverse_api.ext.evaluation.places import SitePlaces, distinct, ranks
from chapterverse_api.ext.evaluation.questions import QuestionRow
from chapterverse_api.ext.evaluation.session import EvaluationSession

FLOOR = 0.5
#: Folds of the cross-validation.
FOLDS = 5
#: From .05 to 3 results on the six measured sets hardly differ; less overfits small sets.
_RIDGE = 0.3
_MAX_ROUNDS = 6

#: One question's candidates as rows, each with a leading 1 for the bias.
_Bag: TypeAlias = list[tuple[float, ...]]
#: Least number of questions of each kind: two for each of five folds.
_MIN_QUESTIONS = 10
#: Tried weights of the embedder in the fusion.
TRIED_WEIGHTS = tuple(i / 10 for i in range(11))


@dataclass(frozen=True, slots=True)
class Example:
    """A labelled question and its candidates. A question without candidates is always refused."""

    answerable: bool
    candidates: tuple[ChunkFeatures, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """How well a calibration separates answerable questions from others.

    Attributes:
        refused: share of the unanswerable questions that are refused.
        false_refusals: share of the answerable questions that are refused.
        auc: how often an answerable question has more evidence than an unanswerable one.
    """

    refused: float
    false_refusals: float
    auc: float


def fit_to_questions(examples: Sequence[Example], most_false: float) -> Calibration:
    """Return the calibration that separates these questions best, refusing a share of the answerable ones at most."""
    embedded = any(f.nearness is not None for e in examples for f in e.candidates)
    words = _fit_weights(examples, most_false, embedded=False)
    both = _fit_weights(examples, most_false, embedded=True) if embedded else None
    return Calibration(words, both, FLOOR, len(examples))


def measure_calibration(examples: Sequence[Example], calibration: Calibration) -> Figures:
    """Return the figures of a calibration on these questions."""
    return _figures(examples, [_evidence(e, calibration) - calibration.floor for e in examples])


def cross_validate(examples: Sequence[Example], most_false: float) -> Figures:
    """Return the figures of a cross-validation: each question is judged by a fit to the other folds."""
    seen, folds = Counter[bool](), list[int]()
    # All folds have about as many questions of each kind.
    for example in examples:
        folds.append(seen[example.answerable] % FOLDS)
        seen[example.answerable] += 1
    others = ([e for e, other in zip(examples, folds, strict=True) if other != fold] for fold in range(FOLDS))
    fits = [fit_to_questions(rest, most_false) for rest in others]
    return _figures(examples, [_evidence(e, fits[f]) - fits[f].floor for e, f in zip(examples, folds, strict=True)])


def _evidence(example: Example, calibration: Calibration) -> float:
    return max(map(calibration.of, example.candidates), default=0.0)


def _figures(examples: Sequence[Example], margins: Sequence[float]) -> Figures:
    """Return the figures, given the margin of each example above the floor."""
    good, bad = ([m for e, m in zip(examples, margins, strict=True) if e.answerable is kind] for kind in (True, False))
    refused, wrongly = (sum(m < 0 for m in kind) / len(kind) for kind in (bad, good))
    return Figures(refused, wrongly, auc(good, bad))


def _fit_weights(examples: Sequence[Example], most_false: float, *, embedded: bool) -> Coefficients:
    bags = [_pareto_rows(e.candidates, embedded) for e in examples]
    labelled = [(bag, e.answerable) for bag, e in zip(bags, examples, strict=True) if bag]
    if len({answerable for _, answerable in labelled}) < 2:
        # Only one kind has candidates.
        return Coefficients(bias=10.0 if labelled and labelled[0][1] else -10.0)
    beta = _learn([bag for bag, _ in labelled], [int(answerable) for _, answerable in labelled])
    best = [max(dot(beta, row) for row in bag) if bag else -math.inf for bag in bags]
    threshold = _choose_floor(best, [e.answerable for e in examples], most_false)
    weights = Coefficients(*(round(b, 4) for b in beta))
    return replace(weights, bias=weights.bias - threshold)


def _pareto_rows(candidates: Sequence[ChunkFeatures], embedded: bool) -> _Bag:
    """Return the rows of the candidates that no other candidate dominates."""
    # A feature that is 0 for all gets no weight.
    nearness = {f: (f.nearness or 0.0) if embedded else 0.0 for f in candidates}
    rows = {(1.0, f.coverage, f.strength, f.length, f.familiarity, nearness[f], f.names, f.title) for f in candidates}
    frontier: _Bag = []
    # In descending order a row comes after all rows that dominate it.
    for row in sorted(rows, reverse=True):
        if not any(all(a >= b for a, b in zip(other, row, strict=True)) for other in frontier):
            frontier.append(row)
    return frontier


def _learn(bags: Sequence[_Bag], labels: Sequence[int]) -> list[float]:
    # Both kinds have the same weight in total, independent of their numbers.
    weights = [len(labels) / 2 / labels.count(label) for label in labels]
    chosen, beta = [max(bag, key=sum) for bag in bags], list[float]()
    for _ in range(_MAX_ROUNDS):
        beta = regress_rising(chosen, labels, _RIDGE, weights)
        strongest = [max(bag, key=lambda row: dot(beta, row)) for bag in bags]
        if strongest == chosen:
            break
        chosen = strongest
    return beta


def _choose_floor(scores: Sequence[float], answerable: Sequence[bool], most_false: float) -> float:
    """Return the score below which questions are refused: the middle of the widest gap of the equally good."""
    bad, good = (sorted(s for s, a in zip(scores, answerable, strict=True) if a is kind) for kind in (False, True))
    values = sorted(set(filter(math.isfinite, scores)))
    edges = [values[0] - 1.0, *values, values[-1] + 1.0]
    places = [((low + high) / 2, high - low) for low, high in pairwise(edges)]

    def worth(place: tuple[float, float]) -> tuple[bool, int, int, float]:
        threshold, gap = place
        refused, wrongly = bisect_left(bad, threshold), bisect_left(good, threshold)
        allowed = wrongly <= most_false * len(good)
        return allowed, refused if allowed else -wrongly, -wrongly, gap

    return max(places, key=worth)[0]


@dataclass(frozen=True, slots=True)
class CalibrationOutcome:
    """The result of a calibration.

    Attributes:
        before: figures of the live calibration on these questions.
        after: figures of the cross-validation, each question judged by a fit to four fifths of the others.
        mrr: mean reciprocal rank for each fusion weight tried; empty without an embedder.
    """

    head: Head
    answerable: int
    unanswerable: int
    calibration: Calibration
    fusion_weight: float
    before: Figures
    after: Figures
    mrr: Mapping[float, float]


def require_enough(rows: Sequence[QuestionRow], file: object) -> None:
    """Raise `InputError` if there are too few questions of a kind."""
    answerable = sum(row.answerable for row in rows)
    unanswerable = len(rows) - answerable
    if min(answerable, unanswerable) < _MIN_QUESTIONS:
        raise InputError(
            f"{file} holds {answerable} answerable and {unanswerable} unanswerable questions: "
            f"a calibration needs at least {_MIN_QUESTIONS} of each."
        )


def calibrate(
    rows: Sequence[QuestionRow], most_false: float, session: EvaluationSession, settings: Settings, report: Progress
) -> CalibrationOutcome:
    """Search for every question, and fit evidence and fusion weight to the results.

    Args:
        rows: questions of both kinds, see `require_enough`.
        most_false: share of the answerable questions that may be refused.

    Raises:
        InputError: a question is invalid; the message names its row.
        ProviderError: the embedder failed.
        IndexLocked: another generation was published meanwhile.
        IndexFault: there is no readable index.
    """
    snapshot: Snapshot = session.snapshot()
    head = snapshot.head
    weights = TRIED_WEIGHTS if head.embedder.size else ()
    site = SitePlaces((head.base_url, settings.base_url))
    observed = [_observe(row, weights, session, site) for row in track(report, "Asking questions", rows)]
    if session.snapshot().head != head:
        raise IndexLocked(f"The index of {head.scope} was published anew while it was calibrated: run it again.")
    report("Fitting", len(rows), len(rows))
    examples, gains = [example for example, _ in observed], [gains for _, gains in observed if gains]
    answerable = sum(e.answerable for e in examples)
    return CalibrationOutcome(
        head=head,
        answerable=answerable,
        unanswerable=len(examples) - answerable,
        calibration=fit_to_questions(examples, most_false),
        fusion_weight=best_weight(gains, head.fusion_weight) if gains else head.fusion_weight,
        before=measure_calibration(examples, Calibration.from_json(head.calibration)),
        after=cross_validate(examples, most_false),
        mrr={w: math.fsum(g[w] for g in gains) / len(gains) for w in weights} if gains else {},
    )


def _observe(
    row: QuestionRow, weights: Sequence[float], session: EvaluationSession, site: SitePlaces
) -> tuple[Example, Mapping[float, float]]:
    """Return the question's example, and for each weight 1 over the rank of the first expected place, if any is."""
    expected = distinct(site.place(address) for address in row.expected)
    with row.named():
        features, urls = session.weigh(row.question, row.history, weights if expected else ())
    gains = {w: reciprocal_rank(ranks(expected, [site.place(url) for url in found])) for w, found in urls.items()}
    return Example(row.answerable, tuple(features)), gains


def best_weight(gains: Sequence[Mapping[float, float]], live: float) -> float:
    """Return the weight nearest to the live one within one standard error of the best weight.

    Questions that can't separate two weights leave the live one (one-standard-error rule; Breiman et al., 1984).
    """
    best = max(gains[0], key=lambda w: (math.fsum(g[w] for g in gains), -abs(w - live), -w))
    as_good = [w for w in gains[0] if not _worse([g[best] - g[w] for g in gains])]
    return min(as_good, key=lambda w: (abs(w - live), w))


def _worse(differences: Sequence[float]) -> bool:
    """Whether the mean difference is more than one standard error above 0."""
    count = len(differences)
    mean = math.fsum(differences) / count
    variance = math.fsum((d - mean) ** 2 for d in differences) / max(1, count - 1)
    return mean > math.sqrt(variance / count)


def regress_rising(
    rows: Sequence[Sequence[float]], labels: Sequence[int], ridge: float, weights: Sequence[float] | None = None
) -> list[float]:
    """Return coefficients like `regress`, of which only the first, the bias, may be negative.

    A feature with a negative coefficient is dropped, because more evidence must not lower the result.
    """
    columns = list(range(len(rows[0])))
    while True:
        beta = regress([[row[i] for i in columns] for row in rows], labels, ridge, weights)
        least = min(range(1, len(columns)), key=lambda i: beta[i], default=0)
        if least == 0 or beta[least] >= 0:
            by_column = dict(zip(columns, beta, strict=True))
            return [by_column.get(i, 0.0) for i in range(len(rows[0]))]
        del columns[least]


def auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return the area under the ROC curve: how often a positive value exceeds a negative one; a tie counts half."""
    pairs = len(positive) * len(negative)
    return sum((p > n) + 0.5 * (p == n) for p in positive for n in negative) / pairs
