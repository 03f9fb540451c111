"""Measures one answer for `eval --answers`: reads its cited sections from the index again, and times it.

Nothing from the turn itself is trusted. Each cited section is read at the address of its citation, and the citing text
is verified again with these sections only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

from chapterverse.calibration import read_weights
from chapterverse.model import Chunk
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse.text.plain import plain
from chapterverse.text.sentences import split
from chapterverse_api import phrases
from chapterverse_api.answering.pipeline import answer_turn
from chapterverse_api.answering.resources import Resources
from chapterverse_api.answering.turn import Turn
from chapterverse_api.contract import AnswerStatus, ChatResponse, Delta, Events, Meta, Segment
from chapterverse_api.generation.draft import OMISSION, Span
from chapterverse_api.generation.passage import Passage
from chapterverse_api.grounding.verifier import verify
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.retrieval.ranking import section
from chapterverse_api.validation import make_query

#: A section's address, and a chunk of it.
Place: TypeAlias = tuple[str, str]
#: Kinds of segments.
SegmentKind: TypeAlias = Literal["quote", "prose", "framing"]
#: Answers a question, as `answer_turn` does.
AnswerFunction: TypeAlias = Callable[[Turn], Events]

#: Shorter sentences have nothing to check; the verifier skips them too.
_MIN_WORDS = 3


class CitedClaim(TypedDict):
    """A sentence, and the section that it cites."""

    text: str
    url: str
    chunk_id: str


class AnswerCounts(TypedDict):
    """What the verifier keeps of an answer when it reads the cited sections again.

    Attributes:
        citations, valid: the citations of all segments, and those that name exactly one source that is in the index
            and verified again.
        sentences, carried: the sentences with a claim, and those with a citation that the verifier keeps.
        pairs, precise: the pairs of a sentence and its citation, and those that the verifier keeps.
        claims: the sentences that exactly one section supports.
        segments: the segments of the response as JSON.
        quotes: the text of each quote and its whole section.
    """

    citations: int
    valid: int
    sentences: int
    carried: int
    pairs: int
    precise: int
    claims: list[CitedClaim]
    segments: list[dict[str, Any]]
    quotes: list[tuple[str, str]]


class AnswerJudgement(AnswerCounts):
    """An answer with its counts.

    Attributes:
        status, confidence, text: the response's `status`, `grounding_confidence` and `response`.
        cited: the addresses of the cited sources.
        seconds: the seconds until the sources (`retrieve`), the first words (`first`) and the end (`total`), without
            the opening of the index.
        degraded: the reason why a part did not work as configured, or None.
        generation: the generation of the index.
    """

    status: AnswerStatus
    confidence: float
    text: str
    cited: Sequence[str]
    seconds: dict[str, float]
    degraded: str | None
    generation: int


def judge_answer(
    resources: Resources, question: str, history: list[dict[str, str]] | None, *, answer: AnswerFunction = answer_turn
) -> AnswerJudgement:
    """Answer a question as for a reader, and return counts for its figures.

    Raises:
        InputError: the question or its history is invalid.
        IndexFault: no index can be read.
    """
    query = make_query(query=question, conversation_history=history or [])
    resources.index.snapshot()
    response, seconds = _time_answer(answer(Turn.open(query, resources)))
    snapshot = resources.index.snapshot()
    return {
        "status": response.status,
        "confidence": response.grounding_confidence,
        "text": response.response,
        "cited": response.sources_cited,
        **_AnswerComparison(resources.index, snapshot, response).counts(),
        "seconds": {stage: round(value, 6) for stage, value in seconds.items()},
        "degraded": response.degraded_reason,
        "generation": snapshot.head.generation,
    }


def holds(resources: Resources, claims: Sequence[CitedClaim]) -> list[bool]:
    """Return for each claim whether its section supports it."""
    sections = _Sections(resources.index, resources.index.snapshot())
    return [bool(sections.cite(c["text"], {"1": (c["url"], c["chunk_id"])})) for c in claims]


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


class _JudgedSentence(NamedTuple):
    """A sentence of an answer, the ids that it cites, and those of them that the verifier keeps."""

    text: str
    citations: Sequence[str]
    valid_ids: frozenset[str]


class _Sections:
    """The sections of one index, by citation."""

    def __init__(self, index: SiteIndex, snapshot: Snapshot) -> None:
        self._index = index
        self._snapshot = snapshot
        self._passages: dict[Place, tuple[Passage, str] | None] = {}

    def cite(self, text: str, places: Mapping[str, Place], kind: SegmentKind = "prose") -> frozenset[str]:
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


class _AnswerComparison:
    """Compares an answer with the index."""

    def __init__(self, index: SiteIndex, snapshot: Snapshot, response: ChatResponse) -> None:
        self._sections = _Sections(index, snapshot)
        self._response = response
        # An id of two sources identifies neither.
        counts = Counter(s.id for s in response.source_chunks)
        self._places = {s.id: (s.url or "", s.chunk_id or "") for s in response.source_chunks if counts[s.id] == 1}
        self._languages = ("en", *snapshot.head.languages)

    def counts(self) -> AnswerCounts:
        segments = [(s, self._sections.cite(s.text, self._cited_places(s), s.kind)) for s in self._segments()]
        sentences = [
            _JudgedSentence(text, segment.citations, self._sections.cite(text, self._cited_places(segment)))
            for segment, _ in segments
            for text in _sentences(segment)
        ]
        return {
            "citations": sum(len(segment.citations) for segment, _ in segments),
            "valid": sum(i in valid_ids for segment, valid_ids in segments for i in segment.citations),
            "sentences": len(sentences),
            "carried": sum(bool(sentence.valid_ids) for sentence in sentences),
            "pairs": sum(len(sentence.citations) for sentence in sentences),
            "precise": sum(i in sentence.valid_ids for sentence in sentences for i in sentence.citations),
            "claims": [self._claim(s.text, min(s.valid_ids)) for s in sentences if len(s.valid_ids) == 1],
            "segments": [s.model_dump() for s in self._response.segments],
            "quotes": self._quotes(),
        }

    def _quotes(self) -> list[tuple[str, str]]:
        """Return each quote with its whole section."""
        quotes = [s for s in self._response.segments if s.kind == "quote"]
        places = [(s.text, next(iter(self._cited_places(s).values()), None)) for s in quotes]
        sections = [(text, self._sections.passage(*place)) for text, place in places if place]
        return [(text, section[0].section) for text, section in sections if section]

    def _cited_places(self, segment: Segment) -> dict[str, Place]:
        return {i: self._places[i] for i in segment.citations if i in self._places}

    def _claim(self, text: str, citation: str) -> CitedClaim:
        url, chunk_id = self._places[citation]
        return {"text": text, "url": url, "chunk_id": chunk_id}

    def _segments(self) -> list[Segment]:
        """Return the segments with claims, without the service's own phrases."""
        ours = {phrase for tag in self._languages for phrase in astuple(phrases.for_language(tag))}
        return [
            s for s in self._response.segments if s.kind != "framing" and s.text.strip() and s.text.strip() not in ours
        ]


def _sentences(segment: Segment) -> Iterator[str]:
    """Yield sentences with a claim, without code, headings and announcements."""
    for sentence in split(segment.text):
        words = list(lexical.words(sentence.plain_text))
        if sentence.plain_text.startswith(OMISSION):
            continue
        if sentence.kind == "prose" and len(words) >= _MIN_WORDS and not sentence.plain_text.endswith((":", "：")):
            yield segment.text[sentence.start : sentence.end].strip()
