"""Which sections two indexes differ in, and whether what one said still stands in the other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import cache, cached_property
from typing import Literal
from urllib.parse import urldefrag

from chapterverse.model import Chunk
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse.text.markdown import plain
from chapterverse.text.sentences import split

#: The file of a section and its headings: the address of a site may differ between two builds.
Key = tuple[str, tuple[str, ...]]
#: A name or a number: what is no plain word, or stands as code. Without it a sentence says another thing.
_NAMES = re.compile(
    r"(?<!`)`{1,3}([^`\n]+)`|(--?[A-Za-z][\w-]*|(?<!\w)\w+(?:[._/-]\w+)+|(?<!\w)\w*(?:\d|_|[a-z][A-Z])\w*)"
)
#: The least likeness of two sentences of which one is the other reworded, and the least share of the words kept.
_ALIKE, _KEPT = 0.75, 0.8
#: The least likeness of a word and the same mistyped.
_MISTYPED = 0.8
#: The end of a text that goes on in another: in scripts with spaces not within a word or a number.
_ENDS = r"(?![.,]?[^\W\u0e00-\u0fff\u2e80-\uffff])"


@dataclass(frozen=True, slots=True)
class SectionChange:
    """A section that two indexes differ in."""

    key: Key
    url: str
    how: Literal["added", "removed", "changed"]

    @property
    def title(self) -> str:
        return " › ".join(self.key[1]) or self.url


@dataclass(frozen=True)
class IndexedSite:
    """The chunks of one index."""

    chunks: tuple[Chunk, ...]

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> IndexedSite:
        return cls(tuple(point.chunk for point in snapshot.points()))

    @cached_property
    def by_id(self) -> Mapping[str, Chunk]:
        return {c.chunk_id: c for c in self.chunks}

    @cached_property
    def texts(self) -> Mapping[Key, list[str]]:
        found: dict[Key, list[str]] = {}
        for chunk in sorted(self.chunks, key=lambda c: (c.source_file_path, c.chunk_index)):
            found.setdefault(key(chunk), []).append(chunk.text)
        return found


def key(chunk: Chunk) -> Key:
    return chunk.source_file_path, chunk.heading_path


def compare_sections(before: IndexedSite, now: IndexedSite) -> list[SectionChange]:
    """Return the sections with another text, in order of their files."""
    found = []
    urls = {key(c): urldefrag(c.url).url for c in reversed(before.chunks)} | {
        key(c): c.url for c in reversed(now.chunks)
    }
    for place in sorted(urls):
        old, new = before.texts.get(place), now.texts.get(place)
        if old != new:
            found.append(SectionChange(place, urls[place], "changed" if old and new else "added" if new else "removed"))
    return found


class RemainingText:
    """Finds what one index said in the other, there or elsewhere, to the letter or reworded."""

    def __init__(self, before: IndexedSite, now: IndexedSite) -> None:
        self._before, self._now = before, now
        #: What stood before is no other sentence reworded, however alike they are.
        self._old = frozenset(s for chunk in before.chunks for s in _sentences(chunk.text))
        self._new = [s for chunk in now.chunks if chunk.chunk_id not in before.by_id for s in _sentences(chunk.text)]

    def holds(self, quote: str, passage: str, chunk_id: str, question: str, answer: str) -> bool:
        """Return whether what answered a question still stands: most of the quote, and what else names the same.

        Args:
            passage: the text around the quote.
            chunk_id: where they stood.
            question: the reader's, whose words must stand in them still.
            answer: what the question is answered now, in which they may stand too.
        """
        chunk = self._before.by_id.get(chunk_id)
        if chunk and self._before.texts[key(chunk)] == self._now.texts.get(key(chunk)):
            return True
        language = self.language(chunk_id)
        places = [*self._new, *_sentences(answer)]
        beside = _answering_sentences(quote, passage, question, language)
        return all(self.says(text, places, question, language) for text in (quote, *beside))

    def language(self, chunk_id: str) -> str:
        chunk = self._before.by_id.get(chunk_id)
        return chunk.language if chunk else "en"

    def says(self, quote: str, places: Iterable[str], question: str, language: str = "en") -> bool:
        """Return whether most sentences of a quote stand among others, reworded at most."""
        others = dict.fromkeys(s for place in places for s in _sentences(place))
        new = [s for s in others if s not in self._old]
        topic = _all_terms(question, language)

        def stands(part: str) -> bool:
            exact = any(_contains(other, part) for other in others)
            return exact or any(_is_reworded(part, other, topic, language) for other in new)

        parts = list(_sentences(quote)) or [quote]
        return 2 * sum(map(stands, parts)) > len(parts)


def _answering_sentences(quote: str, passage: str, question: str, language: str) -> Iterator[str]:
    """Yield the sentences of a passage with at least half as many words of the question as the quote has."""
    asked = _all_terms(question, language)
    named = len(asked & _all_terms(quote, language))
    for sentence in split(passage):
        if sentence.kind == "prose" and named <= 2 * len(asked & _all_terms(sentence.plain_text, language)) > 0:
            yield sentence.plain_text


@cache
def _all_terms(text: str, language: str) -> frozenset[int]:
    return frozenset(term for terms in _terms(text, language).values() for term in terms)


@cache
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(text[s.start : s.end].strip() for s in split(text) if s.plain_text.strip())


def _contains(other: str, part: str) -> bool:
    """Return whether a text stands in another: an answer shows it without the targets of links and the like."""
    return _bare(part) in _bare(other) and bool(re.search(_pattern(part), plain(other)))


@cache
def _pattern(text: str) -> str:
    return r"\s*".join(map(re.escape, _bare(text))) + _ENDS


def _is_reworded(quote: str, other: str, topic: frozenset[int], language: str) -> bool:
    words, others = _terms(quote, language), _terms(other, language)
    missing = [word for word, terms in words.items() if not terms & _all_terms(other, language)]
    # What the question names must be there still, a typing mistake aside.
    named = [word for word in missing if words[word] & topic]
    if not _names(quote) <= _names(other) or not all(get_close_matches(word, others, 1, _MISTYPED) for word in named):
        return False
    if words and len(missing) <= (1 - _KEPT) * len(words):
        return True
    matcher = SequenceMatcher(None, plain(quote).lower(), plain(other).lower(), autojunk=False)
    return matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE


@cache
def _terms(text: str, language: str) -> Mapping[str, frozenset[int]]:
    return {word.surface: frozenset(word.terms) for word in lexical.words(plain(text), language)}


@cache
def _bare(text: str) -> str:
    return "".join(plain(text).split())


@cache
def _names(text: str) -> frozenset[str]:
    return frozenset(name for match in _NAMES.findall(text) for name in match if name)
