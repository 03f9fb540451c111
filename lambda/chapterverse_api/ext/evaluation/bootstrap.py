"""Paired bootstrap intervals: whether the difference between two runs may be chance.

Both runs answered the same questions, so their differences by question are resampled with replacement, ten thousand
times. The interval contains the middle 95 % of the means (the percentile interval of Efron and Tibshirani, "An
Introduction to the Bootstrap" (1993), chapter 13; for retrieval see Sakai, "Evaluating evaluation metrics based on the
bootstrap", SIGIR 2006). The runs differ if it excludes zero.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chapterverse.progress import Progress

RESAMPLES = 10_000
#: Share of the means outside the interval, half of it on either side.
_OUTSIDE_SHARE = 0.05
_SEED = 0
#: Resamples between two reports of progress.
_RESAMPLES_PER_REPORT = 500


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
