"""Weighs a question's words by an index, and compares a chunk with them.

Evidence is made of seven features:

    coverage     share of the question's words, weighted by idf, that the chunk holds
    strength     the chunk's BM25 score over the highest that these words could reach
    length       logarithm of the number of the question's words: one word in common out of one is luck
    familiarity  share of the words, weighted by idf, that the index holds anywhere: names that it never saw are
                 another matter than words that merely stand elsewhere
    names        share of the question's names that the chunk holds: identifiers, numbers, and what is written with a
                 capital; 1 of a question without any
    title        share of the words of the page's title that the question holds; it speaks for the page's best chunk:
                 the others must speak for themselves
    nearness     cosine of the chunk's vector and the question's, as the embedder of the index puts them

Names and titles were chosen on ray-v1 and on our own documentation, where they raise the AUC against questions about
something else from .934 to .962 and from .768 to .818, and confirmed on four FAQ sets (faq-ruff: .926 to .971, others
no lower). What did not earn a place, and where the pages that hold the answer are taken away is near chance (AUC .50 to
.61): the best window of a section, the rarest words alone, pairs of neighbors, headings and file names, how usual the
words are in the index, how many results are of one page, and how far the best is ahead of the next.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from chapterverse.store import Snapshot
from chapterverse.text import character_bigrams
from chapterverse.text.lexical import K1, question_words

#: The hashed terms of one word, the whole first.
Terms: TypeAlias = tuple[int, ...]

# `code`, what holds a digit, an underscore or a joiner, and a capital inside.
_NAME = re.compile(r"`[^`\n]+`|\b\w*\d[\w.]*\b|\b\w+_\w+\b|\b\w+[.:/@-]+\w+\b|\b\w+[A-Z]\w*\b")
# A capital that begins no sentence; in German any noun has one.
_CAPITAL = re.compile(r"(?<=\w )[A-Z]\w+")
_NOUNS_IN_CAPITALS = frozenset({"de", "lb"})


@dataclass(frozen=True, slots=True)
class Question:
    """The words of a question against one index.

    Attributes:
        words: for each distinct word its alternatives (one per language), each the whole term first, then its parts.
        weights: idf of each word; a word that the index has never seen weighs as much as a unique one.
        familiarity: share of the weights that is of words which the index holds at all.
        names: those of the words that are names, each as in `words`.
    """

    words: tuple[tuple[Terms, ...], ...]
    weights: tuple[float, ...]
    familiarity: float = 1.0
    names: tuple[tuple[Terms, ...], ...] = ()

    @property
    def known(self) -> bool:
        return bool(self.words)


class Features(NamedTuple):
    """What evidence is made of; see the module's docstring. Each is from 0 to 1 but `length` and `nearness`.

    Attributes:
        nearness: None where the question was not embedded.
    """

    coverage: float
    strength: float
    length: float
    familiarity: float = 1.0
    nearness: float | None = None
    names: float = 1.0
    title: float = 0.0


def read_question(text: str, languages: Iterable[str], snapshot: Snapshot) -> tuple[Question, dict[int, float]]:
    """Return a question's words as one index weighs them, and the idf of each of its terms."""
    words, counts = _looked_up(text, languages, snapshot)
    question, idf = weigh(words, counts, snapshot.head.chunks)
    named = {word.terms[0] for name in _names(text, languages) for word in question_words(name, languages)}
    names = tuple(word for word in question.words if any(terms[0] in named for terms in word))
    return replace(question, names=names), idf


def read_weights(text: str, languages: Iterable[str], snapshot: Snapshot) -> dict[int, float]:
    """Return the idf of each term of a text in one index."""
    return _idfs(*_looked_up(text, languages, snapshot), snapshot.head.chunks)


def _looked_up(
    text: str, languages: Iterable[str], snapshot: Snapshot
) -> tuple[tuple[tuple[Terms, ...], ...], dict[int, int]]:
    """Return for each word of a text its alternatives, and in how many chunks each of their terms occurs."""
    asked = tuple(question_words(text, languages))
    terms = sorted({t for word in asked for t in word.terms})
    counts = dict(zip(terms, snapshot.document_frequencies(terms), strict=True))
    known = {word.surface for word in asked if counts[word.terms[0]]}
    seams = character_bigrams.seams([word.surface for word in asked], known)
    by_surface: dict[str, dict[Terms, None]] = {}
    for word in asked:
        if word.surface not in seams:
            by_surface.setdefault(word.surface, {})[word.terms] = None
    return tuple(tuple(terms) for terms in by_surface.values()), counts


def _names(text: str, languages: Iterable[str]) -> list[str]:
    codes = {tag.partition("-")[0].lower() for tag in languages}
    return _NAME.findall(text) + ([] if codes & _NOUNS_IN_CAPITALS else _CAPITAL.findall(text))


def weigh(
    grouped: tuple[tuple[Terms, ...], ...], counts: Mapping[int, int], chunks: int
) -> tuple[Question, dict[int, float]]:
    """Return the question of these words, and the idf of each of their terms.

    Args:
        grouped: for each word its alternatives.
        counts: in how many of the index's chunks each term occurs.
        chunks: how many there are.
    """
    idf = _idfs(grouped, counts, chunks)
    weights, familiar = [], 0.0
    for word in grouped:
        seen = [idf[t] for alternative in word for t in alternative if counts[t]]
        weights.append(max(seen) if seen else _idf(0, chunks))
        familiar += weights[-1] if seen else 0.0
    return Question(grouped, tuple(weights), familiar / sum(weights) if weights else 0.0), idf


class Matching:
    """One question that has words, as chunks are compared with it.

    Args:
        idf: of each of its terms.
    """

    def __init__(self, question: Question, idf: Mapping[int, float]) -> None:
        self._question = question
        self._idf = idf
        self._total = sum(question.weights)
        self._length = math.log(len(question.words))

    def features(self, held: Mapping[int, float], nearness: float | None = None, title: float = 0.0) -> Features:
        """Return what one chunk has of the question.

        Args:
            held: the weights of the question's terms that it holds (see `SparseVector.among`).
            nearness: cosine of the two. Of a chunk that is not among the nearest it is the least of theirs, which it
                can't exceed; None where the question was not embedded.
            title: share of the words of its page's title that the question holds.
        """
        asked, covered, score = self._question, 0.0, 0.0
        if held:
            for word, weight in zip(asked.words, asked.weights, strict=True):
                covered += weight * _match(word, held)
        for term, weight in held.items():
            score += weight * self._idf[term]
        strength = min(1.0, score / (self._total * (K1 + 1)))
        names = _mean([_match(word, held) for word in asked.names])
        return Features(covered / self._total, strength, self._length, asked.familiarity, nearness, names, title)


def _idfs(grouped: tuple[tuple[Terms, ...], ...], counts: Mapping[int, int], chunks: int) -> dict[int, float]:
    terms = sorted({t for word in grouped for alternative in word for t in alternative})
    return {t: _idf(counts[t], chunks) for t in terms}


def _idf(count: int, chunks: int) -> float:
    return math.log((chunks - count + 0.5) / (count + 0.5) + 1)


def _mean(shares: Sequence[float]) -> float:
    return sum(shares) / len(shares) if shares else 1.0


def _match(word: Sequence[Terms], held: Mapping[int, float]) -> float:
    """Return 1 where the whole word occurs in any of its forms, else the greatest share of its parts that do."""
    share = 0.0
    for whole, *parts in word:
        if whole in held:
            return 1.0
        if parts:
            share = max(share, sum(t in held for t in parts) / len(parts))
    return share
