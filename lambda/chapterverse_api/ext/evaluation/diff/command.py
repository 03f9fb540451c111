"""Runs `chapterverse eval --diff`, and writes what changed for a terminal, a program and a pull request."""

from __future__ import annotations

import html
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import typer

from chapterverse.cli.messages import error, note, progress_bar
from chapterverse.cli.parameters import print_json
from chapterverse.progress import Progress
from chapterverse.settings import Settings
from chapterverse.site.delivery import replace_file
from chapterverse_api.commands import ServiceSession
from chapterverse_api.ext.evaluation.diff.answers import Change, GivenAnswer, Outcome, ask, compare, from_headings
from chapterverse_api.ext.evaluation.diff.base_index import open_base
from chapterverse_api.ext.evaluation.diff.sections import IndexedSite, SectionChange, compare_sections
from chapterverse_api.ext.evaluation.questions import QuestionRow, read_questions
from chapterverse_api.ext.evaluation.report import printable

#: In the order of what a reviewer wants to know.
_TITLES = {"lost": "Lost", "changed": "Changed", "appeared": "New"}
#: By which a workflow finds its comment again.
_MARK = "<!-- chapterverse-answers -->"
_ELSEWHERE = "Sections that were not touched"
#: More headings than this are not asked: the comment of a change is read while the change is.
_MOST_HEADINGS = 300
#: Characters of a comment: GitHub takes 65,536.
_MOST = 60_000
_TOO_LONG = "The rest is too long for a comment: see `chapterverse eval --diff … --json`.\n"
_COLUMNS, _LINES = 56, 24


def document(changes: Sequence[Change], sections: Sequence[SectionChange]) -> dict[str, Any]:
    """Return the document that `--json` prints."""
    return {
        "counts": counts(changes),
        "sections": [{"title": s.title, "url": s.url, "change": s.how} for s in sections],
        "changes": [_row(c) for c in changes if c.outcome != "same"],
    }


def counts(changes: Sequence[Change]) -> dict[str, int]:
    found = Counter(c.outcome for c in changes)
    return {"questions": len(changes), **{outcome: found[outcome] for outcome in get_args(Outcome)}}


def _row(change: Change) -> dict[str, Any]:
    sides = {"before": change.before, "now": change.now}
    return {
        "id": change.question.id,
        "question": change.question.question,
        "outcome": change.outcome,
        "reason": change.reason or None,
        "section": change.section.url if change.section else None,
        **{side: {"state": a.state, "text": a.text, "cited": a.cited} for side, a in sides.items()},
    }


def summary(changes: Sequence[Change], sections: Sequence[SectionChange]) -> str:
    """Return the result in one sentence."""
    found = counts(changes)
    asked = f"{found['questions']} questions over {len(sections)} touched sections"
    return f"{asked}: answers lost {found['lost']}, changed {found['changed']}, new {found['appeared']}."


def lines(changes: Sequence[Change], sections: Sequence[SectionChange]) -> Iterator[str]:
    """Yield the lines for a terminal."""
    for title, group in _groups(changes):
        yield printable(title)
        for change in group:
            yield f"  {change.outcome:9} {printable(change.question.question)}  {change.reason}".rstrip()
            for side, answer in (("before", change.before), ("now", change.now)):
                yield f"    {side:6} {textwrap.shorten(printable(answer.text) or answer.state, 96, placeholder=' …')}"
    yield summary(changes, sections)


def comment(changes: Sequence[Change], sections: Sequence[SectionChange]) -> str:
    """Return the comment, shortened to what a pull request takes; foreign texts stand in it as HTML."""
    parts = [f"{_MARK}\n### What readers are answered", summary(changes, sections)]
    left = _MOST
    for title, group in _groups(changes):
        for position, change in enumerate(group):
            part = ("" if position else f"<h4>{_inline(title)}</h4>\n\n") + _details(change)
            left -= len(part)
            if left < 0:
                return "\n\n".join([*parts, _TOO_LONG])
            parts.append(part)
    return "\n\n".join(parts) + "\n"


def _groups(changes: Sequence[Change]) -> Iterator[tuple[str, list[Change]]]:
    """Yield the changed answers by touched section, those with most lost answers first."""
    groups: dict[str, list[Change]] = {}
    for outcome in _TITLES:
        for change in (c for c in changes if c.outcome == outcome):
            title = f"{change.section.title} ({change.section.how})" if change.section else _ELSEWHERE
            groups.setdefault(title, []).append(change)
    yield from sorted(groups.items(), key=lambda group: -sum(c.outcome == "lost" for c in group[1]))


def _details(change: Change) -> str:
    cells = "".join(f"<td valign=top>{_cell(answer)}</td>" for answer in (change.before, change.now))
    title = f"<b>{_TITLES[change.outcome]}</b>: {_inline(change.question.question)} {html.escape(change.reason)}"
    table = f"<table><tr><th>before</th><th>now</th></tr><tr>{cells}</tr></table>"
    return f"<details><summary>{title}</summary>\n{table}\n</details>"


def _inline(text: str) -> str:
    """Return a text that is neither Markdown nor HTML, and calls nobody by name."""
    return f"<code>{html.escape(printable(text)).replace('@', '@&#8203;')}</code>"


def _cell(answer: GivenAnswer) -> str:
    cited = "".join(f"<br>{_inline(place)}" for place in answer.cited)
    if not answer.text:
        return f"<i>{answer.state}</i>"
    rows = [part for line in answer.text.splitlines() for part in textwrap.wrap(line, _COLUMNS) or [""]]
    shown = rows if len(rows) <= _LINES else [*rows[:_LINES], "…"]
    # An empty line would end the HTML.
    return f"<pre>{'&#10;'.join(html.escape(row) for row in shown)}</pre>{cited}"


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
        changes, sections = _compare_indexes(base, rows, settings, build, report)
    if markdown:
        replace_file(markdown, comment(changes, sections).encode())
    if as_json:
        print_json(document(changes, sections))
    else:
        typer.echo("\n".join(lines(changes, sections)))
    lost = counts(changes)["lost"]
    if most_lost is not None and lost > most_lost:
        error(f"Lost answers: {lost}, more than --max-lost {most_lost}.")
        raise typer.Exit(3)


def _compare_indexes(
    base: str, rows: list[QuestionRow] | None, settings: Settings, build: str | None, report: Progress
) -> tuple[list[Change], list[SectionChange]]:
    """Return what became of each answer, and the touched sections. Nothing is asked if there are none."""
    session = ServiceSession.open(settings)
    snapshot = session.snapshot()
    with open_base(base, build, settings, snapshot.head, report) as base_settings:
        earlier = ServiceSession.open(base_settings)
        sites = IndexedSite.from_snapshot(earlier.snapshot()), IndexedSite.from_snapshot(snapshot)
        sections = compare_sections(*sites)
        if not sections:
            return [], []
        asked = from_headings(sections) if rows is None else rows
        if rows is None and len(asked) > _MOST_HEADINGS:
            note(f"Of the {len(asked)} headings of touched sections the first {_MOST_HEADINGS} are asked.")
            asked = asked[:_MOST_HEADINGS]
        before, now = ask(asked, earlier, report, "Asking the base"), ask(asked, session, report, "Asking the index")
        return compare(asked, (before, now), sites, sections), sections
