"""Ranks hits of both searches: fused scores, then page, place and wording, then variety.

Fusion is linear over scaled scores (it beat reciprocal rank fusion on every set measured), ties by chunk id. The
weights were chosen on one public question set (ray-v1, 145 questions) and on our own documentation (152), whose pages
are few and long; `benchmarks/retrieval.py` reports other sets. On ray-v1 they raise SecHit@5 of the same chunks by BM25
from .448 to .586, and the reciprocal rank of the right page from .398 to .492. Half as large again they gain
nothing there and lose on all other sets. What did not earn a place: pseudo-relevance feedback, the position in the
page, BM25 of whole sections, twice as many candidates. On 521 questions of readers on nine sites the first five
passages hold the words that answer in .69; with pseudo-relevance feedback (RM3, seven settings) in .69 to .70, with
synonyms of WordNet 3.0 in .69. The synonyms of `search_terms` do find more.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import NamedTuple, TypeAlias

from chapterverse.model import Chunk
from chapterverse.store import Hit
from chapterverse_api.index.addresses import page_of
from chapterverse_api.retrieval.candidates import Candidate
from chapterverse_api.retrieval.features import QueryFeatures

#: What each feature adds to the fused value, which is 1 for the best hit.
WEIGHTS = {
    "page": 0.2,
    "title": 0.1,
    "heading": 0.15,
    "file": 0.17,
    "phrase": 0.12,
    "code": -0.05,
    "here": 0.1,
    "defines": 0.3,
    "kind": -0.15,
}
#: The most that a value can reach, by which scores are brought to 0..1.
_MAX_SUM = 1 + sum(w for w in WEIGHTS.values() if w > 0)
#: What a chunk loses for each one like it before it: maximal marginal relevance (Carbonell & Goldstein, 1998),
#: where those of one section are alike. Five results then show more than one section's neighbors.
AGAIN = 0.33
#: Hits of a page that count for it, each half as much as the one before.
_PAGE_HITS = 4
#: Texts that share this much of their terms are alike too: the same words for another version or system.
_SAME = 0.9
#: The smallest hashes of a text's terms are a sample of them (bottom-k sketch; Broder, 1997).
_SKETCH = 4
#: Of a sample, what texts that are alike share nearly always; fewer are not compared.
_SHARED = 3
#: So many alike bring any value to zero.
_ENOUGH = math.ceil(_MAX_SUM / AGAIN)
#: Texts of fewer terms differ by their every word.
_LONG = 32

#: The address and the heading path that all chunks of one section have in common.
SectionKey: TypeAlias = tuple[str, tuple[str, ...]]


class Ranked(NamedTuple):
    """A hit with the score that orders it.

    Attributes:
        score: 0 to 1, never rising from one to the next; it orders, and says nothing of how good a hit is.
        components: what the score was made of; `again` is what was taken off for those like it.
    """

    hit: Hit
    score: float
    components: Mapping[str, float]


def fuse(
    term_weights: Mapping[str, Mapping[int, float]], idf: Mapping[int, float], by_meaning: Sequence[Hit], weight: float
) -> dict[str, dict[str, float]]:
    """Return for each chunk id `lexical`, `dense` and `fused`, each 0 to 1.

    The lexical side is counted here for every hit, also for those that only their meaning found, from a zero of its
    own; the dense side, whose zero means nothing, from the farthest that was found.

    Args:
        term_weights: of the hits of both sides, by chunk id, the weights of the question's terms that they hold.
        idf: of each term of the question.
        by_meaning: the hits of the dense side, with their cosines.
        weight: share of the dense side.
    """
    words = _over({i: sum(w * idf[t] for t, w in weights.items()) for i, weights in term_weights.items()}, low=0.0)
    meaning = {h.chunk.chunk_id: h.score for h in by_meaning}
    meaning = _over(meaning, low=min(meaning.values(), default=0.0))
    # With one side only there is nothing to weigh.
    weight = weight if meaning and any(words.values()) else float(bool(meaning))
    return {
        i: {"lexical": word, "dense": meaning.get(i, 0.0), "fused": (1 - weight) * word + weight * meaning.get(i, 0.0)}
        for i, word in words.items()
    }


def rank(
    hits: Mapping[str, Hit],
    term_weights: Mapping[str, Mapping[int, float]],
    scores: Mapping[str, Mapping[str, float]],
    features: Mapping[str, QueryFeatures],
    here: str,
) -> list[Ranked]:
    """Return the hits best first, ties by chunk id; of several with one text only the best.

    Args:
        hits: by chunk id.
        term_weights: what `fuse` was given.
        scores: what `fuse` made of them.
        features: the question in each language that hits are in.
        here: the page that the reader is on, as `addresses.page_of` names it; empty where that is not known.
    """
    pages = _pages(hits.values(), scores)
    rated = []
    for chunk_id, hit in hits.items():
        chunk = hit.chunk
        parts = {
            **scores[chunk_id],
            "page": pages[chunk.source_file_path],
            "here": float(bool(here) and page_of(chunk.url) == here),
            **features[chunk.language].features(chunk, term_weights[chunk_id].keys()),
        }
        bonus = 0.0
        for name, weight in WEIGHTS.items():
            bonus += weight * parts[name]
        rated.append((max(0.0, parts["fused"] + bonus) / _MAX_SUM, hit, parts))
    return list(diversify(rated))


def contributions(components: Mapping[str, float]) -> dict[str, float]:
    """Return what each component adds to a score of 0 to 1, without those that add nothing.

    The rest of the score is what a reranker, a memory or a second search made of it.
    """
    added = {"fused": components.get("fused", 0.0) / _MAX_SUM}
    added |= {name: weight * components.get(name, 0.0) / _MAX_SUM for name, weight in WEIGHTS.items()}
    added |= {name: components.get(name, 0.0) for name in ("again", "side")}
    return {name: value for name, value in added.items() if value}


def diversify(
    hits: Iterable[tuple[float, Hit, Mapping[str, float]]], again: float = AGAIN / _MAX_SUM
) -> Iterator[Ranked]:
    """Yield the hits best first, each text once; a hit that nearly repeats an earlier one is moved back.

    Args:
        hits: each behind its value, 0 to 1, and with what that was made of.
    """
    heap = [(-value, hit.chunk.chunk_id, 0, value, hit, parts) for value, hit, parts in hits]
    heapq.heapify(heap)
    texts: dict[str, str] = {}
    shown = _Shown()
    while heap:
        low, chunk_id, counted, value, hit, parts = heapq.heappop(heap)
        # Repeated where a section or a file is included on several pages.
        if texts.setdefault(hit.chunk.text, chunk_id) != chunk_id:
            continue
        times = shown.like(hit)
        left = max(0.0, value - again * times)
        # At zero it can be pushed back no further.
        if counted < times and left < -low:
            heapq.heappush(heap, (-left, chunk_id, times, value, hit, parts))
        else:
            shown.add(hit)
            yield Ranked(hit, left, {**parts, "again": left - value} if left < value else parts)


def with_sides(candidates: Sequence[Candidate], sides: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates of a comparison behind those that say what its sides are, with the score of the first."""
    if not candidates or not sides:
        return list(candidates)
    ahead = {section(side.chunk): _with_score(side, candidates[0].score) for side in sides}
    return [*ahead.values(), *(c for c in candidates if section(c.chunk) not in ahead)]


def _with_score(side: Candidate, score: float) -> Candidate:
    return side._replace(score=score, components={**side.components, "side": score - side.score})


def section(chunk: Chunk) -> SectionKey:
    """Return what all chunks of one section have in common, and no others."""
    return chunk.url, chunk.heading_path


class _Shown:
    """The hits in the order so far."""

    def __init__(self) -> None:
        self._sections: defaultdict[SectionKey, int] = defaultdict(int)
        self._hits: list[Hit] = []
        self._by_sample: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)

    def like(self, hit: Hit) -> int:
        """Return how many are of one section with it, or nearly the same text."""
        of_section = self._sections.get(section(hit.chunk), 0)
        others = self._find_alike(hit)
        if not others:
            return of_section
        terms = frozenset(hit.lexical.indices)
        alike = (True for other in others if _alike(terms, self._hits[other].lexical.indices))
        return max(of_section, sum(islice(alike, _ENOUGH)))

    def add(self, hit: Hit) -> None:
        self._sections[section(hit.chunk)] += 1
        for some in _samples(hit):
            self._by_sample[some].append(len(self._hits))
        self._hits.append(hit)

    def _find_alike(self, hit: Hit) -> set[int]:
        """Return which of those shown share so much of their sample that they may be alike."""
        return {other for some in _samples(hit) for other in self._by_sample.get(some, ())}


def _samples(hit: Hit) -> Iterable[tuple[int, ...]]:
    """Return each choice of terms of a text's sample that one alike has too; none of what is too short to compare."""
    indices = hit.lexical.indices
    return combinations(indices[:_SKETCH], _SHARED) if len(indices) >= _LONG else ()


def _alike(a: frozenset[int], b: Sequence[int]) -> bool:
    """Whether the terms of two long texts are nearly the same (Jaccard); those of each are distinct."""
    # What is much shorter can't be, and need not be compared.
    if len(a) < _SAME * len(b) or len(b) < _SAME * len(a):
        return False
    # Few terms may differ, so the first terms tell most texts apart.
    needed = _SAME * (len(a) + len(b)) / (1 + _SAME) - 1
    shared = len(b)
    for term in b:
        if term not in a:
            shared -= 1
            if shared < needed:
                return False
    return shared >= _SAME * (len(a) + len(b) - shared)


def _pages(hits: Iterable[Hit], values: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return for each page how much of it was found, 1 for the most: a page about the subject beats a mention."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for hit in hits:
        found[hit.chunk.source_file_path].append(values[hit.chunk.chunk_id]["fused"])
    sums = {
        path: sum(v / 2**n for n, v in enumerate(sorted(of_page, reverse=True)[:_PAGE_HITS]))
        for path, of_page in found.items()
    }
    most = max(sums.values(), default=0.0) or 1.0
    return {path: value / most for path, value in sums.items()}


def _over(scores: Mapping[str, float], low: float) -> dict[str, float]:
    """Return scores scaled so that `low` is 0 and the greatest 1."""
    high = max(scores.values(), default=low)
    return {i: (score - low) / (high - low) if high > low else float(score > 0) for i, score in scores.items()}
