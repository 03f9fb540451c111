"""Writes the text of an answer, checks it sentence by sentence, and yields each segment that can be shown."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Generator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from chapterverse.errors import AnswerWithheld, ModelLoading, ProviderError
from chapterverse_api import phrases
from chapterverse_api.answering.context import AnswerContext, DraftSources, IdfLookup
from chapterverse_api.answering.draft_reader import DraftReader
from chapterverse_api.answering.response import make_segment
from chapterverse_api.answering.segments import Segments
from chapterverse_api.answering.turn import Turn
from chapterverse_api.contract import Delta, ToolUse
from chapterverse_api.generation.curated import CuratedAnswer
from chapterverse_api.generation.draft import Span, silence_error
from chapterverse_api.generation.extractive import Extractive
from chapterverse_api.generation.protocols import AnswerGenerator
from chapterverse_api.generation.requests import GenerationRequest, ToolCall
from chapterverse_api.grounding.links.known_text import SiteText

if TYPE_CHECKING:
    from chapterverse_api.answering.second_votes import SecondVotes
    from chapterverse_api.answering.tool_rounds import ToolRounds

#: Characters of a reply that is to hold calls alone.
_MAX_CALL_CHARS = 1_000

_QUOTED = "The answer is quoted, since the model failed."
_WITHHELD = "The answer is quoted, since the model gives none to this question."
_FAILED = "The model failed."
_LOADING = "The answer is quoted, since the model is still being loaded: ask again in a minute."
_STOPPED = "The answer ends early, since the model failed."
_STOPPED_BY_FILTER = "The answer ends early, since the model withholds the rest."
_REASONING_NOTICE = (
    "The model's reasoning was shown with the answer: switch it off, or let the model's server mark where it begins."
)


@dataclass(frozen=True, slots=True)
class ShownDraft:
    """A draft, as far as it was shown.

    Attributes:
        sources: what it was made from.
        generator: name of the one that wrote it.
        failure: a sentence about the model's failure; None if it did not fail.
    """

    segments: Segments
    sources: DraftSources
    generator: str
    failure: str | None = None

    @property
    def quoted(self) -> bool:
        """Whether the draft consists of quotes, without a model's words."""
        return self.generator in (Extractive.name, CuratedAnswer.name)

    @property
    def not_in_docs(self) -> bool:
        """Whether the generator says that the sources hold no answer, or no citation of its whole draft holds."""
        if self.generator == CuratedAnswer.name:
            return False
        ends_early = self.failure in (_STOPPED, _STOPPED_BY_FILTER)
        return self.segments.draft_reader.refused or not (ends_early or self.segments.verified.cited)

    @property
    def reasoning_notice(self) -> str | None:
        """A sentence that the model's reasoning was shown; None if it was not."""
        return _REASONING_NOTICE if self.segments.restarted else None


#: Yields what the reader sees of a draft, calls of tools included, and returns the draft.
DraftSteps: TypeAlias = Generator[Delta | ToolUse, None, ShownDraft]


def write_draft(sources: DraftSources, turn: Turn, rounds: ToolRounds | None = None) -> DraftSteps:
    """Let the generator write. If it fails before its first segment is shown, quotes replace its draft.

    Args:
        rounds: those in which it may call tools in place of an answer.
    """
    votes = _new_votes(turn)
    with closing(votes) if votes else nullcontext():
        while True:
            sources = rounds.sources if rounds else sources
            request = rounds.request if rounds else sources.context.request
            names = rounds.names if rounds else ()
            segments = _new_segments(replace(sources.context, request=request), sources.idf, votes, waits=bool(names))
            try:
                calls = yield from _write(segments, turn, request, names)
            except ProviderError as error:
                return (yield from _replace_draft(error, segments, sources, turn))
            if not (rounds and calls):
                return ShownDraft(segments, sources, turn.models.generator.name)
            yield from rounds.run(calls)


def call_tools(turn: Turn, rounds: ToolRounds) -> Generator[ToolUse, None, None]:
    """Let the generator call tools for data, which can't be written in the same request. Its text is dropped."""
    while (request := rounds.request).tools:
        calls, reader = list[ToolCall](), DraftReader(request.passages)
        try:
            with (
                turn.models.circuit.calling(),
                turn.deadline.raising_on_disconnect(),
                closing(turn.models.generator.generate(request)) as draft,
            ):
                for piece in draft:
                    if isinstance(piece, ToolCall):
                        calls.append(piece)
                    else:
                        deque(reader.read(piece), 0)
                    if len(reader.text) > _MAX_CALL_CHARS:
                        break
        except ProviderError as error:
            turn.log_failure("generator", error)
        calls = calls or _read_written_calls(reader, rounds.names)
        if not calls:
            return
        yield from rounds.run(calls)


def _write(
    segments: Segments, turn: Turn, request: GenerationRequest, tools: Collection[str]
) -> Generator[Delta, None, Sequence[ToolCall]]:
    """Yield what can be shown of a draft; return the calls that came in place of one.

    Args:
        tools: the names of those that the model knows, from this request or an earlier one of its turn.

    Raises:
        ProviderError: the model failed, or calls tools when it may not any more.
    """
    models = turn.models
    with models.circuit.calling(), turn.deadline.raising_on_disconnect(), turn.timing("generate"):
        calls = yield from _stream(segments, models.generator, request)
    if segments.shown_spans or not tools:
        return ()
    calls = calls or _read_written_calls(segments.draft_reader, tools)
    if calls and not request.tools:
        raise silence_error(cut=False)
    return calls


def _read_written_calls(reader: DraftReader, tools: Collection[str]) -> list[ToolCall]:
    """Return the calls that a reply holds as text, of which nothing is an answer."""
    # Lazy: only needed with tools.
    from chapterverse_api.generation.tool_calls import read_written_calls

    return read_written_calls(reader.text, tools)


def _replace_draft(error: ProviderError, segments: Segments, sources: DraftSources, turn: Turn) -> DraftSteps:
    """End the draft of a model that failed, by quotes if nothing of it can be shown."""
    turn.log_failure("generator", error)
    yield from map(make_delta, segments.settle())
    is_withheld = isinstance(error, AnswerWithheld)
    if segments.shown_spans:
        name = turn.models.generator.name
        return ShownDraft(segments, sources, name, _STOPPED_BY_FILTER if is_withheld else _STOPPED)
    return (yield from quote_documents(sources, turn, _reason(error)))


def _reason(error: ProviderError) -> str:
    """Return why the answer is quoted."""
    if isinstance(error, ModelLoading):
        return _LOADING
    return _WITHHELD if isinstance(error, AnswerWithheld) else _QUOTED


def quote_documents(sources: DraftSources, turn: Turn, why: str = _QUOTED) -> DraftSteps:
    """Quote the documentation for this reason. Without passages that may answer there is nothing to quote."""
    # The budget has a reason of its own.
    reason = None if turn.models.turn_budget.reason else why
    documents, segments = sources.documents, _new_segments(sources.documents, sources.idf)
    if not documents.may_be_quoted:
        return ShownDraft(segments, sources, turn.models.generator.name, reason and _FAILED)
    yield from _stream(segments, Extractive(), documents.request)
    return ShownDraft(segments, sources, Extractive.name, reason)


def quote_entry(sources: DraftSources) -> DraftSteps:
    """Quote the FAQ entry that is the answer."""
    context = sources.context
    segments = _new_segments(context, sources.idf)
    yield from _stream(segments, CuratedAnswer(context.language), context.request)
    return ShownDraft(segments, sources, CuratedAnswer.name)


def _new_segments(
    context: AnswerContext, idf: IdfLookup, votes: SecondVotes | None = None, *, waits: bool = False
) -> Segments:
    """Return the segments of an answer. They begin with a note if the passages are in another language."""
    note = f"{phrases.for_language(context.language).other_language}\n\n" if context.other_language else ""
    return Segments(context.request, idf, SiteText(context.snapshot), note=note, votes=votes, waits=waits)


def _new_votes(turn: Turn) -> SecondVotes | None:
    """Return the requests for second votes; None if no checker may be used."""
    checker = turn.models.checker
    if checker is None:
        return None
    # Lazy: only needed with a checker.
    from chapterverse_api.answering.second_votes import SecondVotes

    return SecondVotes(checker, turn.query.query or "", turn.deadline, lambda e: turn.log_failure("checker", e))


def _stream(
    segments: Segments, generator: AnswerGenerator, request: GenerationRequest
) -> Generator[Delta, None, Sequence[ToolCall]]:
    """Yield what can be shown of a draft; return the calls of tools beside it."""
    calls, reader = list[ToolCall](), segments.draft_reader
    with closing(generator.generate(request)) as draft:
        for piece in draft:
            if isinstance(piece, ToolCall):
                calls.append(piece)
            else:
                yield from map(make_delta, segments.read(piece))
            if reader.is_over:
                break
    # What stands before a call, "I will look it up", is no answer, unless it was shown.
    if segments.shown_spans or not calls:
        yield from map(make_delta, segments.end())
    return calls


def make_delta(span: Span) -> Delta:
    return Delta(**make_segment(span).model_dump())
