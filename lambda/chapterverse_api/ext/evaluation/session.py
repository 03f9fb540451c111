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
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

from chapterverse.calibration import ChunkFeatures, read_weights
from chapterverse.model import MEMORY, Chunk, Head
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse.text.markdown import plain
from chapterverse.text.sentences import split
from chapterverse_api import phrases
from chapterverse_api.answer.pipeline import answer_turn
from chapterverse_api.answer.turn import Turn
from chapterverse_api.commands import History, SearchRow, ServiceSession
from chapterverse_api.contract import ChatResponse, Delta, Events, Meta, Segment
from chapterverse_api.draft.draft import OMISSION, Span
from chapterverse_api.draft.requests import Passage
from chapterverse_api.ext.check.verifier import verify
from chapterverse_api.ext.evaluation.metrics import AnswerResult
from chapterverse_api.ext.evaluation.places import place_without_page
from chapterverse_api.ext.evaluation.quoting import cut_in_silence, repeats
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.rejections import make_query
from chapterverse_api.search.ranking import Candidate, section_key
from chapterverse_api.search.results import Retrieval
from chapterverse_api.search.site_search import SearchRequest, retrieve

#: A section's address, and a chunk of it.
Place: TypeAlias = tuple[str, str]
#: Kinds of segments.
_SegmentKind: TypeAlias = Literal["quote", "prose", "framing"]

#: Types of documents that inform an answer and are no results of a search.
_HIDDEN_TYPES = frozenset({MEMORY})
#: What is there at the first event of each kind.
_STAGES: Mapping[type, str] = {Meta: "retrieve", Delta: "first", ChatResponse: "total"}
#: Results by which a fusion weight is judged.
_RESULTS_PER_WEIGHT = 10
#: Shorter sentences have nothing to check; the verifier skips them too.
_MIN_WORDS = 3


class Examination(NamedTuple):
    """A search: its results as rows, best first, and the seconds of each stage and in `total`, the index being open."""

    rows: list[SearchRow]
    retrieval: Retrieval
    head: Head
    seconds: dict[str, float]


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
    """Return the response, which ends a turn, and the seconds until each stage."""
    start = time.perf_counter()
    seconds: dict[str, float] = {}
    for event in events:
        if stage := _STAGES.get(type(event)):
            seconds.setdefault(stage, time.perf_counter() - start)
    assert isinstance(event, ChatResponse)
    return event, _round(seconds)


def _round(seconds: Mapping[str, float]) -> dict[str, float]:
    return {stage: round(value, 6) for stage, value in seconds.items()}


class _Sections:
    """The sections of one index, by citation."""

    def __init__(self, index: SiteIndex, snapshot: Snapshot) -> None:
        self._index = index
        self._snapshot = snapshot
        self.passage = cache(self._find)

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

    def _find(self, url: str, chunk_id: str) -> tuple[Passage, str] | None:
        """Return the section of a chunk and its language; None if it isn't at this address."""
        address = self._index.published_url(url, self._snapshot.head)
        chunks: list[Chunk] = self._snapshot.page(address, "url") if address else []
        chunk = next((c for c in chunks if c.chunk_id == chunk_id), None)
        if chunk is None:
            return None
        text = "\n\n".join(plain(c.text) for c in chunks if section_key(c) == section_key(chunk))
        return Passage("1", chunk.heading_path, plain(chunk.text), text, url=url, chunk_id=chunk_id), chunk.language

    def _weigh(self, text: str) -> Mapping[int, float]:
        return read_weights(text, self._snapshot.head.languages, self._snapshot)


def _judge(response: ChatResponse, seconds: dict[str, float], sections: _Sections, head: Head) -> JudgedAnswer:
    # An id of two sources identifies neither.
    ids = Counter(s.id for s in response.source_chunks)
    places = {s.id: (s.url or "", s.chunk_id or "") for s in response.source_chunks if ids[s.id] == 1}

    def cited(segment: Segment) -> dict[str, Place]:
        return {i: places[i] for i in segment.citations if i in places}

    segments = list(_segments(response, ("en", *head.languages)))
    valid = [(s.citations, sections.cite(s.text, cited(s), s.kind)) for s in segments]
    sentences = [(text, s.citations, sections.cite(text, cited(s))) for s in segments for text in _sentences(s)]
    cited_quotes = [
        (s.text, next(iter(cited(s).values()))) for s in response.segments if s.kind == "quote" and cited(s)
    ]
    found = [(text, sections.passage(*place)) for text, place in cited_quotes]
    quotes = [(text, section[0].section) for text, section in found if section]
    alone = [(text, *places[min(kept)]) for text, _, kept in sentences if len(kept) == 1]
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
        quotes=len(quotes),
        silent_cuts=sum(cut_in_silence(text, section) for text, section in quotes),
        repeated=repeats([text for text, _ in quotes]),
        seconds=seconds,
        degraded=response.degraded_reason,
    )
    claims: list[CitedClaim] = [{"text": text, "url": url, "chunk_id": i} for text, url, i in alone]
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
        text = sentence.plain_text
        if sentence.kind != "prose" or text.startswith(OMISSION) or text.endswith((":", "：")):
            continue
        if len(list(lexical.words(text))) >= _MIN_WORDS:
            yield segment.text[sentence.start : sentence.end].strip()


class EvaluationSession(ServiceSession):
    """Every method raises `InputError` for an invalid question and `IndexFault` if no index can be read."""

    __slots__ = ()

    def examine(self, question: str, history: History, top_k: int) -> Examination:
        self.snapshot()
        started = time.perf_counter()
        retrieval, head = self._search(make_query(query=question, conversation_history=history or []), _HIDDEN_TYPES)
        seconds = {**retrieval.timings, "total": time.perf_counter() - started}
        return Examination(self._rows(retrieval, head, top_k), retrieval, head, _round(seconds))

    def weigh(
        self, question: str, history: History, weights: Sequence[float]
    ) -> tuple[list[ChunkFeatures], dict[float, list[str]]]:
        """Return the features of all candidates, and by each fusion weight the addresses of the ten best.

        Raises:
            ProviderError: the embedder failed.
        """
        query = make_query(query=question, conversation_history=history or [])
        index, embedder, snapshot = self.resources.index, self.resources.models.embedder, self.snapshot()
        filters = self._filter(query, snapshot, _HIDDEN_TYPES)
        # Embed a question once, however many weights are tried.
        embed = cache(embedder.embed_query) if embedder else lambda _: None

        def search_with(weight: float | None) -> Sequence[Candidate]:
            return self._search_follow_up(
                query,
                snapshot,
                lambda text: retrieve(snapshot, None, SearchRequest(text, embed(text), filters, weight=weight)),
            ).candidates

        def place(chunk: Chunk) -> str:
            page = index.public_url(chunk, snapshot.head)
            return page or place_without_page(chunk.source_file_path, chunk.section_heading)

        features = [c.features for c in search_with(None) if c.features]
        return features, {w: [place(c.chunk) for c in search_with(w)[:_RESULTS_PER_WEIGHT]] for w in weights}

    def judge_answer(
        self, question: str, history: History, *, answer: Callable[[Turn], Events] = answer_turn
    ) -> JudgedAnswer:
        """Answer a question as for a reader, and check its citations, sentences and claims again in the index."""
        query = make_query(query=question, conversation_history=history or [])
        self.snapshot()
        response, seconds = _time_answer(answer(Turn.open(query, self.resources)))
        snapshot = self.snapshot()
        return _judge(response, seconds, _Sections(self.resources.index, snapshot), snapshot.head)

    def holds(self, claims: Sequence[CitedClaim]) -> Iterator[bool]:
        """Yield for each claim whether its section supports it."""
        sections = _Sections(self.resources.index, self.snapshot())
        return (bool(sections.cite(c["text"], {"1": (c["url"], c["chunk_id"])})) for c in claims)
