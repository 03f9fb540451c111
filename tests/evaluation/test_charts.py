from __future__ import annotations

import pytest

from chapterverse_api.ext.evaluation import report as charts
from chapterverse_api.ext.evaluation.comparison import Change, Interval
from chapterverse_api.ext.evaluation.report import HEIGHT, WIDTH, Chart
from evaluation.made import answer, answered, row, run, unanswerable

RUN = run(
    row("a", 1, evidence=1.0),
    row("b", 1, page=(1,), evidence=0.97),
    row("c", 3, page=(1,), evidence=0.5),
    row("d", 14, page=(2,), evidence=0.31),
    row("e", None, evidence=0.0),
    unanswerable("f", refused=True, evidence=0.02),
    unanswerable("g", refused=False, evidence=0.52),
)


def within(chart: Chart) -> bool:
    return all(min(m.x, m.y - chart.top + 1, WIDTH - m.x - m.width, HEIGHT - m.y - m.height) >= 0 for m in chart.marks)


def test_ranks_are_counted() -> None:
    chart = charts.rank_chart(RUN)
    said = {mark.says: mark.height for mark in chart.marks}
    counted = {says.rpartition(": ")[0]: int(says.rpartition(": ")[2]) for says in said}
    assert {k: n for k, n in counted.items() if n} == {
        "section at rank 1": 2, "section at rank 3": 1, "section at rank 11+": 1, "section at rank none": 1,
        "page at rank 1": 3, "page at rank 2": 1, "page at rank none": 1,
    }  # fmt: skip
    assert said["page at rank 1: 3"] == pytest.approx(3 * said["section at rank 3: 1"], abs=0.02)
    assert [label.text for label in chart.below] == [*map(str, range(1, 11)), "11+", "none"]
    assert [label.text for label in chart.beside] == ["0", "1", "2", "3"]
    assert within(chart)


def test_evidence_stands_on_both_sides_of_the_ground() -> None:
    chart = charts.evidence_chart(RUN)
    up = [mark for mark in chart.marks if mark.series == "answerable"]
    down = [mark for mark in chart.marks if mark.series == "unanswerable"]
    assert [mark.says.rpartition("evidence ")[2] for mark in up] == [
        "0.00 to 0.05: 1", "0.30 to 0.35: 1", "0.50 to 0.55: 1", "0.95 to 1.00: 2",
    ]  # fmt: skip
    assert len(down) == 2
    assert all(mark.y + mark.height == pytest.approx(chart.ground, abs=0.02) for mark in up)
    assert all(mark.y == chart.ground for mark in down)
    assert within(chart)
    assert chart.floor == pytest.approx(chart.left + 0.35 * (chart.right - chart.left), abs=0.02)


@pytest.mark.parametrize("rows", [[row("a", 1)], [unanswerable("a", refused=True)], [row("a", None)] * 5000])
def test_any_run_can_be_drawn(rows: list[object]) -> None:
    made = run(*rows)  # type: ignore[arg-type]
    for chart in (charts.rank_chart(made), charts.evidence_chart(made)):
        assert within(chart)
        assert 1 <= len(chart.beside) <= 8


def test_whiskers_share_an_axis() -> None:
    changes = [
        Change("mrr", 0.5, 0.6, Interval(-0.1, 0.2), 9),
        Change("hit@1", 0.5, 0.5, Interval(0.0, 0.0), 9),
        Change("hit@5", 0.6, 0.5, Interval(-0.4, 0.1), 9),
    ]
    wide = charts.whiskers(changes)
    assert (wide[1].low, wide[1].at, wide[1].high) == (50, 50, 50)
    assert (wide[2].low, wide[2].at, wide[2].high) == (4, 38.5, 61.5)
    assert (wide[0].low, wide[0].at, wide[0].high) == (38.5, 61.5, 73)
    assert charts.whiskers([]) == []
    assert charts.whiskers(changes[1:2])[0].low == 50


SURE = answered(
    *(row(f"r{i}", 1, answer=answer(confidence=0.95)) for i in range(8)),
    *(row(f"w{i}", 1, answer=answer(confidence=0.31, cited=())) for i in range(2)),
)


def test_confidences_stand_in_tenths_by_how_often_they_are_right() -> None:
    chart = charts.confidence_chart(SURE)
    assert [mark.says for mark in chart.marks] == [
        "confidence 0.31: 0.00 of 2 right",
        "confidence 0.95: 1.00 of 8 right",
    ]
    wrong, right = chart.marks
    assert (wrong.height, right.height) == (0, chart.bottom - chart.top)
    assert right.x - wrong.x == pytest.approx(6 / 10 * (chart.right - chart.left), abs=0.02)
    assert within(chart)


def test_the_risk_is_drawn_at_every_tenth() -> None:
    chart = charts.risk_chart(SURE)
    assert [mark.height > 0 for mark in chart.marks] == [False] * 8 + [True] * 2
    assert chart.marks[-1].says == "the surest 100%: 0.20 wrong"
    assert [label.text for label in chart.below] == ["20 %", "40 %", "60 %", "80 %", "100 %"]
    assert within(chart)


@pytest.mark.parametrize("count", [1, 3, 500])
def test_any_number_of_answers_can_be_drawn(count: int) -> None:
    made = answered(*(row(str(i), 1, answer=answer(confidence=i % 11 / 10)) for i in range(count)))
    assert within(charts.confidence_chart(made))
    assert within(charts.risk_chart(made))
