from __future__ import annotations

import json
from pathlib import Path

import pytest

from chapterverse_api.ext.evaluation import metrics
from chapterverse_api.ext.evaluation.comparison import compare_runs
from chapterverse_api.ext.evaluation.metrics import AnswerOutcome, AnswerResult, CitationCounts
from chapterverse_api.ext.evaluation.runs import read_run
from evaluation.made import answer, answered, refusal, row, run, silent, unanswerable

AWAY = CitationCounts("https://tea.example/clean/")
PAGE = CitationCounts("https://tea.example/brew/#9", "page")


def test_shares_are_of_what_was_counted() -> None:
    made = answer(citations=4, valid=3, sentences=5, carried=4, pairs=8, precise=2, nuggets=2, contained=1)
    assert made.figures(answerable=True) == {
        "citation_validity": 0.75, "citation_recall": 0.8, "citation_precision": 0.25, "nuggets": 0.5,
        "cited.page": 1.0, "cited.section": 1.0, "answered@answerable": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cited", "page", "section"),
    [((), 0, 0), ((AWAY,), 0, 0), ((AWAY, PAGE), 1, 0), ((PAGE, CitationCounts("x", "anchor")), 1, 1)],
)
def test_one_right_place_among_the_cited_is_enough(cited: tuple[CitationCounts, ...], page: int, section: int) -> None:
    figures = answer(cited=cited).figures(answerable=True)
    assert (figures["cited.page"], figures["cited.section"]) == (page, section)


def test_a_refusal_has_no_citations_to_measure_and_no_facts() -> None:
    assert refusal().figures(answerable=False) == {"refused@unanswerable": 1.0}
    assert refusal().figures(answerable=True) == {"cited.page": 0.0, "cited.section": 0.0, "answered@answerable": 0.0}
    assert AnswerResult("not_in_docs", 0.0, "No.", nuggets=3).figures(answerable=True)["nuggets"] == 0.0


def test_an_unanswerable_question_that_is_answered_counts_against_it() -> None:
    figures = answer().figures(answerable=False)
    assert figures["refused@unanswerable"] == 0.0
    assert figures["citation_validity"] == 1.0
    assert "cited.page" not in figures


def test_a_degraded_answer_counts_for_nothing() -> None:
    made = answer("degraded", degraded="The model was away.")
    assert made.figures(answerable=True) == {}
    assert made.outcome(answerable=True) is None


@pytest.mark.parametrize(
    ("made", "answerable", "outcome"),
    [
        (answer(confidence=0.7), True, AnswerOutcome(0.7, True)),
        (answer(confidence=0.7, cited=(AWAY,)), True, AnswerOutcome(0.7, False)),
        (answer(confidence=0.7, nuggets=2, contained=0), True, AnswerOutcome(0.7, False)),
        (answer(confidence=0.7, nuggets=2, contained=1, cited=(AWAY,)), True, AnswerOutcome(0.7, True)),
        (answer(confidence=0.7), False, AnswerOutcome(0.7, False)),
        (refusal(), True, None),
        (refusal(), False, None),
    ],
)
def test_an_answer_is_right_by_its_facts_and_else_by_its_page(
    made: AnswerResult, answerable: bool, outcome: AnswerOutcome | None
) -> None:
    assert made.outcome(answerable) == outcome


def test_figures_are_averages_over_the_questions_that_they_are_defined_for() -> None:
    done = answered(
        row("a", 1, answer=answer(citations=2, valid=1)),
        row("b", 1, answer=answer(citations=10, valid=10)),
        row("c", 1, answer=refusal()),
        unanswerable("d", refused=False, answer=refusal()),
        row("e", 1, answer=answer("degraded", degraded="Away.")),
        row("f", 1),
    )
    figures = done.answer_figures
    assert figures["citation_validity"] == 0.75
    assert figures["answered@answerable"] == pytest.approx(2 / 3)
    assert (figures["refused@unanswerable"], figures["nuggets"]) == (1.0, None)
    assert (figures["caught@foreign"], figures["caught@number"], figures["caught@negation"]) == (0.9, 1.0, None)
    assert tuple(figures)[: len(metrics.ANSWER_METRICS)] == metrics.ANSWER_METRICS
    # A search that refused is not what counts here.
    assert done.figures["refused"] == 0.0


def test_a_run_without_answers_says_nothing_of_them() -> None:
    done = run(row("a", 1))
    assert done.answer_figures == {}
    assert "answers" not in done.to_json()
    assert done.measured == done.figures


def test_a_run_with_answers_is_saved_and_read(tmp_path: Path) -> None:
    done = answered(row("a", 1, answer=answer()), row("b", 2, answer=refusal()), row("c", 1))
    file = tmp_path / "run.json"
    file.write_text(json.dumps(done.to_json()))
    assert read_run(file) == done
    told = done.to_json()["answers"]
    assert told["statuses"] == {"answered": 1, "partial": 0, "not_in_docs": 1, "degraded": 0}
    assert told["seconds"] == {"retrieve": 0.001, "first": 0.002, "total": 0.002}
    assert told["outcomes"] == {"questions": 1, "right": 1}
    assert (told["brier"], told["ece"]) == (0.01, 0.1)
    assert told["risk_coverage"] == [{"coverage": 1.0, "risk": 0.0}]


def test_a_run_of_an_older_release_has_no_answers(tmp_path: Path) -> None:
    document = run(row("a", 1)).to_json()
    for name in ("generator", "caught", "interrupted"):
        del document[name]
    del document["rows"][0]["answer"]
    (tmp_path / "old.json").write_text(json.dumps(document))
    assert read_run(tmp_path / "old.json") == run(row("a", 1))


def test_answers_are_compared_where_both_runs_have_them() -> None:
    before = answered(
        *(row(f"q{i}", 1, answer=refusal()) for i in range(6)),
        row("same", 1, answer=answer()),
        row("none", 1),
    )
    now = answered(
        *(row(f"q{i}", 1, answer=answer()) for i in range(6)), row("same", 1, answer=answer()), row("none", 1)
    )
    changes = {c.name: c for c in compare_runs(now, before, silent).changes}
    change = changes["answered@answerable"]
    assert (change.questions, change.now) == (7, 1.0)
    assert change.before == pytest.approx(1 / 7)
    assert change.verdict == "better"
    # Only one answer of the earlier run has citations.
    assert (changes["citation_validity"].questions, changes["citation_validity"].verdict) == (1, "same")
    assert "refused@unanswerable" not in changes
    assert not set(metrics.ANSWER_METRICS) & {c.name for c in compare_runs(now, run(row("q1", 1)), silent).changes}


def test_means_are_over_the_answers_that_came_to_a_stage() -> None:
    made = [answer(seconds={"retrieve": 1.0, "total": 3.0}), answer(seconds={"retrieve": 3.0})]
    done = answered(*(row(str(i), 1, answer=one) for i, one in enumerate(made)))
    assert done.to_json()["answers"]["seconds"] == {"retrieve": 2.0, "total": 3.0}
