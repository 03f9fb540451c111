"""Builds the response: the verified answer, or a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chapterverse_api import phrases
from chapterverse_api.answering.context import AnswerContext, DraftSources
from chapterverse_api.answering.suggestions import suggest
from chapterverse_api.answering.turn import Turn
from chapterverse_api.contract import AnswerStatus, ChatResponse, Segment
from chapterverse_api.generation.draft import Span
from chapterverse_api.grounding.results import VerifiedDraft

if TYPE_CHECKING:
    from chapterverse_api.answering.structured import FilledSchema

#: Statuses whose response names places to look on.
_POINTED = ("partial", "not_in_docs")


def answer(
    context: AnswerContext,
    verified: VerifiedDraft,
    degraded: str | None,
    turn: Turn,
    *,
    quoted: bool,
    not_in_docs: bool,
    data: FilledSchema | None = None,
) -> ChatResponse:
    """Return the response that the shown segments make.

    Args:
        quoted: whether they are quotes, by no model.
        not_in_docs: whether the docs hold no answer after all.
        data: the filled schema, where the reader asked for data.
    """
    segments = [segment(span) for span in verified.spans]
    cited = dict.fromkeys(i for span in verified.spans for i in span.citations)
    by_id = {s.id: s for s in context.sources}
    # Quotes set the order of the sources, so that the first one is of the first.
    sources = [by_id[i] for i in cited] if quoted else [s for s in context.sources if s.id in cited]
    sources += [s for s in context.sources if s.id not in cited]
    # A model that answers from weak passages has read them; quotes have not.
    unsure = context.task.unsure and quoted
    status: AnswerStatus = "partial" if unsure or context.other_language or verified.partial else "answered"
    status = "not_in_docs" if not_in_docs else "degraded" if degraded else status
    return turn.response(
        response="".join(one.text for one in segments),
        source_chunks=sources,
        segments=segments,
        mode=context.mode,
        status=status,
        grounding_confidence=round(verified.confidence, 4),
        retrieval_used=context.retrieval_used,
        sources_cited=_cited_urls(verified, context),
        follow_ups=[] if not_in_docs else [suggestion.text for suggestion in suggest(context, cited, turn)],
        nearest=list(context.nearest) if context.mode == "selected_text" or status in _POINTED else [],
        degraded_reason=degraded,
        searched_as=context.searched_as,
        data=data.data if data else None,
        data_citations=data.citations if data else None,
    )


def refusal(context: AnswerContext, degraded: str | None, turn: Turn) -> ChatResponse:
    """Return the honest no, with the nearest pages."""
    ours = phrases.of(context.language)
    text = ours.purpose if context.off_topic else ours.refused
    return turn.response(
        response=text,
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
        remembered: whether turns of this kind are kept: plans are not, so they lose nothing where no records are.
    """
    context = sources.context
    reasons = [*failures, sources.missing, turn.models.turn_budget.reason, context.degraded]
    reasons.append(turn.degraded if remembered else None)
    # A selection needs no index.
    if sources.idf.lost and context.retrieval_used:
        reasons.append("The index could not be reached any more; all words of the answer were weighed alike.")
    return " ".join(filter(None, reasons)) or None


def segment(span: Span) -> Segment:
    return Segment(text=span.text, citations=list(span.citations), kind=span.kind, check=span.check, mark=span.mark)


def _cited_urls(verified: VerifiedDraft, context: AnswerContext) -> list[str]:
    """Return the addresses of the cited sources, in the order of the citations."""
    urls = {s.id: s.url for s in context.sources}
    cited = (urls[i] for span in verified.spans for i in span.citations)
    return list(dict.fromkeys(url for url in cited if url))
