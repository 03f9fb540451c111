from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chapterverse.errors import InputError
from chapterverse_api.ext.evaluation.metrics import METRICS
from chapterverse_api.ext.evaluation.runs import Run, averages, read_run
from evaluation.made import row, run, unanswerable

RUN = run(
    row("a", 1, page=(1,)),
    row("b", None, 4, page=(2,), refused=True),
    row("c", None),
    unanswerable("d", refused=True),
    unanswerable("e", refused=False),
    warnings=("Row c: gone.",),
)


def saved(tmp_path: Path, content: bytes | Any) -> Path:
    file = tmp_path / "run.json"
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return file


def test_figures_are_averages_over_the_questions_they_are_defined_for() -> None:
    figures = RUN.figures
    assert tuple(figures) == METRICS
    assert figures["recall@5"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert figures["mrr"] == pytest.approx((1 + 1 / 4 + 0) / 3)
    assert figures["page.hit@1"] == pytest.approx(1 / 3)
    assert figures["refused"] == 1 / 2
    assert figures["answered"] == pytest.approx(2 / 3)
    assert [r.id for r in RUN.false_refusals] == ["b"]


def test_without_such_questions_there_is_no_figure() -> None:
    assert run(row("a", 1)).figures["refused"] is None
    only = run(unanswerable("a", refused=True)).figures
    assert only["refused"] == 1
    assert {only[name] for name in METRICS if name != "refused"} == {None}
    assert set(averages([]).values()) == {None}


def test_the_first_rank_is_told() -> None:
    assert [r.rank for r in RUN.rows] == [1, 4, None, None, None]
    assert [r.page_rank for r in RUN.rows] == [1, 2, None, None, None]


def test_time_is_told_by_its_median_and_by_the_slowest() -> None:
    timed = run(*(row(str(i), 1, seconds={"total": i / 100}) for i in range(1, 21)))
    assert (timed.seconds(0.5), timed.seconds(0.95), timed.seconds(1)) == (0.1, 0.19, 0.2)
    assert run(row("a", 1, seconds={"total": 0.5})).seconds(0.5) == 0.5


def test_a_run_is_read_as_it_was_saved(tmp_path: Path) -> None:
    document = RUN.to_json()
    assert read_run(saved(tmp_path, document)) == RUN
    assert document["counts"] == {
        "questions": 5, "answerable": 3, "unanswerable": 2, "refused": 1, "false_refusals": 1,
    }  # fmt: skip
    assert document["metrics"]["mrr"] == 0.416667
    assert document["seconds"] == {"p50": 0.002, "p95": 0.002}
    assert [r["metrics"]["mrr"] for r in document["rows"][:3]] == [1, 0.25, 0]
    assert document["rows"][3]["metrics"] == {"refused": 1.0}
    # What a later release of the same format adds is not in the way.
    assert read_run(saved(tmp_path, {**document, "bars": [], "comparison": {}})) == RUN


def without(document: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in document.items() if k != key}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", " is no run: name a file that `chapterverse eval --run` wrote."),
        (b"\xff{}", " is no run: name a file that `chapterverse eval --run` wrote."),
        (b"[" * 100_000, " is no run: name a file that `chapterverse eval --run` wrote."),
        ({"format": 2}, " was saved by a newer release: upgrade chapterverse."),
        ([], " is no whole run (its form is wrong): make it again with `eval --run`."),
        ({}, " is no whole run (index is wrong): make it again with `eval --run`."),
        (without(RUN.to_json(), "rows"), " is no whole run (rows is wrong): make it again with `eval --run`."),
        ({**RUN.to_json(), "rows": []}, " is no whole run (rows is wrong): make it again with `eval --run`."),
        ({**RUN.to_json(), "floor": "low"}, " is no whole run (floor is wrong): make it again with `eval --run`."),
    ],
)
def test_what_is_no_run_is_one_sentence(tmp_path: Path, content: Any, sentence: str) -> None:
    file = saved(tmp_path, content)
    with pytest.raises(InputError) as error:
        read_run(file)
    assert str(error.value) == f"{file}{sentence}"


@pytest.mark.parametrize(
    "change",
    [{"anchor_ranks": [0]}, {"anchor_ranks": []}, {"page_ranks": []}, {"answerable": False}, {"id": 7}, {"results": 1}],
)
def test_a_row_that_can_not_be_measured_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    document = RUN.to_json()
    document["rows"][0].update(change)
    with pytest.raises(InputError, match=r"is no whole run \(rows\.0"):
        read_run(saved(tmp_path, document))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_run(tmp_path / "none.json")


def test_values_are_frozen() -> None:
    with pytest.raises(AttributeError):
        RUN.floor = 1  # type: ignore[misc]
    assert isinstance(RUN, Run)
