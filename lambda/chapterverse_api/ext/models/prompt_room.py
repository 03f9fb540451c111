"""Uses the room of a prompt: no source that says nothing more, and what stands around the best section.

A quote shows what the search found first. A model reads all that it gets, and what it needs often stands beside that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from chapterverse.model import FAQ, Chunk
from chapterverse.text import lexical
from chapterverse_api.draft.requests import Passage, estimate_tokens
from chapterverse_api.search.passages import MAX_PASSAGES_TOKENS, MAX_SECTIONS, make_passages
from chapterverse_api.search.ranking import Candidate, section_key

#: Tokens of the sources up to which a prompt is filled with what stands around the best section.
_FILLED_TOKENS = MAX_PASSAGES_TOKENS * 3 // 4
#: Two texts with this share of terms in common are one, written for two providers. The number is not measured.
_COPY_SHARE = 0.8
#: Characters of a text that may only repeat its headings.
_MAX_HEADING_CHARS = 400
#: A list of so many items of at most so many words each, such as an index of names, explains nothing.
_LIST_ITEMS, _ITEM_WORDS, _LIST_SHARE = 12, 4, 0.8
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s")


def without_waste(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates without headings that have no text, and copies; bare lists and changelogs come last."""
    kept: list[tuple[Candidate, frozenset[int]]] = []
    for candidate in candidates:
        terms = frozenset(candidate.lexical.indices)
        copies = (
            c
            for c, others in kept
            if _are_alike(terms, others) and section_key(c.chunk) != section_key(candidate.chunk)
        )
        if _says_something(candidate.chunk) and next(copies, None) is None:
            kept.append((candidate, terms))
    return sorted((candidate for candidate, _ in kept), key=_comes_last)


def fill_room(
    candidates: Sequence[Candidate],
    passages: Sequence[Passage],
    pages: Mapping[str, Sequence[Chunk]],
    url: Callable[[Chunk], str],
    is_for_reader: Callable[[Chunk], bool],
) -> list[tuple[Candidate, Passage]]:
    """Return what stands around the best section, as far as a model's prompt has room for it.

    A FAQ entry stands around nothing: each is found for itself, and they have a share of their own.
    """
    best, sections = candidates[0], {section_key(c.chunk) for c in candidates}
    room = _FILLED_TOKENS - round(sum(map(estimate_tokens, (passage.section for passage in passages))))
    around = list[tuple[Candidate, Passage]]()
    page = [c for c in pages[best.chunk.source_file_path] if c.type != FAQ and is_for_reader(c)]
    near = (c for c in find_around(best, page) if section_key(c.chunk) not in sections)
    for candidate in islice(near, max(0, MAX_SECTIONS - len(passages))):
        (passage,) = make_passages([candidate], url, pages, max(0, room))
        size = round(estimate_tokens(passage.section))
        if size <= room:
            room -= size
            around.append((candidate, replace(passage, id=str(len(passages) + len(around) + 1))))
    return around


def find_around(best: Candidate, page: Sequence[Chunk]) -> Iterator[Candidate]:
    """Yield the beginnings of the sections below the best one, then of those beside it, the nearest first."""
    path, sections = best.chunk.heading_path, dict[object, Chunk]()
    for chunk in page:
        sections.setdefault(section_key(chunk), chunk)

    def order(chunk: Chunk) -> tuple[bool, int]:
        return chunk.heading_path[: len(path)] != path, abs(chunk.chunk_index - best.chunk.chunk_index)

    for chunk in sorted(sections.values(), key=order):
        if chunk.heading_path[: len(path) - 1] == path[:-1] and _says_something(chunk) and not _is_list(chunk.text):
            vector = lexical.document_vector(chunk.heading_path, chunk.text, chunk.language)
            yield Candidate(chunk, vector, 0.0, 0.0, {}, None)


def _says_something(chunk: Chunk) -> bool:
    if len(chunk.text) > _MAX_HEADING_CHARS:
        return True
    said, headed = (
        lexical.terms_of(lexical.words(text, chunk.language)) for text in (chunk.text, " ".join(chunk.heading_path))
    )
    return not said <= headed


def _are_alike(one: frozenset[int], two: frozenset[int]) -> bool:
    if min(len(one), len(two)) < _COPY_SHARE * max(len(one), len(two)):
        return False
    return len(one & two) >= _COPY_SHARE * len(one | two)


def _comes_last(candidate: Candidate) -> bool:
    is_unasked_news = candidate.chunk.content_type == "news" and bool(candidate.components.get("kind"))
    return is_unasked_news or _is_list(candidate.chunk.text)


def _is_list(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    bare = sum(bool(_ITEM.match(line)) and len(line.split()) <= 1 + _ITEM_WORDS for line in lines)
    return bare >= max(_LIST_ITEMS, _LIST_SHARE * len(lines))
