"""Builds the response: the verified answer with suggestions of further questions, a refusal, or a question back."""

from __future__ import annotations

from typing import Any, TypeVar

from chapterverse.model import utc_now
from chapterverse_api import phrases
from chapterverse_api.answer.turn import Turn
from chapterverse_api.contract import AnswerStatus, ChatResponse, Delta, PartialReason, Segment, SourceChunk
from chapterverse_api.conversation.transcript import signed_question
from chapterverse_api.draft.draft import ShownDraft, Span
from chapterverse_api.search.suggestions import suggest

_Shown = TypeVar("_Shown", bound=Segment)


def make_delta(span: Span) -> Delta:
    """Return a part of the answer as it is streamed."""
    return _show(span, Delta)


def make_answer_or_refusal(draft: ShownDraft, turn: Turn) -> ChatResponse:
    """Return the response with the segments that were shown, or a refusal if there are none."""
    turn.draft, degraded = draft, turn.explain_degradation(draft.failure)
    turn.log("response_generated", generator=draft.generator, dropped_citations=draft.dropped)
    return make_answer(turn, draft, degraded) if draft.spans else make_refusal(turn, degraded)


def make_answer(
    turn: Turn,
    draft: ShownDraft,
    degraded: str | None,
    *,
    data: dict[str, Any] | None = None,
    data_citations: dict[str, Any] | None = None,
) -> ChatResponse:
    """Return the response that the shown segments make.

    Args:
        data: the values that fill the schema of the request.
        data_citations: the data with the ids of sources as values.
    """
    sources, cited, quoted = turn.sources, draft.citations, draft.quoted
    urls = {source.id: source.url for source in sources.shown}
    reason: PartialReason | None = "language" if sources.other_language else draft.partial_reason
    # A model has judged the weak passages that it answers from; quotes have not.
    reason = None if draft.not_in_docs else "may_help" if quoted and sources.request.may_help else reason
    status: AnswerStatus = "partial" if reason else "answered"
    status = "not_in_docs" if draft.not_in_docs else "degraded" if degraded else status
    # The search says how likely quotes answer, the check how likely the sources say a model's words.
    confidence = sources.retrieval.confidence if sources.retrieval and quoted else None

    def place(source: SourceChunk) -> int:
        """Return the place behind the cited sources; quotes set the order of these."""
        return (cited.index(source.id) if quoted else 0) if source.id in cited else len(cited)

    names_places = sources.mode == "selected_text" or status in ("partial", "not_in_docs")
    return _make_response(
        turn,
        [_show(span, Segment) for span in draft.spans],
        source_chunks=sorted(sources.shown, key=place),
        status=status,
        partial_reason=reason,
        grounding_confidence=round(draft.confidence if confidence is None else confidence, 4),
        sources_cited=list(dict.fromkeys(url for i in cited if (url := urls[i]))),
        nearest=list(sources.found.nearest) if names_places else [],
        degraded_reason=degraded,
        data=data,
        data_citations=data_citations,
    )


def make_refusal(turn: Turn, degraded: str | None) -> ChatResponse:
    """Return the refusal, with the nearest pages."""
    sources, limited = turn.sources, bool(turn.query.filters)
    # What has a page near it is on the subject, and so may be what a part of the docs is silent about.
    on_subject = sources.retrieval_used and (limited or sources.found.nearest)
    purpose = phrases.for_language(sources.language).purpose
    text = purpose if sources.found.off_topic and not on_subject else phrases.refusal(sources.language, limited=limited)
    return _make_response(
        turn,
        [Segment(text=text, kind="framing")],
        source_chunks=[],
        status="not_in_docs",
        grounding_confidence=0.0,
        sources_cited=[],
        nearest=list(sources.found.nearest),
        degraded_reason=degraded,
    )


def ask_back(turn: Turn, degraded: str | None) -> ChatResponse:
    """Return the choice between the sections that the question fits."""
    return _make_response(
        turn,
        [Segment(text=phrases.for_language(turn.sources.language).choice, kind="framing")],
        source_chunks=[],
        status="degraded" if degraded else "partial",
        partial_reason="choice",
        grounding_confidence=0.0,
        sources_cited=[],
        follow_ups=list(turn.sources.found.choices),
        degraded_reason=degraded,
    )


def _make_response(turn: Turn, segments: list[Segment], **fields: Any) -> ChatResponse:
    """Return the response with what does not depend on its status, and its signature."""
    text, sources = "".join(segment.text for segment in segments), turn.sources
    signer, previous = turn.resources.signer, turn.conversation.previous
    return ChatResponse(
        response=text,
        segments=segments,
        mode=sources.mode,
        retrieval_used=sources.retrieval_used,
        searched_as=sources.found.searched_as,
        turn_id=turn.id,
        thread_id=turn.thread_id,
        timestamp=utc_now("milliseconds"),
        execution_time=turn.seconds,
        signature=signer.sign(turn.id, previous, signed_question(turn.query), text),
        **fields,
    )


def with_suggestions(response: ChatResponse, turn: Turn) -> ChatResponse:
    """Return an answer with further questions; beside a selection, a refusal and a question back there are none."""
    if turn.query.selected_text or response.status == "not_in_docs" or response.partial_reason == "choice":
        return response
    cited = {i for segment in response.segments for i in segment.citations}
    cited_chunks = {p.chunk_id for p in turn.sources.request.passages if p.id in cited}
    asked = (*turn.conversation.questions, turn.query.query or "")
    follow_ups = suggest(turn.sources.found, cited_chunks, asked, turn.deadline)
    return response.model_copy(update={"follow_ups": follow_ups}) if follow_ups else response


def _show(span: Span, kind: type[_Shown]) -> _Shown:
    return kind(text=span.text, citations=list(span.citations), kind=span.kind, check=span.check, mark=span.mark)
