"""Removes marks such as "[1]" that a model wrote without being asked: a reader takes them for citations.

What an answer rests on stands in its segments and was checked. A number in brackets was not, so it is left out of
prose, unless it belongs to the sources' own words, as a footnote or an array's element does. Code is left alone. What
`wordings` tells to be written for a mark goes too, "(doc:0)", and so do the tags that some models cite by, "<co: 1>".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chapterverse_api.generation.fences import Fences
from chapterverse_api.generation.mark_forms import KnownMarks
from chapterverse_api.generation.types import Draft, Passage, without

# The pattern takes a row of marks whatever follows, and tells by its group where that makes it none: if it refused such
# a row, it would read it again from each of its marks.
_MARK = re.compile(
    r"[ \t]?(?:(?<![\w\]\[])\[\d{1,3}(?: ?[,;–-] ?\d{1,3}){0,9}\]|【\d{1,3}(?:†[^】\n]{0,24})?】)"
    r"(?>(?:\[\d{1,3}(?: ?[,;–-] ?\d{1,3}){0,9}\]|【\d{1,3}(?:†[^】\n]{0,24})?】)*)(?=([(\w:])?)"
)
_TAG = re.compile(r"</?co ?: ?\d{1,3}(?: ?, ?\d{1,3}){0,9} ?>|</?co>", re.IGNORECASE)
_BRACKET = re.compile(r"[ \t]?([\[(<])")
#: Characters before a mark by which the sources' own are known.
_BEFORE = 12


def without_marks(draft: Draft, passages: Sequence[Passage]) -> Draft:
    """Return the draft without marks that the passages don't hold; its spans keep what they cite."""
    whole = "".join(span.text for span in draft)
    kept = bytearray(b"\1" * len(whole))
    for first, last in _gaps(whole, KnownMarks(passages)):
        kept[first:last] = bytes(last - first)
    return without(draft, kept)


def _gaps(text: str, known: KnownMarks) -> Iterator[tuple[int, int]]:
    """Yield from where to where marks go."""
    found = {*_numbers(text, known.text), *_worded(text, known), *_tags(text, known.text)}
    code = _code(text) if found else b""
    for first, last in found:
        if not code[first]:
            yield first, last


def _numbers(text: str, known: str) -> Iterator[tuple[int, int]]:
    for found in _MARK.finditer(text):
        if found.group(1):
            continue
        before = text[max(0, found.start() - _BEFORE) : found.start()]
        if not before.strip() or " ".join(text[found.start() - len(before) : found.end()].split()) not in known:
            yield found.span()


def _worded(text: str, known: KnownMarks) -> Iterator[tuple[int, int]]:
    end = 0
    for found in _BRACKET.finditer(text):
        if found.start(1) < end:
            continue
        row = known.wording(text, found.start(1))
        end = row.end if row else end
        if row and row.ids:
            yield found.start(), end


def _tags(text: str, known: str) -> Iterator[tuple[int, int]]:
    return (found.span() for found in _TAG.finditer(text) if found.group() not in known)


def _code(text: str) -> bytes:
    """Return for each character whether it is code."""
    fences, code = Fences(), bytearray(len(text))
    for at, c in enumerate(text):
        if c not in "`~":
            fences.end_run(at)
        code[at] = fences.is_code
        fences.read(c, at, [])
    return bytes(code)
