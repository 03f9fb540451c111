"""Reads the tables of a chunk's text back into headers and rows.

A chunk's tables are Markdown that our readers wrote (`readers.sections`). A long table is cut between chunks, and each
piece repeats the header, so a table here has at most the rows of one chunk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: A row, behind the marks of the containers around it.
_ROW = re.compile(r"[ >]*(\|.*\|)\s*")
_RULE = re.compile(r"\|(?: *:?-+:? *\|)+")
_FENCE = re.compile(r"[ >]*(`{3,}|~{3,})")
_BORDER = re.compile(r"(?<!\\)\|")


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
    lines = _rows(text)
    header: str | None = None
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if header is None or line is None or not _RULE.fullmatch(line):
            header = line
            continue
        headers, rows = _cells(header), list[tuple[str, ...]]()
        while at < len(lines) and (row := lines[at]) is not None:
            rows.append((*_cells(row), *[""] * len(headers))[: len(headers)])
            at += 1
        yield MarkdownTable(header, headers, tuple(rows))
        header = None


def _rows(text: str) -> list[str | None]:
    """Return each line that may be a row of a table, outside code; None for any other."""
    rows: list[str | None] = []
    fence = ""
    for line in text.split("\n"):
        opening = _FENCE.match(line)
        if opening and (not fence or opening[1].startswith(fence)):
            fence = "" if fence else opening[1]
        row = _ROW.fullmatch(line) if not (fence or opening) else None
        rows.append(row[1] if row else None)
    return rows


def _cells(row: str) -> tuple[str, ...]:
    return tuple(cell.strip().replace("\\|", "|") for cell in _BORDER.split(row)[1:-1])
