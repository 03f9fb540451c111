"""Holds a run to bars such as `--min recall@5=0.8`, and compares it with an earlier one.

Whether a difference may be chance is told by paired bootstrap intervals: both runs answered the same questions, so
their differences by question are resampled with replacement, ten thousand times. The interval contains the middle 95 %
of the means (the percentile interval of Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13;
for retrieval see Sakai, "Evaluating evaluation metrics based on the bootstrap", SIGIR 2006). The runs differ if it
excludes zero.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from chapterverse.progress import Progress
from chapterverse_api.ext.evaluation import answer_metrics, metrics
from chapterverse_api.ext.evaluation.mutations import MUTATIONS
from chapterverse_api.ext.evaluation.questions import QuestionRow
from chapterverse_api.ext.evaluation.runs import QuestionResult, Run

RESAMPLES = 10_000
#: Share of the means outside the interval, half of it on either side.
_OUTSIDE_SHARE = 0.05
_SEED = 0
#: Resamples between two reports of progress.
_RESAMPLES_PER_REPORT = 500
#: Tolerance for rounding in a mean of floats.
_HAIR = 1e-9
_OF_ANSWERS = (*answer_metrics.ANSWER_METRICS, *map(answer_metrics.figure_of, MUTATIONS))
_NAMES = (*metrics.METRICS, *_OF_ANSWERS)
_FIGURE_BY_SPELLING = {name: name for name in _NAMES} | {f"anchor.{name}": name for name in metrics.RANKED}
_DIGITS = 6


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
    return [_middle(sorted(column_means)) for column_means in means]


def _draws(size: int, changes: int) -> Iterator[list[int]]:
    """Yield the indices below `changes` in each resample of `size` questions."""
    # Only `random` promises the same numbers in every release.
    chance = random.Random(_SEED).random  # noqa: S311  (a sample, not a secret)
    for _ in range(RESAMPLES):
        yield [i for _ in range(size) if (i := int(chance() * size)) < changes]


def _middle(means: Sequence[float]) -> Interval:
    left_out = int(len(means) * _OUTSIDE_SHARE / 2)
    # Symmetric, so that swapping the runs mirrors the interval.
    return Interval(means[left_out - 1], means[-left_out])


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
        return {"name": self.name, "least": self.least, "value": figures.get(self.name), "met": self.is_met(figures)}


def read_bar(text: str) -> Bar:
    """Parse `NAME=VALUE`. Names are those of `metrics` and `answer_metrics` in any case, optionally after "anchor.".

    Raises:
        ValueError: it is invalid; the message is one sentence.
    """
    name, separator, value = (part.strip() for part in text.partition("="))
    if not separator:
        raise ValueError("A --min needs the form NAME=VALUE, such as recall@5=0.8.")
    figure = _FIGURE_BY_SPELLING.get(name.lower())
    if figure is None:
        raise ValueError(f"There is no figure {name!r}; there are {', '.join(_NAMES)}.")
    try:
        least = float(value)
    except ValueError:
        least = -1.0
    if not 0 <= least <= 1:
        raise ValueError(f"The bar of {figure} must be a number from 0 to 1.")
    return Bar(figure, least)


def describe_missed(bars: Iterable[Bar], figures: Mapping[str, float | None]) -> list[str]:
    """Return a sentence for each missed bar."""
    return [bar.in_words(figures) for bar in bars if not bar.is_met(figures)]


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
        values = {
            "before": self.before,
            "now": self.now,
            "difference": self.difference,
            "low": self.interval.low,
            "high": self.interval.high,
        }
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

    @property
    def size(self) -> tuple[bool, float]:
        """Sort key for the size of the move."""
        return self.refused_before != self.refused_now, abs(self.ndcg_now - self.ndcg_before)


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
        return {
            "shared": self.shared,
            "only_now": list(self.only_now),
            "only_before": list(self.only_before),
            "changes": [change.to_json() for change in self.changes],
            "moves": [asdict(move) for move in self.moves],
        }


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
    answerable = [pair for pair in pairs if pair[0].answerable]
    unanswerable = [pair for pair in pairs if not pair[0].answerable]
    return Comparison(
        shared=len(pairs),
        only_now=tuple(row.id for row in now.rows if _key(row) not in shared),
        only_before=tuple(row.id for row in before.rows if _key(row) not in shared),
        changes=(*_changes(answerable, report), *_changes(unanswerable, report), *_of_answers(pairs, report)),
        moves=_moves(pairs),
    )


def _key(row: QuestionResult | QuestionRow) -> tuple[str, str, bool]:
    return row.id, row.question, row.answerable


def _changes(pairs: Sequence[tuple[QuestionResult, QuestionResult]], report: Progress) -> list[Change]:
    if not pairs:
        return []
    now = [row.figures for row, _ in pairs]
    before = [row.figures for _, row in pairs]
    names = [name for name in metrics.METRICS if name in now[0]]
    differences = [[a[name] - b[name] for name in names] for a, b in zip(now, before, strict=True)]
    return [
        Change(name, _mean(before, name), _mean(now, name), interval, len(pairs))
        for name, interval in zip(names, intervals(differences, report), strict=True)
    ]


def _of_answers(pairs: Sequence[tuple[QuestionResult, QuestionResult]], report: Progress) -> list[Change]:
    """Return the changes of the answers' figures, each over the questions that define it in both runs."""
    figures = [(now.answer_figures, before.answer_figures) for now, before in pairs]
    changes = []
    for name in answer_metrics.ANSWER_METRICS:
        defined = [(now, before) for now, before in figures if name in now and name in before]
        if defined:
            (interval,) = intervals([[now[name] - before[name]] for now, before in defined], report)
            now_mean, before_mean = (_mean([pair[side] for pair in defined], name) for side in (0, 1))
            changes.append(Change(name, before_mean, now_mean, interval, len(defined)))
    return changes


def _mean(rows: Sequence[dict[str, float]], name: str) -> float:
    return metrics.mean([figures[name] for figures in rows]) or 0.0


def _moves(pairs: Sequence[tuple[QuestionResult, QuestionResult]]) -> tuple[Move, ...]:
    moves = [_move(now, before) for now, before in pairs if _quality(now) != _quality(before)]
    largest = sorted(moves, key=lambda move: move.size, reverse=True)
    return tuple(sorted(largest, key=lambda move: move.better))


def _move(now: QuestionResult, before: QuestionResult) -> Move:
    standing_now, standing_before = _quality(now), _quality(before)
    return Move(
        id=now.id,
        better=standing_now > standing_before,
        rank_before=before.rank,
        rank_now=now.rank,
        ndcg_before=round(standing_before[1], _DIGITS),
        ndcg_now=round(standing_now[1], _DIGITS),
        refused_before=before.refused,
        refused_now=now.refused,
    )


def _quality(row: QuestionResult) -> tuple[float, float]:
    """Return how well a question went, as a sort key."""
    figures = row.figures
    return figures.get(metrics.ANSWERED, figures.get(metrics.REFUSED, 0.0)), figures.get("ndcg@10", 0.0)
