"""The pipeline: a question in, a cited and verified answer out. `answer_query` shows all of it, top to bottom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from collections.abc import Generator as Steps
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from chapterverse.errors import InputError, ProviderError
from chapterverse_api import phrases
from chapterverse_api.answering.context import AnswerContext, Weights, search_index
from chapterverse_api.answering.resources import Resources
from chapterverse_api.answering.response import answer, refusal, segment
from chapterverse_api.answering.segments import Segments
from chapterverse_api.answering.selection import read_selection, search_selection
from chapterverse_api.answering.turn import Turn
from chapterverse_api.budget.daily_budget import TurnBudget
from chapterverse_api.contract import ChatQuery, Delta, Event, Events, Meta, ToolUse
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation.curated import CuratedAnswer
from chapterverse_api.generation.draft import Span
from chapterverse_api.generation.extractive import Extractive
from chapterverse_api.generation.prompts import estimate_tokens
from chapterverse_api.generation.protocols import DataWriter, Generator
from chapterverse_api.generation.requests import ResponseSchema
from chapterverse_api.grounding.results import Verified
from chapterverse_api.observability.query_state import QueryProgress
from chapterverse_api.retrieval.faq import FaqMatch
from chapterverse_api.retrieval.passages import Omission

if TYPE_CHECKING:
    from chapterverse_api.answering.second_votes import SecondVotes
    from chapterverse_api.answering.tool_use import TurnTools

_QUOTED = "The answer is quoted, since the model failed."
_FAILED = "The model failed."
_STOPPED = "The answer ends early, since the model failed."
_THOUGHTS = (
    "The model's reasoning was shown with the answer: switch it off, or let the model's server mark where it begins."
)


@dataclass(slots=True)
class AnswerTrace:
    """The parts of an answer, for the owner to understand it; filled while the answer is made.

    Attributes:
        verified: None where no sentence was checked, as in a refusal for want of evidence.
    """

    progress: QueryProgress | None = None
    context: AnswerContext | None = None
    verified: Verified | None = None


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
    """Yield `Meta`, each call of a tool, each checked segment as a `Delta`, and last the `ChatResponse` of these.

    Args:
        deadline: until when, at the latest; 25 seconds from now where it is left out.
        origins: addresses that the reader's page may be of, besides the site's own.
        turn_budget: the most that the models may cost; no limit where it is left out.
        tools: the tools that the model may call before it answers.
        trace: filled with the parts of the answer.

    Raises:
        InputError: a filter names no known field, the page is of another site, or data can't be had in this form.
        IndexFault: there is no index that can be read.
    """
    schema = _load_schema(query.output, resources) if query.output else None
    turn = Turn(query, resources, deadline or Deadline(), origins, turn_budget)
    turn.log_query()
    trace = trace or AnswerTrace()
    trace.progress = turn.progress
    try:
        yield from _answer(turn, trace, schema, tools)
    except Exception:
        turn.progress.enter("failed")
        raise


def _answer(turn: Turn, trace: AnswerTrace, schema: ResponseSchema | None, tools: TurnTools | None) -> Events:
    query = turn.query
    quoting = turn.models.generator.name == Extractive.name
    select = search_selection if quoting else read_selection
    context = select(turn) if query.selected_text else search_index(turn)
    _log_retrieval(turn, context)
    documents, missing, calls = context, None, tuple[ToolUse, ...]()
    if tools and context.retrieval_used and not context.faq:
        # Loaded where a site has tools.
        from chapterverse_api.answering.tool_use import add_tool_results

        context, missing, calls = add_tool_results(documents, turn, tools)
    # It comes first and names all sources, those of tools included, as each segment may cite them.
    yield Meta(turn_id=turn.id, mode=context.mode, sources=list(context.sources))
    yield from calls
    trace.context = context
    # First refusal: without evidence no generator runs, not even one that costs nothing.
    if not context.task.passages:
        yield from turn.end(refusal(context, turn, missing))
        return

    weights = Weights(context.snapshot)
    if context.faq:
        yield from _answer_from_faq(context, context.faq, turn, trace, weights)
        return
    # Without a writer the budget is used up, and the answer is quoted as any other.
    if schema and (writer := turn.models.data_writer):
        if (yield from _answer_with_data(context, turn, weights, schema, writer)):
            return
        segments, failure = yield from _stream_quotes(documents, weights)
    else:
        # Second refusal: the generator says that the passages hold no answer. Third: none of the segments that wait has
        # a citation that holds. A segment that was shown stays.
        segments, failure = yield from _stream_draft(context, documents, turn, weights)
    trace.verified = segments.verified
    degraded = _explain_degradation(context, turn, weights, failure, missing, _THOUGHTS if segments.restarted else None)
    turn.log(
        "response_generated",
        generator="extractive" if failure == _QUOTED else turn.models.generator.name,
        dropped_citations=segments.verified.dropped,
    )
    if not segments.shown:
        yield from turn.end(refusal(context, turn, degraded))
        return
    ours = phrases.of(context.language)
    not_in_docs = segments.draft.refused or (failure != _STOPPED and not segments.verified.cited)
    if not_in_docs or segments.draft.is_cut:
        yield from map(_make_delta, segments.add(ours.refused if not_in_docs else ours.cut))
    quoted = quoting or failure == _QUOTED
    yield from turn.end(answer(context, segments.verified, degraded, turn, quoted=quoted, not_in_docs=not_in_docs))


def _answer_from_faq(
    context: AnswerContext, match: FaqMatch, turn: Turn, trace: AnswerTrace, weights: Weights
) -> Events:
    """Answer with a FAQ entry: no generator runs."""
    segments = _open_segments(context, weights)
    yield from _stream(segments, CuratedAnswer(context.language), context)
    trace.verified = segments.verified
    turn.log("response_generated", generator=CuratedAnswer.name, dropped_citations=segments.verified.dropped)
    degraded = _explain_degradation(context, turn, weights)
    response = answer(context, segments.verified, degraded, turn, quoted=True, not_in_docs=False)
    yield from turn.end(response, match.entry)


def _log_retrieval(turn: Turn, context: AnswerContext) -> None:
    """Log the results of each part, and the omitted candidates. A part that failed logs only its error."""
    turn.stages |= context.timings
    retrieval = context.retrieval
    failures = retrieval.failures if retrieval else {}
    for part, error in failures.items():
        turn.log_failure(part, error)
    if "embed" in context.timings and "embedder" not in failures:
        turn.log("embedding_generated", seconds=context.timings["embed"])
    turn.log("retrieval_performed", mode=context.mode, candidates=context.candidates)
    turn.log(
        "results_ranked",
        passages=len(context.task.passages),
        evidence=round(context.evidence, 4),
        algorithm=retrieval.algorithm if retrieval else None,
    )
    if retrieval:
        reasons = Counter(context.omissions.values())
        omitted = {f"omitted_{stage}": reasons[stage] for stage in get_args(Omission)}
        turn.log("results_filtered", candidates=len(retrieval.candidates), floor=retrieval.calibration.floor, **omitted)
    task = context.task
    turn.log(
        "context_prepared",
        passages=len(task.passages),
        tokens=round(sum(estimate_tokens(passage.section) for passage in task.passages)),
        messages=len(task.history),
        summary=bool(task.summary),
        user_context=len(task.context),
    )


def _stream_draft(
    context: AnswerContext, documents: AnswerContext, turn: Turn, weights: Weights
) -> Steps[Delta, None, tuple[Segments, str | None]]:
    """Show the draft and return it, with what failed.

    If the generator fails before its first segment is shown, quotes of the documents replace its draft.
    """
    models, voting = turn.models, _open_votes(turn)
    with closing(voting) if voting else nullcontext():
        segments = _open_segments(context, weights, voting)
        try:
            with models.circuit.asking(), turn.deadline.raising_on_disconnect(), turn.timing("generate"):
                yield from _stream(segments, models.generator, context)
        except ProviderError as error:
            turn.log_failure("generator", error)
            yield from map(_make_delta, segments.settle())
            if segments.shown:
                return segments, _STOPPED
            return (yield from _stream_quotes(documents, weights))
        return segments, None


def _stream_quotes(context: AnswerContext, weights: Weights) -> Steps[Delta, None, tuple[Segments, str | None]]:
    """Show quotes in place of a draft that failed."""
    segments = _open_segments(context, weights)
    if context.task.passages:
        yield from _stream(segments, Extractive(), context)
    return segments, _QUOTED if context.task.passages else _FAILED


def _load_schema(name: str, resources: Resources) -> ResponseSchema:
    """Return the schema that an answer is to fit.

    Raises:
        InputError: there is no schema of this name, it can't be used, or the generator writes no data.
    """
    if not isinstance(resources.models.generator, DataWriter):
        raise InputError("output needs a language model: this site answers with quotes alone.", field="output")
    # Loaded where somebody asks for data.
    from chapterverse_api.structured_output.schema import read_schema

    return read_schema(name, resources.settings.schemas)


def _answer_with_data(
    context: AnswerContext, turn: Turn, weights: Weights, schema: ResponseSchema, writer: DataWriter
) -> Steps[Event, None, bool]:
    """Answer with data; return whether the model gave any that fits. Data without any citation is a refusal."""
    from chapterverse_api.answering.structured import structured_answer

    filled = structured_answer(context, turn, schema, writer, weights)
    if filled is None:
        return False
    degraded, verified = _explain_degradation(context, turn, weights), filled.verified
    turn.log("response_generated", generator=turn.models.generator.name, dropped_citations=verified.flagged)
    if not verified.cited:
        yield from turn.end(refusal(context, turn, degraded))
        return True
    yield from map(_make_delta, verified.spans)
    data = {"data": filled.data, "data_citations": filled.citations}
    yield from turn.end(answer(context, verified, degraded, turn, quoted=False, not_in_docs=False, **data))
    return True


def _open_segments(context: AnswerContext, weights: Weights, voting: SecondVotes | None = None) -> Segments:
    """Return the segments of an answer, which begin with a note about the passages where one is needed."""
    note = f"{phrases.of(context.language).other_language}\n\n" if context.other_language else ""
    return Segments(context.task, weights, note=note, voting=voting)


def _open_votes(turn: Turn) -> SecondVotes | None:
    """Return the requests for second votes; None where no checker may be used."""
    checker = turn.models.checker
    if checker is None:
        return None
    # Loaded where a checker is configured.
    from chapterverse_api.answering.second_votes import SecondVotes

    return SecondVotes(checker, turn.query.query or "", turn.deadline, lambda e: turn.log_failure("checker", e))


def _stream(segments: Segments, generator: Generator, context: AnswerContext) -> Steps[Delta, None, None]:
    with closing(generator.generate(context.task)) as draft:
        for span in draft:
            yield from map(_make_delta, segments.read(span))
            if segments.draft.is_over:
                break
    yield from map(_make_delta, segments.end())


def _make_delta(span: Span) -> Delta:
    return Delta(**segment(span).model_dump())


def _explain_degradation(context: AnswerContext, turn: Turn, weights: Weights, *failures: str | None) -> str | None:
    # A selection needs no index.
    unweighed = weights.lost and context.retrieval_used
    reasons = (
        *failures,
        turn.models.turn_budget.reason,
        context.degraded,
        turn.degraded,
        "The index could not be reached any more; all words of the answer were weighed alike." if unweighed else None,
    )
    return " ".join(filter(None, reasons)) or None
