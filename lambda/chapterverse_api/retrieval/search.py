"""Searches one generation: both sides, fusion, ranking, evidence. The order is the same on every store.

A rank only orders: there is always a first one. The evidence of a chunk, calibrated for the index, is the probability
that it is about the question's subject.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime

from chapterverse.calibration import Calibration, Matching, Question, read_question
from chapterverse.embedding import Embedder
from chapterverse.errors import InputError, ProviderError
from chapterverse.filters import Asked, In, all_of, resolve
from chapterverse.net.retry import observing_retries
from chapterverse.store import Hit, Snapshot
from chapterverse.text import lexical
from chapterverse_api.observability.query_state import QueryProgress
from chapterverse_api.retrieval import memories, ranking
from chapterverse_api.retrieval.answerability import (
    NONE,
    Answerability,
    Verdict,
    answer_features,
    answerability,
    verdict,
)
from chapterverse_api.retrieval.candidates import Candidate as Candidate
from chapterverse_api.retrieval.expansion import SearchTerms
from chapterverse_api.retrieval.features import QueryFeatures
from chapterverse_api.retrieval.frames import Frame, frame_of, lower_kinds
from chapterverse_api.retrieval.ranking import Ranked
from chapterverse_api.retrieval.rerankers.protocols import Reranker
from chapterverse_api.retrieval.spelling import correct

#: Candidates of each side before fusion; with 100 the order of the first five got no better.
CANDIDATES = 50
#: Beginnings of pages that a search for a definition adds.
OPENINGS = 20
#: Largest component of a vector: squares of more, added up, would leave the range of 32-bit numbers.
_LARGEST = 1e15
#: Share of the best rank from which a chunk is a source without evidence of its own.
RELATED = 0.6
#: Chunks of a result that is only perhaps an answer.
UNSURE = 3
LEXICAL_ALGORITHM = "bm25-code-aware + structure"
HYBRID_ALGORITHM = "bm25-code-aware + dense, min-max linear + structure"
#: The reader's message where a part failed.
_WITHOUT = {
    "embedder": "The embedder could not be reached; only words were searched.",
    "reranker": "The reranker could not be reached; the order is that of the search.",
}


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The result of a search.

    Attributes:
        candidates: best first, each text once.
        total: how many chunks were considered.
        failures: the errors of parts that failed, by the part: `embedder`, `reranker`.
        timings: seconds by stage: `embed`, `search`, `rank`, `weigh`, `rerank`.
        vector: of the question, for a second search.
        searched: the question with its typing mistakes corrected.
        subject: what of that was searched for by words: of a question for a definition only what is defined.
        answerability: how likely there is an answer (see `answerability`).
        sides: ids of the chunks that say what the sides of a comparison are.
    """

    candidates: tuple[Candidate, ...]
    question: Question
    calibration: Calibration
    total: int
    algorithm: str
    failures: Mapping[str, ProviderError] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    vector: Sequence[float] | None = None
    searched: str = ""
    subject: str = ""
    answerability: Answerability = NONE
    sides: frozenset[str] = frozenset()

    @property
    def degraded(self) -> str | None:
        """Why not all went as configured; None if it did."""
        return " ".join(_WITHOUT[part] for part in self.failures) or None

    @property
    def verdict(self) -> Verdict:
        """Whether to answer from this."""
        return verdict(self.answerability, self.evidence, self.calibration)

    @property
    def sure(self) -> bool:
        """Whether the answer needs no reservation."""
        return self.verdict == "yes"

    @property
    def related(self) -> tuple[Candidate, ...]:
        """The candidates with evidence, and those that rank near the best."""
        near = RELATED * max((c.rank for c in self.candidates), default=0.0)
        return tuple(c for c in self.candidates if c.evidence >= self.calibration.floor or c.rank >= near)

    @property
    def strong(self) -> tuple[Candidate, ...]:
        """The candidates to answer from: few where the answer is only perhaps there, none where it is not."""
        if self.verdict == "no":
            return ()
        return self.related if self.sure else self.related[:UNSURE]

    @property
    def evidence(self) -> float:
        """The strongest evidence that the question is answered at all."""
        return max((c.evidence for c in self.candidates), default=0.0)


@dataclass(frozen=True, slots=True)
class _Wording:
    """The words of a question, as the index is searched for them.

    Attributes:
        corrected: the question with its typing mistakes corrected.
        frame: the kind of the question, where that changes the search.
        languages: those of the index.
        lower: the content types that the question does not ask for.
    """

    corrected: str
    frame: Frame | None
    languages: tuple[str, ...]
    lower: AbstractSet[str]

    @classmethod
    def of(cls, corrected: str, languages: tuple[str, ...]) -> _Wording:
        return cls(corrected, frame_of(corrected, languages), languages, lower_kinds(corrected, languages))

    def of_side(self, side: str) -> _Wording:
        """Return the words that ask what one side of this comparison is."""
        return replace(self, corrected=side, frame=Frame("definition", (side,)))

    @property
    def defines(self) -> bool:
        """Whether the question asks what something is."""
        return self.frame is not None and self.frame.kind != "comparison"

    @property
    def subject(self) -> str:
        """The thing that a definition is asked of; else the whole question."""
        return self.frame.text if self.frame and self.defines else self.corrected

    def terms(self, snapshot: Snapshot) -> tuple[Question, SearchTerms]:
        """Return the words, weighted by an index, and what is searched for by them."""
        question, idf = read_question(self.subject, self.languages, snapshot)
        if self.frame and self.frame.kind == "definition":
            # What is defined is a name: other words for it are other things.
            question = replace(question, synonyms=())
        vector = lexical.query_vector(self.subject, self.languages)
        return question, SearchTerms.of(question, idf, vector)

    def search(self, terms: SearchTerms, filters: Asked | None, snapshot: Snapshot) -> list[Hit]:
        """Return the best hits by words, and for a definition also the best beginnings of pages.

        The name of the site's subject is on every page, so the page that defines it could be missed.
        """
        best = list(snapshot.search_lexical(terms.vector, CANDIDATES, resolve(filters, snapshot)))
        if not self.defines:
            return best
        openings = resolve(all_of(filters, In("chunk_index", (0,))), snapshot)
        return [*best, *snapshot.search_lexical(terms.vector, OPENINGS, openings)]

    def features(self, hits: Iterable[Hit], terms: SearchTerms) -> dict[str, QueryFeatures]:
        """Return the question's features for the ranking, for each language of the hits."""
        subject, defined = self.subject, self.subject if self.defines else ""
        languages = {hit.chunk.language for hit in hits}
        return {
            language: QueryFeatures(subject, language, terms.idf, defined, self.lower, terms.synonyms)
            for language in languages
        }

    def named(self, filters: Asked | None, snapshot: Snapshot) -> list[Ranked]:
        """Return the chunks whose heading is the subject, or that say what it is, best first."""
        _, terms = self.terms(snapshot)
        hits = {h.chunk.chunk_id: h for h in self.search(terms, filters, snapshot)}
        held = terms.held(hits)
        fused = ranking.fuse(held, terms.values, (), 0.0)
        ranked = ranking.rank(hits, held, fused, self.features(hits.values(), terms), "")
        return [r for r in ranked if r.components["defines"]]


def retrieve(
    snapshot: Snapshot,
    embedder: Embedder | None,
    question: str | None,
    *,
    vector: Sequence[float] | None = None,
    filters: Asked | None = None,
    here: str = "",
    after: Retrieval | None = None,
    now: datetime | None = None,
    weight: float | None = None,
    progress: QueryProgress | None = None,
) -> Retrieval:
    """Search one generation of the index.

    Args:
        question: the reader's words; None for a search by `vector` alone.
        vector: a dense vector of the index's own embedder.
        filters: narrow the search (see `filters.parse`).
        here: the page that the reader is on (see `addresses.page_of`), which comes a little earlier.
        after: an earlier search for the same question, which embedded it, or failed to, once for both.
        now: by which the age of memories is taken; the present where it is left out.
        weight: share of the dense side in the fusion; the index's own where it is left out.
        progress: the question's states, which a search takes on to `searching`.

    Raises:
        InputError: the vector is not of the index's size.
    """
    head = snapshot.head
    wording = _Wording.of(after.searched if after else correct(question or "", snapshot), head.languages)
    stages = _Stages(after.timings if after else {})
    if vector is not None:
        _check_vector(vector, head.embedder.size)
    failures: dict[str, ProviderError] = {**after.failures} if after else {}
    progress = progress or QueryProgress("", logged=False)
    progress.enter("embedding")
    if after is not None:
        vector = after.vector
    elif vector is not None:
        progress.model = head.embedder.name
    elif question is not None and embedder is not None:
        vector = _embed(wording.corrected, embedder, failures, progress)
        stages.end("embed")
    progress.enter("searching")

    words, terms = wording.terms(snapshot)
    by_words = wording.search(terms, filters, snapshot)
    by_meaning = snapshot.search_dense(vector, CANDIDATES, resolve(filters, snapshot)) if vector is not None else []
    stages.end("search")

    hits = {h.chunk.chunk_id: h for h in (*by_meaning, *by_words)}
    held = terms.held(hits)
    fused = ranking.fuse(held, terms.values, by_meaning, head.fusion_weight if weight is None else weight)
    ranked = ranking.rank(hits, held, fused, wording.features(hits.values(), terms), here)
    stages.end("rank")

    calibration = Calibration.from_json(head.calibration)
    candidates = memories.weigh(_weighed(ranked, calibration, words, terms, by_meaning), now)
    sides: list[Candidate] = []
    if wording.frame and not wording.defines:
        named = _one_of_each([wording.of_side(side).named(filters, snapshot) for side in wording.frame.subjects])
        sides = _weighed(named, calibration, words, terms, by_meaning)
        candidates = ranking.with_sides(candidates, sides)
    features = answer_features(candidates, words, calibration, head.chunks)
    stages.end("weigh")
    return Retrieval(
        candidates=tuple(candidates),
        question=words,
        calibration=calibration,
        total=len(hits),
        algorithm=HYBRID_ALGORITHM if vector is not None else LEXICAL_ALGORITHM,
        failures=failures,
        timings=stages.timings,
        vector=vector,
        searched=wording.corrected,
        subject=wording.subject,
        answerability=answerability(features),
        sides=frozenset(side.chunk.chunk_id for side in sides),
    )


def _embed(
    text: str, embedder: Embedder, failures: dict[str, ProviderError], progress: QueryProgress
) -> Sequence[float] | None:
    """Return a text's vector, or None with the reason in `failures`: its words are searched anyway."""
    try:
        with observing_retries(progress.retry):
            vector = embedder.embed_query(text)
    except ProviderError as error:
        failures["embedder"] = error
        progress.retry()
        return None
    progress.model = embedder.card.name
    return vector


def _one_of_each(sides: Sequence[Sequence[Ranked]]) -> list[Ranked]:
    """Return the best chunk of each side, of one page if one has all of them; none if a side has none."""
    if not all(sides):
        return []
    best: dict[str, list[Ranked]] = {}
    for side in sides:
        of_pages = {r.hit.chunk.source_file_path: r for r in reversed(side)}
        for path, ranked in of_pages.items():
            best.setdefault(path, []).append(ranked)
    pages = [of_page for of_page in best.values() if len(of_page) == len(sides)]
    return max(pages, key=lambda of_page: sum(r.rank for r in of_page), default=[side[0] for side in sides])


def _weighed(
    ranked: Sequence[Ranked],
    calibration: Calibration,
    words: Question,
    terms: SearchTerms,
    by_meaning: Sequence[Hit],
) -> list[Candidate]:
    """Return the candidates with the evidence that they are about the question's subject."""
    cosines = {h.chunk.chunk_id: h.score for h in by_meaning}
    # A chunk that is not among the nearest is at most as near as the last of them.
    farthest = min(cosines.values(), default=None)
    # A title is evidence for the best chunk of its page only; the others need words of their own.
    titles = {r.hit.chunk.source_file_path: r.components["title"] for r in ranked}
    matching = Matching(words, terms.idf) if words.known else None
    candidates = []
    for r in ranked:
        hit, chunk_id = r.hit, r.hit.chunk.chunk_id
        near = cosines.get(chunk_id)
        nearness, title = farthest if near is None else near, titles.pop(hit.chunk.source_file_path, 0.0)
        found = matching.features(hit.lexical.among(terms.idf), nearness, title) if matching else None
        components = r.components if near is None else {**r.components, "cosine": near}
        evidence = calibration.of(found) if found else 0.0
        candidates.append(Candidate(hit.chunk, hit.lexical, r.rank, evidence, components, found))
    return candidates


def rerank(found: Retrieval, question: str, reranker: Reranker, now: datetime | None = None) -> Retrieval:
    """Order the candidates by a model, ties as before. If it fails, keep the order and note the failure."""
    if not found.candidates:
        return found
    stages = _Stages()
    try:
        relevance = reranker.rerank(question, [c.chunk.embed_text for c in found.candidates])
    except ProviderError as error:
        stages.end("rerank")
        failures = {**found.failures, "reranker": error}
        return replace(found, failures=failures, timings={**found.timings, **stages.timings})
    stages.end("rerank")
    pairs = zip(found.candidates, relevance, strict=True)
    read = [Candidate(c.chunk, c.lexical, v, c.evidence, {**c.components, "rerank": v}, c.features) for c, v in pairs]
    return replace(
        found,
        candidates=tuple(memories.weigh(sorted(read, key=lambda c: -c.rank), now)),
        algorithm=f"{found.algorithm} + {reranker.name}",
        timings={**found.timings, **stages.timings},
    )


def merge_retrievals(alone: Retrieval, behind: Retrieval) -> Retrieval:
    """Return what two searches found together, by the mean of their ranks; what one did not find ranks 0 there.

    The evidence of a chunk is the stronger of both.
    """
    merged: dict[str, Candidate] = {}
    for found in (alone, behind):
        for c in found.candidates:
            other, half = merged.get(c.chunk.chunk_id), c._replace(rank=c.rank / 2)
            if other:
                half = half._replace(rank=half.rank + other.rank, evidence=max(half.evidence, other.evidence))
            merged[c.chunk.chunk_id] = half
    texts: dict[str, Candidate] = {}
    for c in sorted(merged.values(), key=lambda c: (-c.rank, c.chunk.chunk_id)):
        texts.setdefault(c.chunk.text, c)
    return replace(
        alone,
        candidates=tuple(texts.values()),
        question=behind.question,
        total=len(merged),
        failures={**alone.failures, **behind.failures},
        timings={stage: alone.timings.get(stage, 0.0) + seconds for stage, seconds in behind.timings.items()},
        answerability=alone.answerability.or_better(behind.answerability),
    )


class _Stages:
    """How long each took, in seconds."""

    def __init__(self, before: Mapping[str, float] | None = None) -> None:
        self.timings = dict(before or {})
        self._started = time.perf_counter()

    def end(self, stage: str) -> None:
        now = time.perf_counter()
        self.timings[stage] = self.timings.get(stage, 0.0) + now - self._started
        self._started = now


def _check_vector(vector: Sequence[float], size: int) -> None:
    if not size:
        raise InputError("The index holds no dense vectors: send a query.", field="embedding")
    if len(vector) != size:
        raise InputError(f"The index holds vectors of {size} dimensions.", field="embedding")
    # The engine counts in 32 bits, where a larger number is infinite and a vector of zeros has no direction.
    if not any(vector) or not all(abs(v) <= _LARGEST for v in vector):
        raise InputError("The embedding needs finite numbers that are not all zero.", field="embedding")
