"""The service as an evaluation asks it. Nothing is charged.

Of an answer nothing is trusted: each cited section is read again at the address of its citation, and the citing text is
verified again with these sections only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from typing import Any, Literal, TypeAlias, TypedDict

from chapterverse.calibration import read_weights
from chapterverse.model import MEMORY, Chunk, Head
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse.text.markdown import plain
from chapterverse.text.sentences import split
from chapterverse_api import phrases
from chapterverse_api.answer.pipeline import answer_turn
from chapterverse_api.answer.turn import Turn
from chapterverse_api.commands.session import History, SearchRow, ServiceSession
from chapterverse_api.contract import ChatResponse, Delta, Events, Meta, Segment
from chapterverse_api.draft.draft import OMISSION, Span
from chapterverse_api.draft.requests import Passage
from chapterverse_api.ext.check.verifier import verify
from chapterverse_api.ext.evaluation.answer_metrics import AnswerResult
from chapterverse_api.ext.evaluation.places import place_without_page
from chapterverse_api.ext.evaluation.quoting import cut_in_silence, repeats
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.search.ranking import section
from chapterverse_api.search.results import Retrieval
from chapterverse_api.search.site_search import SearchRequest, retrieve
from chapterverse_api.validation import make_query

#: A section's address, and a chunk of it.
Place: TypeAlias = tuple[str, str]
#: Kinds of segments.
_SegmentKind: TypeAlias = Literal["quote", "prose", "framing"]

#: Types of documents that inform an answer and are no results of a search.
_HIDDEN_TYPES = frozenset({MEMORY})
#: Results by which a fusion weight is judged.
_RESULTS_PER_WEIGHT = 10
#: Shorter sentences have nothing to check; the verifier skips them too.
_MIN_WORDS = 3


class Examination(TypedDict):
    """The results of a search and its figures.

    Attributes:
        evidence: the strongest evidence of a result, 0 to 1.
        floor: the least evidence that is answered from, 0 to 1.
        refused: whether there is no answer, or only one with a reservation.
        seconds: the seconds of each stage, and a `total` without the opening of the index.
        degraded: the reason why a part did not work as configured, or None.
        generation: the generation of the index.
    """

    results: list[SearchRow]
    evidence: float
    floor: float
    refused: bool
    seconds: dict[str, float]
    degraded: str | None
    generation: int


class WeightTrial(TypedDict):
    """The `calibration.ChunkFeatures` of every candidate, and the addresses of the ten best by fusion weight."""

    features: list[Any]
    urls: dict[float, list[str]]


class CitedClaim(TypedDict):
    """A sentence, and the section that it cites."""

    text: str
    url: str
    chunk_id: str


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer as the verifier keeps it when it reads the cited sections again.

    Attributes:
        result: its figures, without those that only the question's row tells.
        cited: the addresses of the cited sources.
        claims: the sentences that exactly one section supports.
        segments: the segments of the response as JSON.
        generation: the generation of the index.
    """

    result: AnswerResult
    cited: Sequence[str]
    claims: list[CitedClaim]
    segments: list[dict[str, Any]]
    generation: int


def _time_answer(events: Events) -> tuple[ChatResponse, dict[str, float]]:
    start = time.perf_counter()
    seconds: dict[str, float] = {}
    stages = {Meta: "retrieve", Delta: "first", ChatResponse: "total"}
    response: ChatResponse | None = None
    for event in events:
        if stage := stages.get(type(event)):
            seconds.setdefault(stage, time.perf_counter() - start)
        if isinstance(event, ChatResponse):
            response = event
    if response is None:
        raise AssertionError("a turn ends with its response")
    return response, seconds


class _Sections:
    """The sections of one index, by citation."""

    def __init__(self, index: SiteIndex, snapshot: Snapshot) -> None:
        self._index = index
        self._snapshot = snapshot
        self._passages: dict[Place, tuple[Passage, str] | None] = {}

    def cite(self, text: str, places: Mapping[str, Place], kind: _SegmentKind = "prose") -> frozenset[str]:
        """Return the citations that the verifier keeps throughout a text that has these and no others."""
        sections = [(i, section) for i, place in places.items() if (section := self.passage(*place))]
        if not sections:
            return frozenset()
        passages = tuple(replace(passage, id=i) for i, (passage, _) in sections)
        language = sections[0][1][1]
        verified = verify((Span(text, tuple(places), kind),), passages, language, self._weigh)
        citations = [frozenset(span.citations) for span in verified.spans if span.check != "none"]
        return frozenset.intersection(*citations) if citations and not verified.unsupported_count else frozenset()

    def passage(self, url: str, chunk_id: str) -> tuple[Passage, str] | None:
        """Return the section of a chunk and its language; None if it isn't at this address."""
        key = url, chunk_id
        if key not in self._passages:
            self._passages[key] = self._find(url, chunk_id)
        return self._passages[key]

    def _find(self, url: str, chunk_id: str) -> tuple[Passage, str] | None:
        address = self._index.published_url(url, self._snapshot.head)
        chunks: list[Chunk] = self._snapshot.page(address, "url") if address else []
        chunk = next((c for c in chunks if c.chunk_id == chunk_id), None)
        if chunk is None:
            return None
        text = "\n\n".join(plain(c.text) for c in chunks if section(c) == section(chunk))
        return Passage("1", chunk.heading_path, plain(chunk.text), text, url=url, chunk_id=chunk_id), chunk.language

    def _weigh(self, text: str) -> Mapping[int, float]:
        return read_weights(text, self._snapshot.head.languages, self._snapshot)


def _judge(response: ChatResponse, seconds: Mapping[str, float], sections: _Sections, head: Head) -> JudgedAnswer:
    # An id of two sources identifies neither.
    ids = Counter(s.id for s in response.source_chunks)
    places = {s.id: (s.url or "", s.chunk_id or "") for s in response.source_chunks if ids[s.id] == 1}

    def cited(segment: Segment) -> dict[str, Place]:
        return {i: places[i] for i in segment.citations if i in places}

    segments = list(_segments(response, ("en", *head.languages)))
    valid = [(s.citations, sections.cite(s.text, cited(s), s.kind)) for s in segments]
    sentences = [(text, s.citations, sections.cite(text, cited(s))) for s in segments for text in _sentences(s)]
    quotes = [(s.text, next(iter(cited(s).values()), None)) for s in response.segments if s.kind == "quote"]
    found = [(text, sections.passage(*place)) for text, place in quotes if place]
    alone = [(text, places[min(kept)]) for text, _, kept in sentences if len(kept) == 1]
    whole_quotes = [(text, section[0].section) for text, section in found if section]
    result = AnswerResult(
        response.status,
        response.grounding_confidence,
        response.response,
        citations=sum(len(citations) for citations, _ in valid),
        valid=sum(i in kept for citations, kept in valid for i in citations),
        sentences=len(sentences),
        carried=sum(bool(kept) for _, _, kept in sentences),
        pairs=sum(len(citations) for _, citations, _ in sentences),
        precise=sum(i in kept for _, citations, kept in sentences for i in citations),
        quotes=len(whole_quotes),
        silent_cuts=sum(cut_in_silence(text, section) for text, section in whole_quotes),
        repeated=repeats([text for text, _ in whole_quotes]),
        seconds={stage: round(value, 6) for stage, value in seconds.items()},
        degraded=response.degraded_reason,
    )
    claims: list[CitedClaim] = [{"text": text, "url": url, "chunk_id": i} for text, (url, i) in alone]
    dumped = [s.model_dump() for s in response.segments]
    return JudgedAnswer(result, response.sources_cited, claims, dumped, head.generation)


def _segments(response: ChatResponse, languages: Sequence[str]) -> Iterator[Segment]:
    """Yield the segments with claims, without the service's own phrases."""
    ours = {phrase for tag in languages for phrase in astuple(phrases.for_language(tag))}
    for segment in response.segments:
        if segment.kind != "framing" and segment.text.strip() and segment.text.strip() not in ours:
            yield segment


def _sentences(segment: Segment) -> Iterator[str]:
    """Yield sentences with a claim, without code, headings and announcements."""
    for sentence in split(segment.text):
        words = list(lexical.words(sentence.plain_text))
        if sentence.plain_text.startswith(OMISSION):
            continue
        if sentence.kind == "prose" and len(words) >= _MIN_WORDS and not sentence.plain_text.endswith((":", "：")):
            yield segment.text[sentence.start : sentence.end].strip()


class EvaluationSession(ServiceSession):
    """Every method raises `InputError` for an invalid question and `IndexFault` if no index can be read."""

    __slots__ = ()

    def examine(self, question: str, history: History, top_k: int) -> Examination:
        """Return the results of a search and their figures."""
        self.snapshot()
        started = time.perf_counter()
        query = make_query(query=question, conversation_history=history or [])
        retrieval, head = self._search(query, _HIDDEN_TYPES)
        seconds = {**retrieval.timings, "total": time.perf_counter() - started}
        return {
            "results": self._rows(retrieval, head, top_k),
            "evidence": round(retrieval.evidence, 4),
            "floor": retrieval.calibration.floor,
            "refused": not retrieval.sure,
            "seconds": {stage: round(value, 6) for stage, value in seconds.items()},
            "degraded": retrieval.degraded,
            "generation": head.generation,
        }

    def weigh(self, question: str, history: History, weights: Sequence[float]) -> WeightTrial:
        """Search with each fusion weight, and return the candidates. Raises `ProviderError` if the embedder failed."""
        query = make_query(query=question, conversation_history=history or [])
        index, embedder, snapshot = self.resources.index, self.resources.models.embedder, self.snapshot()
        filters = self._filter(query, snapshot, _HIDDEN_TYPES)
        # Embed a question once, however many weights are tried.
        embed = cache(embedder.embed_query) if embedder else lambda _: None

        def search_with(weight: float | None) -> Retrieval:
            return self._search_follow_up(
                query,
                snapshot,
                lambda text: retrieve(snapshot, None, SearchRequest(text, embed(text), filters, weight=weight)),
            )

        def place(chunk: Chunk) -> str:
            page = index.public_url(chunk, snapshot.head)
            return page or place_without_page(chunk.source_file_path, chunk.section_heading)

        features = [c.features for c in search_with(None).candidates if c.features]
        best = {weight: search_with(weight).candidates[:_RESULTS_PER_WEIGHT] for weight in weights}
        urls = {weight: [place(c.chunk) for c in candidates] for weight, candidates in best.items()}
        return {"features": features, "urls": urls}

    def judge_answer(
        self, question: str, history: History, *, answer: Callable[[Turn], Events] = answer_turn
    ) -> JudgedAnswer:
        """Answer a question as for a reader, and check its citations, sentences and claims again in the index."""
        query = make_query(query=question, conversation_history=history or [])
        self.snapshot()
        response, seconds = _time_answer(answer(Turn.open(query, self.resources)))
        snapshot = self.snapshot()
        return _judge(response, seconds, _Sections(self.resources.index, snapshot), snapshot.head)

    def holds(self, claims: Sequence[CitedClaim]) -> list[bool]:
        """Return for each claim whether its section supports it."""
        sections = _Sections(self.resources.index, self.snapshot())
        return [bool(sections.cite(c["text"], {"1": (c["url"], c["chunk_id"])})) for c in claims]
