"""Finds the hits of the lexical and the dense side, and ranks them. The order is the same on every store.

The words are searched for with what documentation has for them (`text.thesaurus`). A synonym is worth a share of its
idf, and at most that share of the rarest word that it stands for. Else a rare synonym of a frequent word would decide
the order. Of shares from .2 to .75, .5 found most on nine sites of software, .2 to .3 on public questions about Ray and
in conversations about finance and government, whose words are others. What stands for several words at once is less
often wrong: with .45 to .6 for it nothing was lost there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Self

from chapterverse.calibration import Calibration, Matching, WeightedQuestion, match_word, read_question
from chapterverse.filters import FilterTree, In, all_of, resolve
from chapterverse.model import SparseVector
from chapterverse.store import Hit, Snapshot
from chapterverse.text import lexical
from chapterverse_api.search import ranking
from chapterverse_api.search.frames import QuestionFrame, drop_details, lower_kinds, read_frame
from chapterverse_api.search.ranking import Candidate, QueryFeatures

#: Candidates of each side before fusion; with 100 the order of the first five got no better.
_MAX_CANDIDATES = 50
#: Beginnings of pages that a search for a definition adds.
_MAX_OPENINGS = 20
#: What a synonym counts of a word of the question, and of several words.
SHARE, _PHRASE_SHARE = 0.3, 0.5


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """What is searched for.

    Attributes:
        idf: of each term of the question itself.
        values: what each term adds to a score, of the question and of its synonyms.
        vector: what the store multiplies by the idf.
    """

    idf: Mapping[int, float]
    values: Mapping[int, float]
    vector: SparseVector

    @classmethod
    def with_synonyms(cls, question: WeightedQuestion, idf: Mapping[int, float], vector: SparseVector) -> Self:
        """Return the terms of a question and of its synonyms.

        Args:
            idf: the idf of the question's own terms.
            vector: the word weights of the question's own terms.
        """
        weights = dict(zip(vector.indices, vector.values, strict=True))
        values = dict(idf)
        for synonym in question.synonyms:
            share = _PHRASE_SHARE if len(synonym.word_indices) > 1 else SHARE
            weight = share * min(1.0, synonym.max_weight / synonym.idf)
            if weight > weights.get(synonym.term, 0.0):
                weights[synonym.term], values[synonym.term] = weight, weight * synonym.idf
        terms = sorted(weights)
        return cls(idf, values, SparseVector(tuple(terms), tuple(weights[term] for term in terms)))

    @property
    def synonyms(self) -> frozenset[int]:
        """The terms that only synonyms have."""
        return frozenset(self.values.keys() - self.idf.keys())


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
        terms = SearchTerms.with_synonyms(question, idf, lexical.query_vector(self.subject, self.languages))
        narrowed = resolve(filters, snapshot)
        by_words = list(snapshot.search_lexical(terms.vector, _MAX_CANDIDATES, narrowed))
        if self.defines:
            # The name of the site's subject is on every page, so the page that defines it could be missed.
            openings = resolve(all_of(filters, In("chunk_index", (0,))), snapshot)
            by_words += snapshot.search_lexical(terms.vector, _MAX_OPENINGS, openings)
        by_meaning = snapshot.search_dense(vector, _MAX_CANDIDATES, narrowed) if vector is not None else []
        hits = {hit.chunk.chunk_id: hit for hit in (*by_meaning, *by_words)}
        return HybridHits(self, question, terms, hits, by_meaning)

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
        by_id: all hits, by chunk id.
        by_meaning: the hits of the dense side with their cosines, best first.
    """

    wording: Wording
    question: WeightedQuestion
    terms: SearchTerms
    by_id: Mapping[str, Hit]
    by_meaning: Sequence[Hit]

    def rank_hits(self, dense_weight: float, page: str = "") -> list[Candidate]:
        """Return the hits best first.

        Args:
            dense_weight: share of the dense side in the fusion.
            page: the page that the reader is on.
        """
        weights = {chunk_id: hit.lexical.among(self.terms.values) for chunk_id, hit in self.by_id.items()}
        fused = ranking.fuse(weights, self.terms.values, self.by_meaning, dense_weight)
        subject = self.wording.subject
        features = {
            language: QueryFeatures(
                subject,
                language,
                defined_subject=subject if self.wording.defines else "",
                lower_kinds=self.wording.lower,
                synonyms=self.terms.synonyms,
            )
            for language in {hit.chunk.language for hit in self.by_id.values()}
        }
        return ranking.rank(self.by_id, fused, features, page)

    def without_details(self, ranked: Sequence[Candidate], snapshot: Snapshot) -> HybridHits:
        """Return the hits for the question without those details of a log line that the first one does not hold."""
        held = frozenset(ranked[0].lexical.indices) if ranked else frozenset[int]()
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
        idf = self.terms.idf
        matching = Matching(self.question, idf) if self.question.has_words else None
        candidates = []
        for c in ranked:
            cosine, title = cosines.get(c.chunk.chunk_id), titles.pop(c.chunk.source_file_path, 0.0)
            bound = lowest if cosine is None else cosine
            features = matching.features(c.lexical.among(idf), bound, title) if matching else None
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
