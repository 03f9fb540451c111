"""Ranking features of a chunk's place, beside the rarity of shared words.

    title    share of the page title's words that the question holds
    heading  share of the nearest heading's words that it holds
    defines  1 if the heading is the subject that the question wants defined, or a sentence defines it, else 0
    kind     1 for a kind of page that the question does not ask for, else 0

A question probably asks for a heading whose words it all holds, and not for a long one of which it holds some. So the
share is of the heading's words and not of the question's. The weights are in `ranking`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Set as AbstractSet

from chapterverse.model import Chunk
from chapterverse.text import lexical
from chapterverse_api.retrieval.frames import find_definitions

#: Separators of the names in a heading: "Class: Pool", "Server (blackd)"; and what follows the name of a function.
_NAME_ENDS = re.compile(r":\s|\s\(|\)")
_SIGNATURE = re.compile(r"(?<=[^\s(])\(.*")


class QueryFeatures:
    """A question as chunks in one language are compared with it.

    Args:
        defined_subject: the subject that the question wants defined; empty if it wants something else.
        lower_kinds: content types that the question does not ask for.
        synonyms: terms that count like the question's own in titles and headings.
    """

    def __init__(
        self,
        question: str,
        language: str,
        *,
        defined_subject: str = "",
        lower_kinds: AbstractSet[str] = frozenset(),
        synonyms: AbstractSet[int] = frozenset(),
    ) -> None:
        self.language = language
        self.terms = lexical.terms_of(lexical.words(question, language)) | synonyms
        self._defined = _words(defined_subject, language)[1] if defined_subject else frozenset[int]()
        self._lower_kinds = lower_kinds
        # Chunks of a page have its title in common.
        self._shares: dict[str, float] = {}

    def features(self, chunk: Chunk) -> dict[str, float]:
        """Return each feature of a chunk, 0 to 1."""
        return {
            "title": self._share(chunk.chapter_title),
            "heading": self._share(chunk.heading_path[-1]) if chunk.heading_path else 0.0,
            "defines": float(bool(self._defined) and self._defines(chunk)),
            "kind": float(chunk.content_type in self._lower_kinds),
        }

    def _defines(self, chunk: Chunk) -> bool:
        # A stub has the name for a heading, too, and says what it is of, not what it is.
        if chunk.content_type in self._lower_kinds:
            return False
        heading = chunk.heading_path[-1] if chunk.heading_path else chunk.chapter_title
        named = (*find_names(heading), *find_definitions(chunk.text, self.language))
        return any(_words(name, self.language)[1] == self._defined for name in named)

    def _share(self, text: str) -> float:
        if text not in self._shares:
            words, terms = _words(text, self.language)
            # Most headings share no word with the question.
            matches = 0 if terms.isdisjoint(self.terms) else sum(not self.terms.isdisjoint(word) for word in words)
            self._shares[text] = matches / len(words) if words else 0.0
        return self._shares[text]


@functools.lru_cache(maxsize=16_384)
def _words(heading: str, language: str) -> tuple[tuple[lexical.WordTerms, ...], frozenset[int]]:
    """Return the terms of each word, and of all of them."""
    words = tuple(dict.fromkeys(word.terms for word in lexical.words(heading, language)))
    return words, frozenset(term for terms in words for term in terms)


@functools.lru_cache(maxsize=16_384)
def find_names(heading: str) -> tuple[str, ...]:
    """Return the names that a heading has: "Class: Pool" and "Pool", "Pool.close(error)" and "Pool.close", "close"."""
    parts = [part.strip(" `*_") for part in _NAME_ENDS.split(_SIGNATURE.sub("", heading))]
    return tuple(dict.fromkeys((heading, *filter(None, (*parts, *(part.rpartition(".")[2] for part in parts))))))
