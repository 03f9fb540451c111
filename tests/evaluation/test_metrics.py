"""Figures against values computed by hand, and against definitions over a list of gains."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse_api.ext.evaluation import metrics
from chapterverse_api.ext.evaluation.metrics import (
    AnswerOutcome,
    bins,
    brier,
    ece,
    hit,
    ndcg,
    recall,
    reciprocal_rank,
    risks,
)

LOG3 = 1 / math.log2(3)


@pytest.mark.parametrize(
    ("ranks", "recalls", "hits", "rr", "gain"),
    [
        ((1,), (1, 1, 1), (1, 1), 1, 1),
        ((2,), (1, 1, 1), (0, 1), 1 / 2, LOG3),
        ((3,), (1, 1, 1), (0, 1), 1 / 3, 1 / 2),
        ((4,), (0, 1, 1), (0, 1), 1 / 4, 1 / math.log2(5)),
        ((7,), (0, 0, 1), (0, 0), 1 / 7, 1 / 3),
        ((10,), (0, 0, 1), (0, 0), 1 / 10, 1 / math.log2(11)),
        ((11,), (0, 0, 0), (0, 0), 0, 0),
        ((None,), (0, 0, 0), (0, 0), 0, 0),
        ((1, 2), (1, 1, 1), (1, 1), 1, 1),
        ((2, 1), (1, 1, 1), (1, 1), 1, 1),
        ((1, None), (1 / 2, 1 / 2, 1 / 2), (1, 1), 1, 1 / (1 + LOG3)),
        ((None, 3), (1 / 2, 1 / 2, 1 / 2), (0, 1), 1 / 3, (1 / 2) / (1 + LOG3)),
        ((3, 6, 12), (1 / 3, 1 / 3, 2 / 3), (0, 1), 1 / 3, (1 / 2 + 1 / math.log2(7)) / (1 + LOG3 + 1 / 2)),
    ],
)
def test_by_hand(
    ranks: tuple[int | None, ...], recalls: tuple[float, ...], hits: tuple[float, ...], rr: float, gain: float
) -> None:
    assert [recall(ranks, k) for k in (3, 5, 10)] == pytest.approx(recalls)
    assert [hit(ranks, k) for k in (1, 5)] == list(hits)
    assert reciprocal_rank(ranks) == pytest.approx(rr)
    assert ndcg(ranks) == pytest.approx(gain)


def test_the_best_order_holds_no_more_than_ten() -> None:
    assert ndcg(tuple(range(1, 13))) == pytest.approx(1)
    assert recall(tuple(range(1, 13)), 10) == pytest.approx(10 / 12)


def dcg(gains: list[int]) -> float:
    return sum(gain / math.log2(i + 2) for i, gain in enumerate(gains))


@st.composite
def found(draw: st.DrawFn) -> tuple[int | None, ...]:
    """Ranks of one to six expected places among twenty results, some of them not found."""
    size = draw(st.integers(1, 6))
    ranks = draw(st.lists(st.integers(1, 20), max_size=size, unique=True))
    return tuple(draw(st.permutations([*ranks, *[None] * (size - len(ranks))])))


@given(found())
def test_against_the_definitions(ranks: tuple[int | None, ...]) -> None:
    gains = [int(i in ranks) for i in range(1, 21)]
    assert ndcg(ranks) == pytest.approx(dcg(gains[:10]) / dcg([1] * len(ranks)))
    for k in (1, 3, 5, 10):
        assert recall(ranks, k) == pytest.approx(sum(gains[:k]) / len(ranks))
        assert hit(ranks, k) == float(any(gains[:k]))
    assert reciprocal_rank(ranks) == (1 / (gains.index(1) + 1) if any(gains[:10]) else 0)


def test_no_order_beats_the_best_one() -> None:
    for size in (1, 2, 3):
        orders = [ndcg(ranks) for ranks in combinations(range(1, 12), size)]
        assert max(orders) == ndcg(tuple(range(1, size + 1))) == pytest.approx(1)
        assert len({round(value, 12) for value in orders if value == pytest.approx(1)}) == 1


def test_every_figure_has_a_name_and_pages_their_own() -> None:
    figures = metrics.of_ranks((None, 2), (1,))
    assert figures["recall@5"] == 0.5
    assert figures["page.recall@5"] == figures["page.mrr"] == figures["page.hit@1"] == 1
    assert (*figures, "refused", "answered") == metrics.METRICS


def test_the_mean_of_nothing_is_nothing() -> None:
    assert metrics.mean([]) is None
    assert metrics.mean([0.1] * 10) == pytest.approx(0.1)


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
    assert (high.right, high.answers) == (0.5, 2)
    assert high.confidence == pytest.approx(0.96)


def test_the_risk_rises_where_the_unsure_are_wrong() -> None:
    found = risks(outcomes(*[(0.9, 1)] * 8, *[(0.2, 0)] * 2))
    assert [*found.items()][:8] == [(i / 10, 0.0) for i in range(1, 9)]
    assert found[1.0] == pytest.approx(0.2)


def test_the_order_of_the_equally_sure_decides_nothing() -> None:
    pairs = [(0.5, 1), (0.5, 0), (0.5, 0), (0.5, 1)]
    assert {round(risk, 9) for risk in risks(outcomes(*pairs)).values()} == {0.5}
    assert risks(outcomes(*pairs)) == risks(outcomes(*pairs[::-1]))


def test_few_answers_have_few_shares() -> None:
    assert [*risks(outcomes((0.9, 1), (0.8, 0)))] == [0.5, 1.0]
    assert risks([]) == {}
