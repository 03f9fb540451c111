"""The report as Markdown, its gaps as a work list, and the report as one HTML file.

What readers write is hostile. In Markdown it stands in code spans, where nothing is markup. The HTML file loads nothing
and runs no script: `tag` escapes each text, only `http` and `https` addresses become links, and the page's
Content-Security-Policy allows its style sheet by hash and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chapterverse.ext.report.document import Document, chunk_place, list_facts
from chapterverse.ext.report.groups import Group, Searcher
from chapterverse.ext.report.masking import show
from chapterverse.text.tokens import ellipsize
from chapterverse.version import __version__

#: Gaps in a work list, questions of each, and characters of the nearest section's text.
_MAX_GAPS, _QUESTIONS, _MAX_TEXT_CHARS = 50, 10, 4000
_WIDTH, _HEIGHT, _EDGE, _BAR, _LABEL = 720, 180, 24, 26, 260
#: No characters, in XML.
_LOST = dict.fromkeys((0xFFFE, 0xFFFF), "\ufffd")
_DIFFERENCES = {"closed": "Gaps that closed", "changed": "Answers that changed", "broke": "Answers that broke"}
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
        yield f"- {_period_text(document)}"
    yield from _list_differences(document.get("asked_again", {}))
    for group in document["groups"]:
        yield from ("", f"## {'Gap: ' if group['kind'] == 'gap' else ''}{_code(group['title'])}", "")
        yield f"- {_readers_text(group)}"
        for name, values in list_facts(group):
            yield f"- {name}: {', '.join(_code(v) if isinstance(v, str) else _link(v) for v in values)}"


def _list_differences(again: Mapping[str, Any]) -> Iterator[str]:
    if again:
        yield from ("", "## Asked again", "", again["first"])
    for kind, title in _DIFFERENCES.items():
        if rows := again.get(kind):
            yield from ("", f"### {title}", "")
            yield from (f"- {_code(row['question'])}: {row['before']}, now {row['after']}" for row in rows)


def _readers_text(group: Mapping[str, Any]) -> str:
    trend = group["trend"]
    halves = f"{trend['before']} in the first half, {trend['after']} in the second"
    return f"{group['readers']} readers ({halves}): {_states_text(group['states'])}"


def _period_text(document: Document) -> str:
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
        lines += [f"- {_code(question)}" for question in shown]
        if group.nearest and searcher:
            text = "\n\n".join(chunk.text for chunk in searcher.section(group.nearest))[:_MAX_TEXT_CHARS]
            lines += ["", f"Nearest section: {_link(chunk_place(group.nearest))}"]
            lines += ["", f"It lacks: {', '.join(map(_code, lacks))}"] if (lacks := group.lacks(shown)) else []
            marks = _marks(text, 3)
            lines += ["", "Its text:", "", f"{marks}markdown", text, marks]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    """Return a text of one line as a code span."""
    marks = _marks(text, 1)
    return f"{marks} {text} {marks}" if "`" in text else f"`{text}`"


def _marks(text: str, least: int) -> str:
    """Return more backticks than follow each other in a text."""
    return "`" * max(least, *(len(found) + 1 for found in re.findall("`+", text)), 0)


def _link(place: Mapping[str, Any]) -> str:
    """Return the title of a place, and its address."""
    address = place["url"] if place["title"] != place["url"] else ""
    return f"{_code(place['title'])} {_code(address) if address else ''}".strip()


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: object) -> Markup:
    """Return an element; every child but `Markup` is text. `class_` is the attribute `class`."""
    stated = "".join(f' {k.strip("_").replace("_", "-")}="{html.escape(str(v))}"' for k, v in attributes.items())
    inner = "".join(child if isinstance(child, Markup) else html.escape(child) for child in children)
    return Markup(f"<{name}{stated}>{inner}</{name}>")


def write_page(document: Document) -> str:
    """Return the report as HTML that is also well-formed XML."""
    style = (Path(__file__).parent / "report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = f'''<head><meta charset="utf-8" />
<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}" />
<meta name="viewport" content="width=device-width, initial-scale=1" /><meta name="referrer" content="no-referrer" />
<title>What readers ask</title><style>{style}</style></head>'''
    return f"<!DOCTYPE html>\n{tag('html', Markup(head), tag('body', *_body(document)), lang='en')}\n".translate(_LOST)


def _body(document: Document) -> Iterator[Markup]:
    notes = [tag("li", note) for note in document["notes"]]
    yield tag(
        "header",
        tag("p", document["first"], class_="first"),
        tag("h1", "What readers ask"),
        *([tag("ul", *notes)] if notes else []),
        *([tag("p", _period_text(document))] if document["period"]["from"] else []),
    )
    again = _differences(document.get("asked_again", {}))
    yield tag("main", *again, *_pictures(document), tag("h2", "What they ask about"), *map(_group, document["groups"]))
    yield tag("footer", tag("p", f"Made by Chapter & Verse {__version__}. Addresses, keys and some names are hidden."))


def _differences(again: Mapping[str, Any]) -> Iterator[Markup]:
    if again:
        yield tag("h2", "Asked again")
        yield tag("p", again["first"])
    for kind, title in _DIFFERENCES.items():
        if rows := again.get(kind):
            items = [tag("li", tag("bdi", r["question"]), f": {r['before']}, now {r['after']}") for r in rows]
            yield tag("h3", title)
            yield tag("ul", *items)


def _pictures(document: Document) -> Iterator[Markup]:
    for name, title, draw in (("days", "Day by day", _line), ("chapters", "Chapters", _bars)):
        if document[name]:
            yield tag("h2", title)
            yield tag("figure", _key(), draw(document[name]))


def _key() -> Markup:
    names = {"asked": " readers who asked", "unanswered": " readers without a full answer"}
    marks = {series: tag("rect", class_=series, width=12, height=12) for series in names}
    keys = [tag("span", _svg(12, 12, "", marks[series]), name) for series, name in names.items()]
    return tag("figcaption", *keys)


def _svg(width: int, height: int, title: str, *marks: Markup) -> Markup:
    stated = {"role": "img", "aria_label": title} if title else {"aria_hidden": "true", "class_": "key"}
    return tag("svg", *marks, viewBox=f"0 0 {width} {height}", **stated)


def _line(days: Sequence[Mapping[str, Any]]) -> Markup:
    """Return the readers of each day as two lines."""
    most = max(day["asked"] for day in days) or 1
    step = (_WIDTH - 2 * _EDGE) / max(1, len(days) - 1)

    def line(series: str) -> Markup:
        at = [
            (_EDGE + i * step, _HEIGHT - _EDGE - d[series] / most * (_HEIGHT - 2 * _EDGE)) for i, d in enumerate(days)
        ]
        # A single day is a short line.
        at += [(at[0][0] + 4, at[0][1])] if len(at) == 1 else []
        return tag("polyline", class_=series, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in at))

    busiest = max(days, key=lambda day: (day["asked"], day["day"]))
    about = f"Readers by day, at most {most}, on {busiest['day']}; in all {len(days)} days."
    ends = [
        tag("text", days[0]["day"], x=_EDGE, y=_HEIGHT - 6),
        tag("text", days[-1]["day"], x=_WIDTH - _EDGE, y=_HEIGHT - 6, class_="end"),
        tag("text", str(most), x=_EDGE - 6, y=_EDGE + 4, class_="end"),
    ]
    return _svg(_WIDTH, _HEIGHT, about, line("asked"), line("unanswered"), *ends)


def _bars(chapters: Sequence[Mapping[str, Any]]) -> Markup:
    """Return a bar for each chapter: who asked, and in it who got no full answer."""
    most = max(chapter["asked"] for chapter in chapters) or 1
    marks = []
    for number, chapter in enumerate(chapters):
        y = number * _BAR
        marks.append(tag("text", ellipsize(chapter["title"], 36), x=_LABEL - 8, y=y + 17, class_="end"))
        for series in ("asked", "unanswered"):
            width = round(chapter[series] / most * (_WIDTH - _LABEL - 40), 1)
            marks.append(tag("rect", class_=series, x=_LABEL, y=y + 4, width=width, height=_BAR - 8))
        end = _LABEL + 6 + chapter["asked"] / most * (_WIDTH - _LABEL - 40)
        marks.append(tag("text", f"{chapter['asked']}", x=round(end, 1), y=y + 17))
    about = "; ".join(f"{c['title']}: {c['asked']} asked, {c['unanswered']} without a full answer" for c in chapters)
    return _svg(_WIDTH, len(chapters) * _BAR, about, *marks)


def _group(group: Mapping[str, Any]) -> Markup:
    facts = [tag("div", tag("dt", name), tag("dd", _list(values))) for name, values in list_facts(group)]
    return tag(
        "section",
        tag("h3", "Gap: " if group["kind"] == "gap" else "", tag("bdi", group["title"])),
        tag("p", _readers_text(group)),
        tag("dl", *facts) if facts else "",
        class_=group["kind"],
    )


def _list(values: Sequence[Any]) -> Markup:
    return tag("ul", *(tag("li", tag("bdi", v) if isinstance(v, str) else _place(v)) for v in values))


def _place(place: Mapping[str, Any]) -> Markup:
    name = tag("bdi", place["title"])
    is_link = place["url"].lower().startswith(("https://", "http://"))
    name = tag("a", name, href=place["url"], rel="noreferrer") if is_link else name
    return Markup(f"{name} ({place['readers']})") if "readers" in place else name
