"""The report as Markdown, and its gaps as a work list. Readers' words stand in code spans, where nothing is markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chapterverse.ext.report.document import Document, chunk_place, list_facts
from chapterverse.ext.report.gaps import Searcher
from chapterverse.ext.report.groups import Group
from chapterverse.ext.report.masking import show

#: Gaps in a work list, questions of each, and characters of the nearest section's text.
_MAX_GAPS, _QUESTIONS, _MAX_TEXT_CHARS = 50, 10, 4000
_WORDS = {
    "answered": "answered",
    "hedged": "answered with a reservation",
    "refused": "refused",
    "thumbed_down": "thumbed down",
    "asked_again": "asked again in other words",
}


def write_markdown(document: Document) -> str:
    """Return the report for a terminal, an issue or a wiki."""
    return "\n".join(_report(document)) + "\n"


def _report(document: Document) -> Iterator[str]:
    yield from (document["first"], "", "# What readers ask", "")
    yield from (f"- {note}" for note in document["notes"])
    if document["period"]["from"]:
        yield f"- {period_text(document)}"
    yield from _differences(document.get("asked_again", {}))
    for group in document["groups"]:
        yield from ("", f"## {'Gap: ' if group['kind'] == 'gap' else ''}{code(group['title'])}", "")
        yield f"- {readers_text(group)}"
        for name, values in list_facts(group):
            yield f"- {name}: {', '.join(code(v) if isinstance(v, str) else _link(v) for v in values)}"


DIFFERENCES = {"closed": "Gaps that closed", "changed": "Answers that changed", "broke": "Answers that broke"}


def _differences(again: Mapping[str, Any]) -> Iterator[str]:
    if again:
        yield from ("", "## Asked again", "", again["first"])
    for kind, title in DIFFERENCES.items():
        if rows := again.get(kind):
            yield from ("", f"### {title}", "")
            yield from (f"- {code(row['question'])}: {row['before']}, now {row['after']}" for row in rows)


def readers_text(group: Mapping[str, Any]) -> str:
    trend = group["trend"]
    halves = f"{trend['before']} in the first half, {trend['after']} in the second"
    return f"{group['readers']} readers ({halves}): {_states_text(group['states'])}"


def period_text(document: Document) -> str:
    return f"From {document['period']['from']} to {document['period']['to']}: {_states_text(document['states'])}."


def _states_text(states: Mapping[str, int]) -> str:
    """Return the states that occur, with their numbers."""
    return ", ".join(f"{count} {_WORDS[state]}" for state, count in states.items() if count) or "none answered"


def write_gaps(groups: Sequence[Group], searcher: Searcher | None) -> str:
    """Return the gaps as a work list for who writes the docs: questions, the nearest section and its text."""
    gaps = [group for group in groups if group.kind == "gap" and group.turns][:_MAX_GAPS]
    lines = ["# What readers ask and these docs lack", ""]
    lines += [] if gaps else ["No unanswered question is known, or its text is not."]
    for number, group in enumerate(gaps, 1):
        lines += ["", f"## {number}. {group.unanswered} readers got no full answer", "", "They asked:", ""]
        shown = [show(question) for question in group.questions()[:_QUESTIONS]]
        lines += [f"- {code(question)}" for question in shown]
        if group.nearest and searcher:
            text = "\n\n".join(chunk.text for chunk in searcher.section(group.nearest))[:_MAX_TEXT_CHARS]
            lines += ["", f"Nearest section: {_link(chunk_place(group.nearest))}"]
            lines += ["", f"It lacks: {', '.join(map(code, lacks))}"] if (lacks := group.lacks(shown)) else []
            marks = _marks(text, 3)
            lines += ["", "Its text:", "", f"{marks}markdown", text, marks]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """Return a text of one line as a code span."""
    marks = _marks(text, 1)
    return f"{marks} {text} {marks}" if "`" in text else f"`{text}`"


def _marks(text: str, least: int) -> str:
    """Return more backticks than follow each other in a text."""
    return "`" * max(least, *(len(found) + 1 for found in re.findall("`+", text)), 0)


def _link(place: Mapping[str, Any]) -> str:
    """Return the title of a place, and its address."""
    address = place["url"] if place["title"] != place["url"] else ""
    return f"{code(place['title'])} {code(address) if address else ''}".strip()
