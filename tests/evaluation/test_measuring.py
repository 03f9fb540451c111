"""Questions to a real service over a real index."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from api import quill
from chapterverse.errors import IndexLocked, IndexMissing, InputError, ProviderError
from chapterverse.settings import Settings
from chapterverse_api.answer.pipeline import answer_turn
from chapterverse_api.answer.turn import Turn
from chapterverse_api.commands import History
from chapterverse_api.contract import Events
from chapterverse_api.ext.evaluation import metrics
from chapterverse_api.ext.evaluation.measuring import answer_questions, search_questions
from chapterverse_api.ext.evaluation.questions import QuestionRow, read_judged
from chapterverse_api.ext.evaluation.runs import Run
from chapterverse_api.ext.evaluation.session import EvaluationSession, JudgedAnswer
from cli.shell import Shell
from evaluation.made import silent

CLEAR = "How do I clear the cache?"
SECTION = f"{quill.BASE}cache/#clearing-the-cache"


def asked(line: str, question: str, *expected: str, history: object = None) -> QuestionRow:
    return QuestionRow(line, question, history, f"q.jsonl, line {line}", expected, bool(expected))


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return quill.publish(tmp_path_factory.mktemp("index"))


@pytest.fixture(scope="module")
def service(settings: Settings) -> EvaluationSession:
    return quill.service(settings)


def test_a_question_is_judged_by_what_was_found(service: EvaluationSession, settings: Settings) -> None:
    run = search_questions([asked("1", CLEAR, SECTION)], service, settings, silent)
    (row,) = run.rows
    assert (row.anchor_ranks, row.page_ranks, row.refused, row.missing) == ((1,), (1,), False, ())
    assert (row.chapter, row.results[0].section, row.results[0].match) == ("Caching", "Clearing the cache", "anchor")
    assert row.results[0].url == SECTION
    assert row.evidence == max(r.score for r in row.results)
    assert {"search", "rank", "total"} <= row.seconds.keys()
    assert row.seconds["total"] > 0
    assert (run.index.site, run.index.generation, run.index.pages, run.index.embedder) == ("quill", 1, 6, "none")
    assert 0 < run.floor < 1
    assert run.warnings == ()


def test_ranks_are_those_of_a_search(service: EvaluationSession, settings: Settings) -> None:
    question = "quill cache folder"
    urls = [r["url"] for r in service.search(question, 20, {})]
    assert len(urls) > 3
    run = search_questions(
        [asked("1", question, urls[2], urls[0]), asked("2", question, urls[-1])], service, settings, silent
    )
    assert run.rows[0].anchor_ranks == (urls.index(urls[2]) + 1, 1)
    assert run.rows[1].anchor_ranks == (urls.index(urls[-1]) + 1,)
    assert [r.url for r in run.rows[0].results] == urls[:10]


def test_addresses_may_be_relative_or_those_of_a_preview(service: EvaluationSession, settings: Settings) -> None:
    spellings = ("cache/#clearing-the-cache", "/docs/cache/index.html#clearing-the-cache", SECTION.replace("s:", ":"))
    run = search_questions([asked("1", CLEAR, *spellings)], service, settings, silent)
    assert run.rows[0].anchor_ranks == (1,)
    preview = settings.override(base_url="http://127.0.0.1:8765/")
    for address in (SECTION, "http://127.0.0.1:8765/cache/#clearing-the-cache", "cache/#clearing-the-cache"):
        run = search_questions([asked("1", CLEAR, address)], quill.service(preview), preview, silent)
        assert (run.rows[0].anchor_ranks, run.warnings) == ((1,), ())
        assert run.rows[0].results[0].url.startswith("http://127.0.0.1:8765/")


def test_a_page_is_right_whichever_section_was_found(service: EvaluationSession, settings: Settings) -> None:
    run = search_questions([asked("1", CLEAR, f"{quill.BASE}cache/")], service, settings, silent)
    assert (run.rows[0].anchor_ranks, run.rows[0].page_ranks) == ((1,), (1,))
    wrong = search_questions([asked("1", CLEAR, f"{quill.BASE}cache/#cache-location")], service, settings, silent).rows[
        0
    ]
    assert wrong.anchor_ranks != (1,)
    assert (wrong.page_ranks, wrong.results[0].match) == ((1,), "page")


def test_what_the_index_does_not_hold_is_a_warning_and_counts_as_missed(
    service: EvaluationSession, settings: Settings
) -> None:
    rows = [
        asked("1", CLEAR, SECTION, "cache/#emptying"),
        asked("2", CLEAR, "caching/", "https://other.example/docs/cache/"),
    ]
    run = search_questions(rows, service, settings, silent)
    assert run.warnings == (
        "q.jsonl, line 1: cache/#emptying counts as missed, for the index holds its page and no such section.",
        "q.jsonl, line 2: caching/ counts as missed, for the index holds no such page.",
        "q.jsonl, line 2: https://other.example/docs/cache/ counts as missed, for the index holds no such page.",
    )
    assert (run.rows[0].missing, run.rows[0].anchor_ranks, run.rows[0].page_ranks) == (
        ("cache/#emptying",),
        (1, None),
        (1,),
    )
    assert (run.rows[1].anchor_ranks, run.rows[1].page_ranks, run.rows[1].chapter) == ((None, None), (None, None), None)


def test_refusal_is_that_of_the_chat(service: EvaluationSession, settings: Settings) -> None:
    questions = [CLEAR, "Who won the world cup in 1998?", "What is the weather in Paris?", "zzzz", "quill"]
    run = search_questions([asked(str(i), q) for i, q in enumerate(questions)], service, settings, silent)
    chat = [quill.ask(service, q).status == "not_in_docs" for q in questions]
    assert [row.refused for row in run.rows] == chat
    assert [row.refused for row in run.rows[:2]] == [False, True]
    assert (run.rows[3].evidence, run.rows[3].results) == (0, ())


def test_a_follow_up_is_read_with_its_history(service: EvaluationSession, settings: Settings) -> None:
    history = [{"role": "user", "content": "Where does the cache live on disk?"}]
    row = asked("1", "and QUILL_CACHE_DIR?", f"{quill.BASE}cache/#cache-location", history=history)
    assert search_questions([row], service, settings, silent).rows[0].anchor_ranks == (1,)


@pytest.mark.parametrize(
    ("question", "history", "sentence"),
    [
        ("", None, "q.jsonl, line 2: query must hold at least one letter or digit."),
        ("x" * 4001, None, "q.jsonl, line 2: query must hold at most 4000 characters."),
        ("Why?", 7, "q.jsonl, line 2: conversation_history must be a list."),
    ],
)
def test_a_question_out_of_contract_is_named_by_its_row(
    service: EvaluationSession, settings: Settings, question: str, history: object, sentence: str
) -> None:
    rows = [asked("1", CLEAR, SECTION), asked("2", question, SECTION, history=history)]
    with pytest.raises(InputError) as error:
        search_questions(rows, service, settings, silent)
    assert str(error.value) == sentence


def test_a_system_without_its_embedder_has_no_figures(tmp_path: Path) -> None:
    embedder = quill.Terms()
    settings = quill.publish(tmp_path, embedder=embedder)
    service = quill.service(settings, embedder=embedder)
    rows = [asked("1", CLEAR, SECTION)]
    run = search_questions(rows, service, settings, silent)
    assert (run.index.embedder, "embed" in run.rows[0].seconds) == ("terms", True)
    embedder.down = True
    with pytest.raises(
        ProviderError, match=r"^q\.jsonl, line 1: there are no figures, because they would be of another"
    ):
        search_questions(rows, service, settings, silent)


def test_an_index_that_moves_meanwhile_has_no_figures(tmp_path: Path) -> None:
    settings = quill.publish(tmp_path)

    def publish(stage: str, done: int, total: int) -> None:
        if done == 1:
            quill.publish(tmp_path, {**quill.PAGES, "wombats.md": "# Wombats\n\nWombats dig."})

    rows = [asked("1", CLEAR, SECTION), asked("2", CLEAR, SECTION)]
    with pytest.raises(
        IndexLocked, match=r"^The index of quill was published anew while it was examined: run it again\.$"
    ):
        search_questions(rows, quill.service(settings), settings, publish)


def test_without_an_index_there_is_nothing_to_examine(tmp_path: Path) -> None:
    settings = Settings(store=f"edge:{tmp_path}/none")
    with pytest.raises(IndexMissing):
        search_questions([asked("1", CLEAR, SECTION)], quill.service(settings), settings, silent)


def test_progress_is_told(service: EvaluationSession, settings: Settings) -> None:
    told: list[tuple[str, int, int]] = []
    rows = [asked(str(i), CLEAR, SECTION) for i in range(3)]
    search_questions(rows, service, settings, lambda *step: told.append(step))
    assert told == [("Asking questions", n, 3) for n in range(4)]


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
def quill_service(shell: Shell) -> EvaluationSession:
    return quill.service(Settings(store=f"edge:{shell.root / INDEX}"))


def searched(shell: Shell, quill_service: Any) -> tuple[Run, list[Any]]:
    questions = read_judged(shell.root / "q.jsonl")
    return search_questions(questions, quill_service, quill_service.settings, silent), questions


class Judging(EvaluationSession):
    """A service that counts its judgments, and misbehaves at one question."""

    # Unlike a service, which is frozen, it counts.
    __setattr__ = object.__setattr__

    def __init__(
        self, quill_service: EvaluationSession, at: int, event: BaseException | Callable[[JudgedAnswer], JudgedAnswer]
    ) -> None:
        super().__init__(quill_service.resources)
        self._at, self._event = at, event
        self.judged = 0

    def judge_answer(
        self, question: str, history: History, *, answer: Callable[[Turn], Events] = answer_turn
    ) -> JudgedAnswer:
        self.judged += 1
        judged = super().judge_answer(question, history, answer=answer)
        if self.judged != self._at:
            return judged
        if isinstance(self._event, BaseException):
            raise self._event
        return self._event(judged)


def test_every_question_is_answered_and_measured(shell: Shell, quill_service: EvaluationSession) -> None:
    done = answer_questions(*searched(shell, quill_service), quill_service, quill_service.settings, silent)
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


def test_what_was_answered_before_an_interrupt_is_kept(shell: Shell, quill_service: EvaluationSession) -> None:
    broken = Judging(quill_service, 3, KeyboardInterrupt())
    done = answer_questions(*searched(shell, broken), broken, quill_service.settings, silent)
    assert [row.answer is not None for row in done.rows] == [True, True, False, False]
    assert (done.interrupted, done.caught, broken.judged) == (True, {}, 3)
    assert done.answer_figures["citation_validity"] == 1.0
    assert done.answer_figures["refused@unanswerable"] is None


def test_what_was_not_made_as_configured_counts_for_nothing(shell: Shell, quill_service: EvaluationSession) -> None:
    def degrade(judged: JudgedAnswer) -> JudgedAnswer:
        degraded = replace(judged.result, status="degraded", degraded="The model was away.", valid=0)
        return replace(judged, result=degraded)

    broken = Judging(quill_service, 1, degrade)
    done = answer_questions(*searched(shell, broken), broken, quill_service.settings, silent)
    assert done.answer_figures["citation_validity"] == 1.0
    assert done.answer_figures["nuggets"] is None
    assert [answer.degraded for answer in done.answers] == ["The model was away.", None, None, None]


def test_an_index_that_is_published_meanwhile_ends_it(shell: Shell, quill_service: EvaluationSession) -> None:
    broken = Judging(quill_service, 2, lambda judged: replace(judged, generation=2))
    with pytest.raises(IndexLocked, match="was published anew while its questions were answered: run it again"):
        answer_questions(*searched(shell, broken), broken, quill_service.settings, silent)


# The command


def test_the_command_prints_the_figures(shell: Shell) -> None:
    done = shell.run("eval", "q.jsonl", "--answers")
    assert done.stderr == ""
    assert "citation_validity       1.000" in done.stdout
    document = shell.json("eval", "q.jsonl", "--answers", "--min", "citation_validity=1", "--min", "nuggets=0.5")
    assert tuple(document["answers"]["metrics"])[: len(metrics.ANSWER_METRICS)] == metrics.ANSWER_METRICS
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
