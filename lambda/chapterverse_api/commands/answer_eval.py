"""Measures one answer for `eval --answers`: reads its cited sections from the index again, and times it.

Nothing from the turn itself is trusted. Each cited section is read at the address of its citation, and the citing text
is verified again with these sections only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any, Literal, TypeAlias

from chapterverse.calibration import read_weights
from chapterverse.model import Chunk
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse.text.plain import plain
from chapterverse.text.sentences import split
from chapterverse_api import phrases
from chapterverse_api.answering.pipeline import answer_query
from chapterverse_api.answering.resources import Resources
from chapterverse_api.contract import ChatQuery, ChatResponse, Delta, Events, Meta, Segment
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
#: Answers a question, as `answer_query` does.
AnswerFunction: TypeAlias = Callable[[ChatQuery, Resources], Events]

#: Shorter sentences, in words, have nothing to check; the verifier skips them too.
_MIN_WORDS = 3


def judge_answer(
    resources: Resources, question: str, history: list[dict[str, str]] | None, *, answer: AnswerFunction = answer_query
) -> dict[str, Any]:
    """Answer a question as for a reader, and return counts for its figures.

    `citations` counts the citations of all segments, and `valid` those that name exactly one source that is in the
    index and verified again. `sentences` counts sentences with a claim, and `carried` those with a citation that the
    verifier keeps. `pairs` counts pairs of a sentence and its citation, and `precise` those that the verifier keeps.
    `claims` are supported sentences with their section, for `holds`. `segments` are those of the response,
    and `quotes` its quotes, each with its whole section. `seconds` until the sources (`retrieve`), the
    first words (`first`) and the end (`total`), without the opening of the index.

    Raises:
        InputError: the question or its history is invalid.
        IndexFault: no index can be read.
    """
    query = make_query(query=question, conversation_history=history or [])
    resources.index.snapshot()
    response, seconds = _time_answer(answer(query, resources))
    snapshot = resources.index.snapshot()
    return {
        "status": response.status,
        "confidence": response.grounding_confidence,
        "text": response.response,
        "cited": response.sources_cited,
        **_Reading(resources.index, snapshot, response).counts(),
        "seconds": {stage: round(taken, 6) for stage, taken in seconds.items()},
        "degraded": response.degraded_reason,
        "generation": snapshot.head.generation,
    }


def holds(resources: Resources, claims: Sequence[Mapping[str, str]]) -> list[bool]:
    """Return for each claim (`text`, and `url` and `chunk_id` of a section) whether the section supports it."""
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


class _Sections:
    """The sections of one index, by citation."""

    def __init__(self, index: SiteIndex, snapshot: Snapshot) -> None:
        self._index = index
        self._snapshot = snapshot
        self._read: dict[tuple[str, str], tuple[Passage, str] | None] = {}

    def cite(self, text: str, places: Mapping[str, Place], kind: SegmentKind = "prose") -> frozenset[str]:
        """Return the citations that the verifier keeps throughout a text that has these and no others."""
        sections = {i: self.passage(*place) for i, place in places.items()}
        passages = tuple(replace(read[0], id=i) for i, read in sections.items() if read)
        if not passages:
            return frozenset()
        language = next(read[1] for read in sections.values() if read)
        verified = verify((Span(text, tuple(places), kind),), passages, language, self._weigh)
        citations = [frozenset(span.citations) for span in verified.spans if span.check != "none"]
        return frozenset.intersection(*citations) if citations and not verified.unsupported_count else frozenset()

    def passage(self, url: str, chunk_id: str) -> tuple[Passage, str] | None:
        """Return the section of a chunk and its language; None if it isn't at this address."""
        key = url, chunk_id
        if key not in self._read:
            self._read[key] = self._find(url, chunk_id)
        return self._read[key]

    def _find(self, url: str, chunk_id: str) -> tuple[Passage, str] | None:
        address = self._index.published_url(url, self._snapshot.head)
        chunks: list[Chunk] = self._snapshot.page(address, "url") if address else []
        own = next((c for c in chunks if c.chunk_id == chunk_id), None)
        if own is None:
            return None
        whole = "\n\n".join(plain(c.text) for c in chunks if section(c) == section(own))
        return Passage("1", own.heading_path, plain(own.text), whole, url=url, chunk_id=chunk_id), own.language

    def _weigh(self, text: str) -> Mapping[int, float]:
        return read_weights(text, self._snapshot.head.languages, self._snapshot)


class _Reading:
    """Compares an answer with the index."""

    def __init__(self, index: SiteIndex, snapshot: Snapshot, response: ChatResponse) -> None:
        self._sections = _Sections(index, snapshot)
        self._response = response
        # An id of two sources identifies neither.
        ids = Counter(s.id for s in response.source_chunks)
        self._places = {s.id: (s.url or "", s.chunk_id or "") for s in response.source_chunks if ids[s.id] == 1}
        self._languages = ("en", *snapshot.head.languages)

    def counts(self) -> dict[str, Any]:
        segments = [(s, self._sections.cite(s.text, self._cited_places(s), s.kind)) for s in self._segments()]
        judged = [
            (text, s, self._sections.cite(text, self._cited_places(s))) for s, _ in segments for text in _sentences(s)
        ]
        return {
            "citations": sum(len(s.citations) for s, _ in segments),
            "valid": sum(i in kept for s, kept in segments for i in s.citations),
            "sentences": len(judged),
            "carried": sum(bool(kept) for _, _, kept in judged),
            "pairs": sum(len(s.citations) for _, s, _ in judged),
            "precise": sum(i in kept for _, s, kept in judged for i in s.citations),
            "claims": [self._claim(text, min(kept)) for text, _, kept in judged if len(kept) == 1],
            **self._quotes(),
        }

    def _quotes(self) -> dict[str, Any]:
        """Return the segments, and each quote with its whole section."""
        segments = self._response.segments
        places = [(s.text, next(iter(self._cited_places(s).values()), None)) for s in segments if s.kind == "quote"]
        read = [(text, self._sections.passage(*place)) for text, place in places if place]
        return {
            "segments": [s.model_dump() for s in segments],
            "quotes": [(text, found[0].section) for text, found in read if found],
        }

    def _cited_places(self, segment: Segment) -> dict[str, Place]:
        return {i: self._places[i] for i in segment.citations if i in self._places}

    def _claim(self, text: str, citation: str) -> dict[str, str]:
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
        words = list(lexical.words(sentence.said))
        if sentence.said.startswith(OMISSION):
            continue
        if sentence.kind == "prose" and len(words) >= _MIN_WORDS and not sentence.said.endswith((":", "：")):
            yield segment.text[sentence.start : sentence.end].strip()
