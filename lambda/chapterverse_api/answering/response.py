"""Builds the response: the verified answer, or a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chapterverse_api import phrases
from chapterverse_api.answering.context import AnswerContext, DraftSources
from chapterverse_api.answering.suggestions import suggest
from chapterverse_api.answering.turn import Turn
from chapterverse_api.contract import AnswerStatus, ChatResponse, PartialReason, Segment, SourceChunk
from chapterverse_api.generation.draft import Span
from chapterverse_api.grounding.results import VerifiedDraft

#: Statuses whose response names places to look on.
_STATUSES_WITH_NEAREST = ("partial", "not_in_docs")


def make_answer(
    context: AnswerContext,
    verified: VerifiedDraft,
    degraded: str | None,
    turn: Turn,
    *,
    quoted: bool = False,
    not_in_docs: bool = False,
    data: dict[str, Any] | None = None,
    data_citations: dict[str, Any] | None = None,
) -> ChatResponse:
    """Return the response that the shown segments make.

    Args:
        quoted: whether they are quotes, without a model's words.
        not_in_docs: whether the docs hold no answer after all.
        data: the values that fill the schema of the request.
        data_citations: the data with the ids of sources as values.
    """
    segments = [make_segment(span) for span in verified.spans]
    cited = tuple(dict.fromkeys(i for span in verified.spans for i in span.citations))
    reason = None if not_in_docs else _partial_reason(context, verified, quoted=quoted)
    status: AnswerStatus = "partial" if reason else "answered"
    status = "not_in_docs" if not_in_docs else "degraded" if degraded else status
    return turn.make_response(
        "".join(one.text for one in segments),
        source_chunks=_sort_sources(context.sources, cited, quoted=quoted),
        segments=segments,
        mode=context.mode,
        status=status,
        partial_reason=reason,
        grounding_confidence=round(_confidence(context, verified, quoted=quoted), 4),
        retrieval_used=context.retrieval_used,
        sources_cited=_cited_urls(context.sources, cited),
        follow_ups=[] if not_in_docs else suggest(context, cited, turn),
        nearest=list(context.nearest) if context.mode == "selected_text" or status in _STATUSES_WITH_NEAREST else [],
        degraded_reason=degraded,
        searched_as=context.searched_as,
        data=data,
        data_citations=data_citations,
    )


def _partial_reason(context: AnswerContext, verified: VerifiedDraft, *, quoted: bool) -> PartialReason | None:
    """Return why an answer that the docs hold is only a part of it; None if it is whole."""
    # A model has judged the weak passages that it answers from; quotes have not.
    if quoted and context.request.may_help:
        return "may_help"
    return "language" if context.other_language else verified.partial_reason


def _confidence(context: AnswerContext, verified: VerifiedDraft, *, quoted: bool) -> float:
    """Return the mean probability of the checked sentences; of quotes from a search that they answer."""
    answers = context.retrieval.confidence if context.retrieval and quoted and not context.faq else None
    return verified.confidence if answers is None else answers


def _sort_sources(sources: Sequence[SourceChunk], cited: Sequence[str], *, quoted: bool) -> list[SourceChunk]:
    """Return the cited sources before the others. Quotes set their order, so that the first one is of the first."""
    if not quoted:
        return sorted(sources, key=lambda source: source.id not in cited)
    return sorted(sources, key=lambda source: cited.index(source.id) if source.id in cited else len(cited))


def _cited_urls(sources: Sequence[SourceChunk], cited: Sequence[str]) -> list[str]:
    """Return the addresses of the cited sources, in the order of the citations."""
    urls = {source.id: source.url for source in sources}
    return list(dict.fromkeys(url for i in cited if (url := urls[i])))


def make_refusal(context: AnswerContext, degraded: str | None, turn: Turn) -> ChatResponse:
    """Return the refusal, with the nearest pages."""
    # What has a page near it is on the subject, and so may be what a part of the docs is silent about.
    limited = bool(turn.query.filters)
    on_subject = context.retrieval_used and (limited or context.nearest)
    purpose = phrases.for_language(context.language).purpose
    text = purpose if context.off_topic and not on_subject else phrases.refusal(context.language, limited=limited)
    return turn.make_response(
        text,
        source_chunks=[],
        segments=[Segment(text=text, kind="framing")],
        mode=context.mode,
        status="not_in_docs",
        grounding_confidence=0.0,
        retrieval_used=context.retrieval_used,
        sources_cited=[],
        nearest=list(context.nearest),
        degraded_reason=degraded,
        searched_as=context.searched_as,
    )


def explain_degradation(
    sources: DraftSources, turn: Turn, *failures: str | None, remembered: bool = True
) -> str | None:
    """Return why not everything went as configured, the failures first; None if it did.

    Args:
        remembered: whether turns of this kind are kept: plans are not, so they lose nothing without a database.
    """
    context = sources.context
    reasons = [*failures, sources.tool_failure, turn.models.turn_budget.reason, context.degraded]
    reasons.append(turn.degraded if remembered else None)
    # A selection needs no index.
    if sources.idf.has_failed and context.retrieval_used:
        reasons.append("The index could not be reached any more; all words of the answer were weighed alike.")
    return " ".join(filter(None, reasons)) or None


def make_segment(span: Span) -> Segment:
    return Segment(text=span.text, citations=list(span.citations), kind=span.kind, check=span.check, mark=span.mark)
