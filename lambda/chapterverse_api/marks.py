"""Marks such as "[1]" that a model wrote into its text though nobody asked for them: a reader takes them for citations.

What an answer rests on stands in its segments and was checked. A number in brackets was not, so it is left out of
prose, unless it belongs to the sources' own words, as a footnote or an array's element does. Code is left alone. What
`wordings` tells to be written for a mark goes too, "(doc:0)", and so do the tags that some models cite by, "<co: 1>".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from chapterverse_api.generation import Draft, Passage
from chapterverse_api.generation.wordings import Known

_MARK = re.compile(
    r"[ \t]?(?:(?<![\w\]\[])\[\d{1,3}(?: ?[,;–-] ?\d{1,3}){0,9}\]|【\d{1,3}(?:†[^】\n]{0,24})?】)"
    r"(?:\[\d{1,3}(?: ?[,;–-] ?\d{1,3}){0,9}\]|【\d{1,3}(?:†[^】\n]{0,24})?】)*+(?![(\w:])"
)
_TAG = re.compile(r"</?co ?: ?\d{1,3}(?: ?, ?\d{1,3}){0,9} ?>|</?co>", re.IGNORECASE)
_BRACKET = re.compile(r"[ \t]?([\[(<])")
_RUN = re.compile(r"`+|~{3,}")
_LINE_START = re.compile(r"(?:\A|\n)[ \t>]*\Z")
#: Characters before a mark by which the sources' own are known, and those of a line that may stand before a fence.
_BEFORE, _INDENT = 12, 40


def without_marks(draft: Draft, passages: Sequence[Passage]) -> Draft:
    """Return the draft without marks that the passages don't hold; its spans keep what they cite."""
    whole = "".join(span.text for span in draft)
    gaps = list(_gaps(whole, Known(passages)))
    if not gaps:
        return draft
    spans, at = [], 0
    for span in draft:
        spans.append(replace(span, text=_cut(whole, at, at + len(span.text), gaps)))
        at += len(span.text)
    return tuple(spans)


def _gaps(text: str, known: Known) -> Iterator[tuple[int, int]]:
    """Yield from where to where marks go, in order."""
    code = list(_code(text))
    starts = [start for start, _ in code]
    for first, last in sorted({*_numbers(text, known.text), *_worded(text, known), *_tags(text, known.text)}):
        at = bisect_right(starts, first) - 1
        if at < 0 or first >= code[at][1]:
            yield first, last


def _numbers(text: str, known: str) -> Iterator[tuple[int, int]]:
    for found in _MARK.finditer(text):
        before = text[max(0, found.start() - _BEFORE) : found.start()]
        if not before.strip() or " ".join(text[found.start() - len(before) : found.end()].split()) not in known:
            yield found.span()


def _worded(text: str, known: Known) -> Iterator[tuple[int, int]]:
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


def _code(text: str) -> Iterator[tuple[int, int]]:
    """Yield from where to where code goes: fences, and spans between two runs of equally many backticks."""
    runs = [found.span() for found in _RUN.finditer(text)]
    closing, last = [0] * len(runs), dict[str, int]()
    for i in range(len(runs) - 1, -1, -1):
        run = text[slice(*runs[i])]
        closing[i], last[run] = last.get(run, 0), i
    i = 0
    while i < len(runs):
        start, end = runs[i]
        if _opens(text, start, end):
            fence = text[start:end]
            i = next((j for j in range(i + 1, len(runs)) if _closes(text, runs[j], fence)), len(runs))
            yield start, runs[i][1] if i < len(runs) else len(text)
        elif text[start] == "`" and closing[i]:
            i = closing[i]
            yield start, runs[i][1]
        i += 1


def _opens(text: str, start: int, end: int) -> bool:
    return end - start >= 3 and _LINE_START.search(text[max(0, start - _INDENT) : start]) is not None


def _closes(text: str, run: tuple[int, int], fence: str) -> bool:
    return text[run[0] : run[1]].startswith(fence) and _opens(text, *run)


def _cut(whole: str, start: int, end: int, gaps: Sequence[tuple[int, int]]) -> str:
    kept = []
    for first, last in gaps:
        if first < end and last > start:
            kept.append(whole[start : max(start, first)])
            start = max(start, last)
    return "".join([*kept, whole[start:end]])
