"""Tries what a model wrote: does a search by these words find the section that they were written for?

The search is by words alone, over all chunks of the next generation as they are without any expansion. It needs no
vector, so it costs nothing, and no generated question can help another one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from chapterverse.ext.enrichment.prompt import PageSection, place
from chapterverse.model import PERSONA, Chunk, Point, SparseVector
from chapterverse.text import lexical
from chapterverse.text.plain import plain

#: A section must be among so many.
MAX_RANK = 3


class Trial:
    """The chunks of the next generation by their words.

    Args:
        chunks: of the pages that were read.
        points: of all other pages.
        languages: those of the docs.
    """

    def __init__(self, chunks: Iterable[Chunk], points: Iterable[Point], languages: Sequence[str]) -> None:
        self._languages = languages
        self._sections: list[tuple[str, tuple[str, ...]]] = []
        self._numbers: defaultdict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
        self._chunk_ids: list[str] = []
        self._postings: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
        for chunk in chunks:
            self._add(chunk, _vector(chunk))
        for point in points:
            self._add(point.chunk, _vector(point.chunk) if point.chunk.expansion else point.lexical)

    def _add(self, chunk: Chunk, vector: SparseVector) -> None:
        if chunk.type == PERSONA:
            return
        number = len(self._sections)
        self._sections.append(place(chunk))
        self._numbers[place(chunk)].append(number)
        self._chunk_ids.append(chunk.chunk_id)
        for term, weight in zip(vector.indices, vector.values, strict=True):
            self._postings[term].append((number, weight))

    def idf(self, text: str) -> Mapping[int, float]:
        """Return the idf of the terms of a text."""
        return {term: self._idf(term) for term in lexical.query_vector(text, self._languages).indices}

    def chunk_of(self, query: str, section: PageSection) -> str | None:
        """Return the id of the section's chunk that the query finds, None if three other sections come first."""
        scores: defaultdict[int, float] = defaultdict(float)
        for term in lexical.query_vector(query, self._languages).indices:
            idf = self._idf(term)
            for number, weight in self._postings.get(term, ()):
                scores[number] += idf * weight
        best = [n for n in self._numbers[section.place] if n in scores]
        if not best:
            return None
        top = max(best, key=lambda n: (scores[n], -n))
        better_places = {self._sections[n] for n, score in scores.items() if score > scores[top]} - {section.place}
        return self._chunk_ids[top] if len(better_places) < MAX_RANK else None

    def _idf(self, term: int) -> float:
        count, total = len(self._postings.get(term, ())), len(self._sections)
        return math.log(1 + (total - count + 0.5) / (count + 0.5))


def _vector(chunk: Chunk) -> SparseVector:
    return lexical.document_vector(chunk.heading_path, plain(chunk.text), chunk.language)
