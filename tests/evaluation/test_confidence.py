from __future__ import annotations

import pytest

from chapterverse_api.ext.evaluation.metrics import AnswerOutcome, bins, brier, ece, risks


def outcomes(*pairs: tuple[float, int]) -> list[AnswerOutcome]:
    return [AnswerOutcome(confidence, bool(right)) for confidence, right in pairs]


def test_brier_is_the_mean_squared_distance() -> None:
    assert brier(outcomes((1.0, 1), (0.0, 0))) == 0.0
    assert brier(outcomes((1.0, 0), (0.5, 1))) == pytest.approx((1 + 0.25) / 2)


def test_who_is_right_as_often_as_they_say_is_calibrated() -> None:
    assert ece(outcomes(*[(0.75, 1)] * 3, (0.75, 0))) == 0.0
    assert ece(outcomes(*[(0.95, 1), (0.95, 0)] * 5)) == pytest.approx(0.45)
    # Two bins, one of them three times as full.
    assert ece(outcomes(*[(0.75, 0)] * 3, (0.25, 0))) == pytest.approx(0.75 * 0.75 + 0.25 * 0.25)


def test_bins_hold_their_mean_and_the_last_one_is_closed() -> None:
    low, high = bins(outcomes((1.0, 1), (0.92, 0), (0.05, 0)))
    assert (low.confidence, low.right, low.answers) == (0.05, 0.0, 1)
    assert (high.confidence, high.right, high.answers) == (pytest.approx(0.96), 0.5, 2)


def test_the_risk_rises_where_the_unsure_are_wrong() -> None:
    found = risks(outcomes(*[(0.9, 1)] * 8, *[(0.2, 0)] * 2))
    assert [(r.coverage, r.risk) for r in found[:8]] == [(i / 10, 0.0) for i in range(1, 9)]
    assert (found[-1].coverage, found[-1].risk) == (1.0, pytest.approx(0.2))


def test_the_order_of_the_equally_sure_decides_nothing() -> None:
    pairs = [(0.5, 1), (0.5, 0), (0.5, 0), (0.5, 1)]
    assert {round(r.risk, 9) for r in risks(outcomes(*pairs))} == {0.5}
    assert risks(outcomes(*pairs)) == risks(outcomes(*pairs[::-1]))


def test_few_answers_have_few_shares() -> None:
    assert [r.coverage for r in risks(outcomes((0.9, 1), (0.8, 0)))] == [0.5, 1.0]
    assert risks([]) == []
