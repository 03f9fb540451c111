"""The pipeline: a question in, a cited and verified answer out. Read `ask` top to bottom and you know the system."""

from __future__ import annotations

import time
from collections.abc import Generator as Steps
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from chapterverse.errors import ProviderError
from chapterverse_api import log, phrases
from chapterverse_api.contract import ChatQuery, ChatResponse, Delta, Meta, Segment, Status
from chapterverse_api.generation import Draft, Span
from chapterverse_api.generation.extractive import Extractive
from chapterverse_api.grounding import Verified, verify
from chapterverse_api.links import Links
from chapterverse_api.material import Material, from_index, from_selection
from chapterverse_api.sse import Events

if TYPE_CHECKING:
    from chapterverse_api.service import Service

#: Share of the question's words, by idf, that what is cited must hold; with less the answer is called partial.
WHOLE = 0.6


def ask(query: ChatQuery, service: Service) -> Events:
    """Yield `Meta`, the draft as `Delta`s, and last the verified `ChatResponse`.

    Raises:
        InputError: a filter names no known field.
        IndexFault: there is no index that can be read.
    """
    turn = Turn(query.thread_id)
    turn.log("query_received", characters=len(query.query or ""), selected=len(query.selected_text or ""))

    material = from_selection(query, service) if query.selected_text else from_index(query, service)
    turn.log_retrieval(material)
    yield Meta(turn_id=turn.id, mode=material.mode, sources=list(material.sources))

    # First refusal: without evidence no generator is asked, whatever it would cost.
    if not material.task.passages:
        yield turn.sent(refusal(material, turn))
        return

    draft, failure = yield from _drafted(material, service)
    verified = verify(draft, material.task.passages, material.task.language, material.weigh)
    turn.log("response_generated", generator=service.generator.name, dropped_citations=verified.dropped)

    # Last refusal: an answer in which no citation holds is no answer.
    if not any(span.citations and span.text.strip() for span in verified.spans):
        yield turn.sent(refusal(material, turn))
        return
    yield turn.sent(answer(material, verified, failure or material.degraded, turn))


def _drafted(material: Material, service: Service) -> Steps[Delta, None, tuple[Draft, str | None]]:
    """Stream the draft and return it, with the reason if quoting had to stand in for the generator."""
    links = Links(material.task.passages)
    framed = yield from _framed(material)
    try:
        draft = yield from _streamed(links.stream(service.generator.generate(material.task)))
    except ProviderError as error:
        draft = yield from _streamed(Extractive().generate(material.task))
        return (*framed, *draft), f"The answer is quoted, since the model failed ({type(error).__name__})."
    return (*framed, *draft), None


def _framed(material: Material) -> Steps[Delta, None, Draft]:
    """Say first what the reader must know of the passages."""
    if not material.abroad:
        return ()
    note = Span(f"{phrases.of(material.task.language).abroad}\n\n", framing=True)
    yield Delta(text=note.text)
    return (note,)


def _streamed(steps: Steps[str, None, Draft]) -> Steps[Delta, None, Draft]:
    while True:
        try:
            text = next(steps)
        except StopIteration as end:
            draft: Draft = end.value
            return draft
        yield Delta(text=text)


def answer(material: Material, verified: Verified, degraded: str | None, turn: Turn) -> ChatResponse:
    """Return what the verified draft amounts to."""
    cited = {i for span in verified.spans for i in span.citations}
    sources = [s for s in material.sources if s.id in cited] + [s for s in material.sources if s.id not in cited]
    whole = material.coverage(cited) >= WHOLE and not material.abroad
    status: Status = "answered" if whole else "partial"
    return turn.response(
        response="".join(span.text for span in verified.spans),
        source_chunks=sources,
        segments=[Segment(text=span.text, citations=list(span.citations)) for span in verified.spans],
        mode=material.mode,
        status="degraded" if degraded else status,
        grounding_confidence=round(verified.confidence, 4),
        retrieval_used=material.retrieval_used,
        sources_cited=_cited_urls(verified, material),
        nearest=list(material.nearest) if material.mode == "selected_text" or status == "partial" else [],
        degraded_reason=degraded,
    )


def refusal(material: Material, turn: Turn) -> ChatResponse:
    """Return the honest no, with the nearest pages."""
    text = phrases.of(material.task.language).refused
    return turn.response(
        response=text,
        source_chunks=[],
        segments=[Segment(text=text)],
        mode=material.mode,
        status="not_in_docs",
        grounding_confidence=0.0,
        retrieval_used=material.retrieval_used,
        sources_cited=[],
        nearest=list(material.nearest),
        degraded_reason=material.degraded,
    )


def _cited_urls(verified: Verified, material: Material) -> list[str]:
    """Return the addresses of what is cited, in the order of the citations."""
    urls = {s.id: s.url for s in material.sources}
    cited = (urls[i] for span in verified.spans for i in span.citations)
    return list(dict.fromkeys(url for url in cited if url))


@dataclass(slots=True)
class Turn:
    """One question and its answer, for the log and the response's head."""

    thread_id: str | None
    id: str = field(default_factory=lambda: uuid4().hex)
    started: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        return round(time.perf_counter() - self.started, 6)

    def log(self, name: log.Name, **fields: log.Value) -> None:
        log.event(name, turn_id=self.id, thread_id=self.thread_id, execution_time=self.seconds, **fields)

    def log_retrieval(self, material: Material) -> None:
        if "embed" in material.timings:
            self.log("embedding_generated", seconds=material.timings["embed"])
        self.log("retrieval_performed", mode=material.mode, candidates=material.candidates)
        self.log("results_ranked", passages=len(material.task.passages), evidence=round(material.evidence, 4))

    def sent(self, response: ChatResponse) -> ChatResponse:
        self.log("response_sent", status=response.status, cited=len(response.sources_cited))
        return response

    def response(self, **fields: Any) -> ChatResponse:
        """Return the response with its head filled in: which turn, when (UTC), and how many seconds it took."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return ChatResponse(
            turn_id=self.id, thread_id=self.thread_id, timestamp=now, execution_time=self.seconds, **fields
        )
