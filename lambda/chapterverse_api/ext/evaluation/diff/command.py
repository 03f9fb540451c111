"""Runs `chapterverse eval --diff`."""

from __future__ import annotations

from pathlib import Path

import typer

from chapterverse.cli.messages import error, note, progress_bar
from chapterverse.cli.parameters import print_json
from chapterverse.progress import Progress
from chapterverse.settings import Settings
from chapterverse.site.delivery import replace_file
from chapterverse_api.commands.session import ServiceSession
from chapterverse_api.ext.evaluation.diff import render
from chapterverse_api.ext.evaluation.diff.answers import MOST_HEADINGS, Change, ask, compare, from_headings
from chapterverse_api.ext.evaluation.diff.base_index import open_base
from chapterverse_api.ext.evaluation.diff.sections import IndexedSite, SectionChange, compare_sections
from chapterverse_api.ext.evaluation.questions import QuestionRow, read_questions


def run(
    base: str,
    questions: Path | None,
    settings: Settings,
    *,
    build: str | None,
    markdown: Path | None,
    most_lost: int | None,
    as_json: bool,
) -> None:
    """Compare the answers of two indexes, print the changes, and exit with 3 if too many are lost."""
    rows = read_questions(questions) if questions else None
    # Quotes cost nothing, and no conversation is stored. A reranker would be asked once more for each question.
    reranker = settings.reranker if settings.reranker == "local" else "none"
    settings = settings.override(generator="extractive", checker="words", reranker=reranker, records="")
    with progress_bar() as report:
        changes, sections = compare_indexes(base, rows, settings, build, report)
    if markdown:
        replace_file(markdown, render.markdown(changes, sections).encode())
    if as_json:
        print_json(render.document(changes, sections))
    else:
        typer.echo("\n".join(render.lines(changes, sections)))
    lost = render.counts(changes)["lost"]
    if most_lost is not None and lost > most_lost:
        error(f"Lost answers: {lost}, more than --max-lost {most_lost}.")
        raise typer.Exit(3)


def compare_indexes(
    base: str, rows: list[QuestionRow] | None, settings: Settings, build: str | None, report: Progress
) -> tuple[list[Change], list[SectionChange]]:
    """Return what became of each answer, and the touched sections. Nothing is asked if there are none."""
    session = ServiceSession.open(settings)
    snapshot = session.snapshot()
    with open_base(base, build, settings, snapshot.head, report) as base_settings:
        earlier = ServiceSession.open(base_settings)
        sites = IndexedSite.from_snapshot(earlier.snapshot()), IndexedSite.from_snapshot(snapshot)
        sections = compare_sections(*sites)
        asked = _questions(rows, sections)
        if not sections:
            return [], []
        before, now = ask(asked, earlier, report, "Asking the base"), ask(asked, session, report, "Asking the index")
        return compare(asked, (before, now), sites, sections), sections


def _questions(rows: list[QuestionRow] | None, sections: list[SectionChange]) -> list[QuestionRow]:
    if rows is not None:
        return rows
    headings = from_headings(sections)
    if len(headings) > MOST_HEADINGS:
        note(f"Of the {len(headings)} headings of touched sections the first {MOST_HEADINGS} are asked.")
    return headings[:MOST_HEADINGS]
