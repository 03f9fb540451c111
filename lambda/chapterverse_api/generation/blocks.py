"""Splits Markdown into blocks that may be quoted alone, line by line and in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from chapterverse.text import lexical

#: Code of more lines is a listing: it is looked up where it stands, not quoted.
CODE_LINES = 25

_FENCE = re.compile(r"^(`{3,}|~{3,})")
# What stands over a tab, an admonition or a list: nothing without what follows.
_LABEL = re.compile(r"\*\*[^*\n]+\*\*")
_ITEM = re.compile(r"^(?:[-*+]|\d+[.)])\s")
# A lower-case letter after the stop means an abbreviation, "e.g. this".
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^a-zß-öø-ÿ\s])|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class QuotableBlock:
    """A sentence, a list item, a table or a code block.

    Attributes:
        glue: the white space between it and the unit before.
        opens: it is the first of its paragraph, list or block, and not the rest of a block that was cut.
    """

    text: str
    glue: str
    terms: frozenset[int]
    words: int
    opens: bool
    code: bool

    @property
    def announces(self) -> bool:
        """Whether it says nothing without what follows: "as follows:", or a label over a tab or an admonition."""
        return self.text.endswith((":", "：")) or _LABEL.fullmatch(self.text) is not None

    @property
    def long_code(self) -> bool:
        return self.code and self.text.count("\n") > CODE_LINES + 1


def split(text: str, language: str) -> Iterator[QuotableBlock]:
    """Yield the units of a Markdown text in order; joined with their glue they are the text without its last blanks."""
    at, in_list, after_code = 0, False, False
    for block, is_code in _blocks(text):
        for i, piece in enumerate([block] if is_code or block.startswith("|") else _pieces(block)):
            start = text.index(piece, at)
            is_item = not is_code and _ITEM.match(piece) is not None
            opens = i == 0 and not (in_list and is_item) and not (after_code and is_code)
            yield QuotableBlock(piece, text[at:start], terms_of(piece, language), len(piece.split()), opens, is_code)
            at, in_list, after_code = start + len(piece), is_item, is_code


def terms_of(text: str, language: str) -> frozenset[int]:
    """Return the hashed terms of a text's words, identifiers whole and in parts."""
    return frozenset(t for word in lexical.words(text, language) for t in word.terms)


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the blocks that blank lines part, and whether they are code.

    A fence is whole whatever it holds, and a list item keeps what is indented below it.
    """
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if fence:
            lines.append(line)
            if _closes(line, fence):
                yield _block(lines), True
                lines, fence = [], ""
            continue
        mark = _FENCE.match(line)
        indented = line.startswith("  ") and bool(lines) and _ITEM.match(lines[0]) is not None
        parted = bool(lines) and not lines[-1].strip() and not indented
        if line.strip() and lines and (mark or parted):
            yield _block(lines), False
            lines = []
        if line.strip() or lines:
            lines.append(line)
        fence = mark.group() if mark else ""
    if lines:
        yield _block(lines), bool(fence)


def _closes(line: str, fence: str) -> bool:
    return line.startswith(fence) and not line.strip(fence[0] + " \r")


def _block(lines: list[str]) -> str:
    return "\n".join(lines).rstrip()


def _pieces(block: str) -> list[str]:
    """Return a block's list items, each with its continuation lines, or its sentences."""
    lines = block.split("\n")
    if not any(_ITEM.match(line) for line in lines):
        return [s.strip() for s in _SENTENCE.split(block) if s.strip()]
    items: list[list[str]] = []
    for line in lines:
        if _ITEM.match(line) or not items:
            items.append([])
        items[-1].append(line)
    return [_block(item) for item in items]
