"""Ranking features of a chunk: its place and its wording, beside the rarity of shared words.

    title    share of the page title's words that the question holds
    heading  share of the nearest heading's words that it holds
    file     share of the words of the file's path that it holds
    phrase   share of the question's pairs of neighboring words, by idf, that are neighbors in the text too
    code     share of the text that is code
    defines  1 if the heading is the subject that the question wants defined, or a sentence defines it, else 0
    kind     1 for a kind of page that the question does not ask for, else 0

A question probably asks for a heading whose words it all holds, and not for a long one of which it holds some. So the
share is of the heading's words and not of the question's. The weights are in `ranking`.
"""

from __future__ import annotations

import functools
import heapq
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise, takewhile

from chapterverse.model import Chunk
from chapterverse.text import lexical
from chapterverse_api.retrieval.frames import find_definitions

_FENCE = re.compile(r"^ *+(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^ *+\1|\Z)", re.MULTILINE | re.DOTALL)
_FILE_WORD = re.compile(r"[^\W_]+")
#: Separators of the names in a heading: "Class: Pool", "Server (blackd)"; and what follows the name of a function.
_NAME_ENDS = re.compile(r":\s|\s\(|\)")
_SIGNATURE = re.compile(r"(?<=[^\s(])\(.*")
#: Names of files that say nothing of what is in them.
_NAMELESS = frozenset(("index", "readme"))
#: Characters between the beginnings of two neighboring words: an ending, a space, a short word or two.
_MAX_PAIR_GAP_CHARS = 10
#: The scripts of East Asia begin here in Unicode.
_UNSPACED = "\u2e80"
#: Too many words share a shorter beginning.
_MIN_STEM_CHARS = 3
#: Pairs of a question that are looked for, the rarest. A question is a sentence or two; the limit keeps a pasted page
#: from being searched for in every chunk.
_MAX_PAIRS = 64
#: Texts whose share of code is cached.
_MAX_CACHED_TEXTS = 2048


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighboring words of the question.

    Attributes:
        first, second: the hashed terms of each; a chunk without one of either holds no such pair.
        beginnings: what all forms of each begin with, in lower case.
        weight: idf of the more common one.
    """

    first: frozenset[int]
    second: frozenset[int]
    beginnings: tuple[str, str]
    weight: float

    def occurs_in(self, text: str) -> bool:
        """Whether the words are neighbors in a lower-case text, in either order.

        Readers ask for "lock the file" as "lock a file" and as "file locking".
        """
        first, second = self.beginnings
        return _follows(first, second, text) or _follows(second, first, text)


class QueryFeatures:
    """A question as chunks in one language are compared with it.

    Args:
        defined_subject: the subject that the question wants defined; empty if it wants something else.
        lower_kinds: content types that the question does not ask for.
        synonyms: terms that count like the question's own in titles, headings and files.
    """

    def __init__(
        self,
        question: str,
        language: str,
        idf: Mapping[int, float],
        *,
        defined_subject: str = "",
        lower_kinds: AbstractSet[str] = frozenset(),
        synonyms: AbstractSet[int] = frozenset(),
    ) -> None:
        words = list(lexical.words(question, language))
        self.language = language
        self.terms = lexical.terms_of(words) | synonyms
        pairs = (_pair(a, b, language, idf) for a, b in pairwise(words) if a.terms != b.terms)
        self.pairs = heapq.nlargest(_MAX_PAIRS, (pair for pair in pairs if pair.weight), key=lambda pair: pair.weight)
        self._weight = sum(pair.weight for pair in self.pairs)
        self._defined = _words(defined_subject, language)[1] if defined_subject else frozenset[int]()
        self._lower_kinds = lower_kinds
        # Chunks of a page have its title and file in common.
        self._shares: dict[str, float] = {}

    def features(self, chunk: Chunk, terms: AbstractSet[int]) -> dict[str, float]:
        """Return each feature of a chunk, 0 to 1.

        Args:
            terms: the terms of the question that it holds.
        """
        return {
            "title": self._share(chunk.chapter_title),
            "heading": self._share(chunk.heading_path[-1]) if chunk.heading_path else 0.0,
            "file": self._share(_file_words(chunk.source_file_path)),
            "phrase": self._phrase(chunk.text, terms),
            "code": code_share(chunk.text),
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

    def _phrase(self, text: str, terms: AbstractSet[int]) -> float:
        # Most chunks hold one word of the question or two, and not side by side: they are not read.
        pairs = [pair for pair in self.pairs if not (pair.first.isdisjoint(terms) or pair.second.isdisjoint(terms))]
        if not pairs:
            return 0.0
        lower = text.lower()
        return sum(pair.weight for pair in pairs if pair.occurs_in(lower)) / self._weight


@functools.lru_cache(maxsize=_MAX_CACHED_TEXTS)
def code_share(text: str) -> float:
    """Return how much of a text is fenced code, by characters."""
    if "```" not in text and "~~~" not in text:
        return 0.0
    return sum(match.end() - match.start() for match in _FENCE.finditer(text)) / len(text)


def _follows(first: str, second: str, text: str) -> bool:
    """Whether some word that begins with `first` has `second` close behind its beginning."""
    at = text.find(first)
    while at >= 0:
        end = at + len(first)
        # Without spaces, words are read as pairs of characters that overlap.
        start = at + 1 if first >= _UNSPACED else end
        if _begins(text, at) and text.find(second, start, end + _MAX_PAIR_GAP_CHARS + len(second)) >= 0:
            return True
        at = text.find(first, end)
    return False


def _begins(text: str, at: int) -> bool:
    """Whether a word begins here: "catalog" does not hold "log". In scripts without spaces, words begin anywhere."""
    return at == 0 or text[at] >= _UNSPACED or not text[at - 1].isalnum()


def _pair(first: lexical.Word, second: lexical.Word, language: str, idf: Mapping[int, float]) -> Pair:
    rarity = min(max(idf.get(t, 0.0) for t in word.terms) for word in (first, second))
    beginnings = (_common_prefix(first.surface, language), _common_prefix(second.surface, language))
    return Pair(frozenset(first.terms), frozenset(second.terms), beginnings, rarity)


@functools.lru_cache(maxsize=16_384)
def _common_prefix(surface: str, language: str) -> str:
    """Return what all forms of a word begin with."""
    stem = lexical.stem(surface, language)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(surface, stem, strict=False)))
    return surface[:same] if same >= _MIN_STEM_CHARS else surface


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


@functools.lru_cache(maxsize=16_384)
def _file_words(path: str) -> str:
    """Return the words that a file is named with."""
    names = _FILE_WORD.findall(path.rpartition(".")[0] or path)
    return " ".join(name for name in names if name.lower() not in _NAMELESS)
