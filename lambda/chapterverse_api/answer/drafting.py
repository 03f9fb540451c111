"""Writes the text of an answer, by a model or by quotes, and yields each segment that can be shown."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from chapterverse.errors import AnswerWithheld, ModelLoading, ProviderError
from chapterverse.extensions import load_part
from chapterverse.text.markdown import escape_markdown
from chapterverse_api import phrases
from chapterverse_api.answer.segments import Segments, Votes, make_delta
from chapterverse_api.answer.turn import Turn
from chapterverse_api.check.links.known_text import SiteText
from chapterverse_api.contract import Delta, ToolUse
from chapterverse_api.draft.draft import Span, silence_error
from chapterverse_api.draft.extractive import Extractive
from chapterverse_api.draft.requests import GenerationRequest, ToolCall

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


class ToolRounds(Protocol):
    """The rounds in which a model may call tools in place of an answer.

    Attributes:
        has_site_tools: whether the model may find something that the documentation does not hold.
        request: the request to the generator, with tools while a round is left.
    """

    @property
    def has_site_tools(self) -> bool: ...

    @property
    def request(self) -> GenerationRequest: ...

    def read_calls(self, text: str) -> Sequence[ToolCall]:
        """Return the calls that a reply holds as text, of which nothing is an answer."""
        ...

    def run(self, asked: Sequence[ToolCall]) -> Generator[ToolUse, None, None]:
        """Make the calls of a round. What they find joins the sources of the turn."""
        ...

    def run_all(self) -> Generator[ToolUse, None, None]:
        """Let the generator call tools for data, which can't be written in the same request."""
        ...


def open_rounds(turn: Turn) -> ToolRounds | None:
    """Return the rounds in which the model may look again; None without a model or without a search."""
    has_rounds = turn.models.writer and turn.sources.retrieval
    rounds: ToolRounds | None = load_part("tool_rounds")(turn) if has_rounds else None
    return rounds


def write_draft(turn: Turn, rounds: ToolRounds | None) -> DraftSteps:
    """Let the generator write. If it fails before its first segment is shown, quotes replace its draft.

    Args:
        rounds: those in which it may call tools in place of an answer.
    """
    votes, quotes = _new_votes(turn), isinstance(turn.models.generator, Extractive)
    with closing(votes) if votes else nullcontext():
        while True:
            request = rounds.request if rounds else turn.sources.request
            segments = _new_segments(turn, request, votes, waits=rounds is not None, quotes=quotes)
            try:
                calls = yield from _write(segments, turn, request, rounds)
            except ProviderError as error:
                return (yield from _replace_draft(error, segments, turn))
            if not (rounds and calls):
                return ShownDraft(segments, turn.models.generator.name)
            yield from rounds.run(calls)


def _write(
    segments: Segments, turn: Turn, request: GenerationRequest, rounds: ToolRounds | None
) -> Generator[Delta, None, Sequence[ToolCall]]:
    """Yield what can be shown of a draft; return the calls that came in place of one.

    Raises:
        ProviderError: the model failed, or calls tools when it may not any more.
    """
    models = turn.models
    with models.circuit.calling(), turn.deadline.raising_on_disconnect(), turn.timing("generate"):
        calls = yield from _stream(segments, models.generator.generate(request))
    if segments.shown_spans or not rounds:
        return ()
    calls = calls or rounds.read_calls(segments.draft_reader.text)
    if calls and not request.tools:
        raise silence_error(cut=False)
    return calls


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
    segments = _new_segments(turn, documents.request, quotes=True)
    if not documents.may_be_quoted:
        return ShownDraft(segments, turn.models.generator.name, reason and _FAILED)
    yield from _stream(segments, Extractive().generate(documents.request))
    return ShownDraft(segments, Extractive.name, reason)


def quote_winner(turn: Turn) -> DraftSteps:
    """Quote the text that is the answer, word for word and under its authors' name."""
    request, curated = turn.sources.request, phrases.for_language(turn.sources.language).curated
    segments, (entry,) = _new_segments(turn, request, quotes=True), request.passages
    path = " › ".join(map(escape_markdown, entry.path))
    framing = [Span(f"{text}\n\n", kind="framing") for text in (curated, f"**{path}**")]
    yield from _stream(segments, (span for span in (*framing, Span(entry.section, (entry.id,), kind="quote"))))
    return ShownDraft(segments, _CURATED)


def _new_segments(
    turn: Turn,
    request: GenerationRequest,
    votes: Votes | None = None,
    *,
    waits: bool = False,
    quotes: bool = False,
) -> Segments:
    """Return the segments of an answer. They begin with a note if the passages are in another language."""
    sources = turn.sources
    note = f"{phrases.for_language(sources.language).other_language}\n\n" if sources.other_language else ""
    site = SiteText(sources.snapshot)
    return Segments(request, sources.idf, site, note=note, votes=votes, waits=waits, quotes=quotes)


def _new_votes(turn: Turn) -> Votes | None:
    """Return the requests for second votes; None if no checker may be used."""
    if (checker := turn.models.checker) is None:
        return None
    votes: Votes = load_part("second_votes")(
        checker, turn.query.query or "", turn.deadline, lambda error: turn.log_failure("checker", error)
    )
    return votes


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
