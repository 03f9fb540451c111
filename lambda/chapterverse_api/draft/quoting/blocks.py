"""Reads a section's Markdown as blocks of parts that may be quoted, line by line and in linear time.

A paragraph consists of sentences, a list of items, a list of definitions of entries, a table of rows, code of lines. An
item within an item is a part of its own with a deeper level. A list within a note is a list as well. All offsets are in
the section, so that a quote is verbatim.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias

from chapterverse.text.sentences import split

QuotableKind: TypeAlias = Literal["paragraph", "list", "entries", "table", "code"]

#: What begins a line that opens or closes fenced code.
FENCE = re.compile(r"[ >]*(`{3,}|~{3,})")
_ITEM = re.compile(r"((?:> ?)* *)(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
#: The second line of a definition, under its term.
_MEANING = re.compile(r":[ \t]+(?=\S)")
# What stands over a tab, an admonition or a list says nothing without what follows.
_LABEL = re.compile(r"(?:> ?)?(?:\*\*[^*\n]+\*\*:?|\[![A-Za-z]+\][^\n]*|:::[^\n]*|#{1,6} [^\n]*)")

#: A tab's label as readers of pages write it, on a line of its own.
TAB_LABEL = re.compile(r"^\*\*([^*\n]+)\*\*$", re.MULTILINE)
#: What stands between the names of one label: "macOS / Linux".
_BETWEEN = re.compile(r"[/,&|]| and | or ")
_NAME = re.compile(r"\w+(?:[.-]\w+)*[+#]*")


@dataclass(frozen=True, slots=True)
class QuotablePart:
    """A sentence, an item with its continuation lines, an entry, a row, or a line of code.

    Attributes:
        level: how deep its marker is indented, in characters.
    """

    start: int
    end: int
    level: int = 0


@dataclass(slots=True)
class QuotableBlock:
    """A block of a section, from `start` up to and without `end`.

    Attributes:
        head: what stands over every part: a table's header, a fence's opening line.
        fence: what closes its code.
        announces: whether it says nothing without what follows: "as follows:", or a label.
        label: whether it only stands over a tab or a note.
    """

    kind: QuotableKind
    start: int
    end: int
    parts: list[QuotablePart] = field(default_factory=list)
    head: str = ""
    fence: str = ""
    announces: bool = False
    label: bool = False


def read_blocks(section: str) -> list[QuotableBlock]:
    """Return the blocks of a section in order."""
    blocks: list[QuotableBlock] = []
    for start, end, fenced in _pieces(section):
        for block in _code(section, start, end) if fenced else _blocks(section, start, end):
            last = blocks[-1] if blocks else None
            # Blank lines part the items of one list, and chunks a long table, which repeats its header then.
            if last and last.kind == block.kind in ("list", "entries", "table") and last.head == block.head:
                last.parts += block.parts
                last.end, last.announces = block.end, block.announces
            else:
                blocks.append(block)
    return blocks


def _pieces(section: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the start and end of each piece between blank lines, and whether it is fenced code.

    A fence is whole whatever it holds, and an item or an entry keeps what is indented below it.
    """
    at = start = end = 0
    first, fence, blank = "", "", False
    for line in section.split("\n"):
        stop = at + len(line)
        text = line.strip()
        mark = FENCE.match(line)
        holds = bool(first) and line.startswith("  ") and (_ITEM.match(first) is not None or first[0] == ":")
        if fence:
            if text.lstrip("> ").startswith(fence) and not text.lstrip("> ").strip(fence[0]):
                fence = ""
                if not first:
                    yield start, stop, True
                    start = end = stop + 1
            end = stop
        elif text:
            if first and not holds and (blank or (mark and mark.end(1) - len(mark.group(1)) == 0)):
                yield start, end, False
                first = ""
            if mark:
                fence = mark.group(1)
            if not first:
                start = at
                first = "" if mark else line
            elif _MEANING.match(line):
                first = ":"
            end = stop
        blank = not text
        at = stop + 1
    if first or fence:
        yield start, end, bool(fence) and not first


def _code(section: str, start: int, end: int) -> Iterator[QuotableBlock]:
    lines = list(_lines(section, start, end))
    is_closed = len(lines) > 1 and not section[slice(*lines[-1])].strip("`~> ")
    inner = [QuotablePart(*line) for line in lines[1 : -1 if is_closed else None]]
    head = section[slice(*lines[0])]
    mark = FENCE.match(head)
    yield QuotableBlock("code", start, end, inner, head, mark.group() if mark else "")


def _blocks(section: str, start: int, end: int) -> Iterator[QuotableBlock]:
    """Yield the blocks of a piece without fenced code: text may stand over a list or a table without a blank line."""
    lines = list(_lines(section, start, end))
    kinds = [_kind(section, line) for line in lines]
    if len(lines) > 1 and kinds[1] == "entries":
        yield QuotableBlock("entries", start, end, [QuotablePart(start, end)], announces=_announces(section[start:end]))
        return
    at = 0
    while at < len(lines):
        kind = kinds[at]
        end_of_run = next((i for i in range(at + 1, len(lines)) if _ends(kind, kinds[i])), len(lines))
        run, at = lines[at:end_of_run], end_of_run
        if kind == "table":
            yield _table(section, run)
        elif kind == "list":
            items = list(_items(section, run))
            last = section[items[-1].start : items[-1].end]
            yield QuotableBlock("list", run[0][0], run[-1][1], items, announces=_announces(last))
        else:
            yield _paragraph(section, run[0][0], run[-1][1])


def _announces(text: str) -> bool:
    return text.rstrip().endswith((":", "："))


def _ends(kind: QuotableKind, line: QuotableKind) -> bool:
    """Whether a line begins another block: a list holds all that follows, a paragraph no table and no list."""
    return line != "table" if kind == "table" else kind != "list" and line in ("list", "table")


def _table(section: str, lines: list[tuple[int, int]]) -> QuotableBlock:
    ruled = len(lines) > 1 and not section[slice(*lines[1])].strip("| \t:-")
    head = section[lines[0][0] : lines[1][1]] if ruled else ""
    return QuotableBlock("table", lines[0][0], lines[-1][1], [QuotablePart(*line) for line in lines[2 * ruled :]], head)


def _kind(section: str, line: tuple[int, int]) -> QuotableKind:
    text = section[slice(*line)]
    if text.lstrip().startswith("|"):
        return "table"
    return "list" if _ITEM.match(text) else "entries" if _MEANING.match(text) else "paragraph"


def _items(section: str, lines: list[tuple[int, int]]) -> Iterator[QuotablePart]:
    start, end, level, fence = lines[0][0], lines[0][1], 0, ""
    for at, stop in lines:
        line = section[at:stop]
        mark, item = FENCE.match(line), _ITEM.match(line)
        if fence:
            fence = "" if mark and line.strip().startswith(fence) and not line.strip(f"{fence[0]} ") else fence
        elif mark:
            fence = mark.group(1)
        elif item:
            if at > start:
                yield QuotablePart(start, end, level)
            start, level = at, len(item.group(1))
        if line.strip():
            end = stop
    yield QuotablePart(start, end, level)


def _paragraph(section: str, start: int, end: int) -> QuotableBlock:
    text = section[start:end]
    parts = [QuotablePart(start + a, start + b) for a, b in _sentences(text)]
    label = _LABEL.fullmatch(text) is not None
    announces = label or text.rstrip("*_ ").endswith((":", "：", "...", "…"))
    return QuotableBlock("paragraph", start, end, parts, announces=announces, label=label)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text."""
    return (text[a:b] for a, b in _sentences(text))


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    for sentence in split(text):
        stripped = text[sentence.start : sentence.end].rstrip()
        if stripped:
            yield sentence.start, sentence.start + len(stripped)


def _lines(section: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for line in section[start:end].split("\n"):
        yield at, at + len(line)
        at += len(line) + 1


class TabNames:
    """The names in a reader's context."""

    def __init__(self, context: str) -> None:
        self._places: dict[str, int] = {}
        for place, word in enumerate(_names_of(context)):
            self._places.setdefault(word, place)

    def choose(self, labels: Iterable[str]) -> str | None:
        """Return the label that is named first; None if there are fewer than two, or none is named."""
        offered = list(dict.fromkeys(labels))
        places = {label: place for label in offered if (place := self._place(label)) is not None}
        return min(places, key=places.__getitem__) if len(offered) > 1 and places else None

    def _place(self, label: str) -> int | None:
        """Return where the context names a label with all words of one of its names; None if it does not."""
        names = (_names_of(name) for name in _BETWEEN.split(label))
        places_by_name = [[self._places.get(word, -1) for word in name] for name in names if name]
        return min((min(places) for places in places_by_name if min(places) >= 0), default=None)


def read_tabs(text: str, blocks: Sequence[QuotableBlock]) -> list[str | None]:
    """Return for each block of a section the label of the tab that it is in; None outside of tabs.

    Text does not say where the last tab ends, so it is taken to have no more blocks than the longest of the others.
    """
    tabs: list[str | None] = []
    starts: list[int] = []
    for at, block in enumerate(blocks):
        label = TAB_LABEL.fullmatch(text[block.start : block.end].strip()) if block.label else None
        starts += [at] if label else []
        tabs.append(label[1] if label else tabs[-1] if tabs else None)
    longest = max((end - start for start, end in pairwise(starts)), default=0)
    return [tab if not starts[1:] or at < starts[-1] + longest else None for at, tab in enumerate(tabs)]


def _names_of(text: str) -> list[str]:
    return _NAME.findall(text.casefold())
