"""Command `eval`: measures results for labelled questions, against bars and an earlier run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Unpack

import typer

from chapterverse.cli import parameters
from chapterverse.cli.messages import error, note, progress_bar, warn
from chapterverse.cli.parameters import argument, option, print_json, settings_from, switch
from chapterverse.errors import InputError
from chapterverse.settings import Settings
from chapterverse.site.delivery import replace_file
from chapterverse_api.ext.evaluation.comparison import Bar, Comparison, compare_runs, read_bar, shares
from chapterverse_api.ext.evaluation.diff.command import run as compare_answers
from chapterverse_api.ext.evaluation.measuring import answer_questions, search_questions
from chapterverse_api.ext.evaluation.questions import QuestionRow, read_judged
from chapterverse_api.ext.evaluation.report import lines, load_template, of_answers, printable, render
from chapterverse_api.ext.evaluation.runs import Run, read_run
from chapterverse_api.ext.evaluation.session import EvaluationSession

#: An option of `calibrate` too.
QuestionsBaseUrl = Annotated[
    str | None, typer.Option("--base-url", help="Address of the site in QUESTIONS, if the index has another.")
]


def eval_(
    questions: Path | None = argument("File of questions, one JSON object a line.", "QUESTIONS"),
    more: list[str] | None = argument("More bars, after --min.", "NAME=VALUE", show_default=False),
    answers: bool = switch("--answers", "Also answer every question, and measure the answers."),
    least: list[str] | None = option(
        "Exit with 3 if the figure is lower; may be repeated.", "NAME=VALUE", name="--min"
    ),
    compare: Path | None = option("Earlier run to compare with.", "RUN"),
    report: Path | None = option("Write a report for the browser.", "FILE.html"),
    run: Path | None = option("Write the run, for a later --compare.", "FILE.json"),
    diff: str | None = option("Compare the answers with those of a store, an export or a git ref.", "BASE"),
    build: str | None = option("Builds and indexes a git ref.", "COMMAND"),
    most_lost: int | None = option("Exit with 3 if more answers are lost.", "NUMBER", name="--max-lost", min=0),
    markdown: Path | None = option("Write a comment for a pull request.", "FILE.md"),
    base_url: QuestionsBaseUrl = None,
    as_json: parameters.Json = False,
    **flags: Unpack[parameters.ServiceFlags],
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

    To see what a change of the docs does to readers' answers, with these questions, those that
    `report --json` prints, or the headings of what changed:

    \b
    chapterverse eval questions.jsonl --diff main --max-lost 0 --markdown comment.md
    """
    if diff is not None:
        others = {"--answers": answers, "--min": least, "--compare": compare, "--report": report, "--run": run}
        if named := [name for name, value in others.items() if value]:
            raise typer.BadParameter(f"--diff compares answers and measures nothing: leave out {', '.join(named)}.")
        _check_outputs(markdown)
        settings = settings_from(**flags, base_url=base_url)
        compare_answers(diff, questions, settings, build=build, markdown=markdown, most_lost=most_lost, as_json=as_json)
        return
    if questions is None:
        raise typer.BadParameter("Name a file of QUESTIONS, or --diff.")
    if build or markdown or most_lost is not None:
        raise typer.BadParameter("--build, --max-lost and --markdown belong to --diff.")
    if more and not least:
        raise typer.BadParameter("There is one file of QUESTIONS; a bar is set by --min NAME=VALUE.")
    bars = _read_bars([*(least or []), *(more or [])], answers)
    rows = read_judged(questions)
    files = [file.resolve() for file in (questions, report, run) if file]
    if len(set(files)) < len(files):
        raise typer.BadParameter("QUESTIONS, --report and --run must be different files.")
    _check_outputs(report, run)
    before = read_run(compare) if compare else None
    if before and not shares(rows, before):
        raise InputError(f"{compare} holds none of these questions, so there is nothing to compare.")
    template = load_template() if report else None
    measured, comparison = _measure(rows, settings_from(**flags, base_url=base_url), before, answers)
    document = {**measured.to_json(), "bars": [bar.to_json(measured.measured) for bar in bars]}
    if comparison:
        document["comparison"] = comparison.to_json()
    if run:
        _save(run, json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    if report and template:
        _save(report, render(template, measured, bars, comparison))
    for warning in (*measured.warnings, *of_answers(measured)):
        warn(printable(warning))
    if as_json:
        print_json(document)
    else:
        typer.echo("\n".join(lines(measured, comparison)))
    _exit(measured, bars)


def _read_bars(least: Sequence[str], answers: bool) -> list[Bar]:
    try:
        bars = [read_bar(text) for text in least]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    for bar in bars:
        if bar.of_answers and not answers:
            raise typer.BadParameter(f"{bar.name} is a figure of answers: add --answers.")
    return bars


def _check_outputs(*files: Path | None) -> None:
    """Reject output files that can't be written, before the first question."""
    for file in filter(None, files):
        if file.is_dir() or not file.parent.is_dir():
            raise InputError(f"{file} can't be written: name a file in a folder that exists.")


def _measure(
    rows: Sequence[QuestionRow], settings: Settings, before: Run | None, answers: bool
) -> tuple[Run, Comparison | None]:
    session = EvaluationSession.open(settings)
    with progress_bar() as progress:
        measured = search_questions(rows, session, settings, progress)
        if answers:
            if settings.generator != "extractive":
                note(f"Up to {len(rows)} questions are going to {settings.generator}, which may charge for each.")
            measured = answer_questions(measured, rows, session, settings, progress)
        return measured, compare_runs(measured, before, progress) if before else None


def _save(file: Path, text: str) -> None:
    """Write a file atomically; write to a pipe or a terminal directly."""
    if file.exists() and not file.is_file():
        file.write_text(text, "utf-8")
    else:
        replace_file(file, text.encode())


def _exit(run: Run, bars: Sequence[Bar]) -> None:
    """Exit with 3 if a bar is missed, with 1 after an interrupt."""
    missed = [bar for bar in bars if not bar.is_met(run.measured)]
    for bar in missed:
        error(bar.in_words(run.measured))
    if missed or run.interrupted:
        raise typer.Exit(3 if missed else 1)
