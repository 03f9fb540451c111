"""Ranks the hits of both searches.

A hit's score is the weighted sum of its lexical and dense scores, each scaled to 0..1, plus the weighted features of
its place and wording. Ties are broken by chunk id. The weights were chosen on one public question set (ray-v1, 145
questions) and on our own documentation (152), whose pages are few and long. `benchmarks/heuristics.py` says what each
wins on sites that it was not chosen on; `benchmarks/README.md` reports other sets, and what was tried and not taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from chapterverse.model import Chunk
from chapterverse.store import Hit
from chapterverse_api.index.addresses import page_of
from chapterverse_api.retrieval.candidates import Candidate
from chapterverse_api.retrieval.features import QueryFeatures

#: What each feature adds to the fused value, which is 1 for the best hit.
WEIGHTS = {"title": 0.1, "heading": 0.15, "here": 0.1, "defines": 0.3, "kind": -0.15}
#: The most that a value can reach, by which scores are brought to 0..1.
_MAX_SUM = 1 + sum(w for w in WEIGHTS.values() if w > 0)

#: The address and the heading path that all chunks of one section have in common.
SectionKey: TypeAlias = tuple[str, tuple[str, ...]]


class Ranked(NamedTuple):
    """A hit with the score that orders it.

    Attributes:
        score: 0 to 1, never rising from one to the next; it orders, and is no measure of how good a hit is.
        components: the parts of the score.
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
    scores: Mapping[str, Mapping[str, float]],
    features: Mapping[str, QueryFeatures],
    current_page: str,
) -> list[Ranked]:
    """Return the hits best first, ties by chunk id; of several with one text only the best.

    Args:
        hits: by chunk id.
        scores: the scores that `fuse` returned.
        features: the question in each language that hits are in.
        current_page: the page that the reader is on, as `addresses.page_of` names it; empty if that is not known.
    """
    ranked = []
    for chunk_id, hit in hits.items():
        chunk = hit.chunk
        parts = {
            **scores[chunk_id],
            "here": float(bool(current_page) and page_of(chunk.url) == current_page),
            **features[chunk.language].features(chunk),
        }
        bonus = 0.0
        for name, weight in WEIGHTS.items():
            bonus += weight * parts[name]
        ranked.append(Ranked(hit, max(0.0, parts["fused"] + bonus) / _MAX_SUM, parts))
    best = dict[str, Ranked]()
    for one in sorted(ranked, key=lambda one: (-one.score, one.hit.chunk.chunk_id)):
        # A section or a file may be included on several pages.
        best.setdefault(one.hit.chunk.text, one)
    return list(best.values())


def contributions(components: Mapping[str, float]) -> dict[str, float]:
    """Return what each component adds to a score of 0 to 1, without those that add nothing.

    The rest of the score is what a reranker, a memory or a second search made of it.
    """
    added = {"fused": components.get("fused", 0.0) / _MAX_SUM}
    added |= {name: weight * components.get(name, 0.0) / _MAX_SUM for name, weight in WEIGHTS.items()}
    added["side"] = components.get("side", 0.0)
    return {name: value for name, value in added.items() if value}


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


def _scale(scores: Mapping[str, float], low: float) -> dict[str, float]:
    """Return scores scaled so that `low` is 0 and the greatest 1."""
    high = max(scores.values(), default=low)
    return {i: (score - low) / (high - low) if high > low else float(score > 0) for i, score in scores.items()}
