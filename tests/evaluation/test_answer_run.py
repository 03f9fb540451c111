"""`chapterverse eval --answers`: from questions to figures of answers, and an interrupted run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from api import quill
from chapterverse.errors import IndexLocked
from chapterverse.settings import Settings
from chapterverse_api.ext.evaluation import answer_metrics
from chapterverse_api.ext.evaluation.answer_run import answer_questions
from chapterverse_api.ext.evaluation.questions import read_judged
from chapterverse_api.ext.evaluation.retrieval_run import search_questions
from chapterverse_api.ext.evaluation.runs import Run
from chapterverse_api.service import Service
from cli.shell import Shell
from evaluation.made import silent

INDEX = ".cache/plugin/chapterverse"
ROWS: list[dict[str, Any]] = [
    {
        "id": "clear", "question": "How do I clear the cache?", "expected": ["cache/#clearing-the-cache"],
        "nuggets": ["quill cache clean", ["prune", "purge"], "/\\bports?\\b/"],
    },
    {"id": "back", "question": "roll back to deployment 41", "expected": ["deploy/#rolling-back"]},
    {"id": "colors", "question": "change the colors of a theme", "expected": ["install/"]},
    {"id": "cup", "question": "Who won the world cup in 1998?", "answerable": False},
]  # fmt: skip


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = Shell(tmp_path_factory.mktemp("quill"))
    quill.publish(shell.root / INDEX)
    (shell.root / "q.jsonl").write_text("\n".join(map(json.dumps, ROWS)), "utf-8")
    return shell


@pytest.fixture
def service(shell: Shell) -> Service:
    return quill.service(Settings(store=f"edge:{shell.root / INDEX}"))


def asked(shell: Shell, service: Any) -> tuple[Run, list[Any]]:
    questions = read_judged(shell.root / "q.jsonl")
    return search_questions(questions, service, service.settings, silent), questions


class Judging:
    """A service that counts its judgments, and misbehaves at one question."""

    def __init__(self, service: Service, at: int, event: BaseException | dict[str, Any]) -> None:
        self._service, self._at, self._event = service, at, event
        self.judged = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    def judge_answer(self, question: str, history: Any) -> dict[str, Any]:
        self.judged += 1
        if self.judged != self._at:
            return self._service.judge_answer(question, history)
        if isinstance(self._event, BaseException):
            raise self._event
        return {**self._service.judge_answer(question, history), **self._event}


def test_every_question_is_answered_and_measured(shell: Shell, service: Service) -> None:
    done = answer_questions(*asked(shell, service), service, service.settings, silent)
    clear, back, colors, cup = (row.answer for row in done.rows)
    assert clear
    assert back
    assert colors
    assert cup
    assert (clear.nuggets, clear.contained) == (3, 2)
    assert [c.match for c in back.cited][:1] == ["anchor"]
    assert (cup.status, colors.outcome(answerable=True)) == ("not_in_docs", (colors.confidence, False))
    figures = done.answer_figures
    assert figures["citation_validity"] == figures["citation_recall"] == figures["refused@unanswerable"] == 1.0
    assert figures["nuggets"] == pytest.approx(2 / 3)
    assert figures["cited.page"] == pytest.approx(2 / 3)
    assert (done.generator, done.interrupted) == ("extractive", False)
    assert done.caught["foreign"].tried > 0
    assert done.caught["foreign"].share >= 0.9


def test_what_was_answered_before_an_interrupt_is_kept(shell: Shell, service: Service) -> None:
    broken = Judging(service, 3, KeyboardInterrupt())
    done = answer_questions(*asked(shell, broken), broken, service.settings, silent)
    assert [row.answer is not None for row in done.rows] == [True, True, False, False]
    assert (done.interrupted, done.caught, broken.judged) == (True, {}, 3)
    assert done.answer_figures["citation_validity"] == 1.0
    assert done.answer_figures["refused@unanswerable"] is None


def test_what_was_not_made_as_configured_counts_for_nothing(shell: Shell, service: Service) -> None:
    broken = Judging(service, 1, {"status": "degraded", "degraded": "The model was away.", "valid": 0})
    done = answer_questions(*asked(shell, broken), broken, service.settings, silent)
    assert done.answer_figures["citation_validity"] == 1.0
    assert done.answer_figures["nuggets"] is None
    assert [row.id for row in done.answered] == ["back", "colors", "cup"]


def test_an_index_that_is_published_meanwhile_ends_it(shell: Shell, service: Service) -> None:
    broken = Judging(service, 2, {"generation": 2})
    with pytest.raises(IndexLocked, match="was published anew while its questions were answered: run it again"):
        answer_questions(*asked(shell, broken), broken, service.settings, silent)


# The command


def test_the_command_prints_the_figures(shell: Shell) -> None:
    done = shell.run("eval", "q.jsonl", "--answers")
    assert done.stderr == ""
    assert "citation_validity       1.000" in done.stdout
    document = shell.json("eval", "q.jsonl", "--answers", "--min", "citation_validity=1", "--min", "nuggets=0.5")
    assert tuple(document["answers"]["metrics"])[: len(answer_metrics.NAMES)] == answer_metrics.NAMES
    assert [bar["met"] for bar in document["bars"]] == [True, True]
    assert document["rows"][0]["answer"]["contained"] == 2
    assert document["answers"]["questions"] == 4


def test_two_runs_with_answers_are_compared_and_reported(shell: Shell, tmp_path: Path) -> None:
    run, report = str(tmp_path / "run.json"), tmp_path / "report.html"
    shell.run("eval", "q.jsonl", "--answers", "--run", run)
    document = shell.json("eval", "q.jsonl", "--answers", "--compare", run, "--report", str(report))
    changes = {change["name"]: change["verdict"] for change in document["comparison"]["changes"]}
    assert changes["citation_validity"] == changes["refused@unanswerable"] == "same"
    assert "caught@foreign" in report.read_text("utf-8")


def test_bars_of_answers(shell: Shell) -> None:
    done = shell.run("eval", "q.jsonl", "--answers", "--min", "nuggets=0.9", "--min", "refused@unanswerable=1", code=3)
    assert done.stderr == "Error: nuggets is 0.6667, below its bar of 0.9.\n"
    told = shell.refused("eval", "q.jsonl", "--min", "nuggets=0.9", code=2)
    assert "nuggets is a figure of answers: add --answers." in told


def test_a_model_that_is_paid_is_announced_and_its_absence_told(shell: Shell) -> None:
    settings = {"CHAPTERVERSE_GENERATOR": "openai:local-model", "CHAPTERVERSE_OPENAI_URL": "http://127.0.0.1:9"}
    done = shell.run("eval", "q.jsonl", "--answers", environment=settings)
    first, *_, last = done.stderr.splitlines()
    assert first == "Up to 4 questions are going to openai:local-model, which may charge for each."
    assert "3 of 4 answers were not made as configured and count for nothing: " in last
    assert "citation_validity           –" in done.stdout


def test_bad_nuggets_are_one_sentence(shell: Shell) -> None:
    (shell.root / "bad.jsonl").write_text(json.dumps({**ROWS[0], "nuggets": ["/(/"]}), "utf-8")
    assert shell.refused("eval", "bad.jsonl") == "bad.jsonl, line 1: the nugget '/(/' is no regular expression."
