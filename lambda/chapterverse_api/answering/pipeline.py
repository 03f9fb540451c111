"""The pipeline: a question in, a cited and verified answer out. `_answer` shows all of it, top to bottom.

begin                        `turn`: the conversation, and the `models` that the budget allows
understand, search, decide   `sources` and `selection`: passages with enough evidence, or none
generate, check              `drafting`, where the model may look again (`tool_rounds`), or `structured` for data
respond                      `response`
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from chapterverse.extensions import load_part
from chapterverse_api import phrases
from chapterverse_api.answering.context import AnswerContext, DraftSources, log_context
from chapterverse_api.answering.drafting import (
    ShownDraft,
    call_tools,
    make_delta,
    quote_documents,
    quote_entry,
    write_draft,
)
from chapterverse_api.answering.resources import Resources
from chapterverse_api.answering.response import explain_degradation, make_answer, make_refusal
from chapterverse_api.answering.selection import read_selection, search_selection
from chapterverse_api.answering.sources import find_sources
from chapterverse_api.answering.turn import Turn
from chapterverse_api.budget.daily_budget import TurnBudget
from chapterverse_api.contract import AnswerEvent, ChatQuery, Events, Meta
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation.extractive import Extractive
from chapterverse_api.generation.protocols import Writer
from chapterverse_api.grounding.results import VerifiedDraft
from chapterverse_api.observability.query_state import QueryProgress

if TYPE_CHECKING:
    from chapterverse_api.answering.tool_rounds import ToolRounds
    from chapterverse_api.answering.turn_tools import TurnTools


class DataAnswer(Protocol):
    """Answers with data that fits one schema."""

    def answer(self, sources: DraftSources, turn: Turn, writer: Writer) -> Generator[AnswerEvent, None, bool]:
        """Answer with data; return whether the model gave any that fits."""
        ...


@dataclass(slots=True)
class AnswerTrace:
    """The parts of an answer, for the owner to understand it; filled while the answer is made.

    Attributes:
        sources: all sources, with the calls of tools that found some of them.
        verified: None if no sentence was checked, as in a refusal for want of evidence.
    """

    progress: QueryProgress | None = None
    sources: DraftSources | None = None
    verified: VerifiedDraft | None = None


def answer_query(
    query: ChatQuery,
    resources: Resources,
    *,
    deadline: Deadline | None = None,
    origins: Collection[str] = (),
    turn_budget: TurnBudget | None = None,
    tools: TurnTools | None = None,
    trace: AnswerTrace | None = None,
) -> Events:
    """Yield `Meta`, calls of tools, each checked segment as a `Delta`, and last the `ChatResponse` of these.

    Args:
        deadline: `deadline.TOTAL_SECONDS` from now if omitted.
        origins: addresses that the reader's page may be of, besides the site's own.
        turn_budget: the most that the models may cost; no limit if omitted.
        tools: the tools of the site's owner that the model may call before it answers.
        trace: filled with the parts of the answer.

    Raises:
        InputError: a filter names no known field, the page is of another site, or data can't be had in this form.
        IndexFault: there is no index that can be read.
    """
    data = load_part("schemas")(query.output, resources) if query.output else None
    turn = Turn.open(query, resources, deadline=deadline, origins=origins, turn_budget=turn_budget)
    turn.log_query()
    trace = trace or AnswerTrace()
    trace.progress = turn.progress
    with turn.noting_failure():
        yield from _answer(turn, trace, data, tools)


def _answer(turn: Turn, trace: AnswerTrace, data: DataAnswer | None, tools: TurnTools | None) -> Events:
    documents = _search(turn)
    turn.stages |= documents.timings
    log_context(turn, documents)
    sources = trace.sources = DraftSources.from_documents(documents)
    context, rounds = documents, _open_rounds(sources, turn, tools)
    yield Meta(turn_id=turn.id, mode=context.mode, sources=list(context.sources))
    # Without evidence no generator runs, not even one that costs nothing.
    if not (context.request.passages or (rounds and rounds.has_site_tools)):
        yield from turn.end(make_refusal(context, explain_degradation(sources, turn), turn))
        return
    # Without a writer the budget is used up, and the answer is quoted as any other.
    writer = turn.models.writer if data else None
    if writer and rounds and rounds.has_site_tools:
        yield from call_tools(turn, rounds)
        sources = trace.sources = rounds.sources
    if data and writer and (yield from data.answer(sources, turn, writer)):
        return
    # A draft may still turn out to be no answer, see `ShownDraft.not_in_docs`.
    if context.faq:
        draft = yield from quote_entry(sources)
    elif writer:
        draft = yield from quote_documents(sources, turn)
    else:
        draft = yield from write_draft(sources, turn, rounds)
    trace.sources, trace.verified = draft.sources, draft.segments.verified
    yield from _respond(draft, turn)


def _search(turn: Turn) -> AnswerContext:
    if not turn.query.selected_text:
        return find_sources(turn)
    return search_selection(turn) if isinstance(turn.models.generator, Extractive) else read_selection(turn)


def _open_rounds(sources: DraftSources, turn: Turn, tools: TurnTools | None) -> ToolRounds | None:
    """Return the rounds in which the model may look again; None without a model or without a search."""
    if turn.models.writer is None or not sources.documents.retrieval_used or sources.documents.faq:
        return None
    # Lazy: only needed with a model.
    from chapterverse_api.answering.tool_rounds import ToolRounds

    return ToolRounds(sources, turn, tools)


def _respond(draft: ShownDraft, turn: Turn) -> Events:
    """End the turn with the shown segments, or with a refusal if there are none."""
    sources, segments = draft.sources, draft.segments
    context = sources.context
    degraded = explain_degradation(sources, turn, draft.failure, draft.reasoning_notice)
    turn.log("response_generated", generator=draft.generator, dropped_citations=segments.verified.dropped)
    if not segments.shown_spans:
        yield from turn.end(make_refusal(context, degraded, turn))
        return
    not_in_docs = draft.not_in_docs
    if not_in_docs or segments.draft_reader.is_cut:
        refusal = phrases.refusal(context.language, limited=bool(turn.query.filters))
        cut = phrases.for_language(context.language).cut
        yield from map(make_delta, segments.add(refusal if not_in_docs else cut))
    response = make_answer(context, segments.verified, degraded, turn, quoted=draft.quoted, not_in_docs=not_in_docs)
    yield from turn.end(response, context.faq.entry if context.faq else None)
