"""The report as one JSON document, from which its other forms are made. All questions in it are masked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import cache, partial
from itertools import groupby
from typing import Any, TypeAlias

from chapterverse.ext.report.groups import (
    MAX_SEARCHED,
    STATES,
    Group,
    Searcher,
    group_turns,
    states_of,
    unanswered_questions,
)
from chapterverse.ext.report.masking import show
from chapterverse.ext.report.turns import AskedTurn, count_readers, mark_asked_again
from chapterverse.model import Chunk
from chapterverse.progress import Progress
from chapterverse.readers.html.visible_text import collapse, strip_invisible
from chapterverse.text.tokens import ellipsize

Document: TypeAlias = dict[str, Any]
#: The `title` and `url` of a section, and the `chapter` it is in.
Place: TypeAlias = Mapping[str, str]

MAX_GROUPS, _MAX_CHAPTERS, _MAX_DAYS = 200, 12, 366
EXAMPLES, _SECTIONS = 3, 5
_MAX_TEXT_CHARS = 300

_WITHOUT_TEXTS = (
    "No text of a question is known, so this groups by sections alone: set CHAPTERVERSE_LOG_QUESTIONS=1 or "
    "CHAPTERVERSE_RECORDS where the service runs, and later reports name the subjects and quote examples."
)
_WITHOUT_INDEX = (
    "No index was read, so unanswered questions are not grouped by subject, and no section is near to them."
)


def make_document(
    turns: Sequence[AskedTurn], searcher: Searcher | None, notes: Sequence[str], progress: Progress
) -> tuple[Document, list[Group]]:
    """Return the report of these turns, and its groups.

    Args:
        notes: what was not read, a sentence each.
    """
    turns = sorted((turn for turn in turns if turn.status), key=lambda turn: (turn.at, turn.turn_id))
    mark_asked_again(turns)
    groups = group_turns(turns, searcher, progress)
    has_texts = any(turn.question for turn in turns)
    states = Counter(state for turn in turns for state in states_of(turn))
    find_place = cache(partial(_find_place, searcher))
    document = {
        "first": _first_line(turns, has_texts),
        "notes": [*notes, *_notes(turns, searcher, groups, has_texts)],
        "period": {"from": turns[0].day if turns else None, "to": turns[-1].day if turns else None},
        "readers": count_readers(turns),
        "questions": len(turns),
        "states": {state: states[state] for state in STATES},
        "days": _days(turns),
        "chapters": _chapters(groups, find_place),
        "groups": [_group(group, _middle(turns), find_place) for group in groups[:MAX_GROUPS]],
    }
    return document, groups


def _days(turns: Sequence[AskedTurn]) -> list[dict[str, Any]]:
    """Return each day from the first to the last; of a longer time only the last on which something was asked."""
    days = {day: [*of_day] for day, of_day in groupby(turns, key=lambda turn: turn.day)}
    first, last = _period(turns)
    if (last - first).days < _MAX_DAYS:
        days = {day: days.get(day, []) for day in (str(first + timedelta(n)) for n in range((last - first).days + 1))}
    rows = [{"day": day, **_count(of_day)} for day, of_day in days.items()] if turns else []
    return rows[-_MAX_DAYS:]


def _middle(turns: Sequence[AskedTurn]) -> str:
    """Return the first day of the second half."""
    first, last = _period(turns)
    return str(first + timedelta(((last - first).days + 1) // 2))


def _period(turns: Sequence[AskedTurn]) -> tuple[date, date]:
    return (date.fromisoformat(turns[0].day), date.fromisoformat(turns[-1].day)) if turns else (date.min, date.min)


def _count(turns: Sequence[AskedTurn]) -> dict[str, int]:
    return {
        "asked": count_readers(turns),
        "unanswered": count_readers(turn for turn in turns if turn.is_unanswered),
    }


def _find_place(searcher: Searcher | None, url: str) -> Place:
    """Return the titles of an address, as the index has them."""
    chunk = searcher.place(url) if searcher and url else None
    return chunk_place(chunk) if chunk else {"title": _clean(url), "chapter": "", "url": _address(url)}


def list_facts(group: Mapping[str, Any]) -> list[tuple[str, list[Any]]]:
    """Return what is to be said of a group, each a name with its places or texts."""
    facts = {
        "Nearest section": [group["nearest"]] if group["nearest"] else [],
        "It lacks": group["lacks"],
        "Sections": group["sections"],
        "Asked": group["examples"],
    }
    return [(name, values) for name, values in facts.items() if values]


def chunk_place(chunk: Chunk) -> Place:
    title = " › ".join(dict.fromkeys(filter(None, (chunk.chapter_title, chunk.section_heading))))
    return {"title": _clean(title), "chapter": _clean(chunk.chapter_title), "url": _address(chunk.url)}


def _address(url: str) -> str:
    """Return an address on one line and complete, as a part of it leads nowhere."""
    return strip_invisible(collapse(url))


def _clean(text: str) -> str:
    return ellipsize(_address(text), _MAX_TEXT_CHARS)


def _first_line(turns: Sequence[AskedTurn], has_texts: bool) -> str:
    if not turns:
        return "Nothing was asked in this time."
    if not has_texts:
        return _WITHOUT_TEXTS
    asked, unanswered = _count(turns).values()
    return f"Readers who asked: {asked}. Questions: {len(turns)}. Readers without a full answer: {unanswered}."


def _notes(
    turns: Sequence[AskedTurn], searcher: Searcher | None, groups: Sequence[Group], has_texts: bool
) -> list[str]:
    unplaced = sum(not turn.sections for turn in turns if turn.status == "answered")
    threadless = sum(not turn.thread for turn in turns)
    rare = max(0, len(unanswered_questions(turns)) - MAX_SEARCHED) if searcher else 0
    left_out = len(groups) - MAX_GROUPS
    sentences = [
        (has_texts and searcher is None, _WITHOUT_INDEX),
        (unplaced, f"{unplaced} answers name no section: an earlier release wrote them, or they cite none."),
        (threadless, f"{threadless} questions are of no conversation, so each counts as a reader of its own."),
        (rare > 0, f"{rare} rarer questions without an answer were not searched: they are grouped by section."),
        (left_out > 0, f"{left_out} smaller groups are left out."),
    ]
    return [sentence for is_due, sentence in sentences if is_due]


def _chapters(groups: Sequence[Group], find_place: Callable[[str], Place]) -> list[dict[str, Any]]:
    """Return the chapters that most readers ask about."""
    pages: dict[str, list[AskedTurn]] = defaultdict(list)
    # By a section, as a page has no address of its own in an index where its title has an anchor.
    titles: dict[str, str] = {}
    for group in groups:
        section = group.nearest.url if group.nearest else group.key
        page = section.partition("#")[0]
        pages[page] += group.turns
        titles[page] = titles.get(page) or find_place(section)["chapter"]
    rows = [(page, _count(turns)) for page, turns in pages.items() if page]
    most = sorted(rows, key=lambda row: (-row[1]["asked"], row[0]))[:_MAX_CHAPTERS]
    return [{"title": titles[page] or _clean(page), **count} for page, count in most]


def _group(group: Group, middle: str, find_place: Callable[[str], Place]) -> Document:
    examples = [show(question) for question in group.questions()[:EXAMPLES]]
    place = chunk_place(group.nearest) if group.nearest else find_place(group.key)
    named = examples[0] if group.kind == "gap" and examples else place["title"]
    return {
        "kind": group.kind,
        "title": named or "No section is named",
        "readers": count_readers(group.turns),
        "questions": len(group.turns),
        "unanswered": group.unanswered,
        "states": group.states(),
        "trend": {
            "before": count_readers(turn for turn in group.turns if turn.day < middle),
            "after": count_readers(turn for turn in group.turns if turn.day >= middle),
        },
        "sections": [{**find_place(url), "readers": count} for url, count in group.sections()[:_SECTIONS]],
        "nearest": chunk_place(group.nearest) if group.nearest else None,
        "lacks": group.lacks(examples),
        "examples": examples,
    }
