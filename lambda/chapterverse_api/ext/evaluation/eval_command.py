"""Command `eval`: measures results for labelled questions, against bars and an earlier run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chapterverse.cli import parameters
from chapterverse.cli.messages import error, note, progress_bar, warn
from chapterverse.cli.parameters import print_json, settings_from
from chapterverse.errors import InputError
from chapterverse.settings import Settings
from chapterverse.site.delivery import replace_file
from chapterverse_api.ext.evaluation.questions import QuestionRow, read_judged
from chapterverse_api.ext.evaluation.session import EvaluationSession

# Only the command itself loads the modules that measure.
if TYPE_CHECKING:
    from chapterverse_api.ext.evaluation.comparison import Bar, Comparison
    from chapterverse_api.ext.evaluation.runs import Run

BarsOption = Annotated[
    list[str] | None,
    typer.Option("--min", help="Exit with 3 if the figure is lower; may be repeated.", metavar="NAME=VALUE"),
]
MoreBarsOption = Annotated[
    list[str] | None, typer.Argument(help="More bars, after --min.", metavar="NAME=VALUE", show_default=False)
]


def eval_(
    questions: Annotated[
        Path | None, typer.Argument(help="File of questions, one JSON object a line.", metavar="QUESTIONS")
    ] = None,
    more: MoreBarsOption = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="Also answer every question, and measure the answers.")
    ] = False,
    least: BarsOption = None,
    compare: Annotated[
        Path | None, typer.Option("--compare", help="Earlier run to compare with.", metavar="RUN")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a report for the browser.", metavar="FILE.html")
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="Write the run, for a later --compare.", metavar="FILE.json")
    ] = None,
    diff: Annotated[
        str | None,
        typer.Option(
            "--diff", help="Compare the answers with those of a store, an export or a git ref.", metavar="BASE"
        ),
    ] = None,
    build: Annotated[
        str | None, typer.Option("--build", help="Builds and indexes a git ref.", metavar="COMMAND")
    ] = None,
    most_lost: Annotated[
        int | None, typer.Option("--max-lost", min=0, help="Exit with 3 if more answers are lost.", metavar="NUMBER")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write a comment for a pull request.", metavar="FILE.md")
    ] = None,
    base_url: parameters.QuestionsBaseUrl = None,
    as_json: parameters.Json = False,
    store: parameters.Store = None,
    site: parameters.Site = None,
    docs_version: parameters.Version = None,
    embedder: parameters.Embedder = None,
) -> None:
    """Measure how well questions are answered.

    Write a file of readers' questions, in their words, with the places that answer them:

    \b
    {"id": "port", "question": "use another port", "expected": ["guide/serve/#port"]}
    {"id": "fly", "question": "can it fly?", "answerable": false}

    A place is a page or, with #anchor, a section. Its address may be relative to the site. The command searches for
    every question and changes nothing. The figures are averages from 0 to 1:

    \b
    recall@3 @5 @10  share of the expected places among the first 3, 5, 10 results
    hit@1 @5         share of the questions with any expected place among the first 1, 5 results
    mrr              1 / rank of the first expected place
    ndcg@10          all expected places, the higher they rank the better
    page.recall@5 …  each of these for pages, if any section is found
    refused          share of the unanswerable questions that were refused
    answered         share of the answerable questions that were not refused

    With --answers every question is also answered, with your generator. The answers are measured without a model as a
    judge; "nuggets" are facts that a right answer contains:

    \b
    {"id": "host", "question": "listen where?", "expected": ["serve/"], "nuggets": ["--host"]}

    \b
    citation_validity     share of the citations that pass a second check; less than 1 is a defect of ours
    citation_precision    share of the citations whose section supports the sentence
    citation_recall       share of the sentences that a section cited there supports
    nuggets               share of the facts that the answer contains
    cited.page, .section  share of the answerable questions whose answer cites an expected page, or section
    begins, key           share of the rows with a "key" whose answering block, or key, is quoted
    key.first, .marked    share of these rows with the key in the first quote, or marked in it
    quotes.whole, .once   share of the answers that announce each cut, or quote no line twice
    refused@unanswerable  share of the unanswerable questions that were refused
    answered@answerable   share of the answerable questions that were not refused
    caught@foreign, @number, @negation  share of the sentences made wrong that the check of citations rejects

    To compare two runs:

    \b
    chapterverse eval questions.jsonl --run before.json
    chapterverse eval questions.jsonl --compare before.json --min recall@5=0.8 --report report.html

    To see what a change of the docs does to readers' answers, with these questions or the headings of what changed:

    \b
    chapterverse eval questions.jsonl --diff main --max-lost 0 --markdown comment.md
    """
    if diff is not None:
        others = {"--answers": answers, "--min": least, "--compare": compare, "--report": report, "--run": run}
        _check_diff(others, markdown)
        settings = settings_from(store, site, docs_version, embedder=embedder, base_url=base_url)
        from chapterverse_api.ext.evaluation.diff.command import run as run_diff

        run_diff(diff, questions, settings, build=build, markdown=markdown, most_lost=most_lost, as_json=as_json)
        return
    if questions is None or build or markdown or most_lost is not None:
        raise typer.BadParameter(
            "--build, --max-lost and --markdown belong to --diff."
            if questions
            else "Name a file of QUESTIONS, or --diff."
        )
    from chapterverse_api.ext.evaluation import report as html

    bars = _bars(least or [], more or [], answers)
    rows = read_judged(questions)
    _check_outputs([file for file in (report, run) if file], questions)
    before = _earlier(compare, rows) if compare else None
    template = html.load_template() if report else None
    settings = settings_from(store, site, docs_version, embedder=embedder, base_url=base_url)
    measured_run, comparison = _measure(rows, settings, before, answers=answers)
    document = _document(measured_run, bars, comparison)
    if run:
        _save(run, json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    if report and template:
        _save(report, html.render(template, measured_run, bars, comparison))
    _print(measured_run, comparison, document if as_json else None)
    _hold_to(bars, measured_run)
    if measured_run.interrupted:
        raise typer.Exit(1)


def _check_diff(others: Mapping[str, object], markdown: Path | None) -> None:
    """Reject what --diff doesn't do, before anything is built."""
    if named := [name for name, value in others.items() if value]:
        raise typer.BadParameter(f"--diff compares answers and measures nothing: leave out {', '.join(named)}.")
    if markdown and (markdown.is_dir() or not markdown.parent.is_dir()):
        raise InputError(f"{markdown} can't be written: name a file in a folder that exists.")


def _measure(
    rows: list[QuestionRow], settings: Settings, before: Run | None, *, answers: bool
) -> tuple[Run, Comparison | None]:
    """Search for every question, with `answers` answer it too, and compare the figures with the earlier run."""
    from chapterverse_api.ext.evaluation.answer_run import answer_questions
    from chapterverse_api.ext.evaluation.comparison import compare_runs
    from chapterverse_api.ext.evaluation.retrieval_run import search_questions

    session = EvaluationSession.open(settings)
    with progress_bar() as report:
        measured_run = search_questions(rows, session, settings, report)
        if answers:
            _announce(len(rows), settings)
            measured_run = answer_questions(measured_run, rows, session, settings, report)
        return measured_run, compare_runs(measured_run, before, report) if before else None


def _print(measured_run: Run, comparison: Comparison | None, document: dict[str, Any] | None) -> None:
    """Print the warnings and the figures, or the document instead of the figures."""
    from chapterverse_api.ext.evaluation.text_report import lines, of_answers, printable

    for warning in (*measured_run.warnings, *of_answers(measured_run)):
        warn(printable(warning))
    if document:
        print_json(document)
    else:
        typer.echo("\n".join(lines(measured_run, comparison)))


def _document(measured_run: Run, bars: Sequence[Bar], comparison: Comparison | None) -> dict[str, Any]:
    """Return the document that `--json` prints."""
    document = {**measured_run.to_json(), "bars": [bar.to_json(measured_run.measured) for bar in bars]}
    return {**document, "comparison": comparison.to_json()} if comparison else document


def _announce(questions: int, settings: Settings) -> None:
    """Warn before the first question about calls that may be charged."""
    if settings.generator != "extractive":
        note(f"Up to {questions} questions are going to {settings.generator}, which may charge for each.")


def _bars(least: list[str], more: list[str], answers: bool) -> list[Bar]:
    from chapterverse_api.ext.evaluation.comparison import read_bar

    if more and not least:
        raise typer.BadParameter("There is one file of QUESTIONS; a bar is set by --min NAME=VALUE.")
    try:
        bars = [read_bar(text) for text in (*least, *more)]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    for bar in bars:
        if bar.of_answers and not answers:
            raise typer.BadParameter(f"{bar.name} is a figure of answers: add --answers.")
    return bars


def _check_outputs(files: list[Path], questions: Path) -> None:
    """Reject output files that can't be written or would overwrite each other, before the first question."""
    places = [file.resolve() for file in (questions, *files)]
    if len(set(places)) < len(places):
        raise typer.BadParameter("QUESTIONS, --report and --run must be different files.")
    for file in files:
        if file.is_dir() or not file.parent.is_dir():
            raise InputError(f"{file} can't be written: name a file in a folder that exists.")


def _earlier(file: Path, rows: list[QuestionRow]) -> Run:
    from chapterverse_api.ext.evaluation.comparison import shares
    from chapterverse_api.ext.evaluation.runs import read_run

    before = read_run(file)
    if not shares(rows, before):
        raise InputError(f"{file} holds none of these questions, so there is nothing to compare.")
    return before


def _save(file: Path, text: str) -> None:
    """Write a file atomically; write to a pipe or a terminal directly."""
    if file.exists() and not file.is_file():
        file.write_text(text, "utf-8")
    else:
        replace_file(file, text.encode())


def _hold_to(bars: list[Bar], run: Run) -> None:
    from chapterverse_api.ext.evaluation.comparison import describe_missed

    sentences = describe_missed(bars, run.measured)
    for sentence in sentences:
        error(sentence)
    if sentences:
        raise typer.Exit(3)
