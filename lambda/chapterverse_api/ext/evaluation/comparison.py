"""Compares two runs: changes of the figures, and of single questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from chapterverse.progress import Progress
from chapterverse_api.ext.evaluation import answer_metrics, metrics
from chapterverse_api.ext.evaluation.bootstrap import Interval, intervals
from chapterverse_api.ext.evaluation.questions import QuestionRow
from chapterverse_api.ext.evaluation.runs import QuestionResult, Run

_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in both runs, over the shared questions that it is defined for.

    Attributes:
        interval: of the difference, 95 % confidence; see `bootstrap`.
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
    names = [name for name in metrics.NAMES if name in now[0]]
    differences = [[a[name] - b[name] for name in names] for a, b in zip(now, before, strict=True)]
    return [
        Change(name, _mean(before, name), _mean(now, name), interval, len(pairs))
        for name, interval in zip(names, intervals(differences, report), strict=True)
    ]


def _of_answers(pairs: Sequence[tuple[QuestionResult, QuestionResult]], report: Progress) -> list[Change]:
    """Return the changes of the answers' figures, each over the questions that define it in both runs."""
    figures = [(now.answer_figures, before.answer_figures) for now, before in pairs]
    changes = []
    for name in answer_metrics.NAMES:
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
