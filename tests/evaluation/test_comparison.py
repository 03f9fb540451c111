from __future__ import annotations

import pytest

from chapterverse_api.ext.evaluation.comparison import Change, Interval, compare_runs, shares
from chapterverse_api.ext.evaluation.metrics import METRICS
from chapterverse_api.ext.evaluation.questions import QuestionRow
from evaluation.made import row, run, silent, unanswerable


def test_only_questions_of_both_are_compared() -> None:
    now = run(row("a", 1), row("new", 1), row("reworded", 1, question="Now?"), unanswerable("u", refused=True))
    before = run(row("a", 2), row("old", 1), row("reworded", 1, question="Then?"), unanswerable("u", refused=False))
    done = compare_runs(now, before, silent)
    assert (done.shared, done.only_now, done.only_before) == (2, ("new", "reworded"), ("old", "reworded"))
    by_name = {change.name: change for change in done.changes}
    assert tuple(by_name) == (*METRICS[:-2], "answered", "refused")
    assert (by_name["mrr"].before, by_name["mrr"].now, by_name["mrr"].questions) == (0.5, 1, 1)
    assert (by_name["refused"].before, by_name["refused"].now, by_name["refused"].verdict) == (0, 1, "better")


def test_a_question_that_became_unanswerable_is_another_one() -> None:
    now = run(unanswerable("a", refused=True), row("b", 1))
    before = run(row("a", 1), row("b", 1))
    done = compare_runs(now, before, silent)
    assert (done.shared, done.only_now, done.only_before) == (1, ("a",), ("a",))
    assert "refused" not in {change.name for change in done.changes}


def test_what_is_expected_may_differ() -> None:
    done = compare_runs(run(row("a", 1, 2)), run(row("a", 2)), silent)
    assert (done.shared, done.changes[0].name, done.changes[0].difference) == (1, "recall@3", 0)


def test_a_difference_is_told_from_luck() -> None:
    worse = compare_runs(run(*(row(str(i), 3) for i in range(20))), run(*(row(str(i), 1) for i in range(20))), silent)
    mrr = next(c for c in worse.changes if c.name == "mrr")
    assert mrr.verdict == "worse"
    assert mrr.difference == pytest.approx(1 / 3 - 1)
    one = compare_runs(run(row("a", 1), row("b", 1), row("c", 2)), run(row("a", 1), row("b", 2), row("c", 1)), silent)
    assert next(c for c in one.changes if c.name == "mrr").verdict == "unclear"
    same = compare_runs(run(row("a", 1)), run(row("a", 1)), silent)
    assert {c.verdict for c in same.changes} == {"same"}


def test_the_questions_that_moved_are_named_the_worst_first() -> None:
    now = run(
        row("up", 1), row("down", None), row("same", 2), row("shut", 1, refused=True), unanswerable("u", refused=True)
    )
    before = run(row("up", 3), row("down", 1), row("same", 2), row("shut", 2), unanswerable("u", refused=False))
    moves = compare_runs(now, before, silent).moves
    assert [(m.id, m.better, m.rank_before, m.rank_now, m.ndcg_before, m.ndcg_now) for m in moves] == [
        # To be refused is worse than any rank is good.
        ("shut", False, 2, 1, 0.63093, 1),
        ("down", False, 1, None, 1, 0),
        ("u", True, None, None, 0, 0),
        ("up", True, 3, 1, 0.5, 1),
    ]
    refused = [(m.refused_before, m.refused_now) for m in moves]
    assert refused == [(False, True), (False, False), (False, True), (False, False)]


def test_as_json() -> None:
    document = compare_runs(run(row("a", 1), row("b", 1)), run(row("a", 3), row("c", 1)), silent).to_json()
    assert document["changes"][5] == {
        "name": "mrr", "before": 0.333333, "now": 1.0, "difference": 0.666667, "low": 0.666667, "high": 0.666667,
        "verdict": "better", "questions": 1,
    }  # fmt: skip
    assert (document["shared"], document["only_now"], document["only_before"]) == (1, ("b",), ("c",))
    assert document["moves"][0] == {
        "id": "a", "better": True, "rank_before": 3, "rank_now": 1, "ndcg_before": 0.5, "ndcg_now": 1.0,
        "refused_before": False, "refused_now": False,
    }  # fmt: skip


def test_an_interval_that_touches_zero_tells_nothing() -> None:
    assert Change("mrr", 0.5, 0.6, Interval(0.0, 0.2), 9).verdict == "unclear"
    assert Change("mrr", 0.5, 0.6, Interval(0.01, 0.2), 9).verdict == "better"
    assert Change("mrr", 0.6, 0.5, Interval(-0.2, -0.01), 9).verdict == "worse"


def test_whether_there_is_anything_to_compare() -> None:
    before = run(row("a", 1))
    assert shares([QuestionRow("b", "What of b?"), QuestionRow("a", "What of a?")], before)
    assert not shares([QuestionRow("a", "What of a, now?"), QuestionRow("a", "What of a?", answerable=False)], before)
