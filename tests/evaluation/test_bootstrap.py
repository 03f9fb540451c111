from __future__ import annotations

import math
import random
from itertools import product

import pytest

from chapterverse_api.ext.evaluation.comparison import RESAMPLES, Interval, intervals
from evaluation.made import silent


def drawn(seed: int, size: int, mean: float, spread: float) -> list[tuple[float]]:
    chance = random.Random(seed)
    return [(chance.gauss(mean, spread),) for _ in range(size)]


def plainly(rows: list[float]) -> Interval:
    """Return the interval as the definition has it, for questions of which all changed."""
    chance = random.Random(0)
    means = []
    for _ in range(RESAMPLES):
        picked = [rows[int(chance.random() * len(rows))] for _ in rows]
        means.append(sum(picked) / len(picked))
    means.sort()
    return Interval(means[249], means[-250])


def test_against_the_definition() -> None:
    rows = [d for (d,) in drawn(3, 25, 0.1, 0.3)]
    assert intervals([(d,) for d in rows], silent) == [plainly(rows)]


def test_the_same_differences_give_the_same_interval_in_every_release() -> None:
    rows = [(0.5, 0.0), (-0.25, 1.0), (0.0, 0.0), (1.0, -1.0), (0.125, 0.5)]
    assert intervals(rows, silent) == [Interval(-0.075, 0.7), Interval(-0.5, 0.6)]


def test_a_figure_is_not_disturbed_by_the_others() -> None:
    first = [(0.5,), (-0.25,), (0.75,), (1.0,), (0.125,)]
    both = [(a, 1.0 if i % 2 else -1.0) for i, (a,) in enumerate(first)]
    assert intervals(both, silent)[0] == intervals(first, silent)[0]


def test_no_difference_has_no_width() -> None:
    assert intervals([(0.0, 0.0)] * 9, silent) == [Interval(0.0, 0.0)] * 2
    assert intervals([(0.5,)] * 9, silent) == [Interval(0.5, 0.5)]
    assert intervals([(0.5,)], silent) == [Interval(0.5, 0.5)]
    assert not Interval(0.0, 0.0).excludes_zero


def test_two_runs_in_the_other_order_mirror_it() -> None:
    rows = drawn(1, 30, 0.1, 0.4)
    (there,), (back,) = intervals(rows, silent), intervals([(-d,) for (d,) in rows], silent)
    assert (back.low, back.high) == pytest.approx((-there.high, -there.low))


def test_against_every_possible_resample() -> None:
    """With three questions there are 27 resamples, so the share of each mean is known exactly."""
    rows = [(0.0,), (1.0,), (-1.0,)]
    exact = sorted(sum(values) / 3 for values in product((0.0, 1.0, -1.0), repeat=3))
    # 1 of 27 is more than 2.5 %, so the least and the greatest mean are the ends.
    assert intervals(rows, silent) == [Interval(exact[0], exact[-1])]


def test_it_is_as_wide_as_theory_says() -> None:
    rows = drawn(2, 400, 0.3, 1.0)
    (interval,) = intervals(rows, silent)
    values = [d for (d,) in rows]
    mean = sum(values) / 400
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / 400)
    assert interval.low == pytest.approx(mean - 1.96 * spread / 20, abs=0.006)
    assert interval.high == pytest.approx(mean + 1.96 * spread / 20, abs=0.006)
    assert interval.excludes_zero


@pytest.mark.slow
def test_it_holds_the_truth_about_as_often_as_it_says() -> None:
    found = [intervals(drawn(seed, 60, 0.2, 0.5), silent)[0] for seed in range(60)]
    held = sum(i.low <= 0.2 <= i.high for i in found)
    # The chance of fewer than 50 out of 60 is less than one in a thousand at 95 %.
    assert 50 <= held <= 60


def test_progress_is_told_to_its_end() -> None:
    told: list[tuple[str, int, int]] = []
    intervals([(1.0,), (0.0,)], lambda *step: told.append(step))
    assert told[0] == ("Resampling questions", 0, RESAMPLES)
    assert told[-1] == ("Resampling questions", RESAMPLES, RESAMPLES)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
