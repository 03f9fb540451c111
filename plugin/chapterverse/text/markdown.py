"""Reads Markdown back: the text that a reader sees, without link targets, and tables.

A link's address is not part of the page's text. It would be invisible to readers, match as a word, and count as support
of an answer. Pages that were read from Markdown keep it; callers remove targets where they use it.

This is not a parser: it knows code, which it keeps, and brackets. Shortcut references (`[name]`) look like plain
brackets without the page's definitions, and stay.

A chunk's tables are Markdown that our readers wrote (`readers.sections`). A long table is cut between chunks, and each
piece repeats the header, so a table here has at most the rows of one chunk.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

_WORTH_READING = re.compile(r"\][(\[]|<")
# Prefix of a block's first line: quotes, bullets, a definition's colon, a footnote's label.
_PREFIX = r"(?>(?:[ \t>]++|[-*+:][ \t]|\d{1,9}[.)][ \t]|\[\^[^\]\s]++\]:[ \t])*)"
_FENCE = re.compile(_PREFIX + r"(`{3,}(?=[^`]*\Z)|~{3,})")
_BLOCK = re.compile(r"[ \t>]*+(?:\Z|[-*+][ \t]|\d{1,9}[.)][ \t]|\||#{1,6}[ \t])")

_SIGN = re.compile(
    r"(`+)|(!?\[)|(\])|<((?:[a-z][a-z0-9+.-]{1,31}://|mailto:)[^\s<>]*+|[\w.+-]++@[\w.-]++)>", re.IGNORECASE
)
_TARGET = re.compile(r"\(\s*+(?:<[^<>\n]*+>)?")
_TARGET_SIGN = re.compile(r"\\[\\()]|[\s()]")
_TARGET_END = re.compile(
    r"""(?:\s++(?:"(?>(?:[^"\\]++|\\.)*)"|'(?>(?:[^'\\]++|\\.)*)'|\((?>(?:[^()\\]++|\\.)*)\)))?\s*+\)""", re.DOTALL
)
#: Most nested parentheses in a target, as in Markdown parsers.
_MAX_DEPTH = 32
_REFERENCE = re.compile(r"\[(?!\^)[^\[\]]{0,999}+\]")
# Array elements, and marks like "[1][2]", look like reference links.
_NO_REFERENCE = re.compile(r"(?<=[\w\])])!?\[|\[(?:\^|-?\d{0,9}\])")
#: Signs that Markdown would not show; an underscore inside a word is shown.
_SPECIAL = re.compile(r"[\\`*~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
_BRACKET = re.compile(r"[\[\]]")
#: Where a link's target or a tag would begin.
_LINK_OR_TAG = re.compile(r"(?<=\])(?=[(\[:])|<(?=[A-Za-z/!?])")

#: A row, behind the marks of the containers around it.
_ROW = re.compile(r"[ >]*(\|.*\|)\s*")
_TABLE_RULE = re.compile(r"\|(?: *:?-+:? *\|)+")
_TABLE_FENCE = re.compile(r"[ >]*(`{3,}|~{3,})")
_BORDER = re.compile(r"(?<!\\)\|")

#: Characters that show nothing, which can hide words from a reader, or split a word that a filter looks for, as ranges
#: for a class of a regular expression: soft hyphen, fillers, those of no width, directions, operators, byte order mark,
#: tags. Letters of some scripts are written with the joiners U+200C and U+200D, and emoji with the selectors U+FE00 to
#: U+FE0F, so that each filter decides on these itself.
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\U000e0000-\U000e0fff"
)


def plain(text: str) -> str:
    """Return Markdown with links and images replaced by their texts and autolinks by bare addresses.

    Code spans and fences, footnotes and task boxes stay. Takes time linear in the length of `text`.
    """
    if not _WORTH_READING.search(text):
        return text
    return "\n".join(piece if is_code else _without_targets(piece) for piece, is_code in _pieces(text))


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield groups of lines that no link or code span crosses, and whether they are fenced code."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if fence:
            lines.append(line)
            if _closes(line, fence):
                yield "\n".join(lines), True
                lines, fence = [], ""
            continue
        opening = _FENCE.match(line)
        if lines and (opening or _BLOCK.match(line)):
            yield "\n".join(lines), False
            lines = []
        lines.append(line)
        fence = opening.group(1) if opening else ""
    if lines:
        yield "\n".join(lines), bool(fence)


def _closes(line: str, fence: str) -> bool:
    line = line.strip(" \t>")
    return line.startswith(fence) and not line.strip(fence[0])


def _without_targets(text: str) -> str:
    """Return text without fenced code, without its link targets."""
    out: list[str] = []
    brackets: list[tuple[int, int]] = []  # open brackets: positions in `out` and in `text`
    runs = _backticks(text)
    at = 0
    while sign := _SIGN.search(text, at):
        out.append(text[at : sign.start()])
        at = sign.end()
        if sign.group(1):
            at = _code_end(runs[len(sign.group())], at, len(sign.group()))
            out.append(text[sign.start() : at])
        elif sign.group(2):
            brackets.append((len(out), sign.start()))
            out.append(sign.group())
        elif sign.group(3):
            place, start = brackets.pop() if brackets else (-1, 0)
            end = _link_end(text, start, at) if place >= 0 else at
            if end > at:
                out[place] = ""
            else:
                out.append("]")
            at = end
        else:
            out.append(sign.group(4))
    out.append(text[at:])
    return "".join(out)


def _backticks(text: str) -> defaultdict[int, list[int]]:
    """Return the start positions of runs of backticks, by length."""
    runs: defaultdict[int, list[int]] = defaultdict(list)
    for run in re.finditer("`+", text):
        runs[len(run.group())].append(run.start())
    return runs


def _code_end(starts: list[int], at: int, length: int) -> int:
    """Return the end of the code span whose content starts at `at`, else `at`."""
    i = bisect_left(starts, at)
    return starts[i] + length if i < len(starts) else at


def _link_end(text: str, start: int, at: int) -> int:
    """Return the end of the link target at `at`, else `at`; `start` is the position of the link's opening bracket."""
    if text.startswith("(", at):
        return _inline_end(text, at)
    reference = _REFERENCE.match(text, at)
    return reference.end() if reference and not _NO_REFERENCE.match(text, start) else at


def _inline_end(text: str, at: int) -> int:
    """Return the end of `(target "title")`, else `at`."""
    opening = _TARGET.match(text, at)
    assert opening is not None  # there is a parenthesis
    end = opening.end()
    closing = _TARGET_END.match(text, end if text[end - 1] == ">" else _address_end(text, end))
    return closing.end() if closing else at


def _address_end(text: str, at: int) -> int:
    """Return the end of an address: white space, or a closing parenthesis without an opening one."""
    depth = 0
    for sign in _TARGET_SIGN.finditer(text, at):
        if sign.group() == "(":
            depth += 1
        elif sign.group() == ")" and depth:
            depth -= 1
        elif len(sign.group()) == 1:
            return sign.start() if not depth else len(text)
        if depth > _MAX_DEPTH:
            break
    return len(text)


def escape_markdown(text: str, *, in_link: bool = False) -> str:
    """Return a text as a line of Markdown that shows it nearly as it is: a heading may be `run(*args)` or `[a](b)`.

    Args:
        in_link: it becomes the text of a link, which its own brackets would end.
    """
    escaped = _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))
    # No backslash here: the filter of addresses may remove what is behind it.
    escaped = _LINK_OR_TAG.sub(lambda sign: "&lt;" if sign.group() else " ", escaped)
    return _BRACKET.sub(r"\\\g<0>", escaped) if in_link else escaped


@dataclass(frozen=True, slots=True)
class MarkdownTable:
    """A table of a text.

    Attributes:
        line: its first line, without the marks of the containers around it.
        headers: Markdown; "" each for a table without a header row.
        rows: as many cells each as there are headers.
    """

    line: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(text: str) -> Iterator[MarkdownTable]:
    """Yield the tables of a text in order. Takes time linear in its length."""
    lines = _table_rows(text)
    header: str | None = None
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if header is None or line is None or not _TABLE_RULE.fullmatch(line):
            header = line
            continue
        headers, rows = _table_cells(header), list[tuple[str, ...]]()
        while at < len(lines) and (row := lines[at]) is not None:
            rows.append((*_table_cells(row), *[""] * len(headers))[: len(headers)])
            at += 1
        yield MarkdownTable(header, headers, tuple(rows))
        header = None


def _table_rows(text: str) -> list[str | None]:
    """Return each line that may be a row of a table, outside code; None for any other."""
    rows: list[str | None] = []
    fence = ""
    for line in text.split("\n"):
        opening = _TABLE_FENCE.match(line)
        if opening and (not fence or opening[1].startswith(fence)):
            fence = "" if fence else opening[1]
        row = _ROW.fullmatch(line) if not (fence or opening) else None
        rows.append(row[1] if row else None)
    return rows


def _table_cells(row: str) -> tuple[str, ...]:
    return tuple(cell.strip().replace("\\|", "|") for cell in _BORDER.split(row)[1:-1])
