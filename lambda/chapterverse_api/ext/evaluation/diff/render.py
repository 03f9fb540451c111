"""Formats what changed, for a terminal, for a program and for the comment of a pull request."""

from __future__ import annotations

import html
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from chapterverse_api.ext.evaluation.diff.answers import Change, GivenAnswer
from chapterverse_api.ext.evaluation.diff.sections import SectionChange
from chapterverse_api.ext.evaluation.text_report import printable

#: In the order of what a reviewer wants to know.
_TITLES = {"lost": "Lost", "changed": "Changed", "appeared": "New"}
#: By which a workflow finds its comment again.
_MARK = "<!-- chapterverse-answers -->"
_ELSEWHERE = "Sections that were not touched"
#: Characters of a comment: GitHub takes 65,536.
_MOST = 60_000
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
    return {
        "questions": len(changes),
        **{outcome: found[outcome] for outcome in ("lost", "appeared", "changed", "same")},
    }


def _row(change: Change) -> dict[str, Any]:
    return {
        "id": change.question.id,
        "question": change.question.question,
        "outcome": change.outcome,
        "reason": change.reason or None,
        "section": change.section.url if change.section else None,
        **{
            side: {k: v for k, v in asdict(answer).items() if k in ("state", "text", "cited")}
            for side, answer in _sides(change)
        },
    }


def _sides(change: Change) -> tuple[tuple[str, GivenAnswer], tuple[str, GivenAnswer]]:
    return ("before", change.before), ("now", change.now)


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
            for side, answer in _sides(change):
                yield f"    {side:6} {textwrap.shorten(printable(answer.text) or answer.state, 96, placeholder=' …')}"
    yield summary(changes, sections)


def markdown(changes: Sequence[Change], sections: Sequence[SectionChange]) -> str:
    """Return the comment, shortened to what a pull request takes; foreign texts stand in it as HTML."""
    parts = [f"{_MARK}\n### What readers are answered", summary(changes, sections)]
    left = _MOST
    for title, group in _groups(changes):
        for position, change in enumerate(group):
            part = ("" if position else f"<h4>{_inline(title)}</h4>\n\n") + _details(change)
            left -= len(part)
            if left < 0:
                return (
                    "\n\n".join(
                        [*parts, "The rest is too long for a comment: see `chapterverse eval --diff … --json`."]
                    )
                    + "\n"
                )
            parts.append(part)
    return "\n\n".join(parts) + "\n"


def _groups(changes: Sequence[Change]) -> Iterator[tuple[str, list[Change]]]:
    """Yield the changed answers by touched section, those with most lost answers first."""
    groups: dict[str, list[Change]] = {}
    for change in sorted((c for c in changes if c.outcome in _TITLES), key=lambda c: [*_TITLES].index(c.outcome)):
        title = f"{change.section.title} ({change.section.how})" if change.section else _ELSEWHERE
        groups.setdefault(title, []).append(change)
    yield from sorted(groups.items(), key=lambda group: -sum(c.outcome == "lost" for c in group[1]))


def _details(change: Change) -> str:
    cells = "".join(f"<td valign=top>{_cell(answer)}</td>" for _, answer in _sides(change))
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
