"""Writes the text of an answer, by a model or by quotes, and yields each segment that can be shown."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Generator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from chapterverse.errors import AnswerWithheld, ModelLoading, ProviderError
from chapterverse.text.plain import escape_markdown
from chapterverse_api import phrases
from chapterverse_api.answer.segments import DraftReader, Segments, make_delta
from chapterverse_api.answer.turn import Turn
from chapterverse_api.check.links.known_text import SiteText
from chapterverse_api.contract import Delta, ToolUse
from chapterverse_api.draft.draft import Span, silence_error
from chapterverse_api.draft.extractive import Extractive
from chapterverse_api.draft.requests import GenerationRequest, ToolCall

if TYPE_CHECKING:
    from chapterverse_api.answer.second_votes import SecondVotes
    from chapterverse_api.answer.tools import ToolRounds

#: Characters of a reply that is to hold calls alone.
_MAX_CALL_CHARS = 1_000

#: The name of what quotes a text that was looked up.
_CURATED = "faq"
_QUOTED = "The answer is quoted, since the model failed."
_WITHHELD = "The answer is quoted, since the model gives none to this question."
_FAILED = "The model failed."
_LOADING = "The answer is quoted, since the model is still being loaded: ask again in a minute."
_STOPPED = "The answer ends early, since the model failed."
_STOPPED_BY_FILTER = "The answer ends early, since the model withholds the rest."


@dataclass(frozen=True, slots=True)
class ShownDraft:
    """A draft, as far as it was shown.

    Attributes:
        generator: name of the one that wrote it.
        failure: a sentence about the model's failure; None if it did not fail.
    """

    segments: Segments
    generator: str
    failure: str | None = None

    @property
    def quoted(self) -> bool:
        """Whether the draft consists of quotes, without a model's words."""
        return self.generator in (Extractive.name, _CURATED)

    @property
    def not_in_docs(self) -> bool:
        """Whether the generator says that the sources hold no answer, or no citation of its whole draft holds."""
        if self.generator == _CURATED:
            return False
        ends_early = self.failure in (_STOPPED, _STOPPED_BY_FILTER)
        return self.segments.draft_reader.refused or not (ends_early or self.segments.verified.cited)


#: Yields what the reader sees of a draft, calls of tools included, and returns the draft.
DraftSteps: TypeAlias = Generator[Delta | ToolUse, None, ShownDraft]


def open_rounds(turn: Turn) -> ToolRounds | None:
    """Return the rounds in which the model may look again; None without a model or without a search."""
    if turn.models.writer is None or turn.sources.retrieval is None:
        return None
    # Lazy: only needed with a model.
    from chapterverse_api.answer.tools import ToolRounds

    return ToolRounds(turn)


def write_draft(turn: Turn, rounds: ToolRounds | None) -> DraftSteps:
    """Let the generator write. If it fails before its first segment is shown, quotes replace its draft.

    Args:
        rounds: those in which it may call tools in place of an answer.
    """
    votes, names = _new_votes(turn), rounds.names if rounds else ()
    with closing(votes) if votes else nullcontext():
        while True:
            request = rounds.request if rounds else turn.sources.request
            segments = _new_segments(turn, request, votes, waits=bool(names))
            try:
                calls = yield from _write(segments, turn, request, names)
            except ProviderError as error:
                return (yield from _replace_draft(error, segments, turn))
            if not (rounds and calls):
                return ShownDraft(segments, turn.models.generator.name)
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
        calls = yield from _stream(segments, models.generator.generate(request))
    if segments.shown_spans or not tools:
        return ()
    calls = calls or _read_written_calls(segments.draft_reader, tools)
    if calls and not request.tools:
        raise silence_error(cut=False)
    return calls


def _read_written_calls(reader: DraftReader, tools: Collection[str]) -> list[ToolCall]:
    """Return the calls that a reply holds as text, of which nothing is an answer."""
    # Lazy: only needed with tools.
    from chapterverse_api.draft.tool_calls import read_written_calls

    return read_written_calls(reader.text, tools)


def _replace_draft(error: ProviderError, segments: Segments, turn: Turn) -> DraftSteps:
    """End the draft of a model that failed, by quotes if nothing of it can be shown."""
    turn.log_failure("generator", error)
    yield from map(make_delta, segments.settle())
    is_withheld = isinstance(error, AnswerWithheld)
    if segments.shown_spans:
        return ShownDraft(segments, turn.models.generator.name, _STOPPED_BY_FILTER if is_withheld else _STOPPED)
    reason = _LOADING if isinstance(error, ModelLoading) else _WITHHELD if is_withheld else _QUOTED
    return (yield from quote_documents(turn, reason))


def quote_documents(turn: Turn, why: str = _QUOTED) -> DraftSteps:
    """Quote the documentation for this reason. Without passages that may answer there is nothing to quote."""
    # The budget has a reason of its own.
    reason = None if turn.models.turn_budget.reason else why
    documents = turn.sources.documents
    segments = _new_segments(turn, documents.request)
    if not documents.may_be_quoted:
        return ShownDraft(segments, turn.models.generator.name, reason and _FAILED)
    yield from _stream(segments, Extractive().generate(documents.request))
    return ShownDraft(segments, Extractive.name, reason)


def quote_winner(turn: Turn) -> DraftSteps:
    """Quote the text that is the answer, word for word and under its authors' name."""
    request, curated = turn.sources.request, phrases.for_language(turn.sources.language).curated
    segments, (entry,) = _new_segments(turn, request), request.passages
    path = " › ".join(map(escape_markdown, entry.path))
    framing = [Span(f"{text}\n\n", kind="framing") for text in (curated, f"**{path}**")]
    yield from _stream(segments, (span for span in (*framing, Span(entry.section, (entry.id,), kind="quote"))))
    return ShownDraft(segments, _CURATED)


def _new_segments(
    turn: Turn, request: GenerationRequest, votes: SecondVotes | None = None, *, waits: bool = False
) -> Segments:
    """Return the segments of an answer. They begin with a note if the passages are in another language."""
    sources = turn.sources
    note = f"{phrases.for_language(sources.language).other_language}\n\n" if sources.other_language else ""
    return Segments(request, sources.idf, SiteText(sources.snapshot), note=note, votes=votes, waits=waits)


def _new_votes(turn: Turn) -> SecondVotes | None:
    """Return the requests for second votes; None if no checker may be used."""
    checker = turn.models.checker
    if checker is None:
        return None
    # Lazy: only needed with a checker.
    from chapterverse_api.answer.second_votes import SecondVotes

    return SecondVotes(checker, turn.query.query or "", turn.deadline, lambda e: turn.log_failure("checker", e))


def _stream(
    segments: Segments, pieces: Generator[Span | ToolCall, None, None]
) -> Generator[Delta, None, Sequence[ToolCall]]:
    """Yield what can be shown of a draft; return the calls of tools beside it."""
    calls, reader = list[ToolCall](), segments.draft_reader
    with closing(pieces) as draft:
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
