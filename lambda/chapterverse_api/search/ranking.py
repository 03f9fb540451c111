"""Finds the hits of the lexical and the dense side, and ranks them. The order is the same on every store.

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

The words are searched for with what documentation has for them (`text.thesaurus`). A synonym is worth a share of its
idf, and at most that share of the rarest word that it stands for. Else a rare synonym of a frequent word would decide
the order. Of shares from .2 to .75, .5 found most on nine sites of software, .2 to .3 on public questions about Ray and
in conversations about finance and government, whose words are others. What stands for several words at once is less
often wrong: with .45 to .6 for it nothing was lost there.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from chapterverse.calibration import Calibration, ChunkFeatures, Matching, WeightedQuestion, match_word, read_question
from chapterverse.extensions import load_part
from chapterverse.filters import FilterTree, In, all_of, resolve
from chapterverse.model import MEMORY, Chunk, SparseVector
from chapterverse.store import Hit, Snapshot
from chapterverse.text import lexical
from chapterverse_api.draft.requests import PassageReading
from chapterverse_api.index.site_index import page_of
from chapterverse_api.search.question import QuestionFrame, drop_details, find_definitions, lower_kinds, read_frame

#: Candidates of each side before fusion, with 100 the order of the first five got no better; and beginnings of pages
#: that a search for a definition adds.
_MAX_CANDIDATES, _MAX_OPENINGS = 50, 20
#: What a synonym counts of a word of the question, and of several words.
SHARE, _PHRASE_SHARE = 0.3, 0.5
#: What each feature adds to the fused value, which is 1 for the best hit.
RANK_WEIGHTS = {"title": 0.1, "heading": 0.15, "here": 0.1, "defines": 0.3, "kind": -0.15}
#: The most that a value can reach, by which scores are brought to 0..1.
MAX_SUM = 1 + sum(w for w in RANK_WEIGHTS.values() if w > 0)

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
        hits, scores: by chunk id; the scores are those that `fuse` returned.
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
        score = max(0.0, parts["fused"] + bonus) / MAX_SUM
        ranked.append(Candidate(chunk, hit.lexical, score, 0.0, parts))
    return once_a_text(ranked)


def once_a_text(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates best first, each text once, as a section or a file may be included on several pages."""
    best = dict[str, Candidate]()
    for candidate in sorted(candidates, key=lambda c: (-c.score, c.chunk.chunk_id)):
        best.setdefault(candidate.chunk.text, candidate)
    return list(best.values())


def with_sides(candidates: Sequence[Candidate], sides: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates of a comparison behind those that define its sides, which get the score of the first."""
    if not candidates or not sides:
        return list(candidates)
    first = candidates[0].score
    ahead = {
        section_key(side.chunk): side._replace(score=first, components={**side.components, "side": first - side.score})
        for side in sides
    }
    return [*ahead.values(), *(c for c in candidates if section_key(c.chunk) not in ahead)]


def weigh_memories(candidates: list[Candidate]) -> list[Candidate]:
    """Return the candidates as the room of memories orders them, if there is one among them."""
    has_memories = any(candidate.chunk.type == MEMORY for candidate in candidates)
    weighed: list[Candidate] = load_part("weigh_memories")(candidates) if has_memories else candidates
    return weighed


def section_key(chunk: Chunk) -> SectionKey:
    """Return what all chunks of one section have in common, and no others."""
    return chunk.url, chunk.heading_path


def _scale(scores: Mapping[str, float], low: float) -> dict[str, float]:
    """Return scores scaled so that `low` is 0 and the greatest 1."""
    high = max(scores.values(), default=low)
    return {i: (score - low) / (high - low) if high > low else float(score > 0) for i, score in scores.items()}


def add_synonyms(
    question: WeightedQuestion, idf: Mapping[int, float], vector: SparseVector
) -> tuple[dict[int, float], SparseVector]:
    """Return what each term of a question and its synonyms adds to a score, and what the store multiplies by the idf.

    Args:
        idf, vector: the idf and the word weights of the question's own terms.
    """
    values, weights = dict(idf), dict(zip(vector.indices, vector.values, strict=True))
    for synonym in question.synonyms:
        share = _PHRASE_SHARE if len(synonym.word_indices) > 1 else SHARE
        weight = share * min(1.0, synonym.max_weight / synonym.idf)
        if weight > weights.get(synonym.term, 0.0):
            weights[synonym.term], values[synonym.term] = weight, weight * synonym.idf
    terms = sorted(weights)
    return values, SparseVector(tuple(terms), tuple(weights[term] for term in terms))


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a question, as the index is searched for them.

    Attributes:
        corrected: the question with its typing mistakes corrected.
        frame: the kind of the question, if that changes the search.
        languages: the languages of the index.
        lower: the content types that the question does not ask for.
    """

    corrected: str
    frame: QuestionFrame | None
    languages: tuple[str, ...]
    lower: AbstractSet[str]

    @classmethod
    def read(cls, corrected: str, languages: tuple[str, ...]) -> Wording:
        return cls(corrected, read_frame(corrected, languages), languages, lower_kinds(corrected, languages))

    @property
    def compares(self) -> bool:
        """Whether the question asks for a comparison."""
        return self.frame is not None and self.frame.kind == "comparison"

    @property
    def defines(self) -> bool:
        """Whether the question asks what something is."""
        return self.frame is not None and self.frame.kind != "comparison"

    @property
    def subject(self) -> str:
        """The subject of a definition; else the whole question."""
        return self.frame.text if self.frame and self.defines else self.corrected

    def find(self, snapshot: Snapshot, filters: FilterTree | None, vector: Sequence[float] | None) -> HybridHits:
        """Return the hits by words, and by a dense vector if there is one."""
        question, idf = read_question(self.subject, self.languages, snapshot)
        if self.frame and self.frame.kind == "definition":
            # What is defined is a name: other words for it are other things.
            question = replace(question, synonyms=())
        values, terms = add_synonyms(question, idf, lexical.query_vector(self.subject, self.languages))
        narrowed = resolve(filters, snapshot)
        by_words = list(snapshot.search_lexical(terms, _MAX_CANDIDATES, narrowed))
        if self.defines:
            # The name of the site's subject is on every page, so the page that defines it could be missed.
            openings = resolve(all_of(filters, In("chunk_index", (0,))), snapshot)
            by_words += snapshot.search_lexical(terms, _MAX_OPENINGS, openings)
        by_meaning = snapshot.search_dense(vector, _MAX_CANDIDATES, narrowed) if vector is not None else []
        hits = {hit.chunk.chunk_id: hit for hit in (*by_meaning, *by_words)}
        weights = {chunk_id: hit.lexical.among(values) for chunk_id, hit in hits.items()}
        return HybridHits(self, question, idf, values, hits, weights, by_meaning)

    def sides(self, snapshot: Snapshot, filters: FilterTree | None) -> list[Candidate]:
        """Return the chunks that say what the sides of a comparison are; none for any other question."""
        if not self.frame or not self.compares:
            return []
        each = [
            replace(self, corrected=side, frame=QuestionFrame("definition", (side,))) for side in self.frame.subjects
        ]
        ranked = [side.find(snapshot, filters, None).rank_hits(0.0) for side in each]
        return _one_of_each([[r for r in of_side if r.components["defines"]] for of_side in ranked])


@dataclass(frozen=True, slots=True)
class HybridHits:
    """The hits of both sides.

    Attributes:
        question: the words that were searched for, weighted by the index.
        idf: of each term of the question itself.
        values: what each term adds to a score, those of synonyms included.
        by_id, weights: all hits, and the weights of these terms in each, by chunk id.
        by_meaning: the hits of the dense side with their cosines, best first.
    """

    wording: Wording
    question: WeightedQuestion
    idf: Mapping[int, float]
    values: Mapping[int, float]
    by_id: Mapping[str, Hit]
    weights: Mapping[str, Mapping[int, float]]
    by_meaning: Sequence[Hit]

    def rank_hits(self, dense_weight: float, page: str = "") -> list[Candidate]:
        """Return the hits best first; see `fuse` and `rank`."""
        fused = fuse(self.weights, self.values, self.by_meaning, dense_weight)
        subject = self.wording.subject
        features = {
            language: QueryFeatures(
                subject,
                language,
                defined_subject=subject if self.wording.defines else "",
                lower_kinds=self.wording.lower,
                synonyms=self.values.keys() - self.idf.keys(),
            )
            for language in {hit.chunk.language for hit in self.by_id.values()}
        }
        return rank(self.by_id, fused, features, page)

    def without_details(self, ranked: Sequence[Candidate], snapshot: Snapshot) -> HybridHits:
        """Return the hits for the question without those details of a log line that the first one does not hold."""
        held = ranked[0].lexical.indices if ranked else ()
        languages, subject = self.wording.languages, self.wording.subject

        def keep(detail: str) -> str:
            words = lexical.question_words(detail, languages)
            return " ".join(dict.fromkeys(word.surface for word in words if match_word((word.terms,), held)))

        text = drop_details(subject, keep)
        question = self.question if text == subject else read_question(text, languages, snapshot)[0]
        return replace(self, question=question) if question.has_words else self

    def candidates(self, ranked: Sequence[Candidate], calibration: Calibration) -> list[Candidate]:
        """Return ranked hits with the evidence that they are about the question's subject."""
        cosines = {h.chunk.chunk_id: h.score for h in self.by_meaning}
        # A chunk that is not among the nearest has at most the cosine of the last of them.
        lowest = min(cosines.values(), default=None)
        # A title is evidence for the best chunk of its page only; the others need words of their own.
        titles = {r.chunk.source_file_path: r.components["title"] for r in ranked}
        matching = Matching(self.question, self.idf) if self.question.has_words else None
        candidates = []
        for c in ranked:
            cosine, title = cosines.get(c.chunk.chunk_id), titles.pop(c.chunk.source_file_path, 0.0)
            bound = lowest if cosine is None else cosine
            # The definition of a side may be no hit.
            weights = self.weights.get(c.chunk.chunk_id) or c.lexical.among(self.idf)
            features = matching.features(weights, bound, title) if matching else None
            components = c.components if cosine is None else {**c.components, "cosine": cosine}
            evidence = calibration.of(features) if features else 0.0
            candidates.append(c._replace(evidence=evidence, components=components, features=features))
        return candidates


def _one_of_each(sides: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Return the best chunk of each side, of one page if one has all of them; none if a side has none."""
    if not all(sides):
        return []
    best: dict[str, list[Candidate]] = {}
    for side in sides:
        of_pages = {r.chunk.source_file_path: r for r in reversed(side)}
        for path, ranked in of_pages.items():
            best.setdefault(path, []).append(ranked)
    pages = [of_page for of_page in best.values() if len(of_page) == len(sides)]
    return max(pages, key=lambda of_page: sum(r.score for r in of_page), default=[side[0] for side in sides])
