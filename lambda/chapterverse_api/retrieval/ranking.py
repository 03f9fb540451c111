"""Ranks the hits of both searches.

A hit's score is the weighted sum of its lexical and dense scores, each scaled to 0..1, plus the weighted features of
its page, place and wording. A hit that nearly repeats an earlier one is moved back. Ties are broken by chunk id. The
weights were chosen on one public question set (ray-v1, 145 questions) and on our own documentation (152), whose pages
are few and long. `benchmarks/README.md` reports other sets, and what was tried and not taken.
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
#: What a chunk loses for each earlier one that is like it. This is maximal marginal relevance (Carbonell & Goldstein,
#: 1998), with the chunks of one section as alike. Five results then show more than one section's neighbors.
REDUNDANCY_PENALTY = 0.33
#: Hits of a page that count for it, each half as much as the one before.
_PAGE_HITS = 4
#: Texts with this Jaccard index of their terms are alike too. They say the same of another version or system.
_MIN_JACCARD = 0.9
#: Terms in the sketch of a text: those with the smallest hashes (bottom-k sketch; Broder, 1997).
_SKETCH_TERMS = 4
#: Terms that the sketches of two texts that are alike nearly always share; texts that share fewer are not compared.
_MIN_SKETCH_OVERLAP = 3
#: Earlier hits that are counted: so many bring any value to zero.
_MAX_ALIKE = math.ceil(_MAX_SUM / REDUNDANCY_PENALTY)
#: Texts of fewer terms are not compared, because each of their words may make a difference.
_MIN_TERMS = 32

#: The address and the heading path that all chunks of one section have in common.
SectionKey: TypeAlias = tuple[str, tuple[str, ...]]


class Ranked(NamedTuple):
    """A hit with the score that orders it.

    Attributes:
        score: 0 to 1, never rising from one to the next; it orders, and is no measure of how good a hit is.
        components: the parts of the score; `again` is the penalty for earlier hits that are like it.
    """

    hit: Hit
    score: float
    components: Mapping[str, float]


def fuse(
    term_weights: Mapping[str, Mapping[int, float]], idf: Mapping[int, float], by_meaning: Sequence[Hit], weight: float
) -> dict[str, dict[str, float]]:
    """Return for each chunk id `lexical`, `dense` and `fused`, each 0 to 1.

    The lexical score is computed for every hit, also for those of the dense side, and scaled from 0. The cosines are
    scaled from the lowest of them, because their zero means nothing.

    Args:
        term_weights: for each hit, by chunk id, the weights of the question's terms that it holds.
        idf: the idf of each term of the question.
        by_meaning: the hits of the dense side, with their cosines.
        weight: share of the dense side.
    """
    words = _scale({i: sum(w * idf[t] for t, w in weights.items()) for i, weights in term_weights.items()}, low=0.0)
    meaning = {h.chunk.chunk_id: h.score for h in by_meaning}
    meaning = _scale(meaning, low=min(meaning.values(), default=0.0))
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
    current_page: str,
) -> list[Ranked]:
    """Return the hits best first, ties by chunk id; of several with one text only the best.

    Args:
        hits: by chunk id.
        term_weights: the weights that `fuse` got.
        scores: the scores that `fuse` returned.
        features: the question in each language that hits are in.
        current_page: the page that the reader is on, as `addresses.page_of` names it; empty if that is not known.
    """
    pages = _pages(hits.values(), scores)
    values = []
    for chunk_id, hit in hits.items():
        chunk = hit.chunk
        parts = {
            **scores[chunk_id],
            "page": pages[chunk.source_file_path],
            "here": float(bool(current_page) and page_of(chunk.url) == current_page),
            **features[chunk.language].features(chunk, term_weights[chunk_id].keys()),
        }
        bonus = 0.0
        for name, weight in WEIGHTS.items():
            bonus += weight * parts[name]
        values.append((max(0.0, parts["fused"] + bonus) / _MAX_SUM, hit, parts))
    return list(diversify(values))


def contributions(components: Mapping[str, float]) -> dict[str, float]:
    """Return what each component adds to a score of 0 to 1, without those that add nothing.

    The rest of the score is what a reranker, a memory or a second search made of it.
    """
    added = {"fused": components.get("fused", 0.0) / _MAX_SUM}
    added |= {name: weight * components.get(name, 0.0) / _MAX_SUM for name, weight in WEIGHTS.items()}
    added |= {name: components.get(name, 0.0) for name in ("again", "side")}
    return {name: value for name, value in added.items() if value}


def diversify(
    hits: Iterable[tuple[float, Hit, Mapping[str, float]]], penalty: float = REDUNDANCY_PENALTY / _MAX_SUM
) -> Iterator[Ranked]:
    """Yield the hits best first, each text once; a hit that nearly repeats an earlier one is moved back.

    Args:
        hits: the value of each, 0 to 1, the hit, and the components of its value.
        penalty: what a hit loses for each earlier one that is like it.
    """
    heap = [(-value, hit.chunk.chunk_id, 0, value, hit, parts) for value, hit, parts in hits]
    heapq.heapify(heap)
    texts: dict[str, str] = {}
    earlier_hits = _EarlierHits()
    while heap:
        low, chunk_id, counted, value, hit, parts = heapq.heappop(heap)
        # A section or a file may be included on several pages.
        if texts.setdefault(hit.chunk.text, chunk_id) != chunk_id:
            continue
        times = earlier_hits.like(hit)
        score = max(0.0, value - penalty * times)
        # At zero it can be pushed back no further.
        if counted < times and score < -low:
            heapq.heappush(heap, (-score, chunk_id, times, value, hit, parts))
        else:
            earlier_hits.add(hit)
            yield Ranked(hit, score, {**parts, "again": score - value} if score < value else parts)


def with_sides(candidates: Sequence[Candidate], sides: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates of a comparison behind those that define its sides, which get the score of the first."""
    if not candidates or not sides:
        return list(candidates)
    ahead = {section(side.chunk): _with_score(side, candidates[0].score) for side in sides}
    return [*ahead.values(), *(c for c in candidates if section(c.chunk) not in ahead)]


def _with_score(side: Candidate, score: float) -> Candidate:
    return side._replace(score=score, components={**side.components, "side": score - side.score})


def section(chunk: Chunk) -> SectionKey:
    """Return what all chunks of one section have in common, and no others."""
    return chunk.url, chunk.heading_path


class _EarlierHits:
    """The hits that rank earlier."""

    def __init__(self) -> None:
        self._sections: defaultdict[SectionKey, int] = defaultdict(int)
        self._hits: list[Hit] = []
        self._by_sample: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)

    def like(self, hit: Hit) -> int:
        """Return how many earlier hits are of the hit's section, or have nearly its text; the larger number."""
        of_section = self._sections.get(section(hit.chunk), 0)
        places = self._find_alike(hit)
        if not places:
            return of_section
        terms = frozenset(hit.lexical.indices)
        alike = (True for place in places if _alike(terms, self._hits[place].lexical.indices))
        return max(of_section, sum(islice(alike, _MAX_ALIKE)))

    def add(self, hit: Hit) -> None:
        self._sections[section(hit.chunk)] += 1
        for sample in _samples(hit):
            self._by_sample[sample].append(len(self._hits))
        self._hits.append(hit)

    def _find_alike(self, hit: Hit) -> set[int]:
        """Return the places of the earlier hits that share so much of their sketch that they may be alike."""
        return {place for sample in _samples(hit) for place in self._by_sample.get(sample, ())}


def _samples(hit: Hit) -> Iterable[tuple[int, ...]]:
    """Return each sample of a text's sketch that a text like it may share; none if the text is too short to compare."""
    indices = hit.lexical.indices
    return combinations(indices[:_SKETCH_TERMS], _MIN_SKETCH_OVERLAP) if len(indices) >= _MIN_TERMS else ()


def _alike(a: frozenset[int], b: Sequence[int]) -> bool:
    """Whether the terms of two long texts are nearly the same (Jaccard); those of each are distinct."""
    # What is much shorter can't be, and need not be compared.
    if len(a) < _MIN_JACCARD * len(b) or len(b) < _MIN_JACCARD * len(a):
        return False
    # Few terms may differ, so the first terms tell most texts apart.
    needed = _MIN_JACCARD * (len(a) + len(b)) / (1 + _MIN_JACCARD) - 1
    shared = len(b)
    for term in b:
        if term not in a:
            shared -= 1
            if shared < needed:
                return False
    return shared >= _MIN_JACCARD * (len(a) + len(b) - shared)


def _pages(hits: Iterable[Hit], values: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return for each page how much of it was found, 1 for the most: a page about the subject beats a mention."""
    values_by_page: defaultdict[str, list[float]] = defaultdict(list)
    for hit in hits:
        values_by_page[hit.chunk.source_file_path].append(values[hit.chunk.chunk_id]["fused"])
    sums = {
        path: sum(v / 2**n for n, v in enumerate(sorted(of_page, reverse=True)[:_PAGE_HITS]))
        for path, of_page in values_by_page.items()
    }
    most = max(sums.values(), default=0.0) or 1.0
    return {path: value / most for path, value in sums.items()}


def _scale(scores: Mapping[str, float], low: float) -> dict[str, float]:
    """Return scores scaled so that `low` is 0 and the greatest 1."""
    high = max(scores.values(), default=low)
    return {i: (score - low) / (high - low) if high > low else float(score > 0) for i, score in scores.items()}
