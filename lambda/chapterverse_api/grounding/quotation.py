"""Checks that the section that a quote cites holds it verbatim."""

from __future__ import annotations

from collections.abc import Iterable

from chapterverse_api.generation.draft import OMISSION, Span
from chapterverse_api.generation.passage import Passage
from chapterverse_api.grounding.analyzed_text import FENCE_MARKS


def is_verbatim(span: Span, passages: Iterable[Passage]) -> bool:
    """Whether the section of the one passage that a quote cites holds each of its lines, in order.

    The lines that state omissions, and the closing fence of code that was cut, are the quote's own.
    """
    section = next((p.section for p in passages if (p.id,) == span.citations), None)
    if section is None:
        return False
    at = 0
    for line in (line.strip() for line in span.text.split("\n")):
        if line.startswith((OMISSION, *FENCE_MARKS)):
            continue
        at = section.find(line, at)
        if at < 0:
            return False
        at += len(line)
    return bool(span.text.strip())
