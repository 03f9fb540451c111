"""Splits text into sentences, the unit of the check."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["prose", "heading", "code"]

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_BREAK = re.compile(r"\s*(?:\||#{1,6}\s|>|(?:[-*+]|\d{1,3}[.)])\s)")
_HEADING = re.compile(r"\s*(?:#{1,6}\s.*|\*\*[^*\n]+\*\*:?|__[^_\n]+__:?)")
# What makes a head of the row of a table above it.
_RULE = re.compile(r"[ \t]{0,9}\|[ \t]{0,9}:?-{2,}")
# A lower-case letter after the stop means an abbreviation, "e.g. this".
_STOP = re.compile(r"(?<=[.!?])[\"'”’)\]*_]*\s+(?=[^a-zß-öø-ÿ\s])|(?<=[。！？])|(?<=[.!?][`*_])\s+(?=[A-ZÄÖÜ])")
# What marks a heading, an item or stress around a sentence is not part of what it says.
_LEADING = re.compile(r"(?:[\s>*_#|+-]|\d{1,3}[.)]\s|\[[ xX]\]\s)*")
_TRAILING = " \t\r\n*_#>|"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, list item, heading (of a table, too), table row or code block.

    Attributes:
        start, end: its place in the text, with the white space behind it; the next one starts where it ends.
        said: its words without what marks them.
    """

    start: int
    end: int
    said: str
    kind: Kind


def split(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a Markdown text; joined they are the text."""
    for start, end, is_code in _blocks(text):
        block = text[start:end]
        if is_code:
            yield Sentence(start, end, block.strip(), "code")
        elif _HEADING.fullmatch(block.rstrip()) or (block.lstrip().startswith("|") and _RULE.match(text, end)):
            yield Sentence(start, end, _said(block), "heading")
        else:
            at = 0
            # "5. Run it": the sign of an item ends no sentence.
            leading = _LEADING.match(block)
            for stop in _STOP.finditer(block, leading.end() if leading else 0):
                if block[at : stop.end()].strip() and block[stop.end() :].strip():
                    yield Sentence(start + at, start + stop.end(), _said(block[at : stop.end()]), "prose")
                    at = stop.end()
            yield Sentence(start + at, end, _said(block[at:]), "prose")


def _said(text: str) -> str:
    leading = _LEADING.match(text)
    return text[leading.end() if leading else 0 :].rstrip(_TRAILING)


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield where paragraphs, items, rows and fences stand, and whether they are code; blank lines end with them."""
    start = at = 0
    fence, blank = "", True
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence:
            at += len(line)
            if mark and mark.group(1).startswith(fence) and not line.strip().strip(fence[0]):
                yield start, at, True
                start, fence, blank = at, "", True
            continue
        empty = not line.strip()
        if not empty and text[start:at].strip() and (blank or mark or _BREAK.match(line)):
            yield start, at, False
            start = at
        if mark:
            fence = mark.group(1)
        blank = empty
        at += len(line)
    if start < len(text):
        yield start, len(text), bool(fence)
