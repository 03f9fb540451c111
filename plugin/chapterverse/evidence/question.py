"""A question's words as one index weighs them, and what a chunk has of them.

Evidence is made of five features:

    coverage     share of the question's words, weighted by idf, that the chunk holds
    strength     the chunk's BM25 score over the highest that these words could reach
    length       logarithm of the number of the question's words: one word in common out of one is luck
    familiarity  share of the words, weighted by idf, that the index holds anywhere: names that it never saw are
                 another matter than words that merely stand elsewhere
    nearness     cosine of the chunk's vector and the question's, as the embedder of the index puts them
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from chapterverse import unspaced
from chapterverse.lexical import K1, question_words
from chapterverse.model import SparseVector
from chapterverse.store import Snapshot

#: The hashed terms of one word, the whole first.
Terms: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """The words of a question against one index.

    Attributes:
        words: for each distinct word its alternatives (one per language), each the whole term first, then its parts.
        weights: idf of each word; a word that the index has never seen weighs as much as a unique one.
        familiarity: share of the weights that is of words which the index holds at all.
    """

    words: tuple[tuple[Terms, ...], ...]
    weights: tuple[float, ...]
    familiarity: float = 1.0

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


def read_question(text: str, languages: Iterable[str], snapshot: Snapshot) -> tuple[Question, dict[int, float]]:
    """Return a question's words as one index weighs them, and the idf of each of its terms."""
    asked = tuple(question_words(text, languages))
    terms = sorted({t for word in asked for t in word.terms})
    counts = dict(zip(terms, snapshot.document_frequencies(terms), strict=True))
    known = {word.surface for word in asked if counts[word.terms[0]]}
    seams = unspaced.seams([word.surface for word in asked], known)
    by_surface: dict[str, dict[Terms, None]] = {}
    for word in asked:
        if word.surface not in seams:
            by_surface.setdefault(word.surface, {})[word.terms] = None
    return weigh(tuple(tuple(terms) for terms in by_surface.values()), counts, snapshot.head.chunks)


def weigh(
    grouped: tuple[tuple[Terms, ...], ...], counts: Mapping[int, int], chunks: int
) -> tuple[Question, dict[int, float]]:
    """Return the question of these words, and the idf of each of their terms.

    Args:
        grouped: for each word its alternatives.
        counts: in how many of the index's chunks each term occurs.
        chunks: how many there are.
    """
    terms = sorted({t for word in grouped for alternative in word for t in alternative})
    idf = {t: _idf(counts[t], chunks) for t in terms}
    weights, familiar = [], 0.0
    for word in grouped:
        seen = [idf[t] for alternative in word for t in alternative if counts[t]]
        weights.append(max(seen) if seen else _idf(0, chunks))
        familiar += weights[-1] if seen else 0.0
    return Question(grouped, tuple(weights), familiar / sum(weights) if weights else 0.0), idf


def features(
    question: Question, chunk: SparseVector, idf: Mapping[int, float], nearness: float | None = None
) -> Features:
    """Return what one chunk has of a question that has words.

    Args:
        nearness: cosine of the two. Of a chunk that is not among the nearest it is the least of theirs, which it can't
            exceed; None where the question was not embedded.
    """
    weight = chunk.among(idf)
    total = sum(question.weights)
    pairs = zip(question.words, question.weights, strict=True)
    covered = sum(w * max(_match(terms, weight) for terms in word) for word, w in pairs)
    score = sum(value * idf[t] for t, value in weight.items())
    strength = min(1.0, score / (total * (K1 + 1)))
    return Features(covered / total, strength, math.log(len(question.words)), question.familiarity, nearness)


def _idf(count: int, chunks: int) -> float:
    return math.log((chunks - count + 0.5) / (count + 0.5) + 1)


def _match(terms: Terms, weight: Mapping[int, float]) -> float:
    """Return 1 where the whole word occurs, else the share of its parts that do."""
    if terms[0] in weight:
        return 1.0
    parts = terms[1:]
    return sum(t in weight for t in parts) / len(parts) if parts else 0.0
