"""Holds a run to bars such as `--min recall@5=0.8`, and compares it with an earlier one.

Whether a difference may be chance is told by paired bootstrap intervals: both runs answered the same questions, so
their differences by question are resampled with replacement, ten thousand times. The interval contains the middle 95 %
of the means (the percentile interval of Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13;
for retrieval see Sakai, "Evaluating evaluation metrics based on the bootstrap", SIGIR 2006). The runs differ if it
excludes zero.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from chapterverse.progress import Progress
from chapterverse_api.ext.evaluation import metrics
from chapterverse_api.ext.evaluation.questions import QuestionRow
from chapterverse_api.ext.evaluation.runs import QuestionResult, Run

RESAMPLES = 10_000
#: Means outside the interval on either side: half of 5 %.
_LEFT_OUT = RESAMPLES // 40
_SEED = 0
#: Resamples between two reports of progress.
_RESAMPLES_PER_REPORT = 500
#: Tolerance for rounding in a mean of floats.
_HAIR = 1e-9
_OF_ANSWERS = (*metrics.ANSWER_METRICS, *metrics.CAUGHT.values())
_NAMES = (*metrics.METRICS, *_OF_ANSWERS)
_DIGITS = 6

_Pair = tuple[QuestionResult, QuestionResult]


@dataclass(frozen=True, slots=True)
class Interval:
    """95 % confidence interval of the mean difference."""

    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


def intervals(differences: Sequence[Sequence[float]], report: Progress) -> list[Interval]:
    """Return an interval for each figure, the same on every machine and release of Python.

    Args:
        differences: a row for each question with the difference of each figure.
    """
    # A question without differences adds 0 to every sum, so it is only counted.
    changed = [row for row in differences if any(row)]
    columns = list(zip(*changed, strict=True)) if changed else [()] * len(differences[0])
    means: list[list[float]] = [[] for _ in columns]
    for done, drawn in enumerate(_draws(len(differences), len(changed))):
        if done % _RESAMPLES_PER_REPORT == 0:
            report("Resampling questions", done, RESAMPLES)
        for column, column_means in zip(columns, means, strict=True):
            column_means.append(sum(map(column.__getitem__, drawn)) / len(differences))
    report("Resampling questions", RESAMPLES, RESAMPLES)
    # Symmetric, so that swapping the runs mirrors the interval.
    return [Interval(ordered[_LEFT_OUT - 1], ordered[-_LEFT_OUT]) for ordered in map(sorted, means)]


def _draws(size: int, changes: int) -> Iterator[list[int]]:
    """Yield the indices below `changes` in each resample of `size` questions."""
    # Only `random` promises the same numbers in every release.
    chance = random.Random(_SEED).random  # noqa: S311  (a sample, not a secret)
    for _ in range(RESAMPLES):
        yield [i for _ in range(size) if (i := int(chance() * size)) < changes]


@dataclass(frozen=True, slots=True)
class Bar:
    """The minimum of one figure, 0 to 1."""

    name: str
    least: float

    @property
    def of_answers(self) -> bool:
        """Whether the figure needs answers and not only a search."""
        return self.name in _OF_ANSWERS

    def is_met(self, figures: Mapping[str, float | None]) -> bool:
        value = figures.get(self.name)
        return value is not None and value >= self.least - _HAIR

    def in_words(self, figures: Mapping[str, float | None]) -> str:
        """Return one sentence about a missed bar."""
        value = figures.get(self.name)
        if value is None:
            return f"{self.name} has a bar of {self.least:g}, and no question to measure it by."
        return f"{self.name} is {value:.4g}, below its bar of {self.least:g}."

    def to_json(self, figures: Mapping[str, float | None]) -> dict[str, Any]:
        return {**asdict(self), "value": figures.get(self.name), "met": self.is_met(figures)}


def read_bar(text: str) -> Bar:
    """Parse `NAME=VALUE`. Names are those of `metrics` in any case.

    Raises:
        ValueError: it is invalid; the message is one sentence.
    """
    name, separator, value = (part.strip() for part in text.partition("="))
    if not separator:
        raise ValueError("A --min needs the form NAME=VALUE, such as recall@5=0.8.")
    if (figure := name.lower()) not in _NAMES:
        raise ValueError(f"There is no figure {name!r}; there are {', '.join(_NAMES)}.")
    try:
        least = float(value)
    except ValueError:
        least = -1.0
    if not 0 <= least <= 1:
        raise ValueError(f"The bar of {figure} must be a number from 0 to 1.")
    return Bar(figure, least)


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in both runs, over the shared questions that it is defined for.

    Attributes:
        interval: of the difference, 95 % confidence.
        questions: number of those questions.
    """

    name: str
    before: float
    now: float
    interval: Interval
    questions: int

    @property
    def difference(self) -> float:
        return self.now - self.before

    @property
    def verdict(self) -> str:
        """ "better", "worse", "same", or "unclear" if the difference may be chance."""
        if not self.interval.excludes_zero:
            return "unclear" if self.interval.low < self.interval.high else "same"
        return "better" if self.difference > 0 else "worse"

    def to_json(self) -> dict[str, Any]:
        values = {"before": self.before, "now": self.now, "difference": self.difference, **asdict(self.interval)}
        rounded = {name: round(value, _DIGITS) for name, value in values.items()}
        return {"name": self.name, **rounded, "verdict": self.verdict, "questions": self.questions}


@dataclass(frozen=True, slots=True)
class Move:
    """A question that went better or worse: by right answer or refusal first, then by ndcg@10.

    Attributes:
        rank_before: of its first expected section; None if not found or unanswerable.
        ndcg_before: 0 for an unanswerable question.
        refused_before: whether it was refused.
    """

    id: str
    better: bool
    rank_before: int | None
    rank_now: int | None
    ndcg_before: float
    ndcg_now: float
    refused_before: bool
    refused_now: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """This run against an earlier one.

    Attributes:
        only_now: ids of questions that are missing from the earlier run, or worded otherwise in it.
        only_before: ids of questions that are missing from this run, or worded otherwise in it.
        moves: worse ones first, each group by size.
    """

    shared: int
    only_now: tuple[str, ...]
    only_before: tuple[str, ...]
    changes: tuple[Change, ...]
    moves: tuple[Move, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"changes": [change.to_json() for change in self.changes]}


def shares(questions: Sequence[QuestionRow], before: Run) -> bool:
    """Whether an earlier run contains any of these questions."""
    return not {_key(row) for row in before.rows}.isdisjoint(map(_key, questions))


def compare_runs(now: Run, before: Run, report: Progress) -> Comparison:
    """Compare the questions in both runs: equal in id, wording and answerability.

    Expected places may differ, for example after a page moved; each run is measured by its own.
    """
    earlier = {_key(row): row for row in before.rows}
    pairs = [(row, earlier[_key(row)]) for row in now.rows if _key(row) in earlier]
    shared = {_key(row) for row, _ in pairs}
    return Comparison(
        shared=len(pairs),
        only_now=tuple(row.id for row in now.rows if _key(row) not in shared),
        only_before=tuple(row.id for row in before.rows if _key(row) not in shared),
        changes=tuple(_changes(pairs, report)),
        moves=_moves(pairs),
    )


def _key(row: QuestionResult | QuestionRow) -> tuple[str, str, bool]:
    return row.id, row.question, row.answerable


def _changes(pairs: Sequence[_Pair], report: Progress) -> Iterator[Change]:
    """Yield the change of each figure over the questions that define it in both runs."""
    figures = [[row.figures | row.answer_figures for row in pair] for pair in pairs]
    searched = [name for name in metrics.METRICS if name != metrics.REFUSED]
    # Figures of one search are defined together, and drawn together.
    for names in (searched, [metrics.REFUSED], *([name] for name in metrics.ANSWER_METRICS)):
        defined = [(now, before) for now, before in figures if names[0] in now and names[0] in before]
        if not defined:
            continue
        differences = [[now[name] - before[name] for name in names] for now, before in defined]
        for name, interval in zip(names, intervals(differences, report), strict=True):
            now, before = (metrics.mean([side[name] for side in sides]) or 0.0 for sides in zip(*defined, strict=True))
            yield Change(name, before, now, interval, len(defined))


def _moves(pairs: Sequence[_Pair]) -> tuple[Move, ...]:
    moves = [_move(*pair) for pair in pairs if _quality(pair[0]) != _quality(pair[1])]
    return tuple(sorted(moves, key=_order))


def _order(move: Move) -> tuple[bool, bool, float]:
    """Return a sort key: the worse first, and of these the largest."""
    return move.better, move.refused_before == move.refused_now, -abs(move.ndcg_now - move.ndcg_before)


def _move(now: QuestionResult, before: QuestionResult) -> Move:
    quality_now, quality_before = _quality(now), _quality(before)
    return Move(
        id=now.id,
        better=quality_now > quality_before,
        rank_before=before.rank,
        rank_now=now.rank,
        ndcg_before=round(quality_before[1], _DIGITS),
        ndcg_now=round(quality_now[1], _DIGITS),
        refused_before=before.refused,
        refused_now=now.refused,
    )


def _quality(row: QuestionResult) -> tuple[float, float]:
    """Return how well a question went, as a sort key."""
    figures = row.figures
    return figures.get(metrics.ANSWERED, figures.get(metrics.REFUSED, 0.0)), figures.get("ndcg@10", 0.0)
