"""Measures on labelled questions how much evidence an answer needs, and the best weight of the embedder.

`observe` returns an `Observation` of each question, `calibrate` a `CalibrationOutcome` of all, and `tuning.tune`
publishes it as a new generation.

The service searches the live index for every question with the configured embedder. Nothing is stored before all
questions were searched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chapterverse.calibration import Calibration
from chapterverse.errors import IndexLocked, InputError
from chapterverse.model import Head
from chapterverse.progress import Progress
from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse_api.ext.evaluation.fit import Example, Figures, cross_validate, fit_to_questions, measure_calibration
from chapterverse_api.ext.evaluation.metrics import reciprocal_rank
from chapterverse_api.ext.evaluation.places import SitePlaces, distinct, ranks
from chapterverse_api.ext.evaluation.questions import QuestionRow
from chapterverse_api.ext.evaluation.session import EvaluationSession

#: Least number of questions of each kind: two for each of five folds.
MIN_QUESTIONS = 10
#: Tried weights of the embedder in the fusion.
WEIGHTS = tuple(i / 10 for i in range(11))


@dataclass(frozen=True, slots=True)
class Observation:
    """The features of one question's candidates, and the ranks of its expected places.

    Attributes:
        gains: for each weight tried, 1 over the rank of the first expected place; empty without an expected place or an
            embedder.
    """

    example: Example
    gains: Mapping[float, float]


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
    if min(answerable, unanswerable) < MIN_QUESTIONS:
        raise InputError(
            f"{file} holds {answerable} answerable and {unanswerable} unanswerable questions: "
            f"a calibration needs at least {MIN_QUESTIONS} of each."
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
    weights = WEIGHTS if head.embedder.size else ()
    site = SitePlaces((head.base_url, settings.base_url))
    observed = []
    for done, row in enumerate(rows):
        report("Asking questions", done, len(rows))
        observed.append(observe(row, weights, session, site))
    if session.snapshot().head != head:
        raise IndexLocked(f"The index of {head.scope} was published anew while it was calibrated: run it again.")
    report("Fitting", len(rows), len(rows))
    examples = [o.example for o in observed]
    gains = [o.gains for o in observed if o.gains]
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


def observe(row: QuestionRow, weights: Sequence[float], session: EvaluationSession, site: SitePlaces) -> Observation:
    """Return the observation of one question."""
    expected = distinct(site.place(address) for address in row.expected)
    tried_weights = weights if expected else ()
    try:
        result = session.weigh(row.question, row.history, tried_weights)
    except InputError as error:
        raise InputError(f"{row.place}: {error}") from None
    gains = {w: reciprocal_rank(ranks(expected, [site.place(url) for url in result["urls"][w]])) for w in tried_weights}
    return Observation(Example(row.answerable, tuple(result["features"])), gains)


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
