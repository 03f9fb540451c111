"""Fits the coefficients to questions made of the index itself, until someone calibrates it.

The fit separates questions made of one chunk's words from questions with words of the whole site and of no page.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from chapterverse.calibration import (
    Calibration,
    ChunkFeatures,
    Coefficients,
    Matching,
    count_terms,
    logistic,
    weigh_words,
)
from chapterverse.model import PERSONA, SparseVector
from chapterverse.progress import map_in_threads
from chapterverse.store import Snapshot
from chapterverse.text.lexical import WordTerms, words
from chapterverse.text.markdown import plain

#: Chunks that questions are made from: the first by id, which is a random sample because ids are uniform.
_MAX_SAMPLE_CHUNKS = 160
#: Concurrent searches.
_CONCURRENT_SEARCHES = 8
#: Best chunks by BM25 that each question is compared with.
_MAX_HITS = 5
#: Question lengths in words, as in public question sets (two to nine).
_LENGTHS = (2, 3, 4, 5, 6, 7, 9)
#: A real question misses about one in three words of the page that answers it, and one about something else shares
#: about two in five with any large text. From .25 to .35 and .3 to .5 results on the public sets hardly differ.
_MISSED_RATE = 0.35
_SHARED_RATE = 0.4
#: Share of the answerable made questions above the floor.
_SHARE_ABOVE_FLOOR = 0.95
_RIDGE = 0.05
#: Newton's method stops when no coefficient moves further than this, after about eight steps.
_TOLERANCE, _MAX_STEPS = 1e-9, 50
#: Coefficients of `names` and `title`, chosen on ray-v1 and our own documentation, where at .08 of false refusals they
#: raise the share of other questions that are refused from .50 to .71 and from .31 to .51; on four FAQ sets it rises
#: from .79–.96 to .84–.96.
_NAMES, _TITLE = 2.0, 1.8


def fit_to_index(snapshot: Snapshot) -> Calibration:
    """Fit evidence to one index by ridge-regularized logistic regression.

    The same index gives the same coefficients on every machine. Made questions can't show familiarity and nearness, so
    these have no weight. They can't show names and titles either, but the worth of these is much the same in every
    index.
    """
    chunks = [p.chunk for p in islice(snapshot.points(), _MAX_SAMPLE_CHUNKS) if p.chunk.type != PERSONA]
    sample = [terms for c in chunks if (terms := sorted({w.terms for w in words(plain(c.embed_text), c.language)}))]
    if not sample:
        return Calibration()
    pairs = list(_make_questions(sample))
    labels = [label for _ in pairs for label in (1, 0)]
    features = _all_features([question for pair in pairs for question in pair], snapshot)
    fitted = Coefficients(*regress([(1.0, f.coverage, f.strength, f.length) for f in features], labels, _RIDGE))
    # Find the floor without names and titles: every made question has all names and no title.
    calibration = Calibration(fitted)
    asked_scores = sorted(calibration.of(f) for f, label in zip(features, labels, strict=True) if label)
    floor = min(0.5, asked_scores[int(len(asked_scores) * (1 - _SHARE_ABOVE_FLOOR))])
    return Calibration(replace(fitted, bias=fitted.bias - _NAMES, names=_NAMES, title=_TITLE), floor=floor)


def _make_questions(sample: Sequence[Sequence[WordTerms]]) -> Iterator[tuple[list[WordTerms], list[WordTerms]]]:
    """Yield 160 pairs: a question that a chunk of the sample answers, and one about something else."""
    chance = random.Random(0)  # noqa: S311  (a sample, not a secret)
    for i in range(_MAX_SAMPLE_CHUNKS):
        chunk = sample[i % len(sample)]
        distractors = [sample[chance.randrange(len(sample))] for _ in range(_LENGTHS[i % len(_LENGTHS)])]
        answerable = [chance.choice(other if chance.random() < _MISSED_RATE else chunk) for other in distractors]
        # No term has a negative hash, so such a word is unknown to the index.
        unanswerable = [
            chance.choice(o) if chance.random() < _SHARED_RATE else (-1 - j,) for j, o in enumerate(distractors)
        ]
        yield answerable, unanswerable


def _all_features(questions: Sequence[Sequence[WordTerms]], snapshot: Snapshot) -> list[ChunkFeatures]:
    # The store may be remote: count all terms in one call and search concurrently.
    counts = count_terms({t for question in questions for terms in question for t in terms}, snapshot)
    return [*map_in_threads(lambda q: _best_features(q, counts, snapshot), questions, _CONCURRENT_SEARCHES)]


def _best_features(word_terms: Sequence[WordTerms], counts: Mapping[int, int], snapshot: Snapshot) -> ChunkFeatures:
    question, idf = weigh_words(tuple((terms,) for terms in dict.fromkeys(word_terms)), counts, snapshot.head.chunks)
    indices = tuple(sorted({t for terms in word_terms for t in terms if t >= 0}))
    hits = snapshot.search_lexical(SparseVector(indices, (1.0,) * len(indices)), _MAX_HITS)
    if not hits:
        return ChunkFeatures(0.0, 0.0, math.log(len(question.words)))
    matching = Matching(question, idf)
    # By coverage, then strength; the other features are equal for all hits.
    return max((matching.features(hit.lexical.among(idf)) for hit in hits), key=lambda f: f[:2])


def regress(
    rows: Sequence[Sequence[float]], labels: Sequence[int], ridge: float, weights: Sequence[float] | None = None
) -> list[float]:
    """Return the coefficients that separate rows of label 1 from rows of label 0, by Newton's method.

    It is plain Python, so that every machine computes the same coefficients.

    Args:
        rows: features; a leading 1 makes a bias.
        ridge: strength of the L2 penalty on every coefficient.
        weights: weight of each row, 1 by default.
    """
    size = len(rows[0])
    beta = [0.0] * size
    counts = weights or [1.0] * len(rows)
    for _ in range(_MAX_STEPS):
        gradient = [-ridge * b for b in beta]
        hessian = [[ridge if i == j else 0.0 for j in range(size)] for i in range(size)]
        for row, label, weight in zip(rows, labels, counts, strict=True):
            p = logistic(dot(beta, row))
            error, slope = weight * (label - p), weight * p * (1 - p)
            for i, x in enumerate(row):
                gradient[i] += error * x
                line, scaled = hessian[i], slope * x
                for j in range(i + 1):
                    line[j] += scaled * row[j]
        for i in range(size):
            for j in range(i):
                hessian[j][i] = hessian[i][j]
        steps = _solve(hessian, gradient)
        beta = [b + step for b, step in zip(beta, steps, strict=True)]
        if max(map(abs, steps)) < _TOLERANCE:
            break
    return beta


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the scalar product of two vectors of one length."""
    return sum(x * y for x, y in zip(a, b, strict=True))


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
