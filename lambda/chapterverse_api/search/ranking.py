"""Ranks the hits of both searches.

A hit's score is the weighted sum of its lexical and dense scores, each scaled to 0..1, plus the weighted features of
its place and wording. Ties are broken by chunk id. The weights were chosen on one public question set (ray-v1, 145
questions) and on our own documentation (152), whose pages are few and long. `benchmarks/heuristics.py` says what each
wins on sites that it was not chosen on; `benchmarks/README.md` reports other sets, and what was tried and not taken.

    title    share of the page title's words that the question holds
    heading  share of the nearest heading's words that it holds
    here     1 for the page that the reader is on, else 0
    defines  1 if the heading is the subject that the question wants defined, or a sentence defines it, else 0
    kind     1 for a kind of page that the question does not ask for, else 0

A question probably asks for a heading whose words it all holds, and not for a long one of which it holds some. So the
share is of the heading's words and not of the question's.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from chapterverse.calibration import ChunkFeatures
from chapterverse.model import Chunk, SparseVector
from chapterverse.store import Hit
from chapterverse.text import lexical
from chapterverse_api.draft.requests import PassageReading
from chapterverse_api.index.site_index import page_of
from chapterverse_api.search.frames import find_definitions

#: What each feature adds to the fused value, which is 1 for the best hit.
RANK_WEIGHTS = {"title": 0.1, "heading": 0.15, "here": 0.1, "defines": 0.3, "kind": -0.15}
#: The most that a value can reach, by which scores are brought to 0..1.
_MAX_SUM = 1 + sum(w for w in RANK_WEIGHTS.values() if w > 0)

#: The address and the heading path that all chunks of one section have in common.
SectionKey: TypeAlias = tuple[str, tuple[str, ...]]
#: Separators of the names in a heading: "Class: Pool", "Server (blackd)"; and what follows the name of a function.
_NAME_ENDS = re.compile(r":\s|\s\(|\)")
_SIGNATURE = re.compile(r"(?<=[^\s(])\(.*")


class Candidate(NamedTuple):
    """A search result: a chunk, its ranking score, its calibrated evidence (0 to 1) and the parts of both.

    Attributes:
        score: 0 to 1, never rising from one to the next; it orders, and is no measure of how good a result is.
        components: the parts of the score.
        features: the features of the evidence; None if the question has no words, or before it is computed.
        reading: what the reading model makes of it; None if it was not read.
    """

    chunk: Chunk
    lexical: SparseVector
    score: float
    evidence: float
    components: Mapping[str, float]
    features: ChunkFeatures | None = None
    reading: PassageReading | None = None


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
) -> list[Candidate]:
    """Return the hits best first, without evidence, ties by chunk id; of several with one text only the best.

    Args:
        hits: by chunk id.
        scores: the scores that `fuse` returned.
        features: the question in each language that hits are in.
        current_page: the page that the reader is on, as `site_index.page_of` names it; empty if that is not known.
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
        for name, weight in RANK_WEIGHTS.items():
            bonus += weight * parts[name]
        score = max(0.0, parts["fused"] + bonus) / _MAX_SUM
        ranked.append(Candidate(chunk, hit.lexical, score, 0.0, parts))
    return once_a_text(ranked)


def once_a_text(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates best first, and of those with one text only the best.

    A section or a file may be included on several pages.
    """
    best = dict[str, Candidate]()
    for candidate in sorted(candidates, key=lambda c: (-c.score, c.chunk.chunk_id)):
        best.setdefault(candidate.chunk.text, candidate)
    return list(best.values())


def contributions(components: Mapping[str, float]) -> dict[str, float]:
    """Return what each component adds to a score of 0 to 1, without those that add nothing.

    The rest of the score is what a reranker, a memory or a second search made of it.
    """
    added = {"fused": components.get("fused", 0.0) / _MAX_SUM}
    added |= {name: weight * components.get(name, 0.0) / _MAX_SUM for name, weight in RANK_WEIGHTS.items()}
    added["side"] = components.get("side", 0.0)
    return {name: value for name, value in added.items() if value}


def with_sides(candidates: Sequence[Candidate], sides: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates of a comparison behind those that define its sides, which get the score of the first."""
    if not candidates or not sides:
        return list(candidates)
    first = candidates[0].score
    ahead = {
        section(side.chunk): side._replace(score=first, components={**side.components, "side": first - side.score})
        for side in sides
    }
    return [*ahead.values(), *(c for c in candidates if section(c.chunk) not in ahead)]


def section(chunk: Chunk) -> SectionKey:
    """Return what all chunks of one section have in common, and no others."""
    return chunk.url, chunk.heading_path


def _scale(scores: Mapping[str, float], low: float) -> dict[str, float]:
    """Return scores scaled so that `low` is 0 and the greatest 1."""
    high = max(scores.values(), default=low)
    return {i: (score - low) / (high - low) if high > low else float(score > 0) for i, score in scores.items()}
