"""How sure we may be that a chunk speaks of what was asked, from matched words and their rarity.

A fused or min-max score can't say it: its best hit is always 1. Evidence is absolute: a logistic function of

    coverage  share of the question's words, weighted by idf, that the chunk holds
    strength  the chunk's BM25 score over the highest that these words could reach
    length    logarithm of the number of the question's words: one word in common out of one is luck

Its coefficients are fitted for each index from questions made of the index itself and are kept in its head, so no
threshold is carried from one site to another: a question made of one chunk's words must be told from one whose words
come from all over the site and from outside it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

from chapterverse.lexical import K1, words
from chapterverse.model import SparseVector
from chapterverse.store import Snapshot

#: Chunks that the questions of a fit are made from. Points come by id, and ids are uniform: the first are a sample.
_SAMPLE = 160
#: Searches at a time while fitting.
_AT_ONCE = 8
#: Chunks that each made question is matched with: the best by BM25.
_BEST = 5
#: Question lengths in words, as people write them (two to nine in the public question sets).
_LENGTHS = (2, 3, 4, 5, 6, 7, 9)
#: A reader's question misses about one word in three of the page that answers it, and one about something else shares
#: about two words in five with any large enough text; from .25 to .35 and .3 to .5 the public sets hardly differ.
_MISSED = 0.35
_SHARED = 0.4
#: Share of the made questions that the floor lets through, and so of answerable ones, roughly.
_KEPT = 0.95
_RIDGE = 0.05
#: Newton's method has arrived when no coefficient moves further than this; it takes about eight steps.
_STILL, _MOST_STEPS = 1e-9, 50


#: The hashed terms of one word, the whole first.
_Terms: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """The words of a question against one index.

    Attributes:
        words: for each distinct word its alternatives (one per language), each the whole term first, then its parts.
        weights: idf of each word; a word that the index has never seen weighs as much as a unique one.
    """

    words: tuple[tuple[_Terms, ...], ...]
    weights: tuple[float, ...]

    @property
    def known(self) -> bool:
        return bool(self.words)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Coefficients of the logistic function, and the least evidence that is answered from."""

    bias: float
    coverage: float
    strength: float
    length: float
    floor: float = 0.5

    def score(self, question: Question, chunk: SparseVector, idf: Mapping[int, float]) -> float:
        """Return the evidence of one chunk, 0 to 1."""
        return self.of_features(features(question, chunk, idf)) if question.known else 0.0

    def of_features(self, values: Sequence[float]) -> float:
        """Return the evidence that coverage, strength and length together give."""
        coverage, strength, length = values
        return _logistic(self.bias + self.coverage * coverage + self.strength * strength + self.length * length)

    def to_json(self) -> dict[str, Any]:
        return {k: round(v, 4) for k, v in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Calibration:
        return cls(**values)


#: Of an index without words: nothing in it is evidence of anything.
_BLIND = Calibration(-10.0, 0.0, 0.0, 0.0)


def read_question(text: str, languages: Iterable[str], snapshot: Snapshot) -> tuple[Question, dict[int, float]]:
    """Return a question's words as one index weighs them, and the idf of each of its terms."""
    by_surface: dict[str, dict[_Terms, None]] = {}
    for language in languages:
        for word in words(text, language):
            by_surface.setdefault(word.surface, {})[word.terms] = None
    return _weigh(tuple(tuple(terms) for terms in by_surface.values()), snapshot)


def features(question: Question, chunk: SparseVector, idf: Mapping[int, float]) -> tuple[float, float, float]:
    """Return coverage, strength and length of one chunk under one question; see the module's docstring."""
    weight = dict(zip(chunk.indices, chunk.values, strict=True))
    total = sum(question.weights)
    pairs = zip(question.words, question.weights, strict=True)
    covered = sum(w * max(_match(terms, weight) for terms in word) for word, w in pairs)
    terms = {t for word in question.words for alternative in word for t in alternative}
    score = sum(weight[t] * idf[t] for t in terms if t in weight)
    return covered / total, min(1.0, score / (total * (K1 + 1))), math.log(len(question.words))


def fit(snapshot: Snapshot) -> Calibration:
    """Fit the coefficients to one index by ridge-regularized logistic regression (Newton's method).

    The same index gives the same coefficients on every machine.
    """
    chunks = (point.chunk for point in islice(snapshot.points(), _SAMPLE))
    sample = [terms for c in chunks if (terms := sorted({w.terms for w in words(c.embed_text, c.language)}))]
    if not sample:
        return _BLIND
    pairs = list(_made_questions(sample))
    labels = [label for _ in pairs for label in (1, 0)]
    rows = [(1.0, *found) for found in _all_features([made for pair in pairs for made in pair], snapshot)]
    fitted = Calibration(*_regress(rows, labels))
    asked_scores = sorted(fitted.of_features(row[1:]) for row, label in zip(rows, labels, strict=True) if label)
    return replace(fitted, floor=min(0.5, asked_scores[int(len(asked_scores) * (1 - _KEPT))]))


def _made_questions(sample: Sequence[Sequence[_Terms]]) -> Iterator[tuple[list[_Terms], list[_Terms]]]:
    """Yield pairs of questions: one that a chunk of the sample answers, one that is about something else.

    There are as many pairs for a small index as for a large one.
    """
    chance = random.Random(0)  # noqa: S311  (a sample, not a secret)
    for i in range(_SAMPLE):
        chunk = sample[i % len(sample)]
        others = [sample[chance.randrange(len(sample))] for _ in range(_LENGTHS[i % len(_LENGTHS)])]
        asked = [chance.choice(other if chance.random() < _MISSED else chunk) for other in others]
        # No term has a negative hash: such a word is one that the index has never seen.
        foreign = [chance.choice(o) if chance.random() < _SHARED else (-1 - j,) for j, o in enumerate(others)]
        yield asked, foreign


def _all_features(questions: Sequence[Sequence[_Terms]], snapshot: Snapshot) -> list[tuple[float, float, float]]:
    from concurrent.futures import ThreadPoolExecutor

    # The store may be far away: all terms are counted at once, and several searches are on their way.
    snapshot.document_frequencies(sorted({t for made in questions for terms in made for t in terms}))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda made: _best_features(made, snapshot), questions))


def _best_features(made: Sequence[_Terms], snapshot: Snapshot) -> tuple[float, float, float]:
    question, idf = _weigh(tuple((terms,) for terms in dict.fromkeys(made)), snapshot)
    indices = tuple(sorted({t for terms in made for t in terms if t >= 0}))
    hits = snapshot.search_lexical(SparseVector(indices, (1.0,) * len(indices)), _BEST)
    nothing = (0.0, 0.0, math.log(len(question.words)))
    return max((features(question, hit.lexical, idf) for hit in hits), default=nothing)


def _weigh(grouped: tuple[tuple[_Terms, ...], ...], snapshot: Snapshot) -> tuple[Question, dict[int, float]]:
    terms = sorted({t for word in grouped for alternative in word for t in alternative})
    counts = dict(zip(terms, snapshot.document_frequencies(terms), strict=True))
    chunks = snapshot.head.chunks
    idf = {t: _idf(n, chunks) for t, n in counts.items()}
    weights = []
    for word in grouped:
        seen = [idf[t] for alternative in word for t in alternative if counts[t]]
        weights.append(max(seen) if seen else _idf(0, chunks))
    return Question(grouped, tuple(weights)), idf


def _idf(count: int, chunks: int) -> float:
    return math.log((chunks - count + 0.5) / (count + 0.5) + 1)


def _match(terms: _Terms, weight: Mapping[int, float]) -> float:
    """Return 1 where the whole word occurs, else the share of its parts that do."""
    if terms[0] in weight:
        return 1.0
    parts = terms[1:]
    return sum(t in weight for t in parts) / len(parts) if parts else 0.0


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _regress(rows: Sequence[Sequence[float]], labels: Sequence[int]) -> list[float]:
    """Return the coefficients of the logistic regression."""
    size = len(rows[0])
    beta = [0.0] * size
    for _ in range(_MOST_STEPS):
        gradient = [-_RIDGE * b for b in beta]
        hessian = [[_RIDGE if i == j else 0.0 for j in range(size)] for i in range(size)]
        for row, label in zip(rows, labels, strict=True):
            p = _logistic(sum(b * x for b, x in zip(beta, row, strict=True)))
            for i, x in enumerate(row):
                gradient[i] += (label - p) * x
                for j, y in enumerate(row):
                    hessian[i][j] += p * (1 - p) * x * y
        steps = _solve(hessian, gradient)
        beta = [b + step for b, step in zip(beta, steps, strict=True)]
        if max(map(abs, steps)) < _STILL:
            break
    return beta


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a small positive definite system by Gaussian elimination."""
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for i in range(size):
        for k in range(i + 1, size):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    out = [0.0] * size
    for i in reversed(range(size)):
        out[i] = (rows[i][size] - sum(rows[i][j] * out[j] for j in range(i + 1, size))) / rows[i][i]
    return out
