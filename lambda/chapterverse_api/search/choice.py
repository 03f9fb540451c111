"""Finds sections that a question fits equally well: "supported clusters" stands below each of three clouds.

Their headings hold every word of the question, and the nearest one says no more than the question or than that of the
others. So nothing that the reader wrote tells them apart, and they say different things: the reader may choose. A page
of that title is no such section, because it is the subject itself.

Of 1,140 questions that a language model wrote as readers of thirteen sites, none is asked back; of 172 headings that
stand on several pages of seventeen sites, asked as they are, 28.
"""

from __future__ import annotations

from itertools import chain

from chapterverse.calibration import WeightedQuestion, match_word
from chapterverse.model import Chunk
from chapterverse.text import lexical
from chapterverse_api.search.ranking import Candidate, section
from chapterverse_api.search.results import Retrieval

#: Sections that are offered. A heading that stands more often is a form that many pages share.
_MAX_CHOICES = 3
#: Candidates that are compared.
_MAX_CANDIDATES = 8
#: The least evidence of each, and its score over that of the first; if both were read, its probability over that.
_MIN_EVIDENCE, _MIN_SCORE_SHARE, _MIN_READING_SHARE = 0.8, 0.9, 0.5
#: From this share of common terms on, two sections say the same.
_SAME_TEXT = 0.5


def find_choices(retrieval: Retrieval) -> list[Chunk]:
    """Return a chunk of each section that the question fits, best first; none if one fits best, or too many do."""
    if not (retrieval.candidates and retrieval.sure and retrieval.question.has_words) or retrieval.compares:
        return []
    # A question for a definition has one answer: the section that says what it is.
    if retrieval.subject != retrieval.searched:
        return []
    first = retrieval.candidates[0]
    fitting = dict[object, Chunk]()
    for candidate in retrieval.candidates[:_MAX_CANDIDATES]:
        if _is_near(candidate, first) and _is_headed_by(retrieval.question, candidate.chunk, first.chunk):
            fitting.setdefault(section(candidate.chunk), candidate.chunk)
    found = [*fitting.values()]
    if not found or found[0] is not first.chunk or any(_holds(a, b) for a in found for b in found if a is not b):
        return []
    choices = _drop_same_text(found)
    return choices if 1 < len(choices) <= _MAX_CHOICES else []


def _is_near(candidate: Candidate, first: Candidate) -> bool:
    """Whether a candidate is as sure as the first one."""
    if candidate.evidence < _MIN_EVIDENCE:
        return False
    if candidate.reading and first.reading:
        return candidate.reading.best >= _MIN_READING_SHARE * first.reading.best
    return candidate.score >= _MIN_SCORE_SHARE * first.score


def _is_headed_by(question: WeightedQuestion, chunk: Chunk, first: Chunk) -> bool:
    """Whether the headings of a chunk hold each word of the question, and the nearest one tells it from no other.

    It is that of the first chunk, or neither says more than the question.
    """
    terms = _terms(" ".join(chunk.heading_path), chunk.language)
    if chunk.language != first.language or any(match_word(word, terms) < 1 for word in question.words):
        return False
    asked = {term for word in question.words for term in chain.from_iterable(word)}
    nearest, others = (_terms(" ".join(one.heading_path[-1:]), one.language) for one in (chunk, first))
    return nearest == others or nearest | others <= asked


def _holds(chunk: Chunk, other: Chunk) -> bool:
    """Whether a chunk is the beginning of a page, which is the subject itself, or its section holds the other one."""
    path = chunk.heading_path
    return len(path) < 2 or (
        chunk.source_file_path == other.source_file_path and other.heading_path[: len(path)] == path
    )


def _drop_same_text(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks without those that say what an earlier one says."""
    kept: list[tuple[Chunk, frozenset[int]]] = []
    for chunk in chunks:
        terms = _terms(chunk.text, chunk.language)
        if all(len(terms & others) < _SAME_TEXT * len(terms | others) for _, others in kept):
            kept.append((chunk, terms))
    return [chunk for chunk, _ in kept]


def _terms(text: str, language: str) -> frozenset[int]:
    return lexical.terms_of(lexical.words(text, language))
