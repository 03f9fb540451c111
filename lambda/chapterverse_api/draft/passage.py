"""The sources of an answer, as generators and grounding read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class PassageReading:
    """What the reading model makes of a passage, compared with the other passages of its question.

    Attributes:
        best: the probability that this passage answers best.
        parts: for each part of its text, without white space at its ends, the log-probability that it answers.
    """

    best: float
    parts: Mapping[str, float]


class Subsection(NamedTuple):
    """The heading of a section directly below another one, and its address; "" if it has no text of its own."""

    heading: str
    url: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A source.

    Attributes:
        id: the string that a segment cites.
        path: headings from the chapter down.
        text: Markdown, verbatim.
        section: the text with its surroundings in its section; the text alone if no more is known.
        terms: hashed terms of path and text, so that they need not be read again.
        score: the order of the passages, 0 to 1; evidence saturates, so it can't order the best ones.
        evidence: the calibrated evidence, 0 to 1.
        url: the address of the section; None for a selection from a page that the index does not hold.
        chunk_id: the id of the chunk in the index; None for a source that is not from there.
        is_whole_section: whether `section` is all of its section.
        subsections: the sections directly below its section, in order.
        reading: what the reading model makes of the text; None if it was not read.
    """

    id: str
    path: tuple[str, ...]
    text: str
    section: str
    terms: frozenset[int] = frozenset()
    score: float = 1.0
    evidence: float = 1.0
    url: str | None = None
    chunk_id: str | None = None
    is_whole_section: bool = True
    subsections: tuple[Subsection, ...] = ()
    reading: PassageReading | None = None
