"""A source of an answer, as generators and grounding see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Subsection(NamedTuple):
    """The heading of a section directly below another one, and its address; "" where it has no text of its own."""

    heading: str
    url: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A source as generators and grounding see it.

    Attributes:
        id: the string that a segment cites.
        path: headings from the chapter down.
        text: Markdown, verbatim.
        section: the text with its surroundings in its section; the text itself where no more is known.
        terms: hashed terms of path and text, which saves reading them again.
        score: orders the passages, 0 to 1; evidence saturates, so it can't order the best ones.
        evidence: calibrated, 0 to 1.
        url: the address of the section; None for a selection from a page that the index does not hold.
        whole: whether `section` is all of its section.
        subsections: those of its section, in order.
    """

    id: str
    path: tuple[str, ...]
    text: str
    section: str
    terms: frozenset[int]
    score: float
    evidence: float
    url: str | None
    chunk_id: str | None
    whole: bool = True
    subsections: tuple[Subsection, ...] = ()
