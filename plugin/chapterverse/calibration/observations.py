"""Measures on labelled questions from which evidence to answer, and how to weigh the embedder.

    questions ─ observe ─> Observation each ─ calibrated ─> Outcome ─ tuning.tune ─> a new generation, same points

The service searches the live index for every question, with the embedder that is configured. Nothing is stored before
all of them are answered for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chapterverse.calibration import Calibration
from chapterverse.calibration.fit import Example, Figures, fit, held_out, measure
from chapterverse.errors import IndexLocked, InputError
from chapterverse.evaluation.metrics import reciprocal_rank
from chapterverse.evaluation.places import SitePlaces, distinct, ranks
from chapterverse.evaluation.questions import QuestionRow
from chapterverse.model import Head
from chapterverse.progress import Progress
from chapterverse.session import Session
from chapterverse.settings import Settings
from chapterverse.store import Snapshot

#: Questions of either kind without which there is nothing to learn from, and with which five parts have two each.
LEAST = 10
#: Shares of the embedder in the fusion that are tried.
WEIGHTS = tuple(i / 10 for i in range(11))


@dataclass(frozen=True, slots=True)
class Observation:
    """What the index has on one question.

    Attributes:
        gains: for each weight tried, 1 over the rank of the first expected place; empty where none is expected, or
            there is no embedder to weigh.
    """

    example: Example
    gains: Mapping[float, float]


@dataclass(frozen=True, slots=True)
class CalibrationOutcome:
    """What a calibration comes to.

    Attributes:
        before: how the live calibration does on these questions.
        after: how a fit to four fifths of them does on the others, each in turn.
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


def check(asked: Sequence[QuestionRow], file: object) -> None:
    """Raise `InputError` where there are too few questions of a kind to learn from."""
    answerable = sum(one.answerable for one in asked)
    unanswerable = len(asked) - answerable
    if min(answerable, unanswerable) < LEAST:
        raise InputError(
            f"{file} holds {answerable} answerable and {unanswerable} unanswerable questions: "
            f"a calibration needs at least {LEAST} of each."
        )


def calibrate(
    asked: Sequence[QuestionRow], most_false: float, session: Session, settings: Settings, report: Progress
) -> CalibrationOutcome:
    """Ask the service (what the entry point `open` gives) every question and fit evidence and fusion to what it finds.

    Args:
        asked: some of either kind, see `check`.
        most_false: share of the answerable questions that may be refused.

    Raises:
        InputError: a question is out of contract; the message names its row.
        ProviderError: the embedder failed.
        IndexLocked: the index was published anew meanwhile.
        IndexFault: there is no index that can be read.
    """
    snapshot: Snapshot = session.snapshot()
    head = snapshot.head
    weights = WEIGHTS if head.embedder.size else ()
    site = SitePlaces((head.base_url, settings.base_url))
    observed = []
    for done, one in enumerate(asked):
        report("Asking questions", done, len(asked))
        observed.append(observe(one, weights, session, site))
    if session.snapshot().head != head:
        raise IndexLocked(f"The index of {head.scope} was published anew while it was calibrated: run it again.")
    report("Fitting", len(asked), len(asked))
    examples = [o.example for o in observed]
    gains = [o.gains for o in observed if o.gains]
    answerable = sum(e.answerable for e in examples)
    return CalibrationOutcome(
        head=head,
        answerable=answerable,
        unanswerable=len(examples) - answerable,
        calibration=fit(examples, most_false),
        fusion_weight=best_weight(gains, head.fusion_weight) if gains else head.fusion_weight,
        before=measure(examples, Calibration.from_json(head.calibration)),
        after=held_out(examples, most_false),
        mrr={w: math.fsum(g[w] for g in gains) / len(gains) for w in weights} if gains else {},
    )


def observe(asked: QuestionRow, weights: Sequence[float], session: Session, site: SitePlaces) -> Observation:
    """Return what the index has on one question."""
    expected = distinct(site.place(address) for address in asked.expected)
    tried = weights if expected else ()
    try:
        found = session.weigh(asked.question, asked.history, tried)
    except InputError as error:
        raise InputError(f"{asked.place}: {error}") from None
    gains = {w: reciprocal_rank(ranks(expected, [site.place(url) for url in found["urls"][w]])) for w in tried}
    return Observation(Example(asked.answerable, tuple(found["features"])), gains)


def best_weight(gains: Sequence[Mapping[float, float]], live: float) -> float:
    """Return the weight nearest to the live one that is as good as the best, within one standard error.

    What the questions can't tell apart stays as it is (the one-standard-error rule; Breiman et al., 1984).
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
