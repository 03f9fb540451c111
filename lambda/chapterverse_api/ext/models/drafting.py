"""Lets a model write an answer, and yields each segment that can be shown. Quotes replace the draft of a failed one."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial

from chapterverse.errors import AnswerWithheld, ModelLoading, ProviderError
from chapterverse_api import phrases
from chapterverse_api.answer.drafting import DraftSteps, introduce, quote_documents
from chapterverse_api.answer.response import make_delta
from chapterverse_api.answer.turn import Turn
from chapterverse_api.contract import Delta
from chapterverse_api.draft.draft import ShownDraft, Span
from chapterverse_api.draft.requests import GenerationRequest, ToolCall
from chapterverse_api.ext.check.links.known_text import SiteText
from chapterverse_api.ext.models.segments import SecondVotes, Segments
from chapterverse_api.ext.models.tool_rounds import TurnRounds
from chapterverse_api.ext.models.wire import silence_error

_WITHHELD = "The answer is quoted, since the model gives none to this question."
_LOADING = "The answer is quoted, since the model is still being loaded: ask again in a minute."
_STOPPED = "The answer ends early, since the model failed."
_STOPPED_BY_FILTER = "The answer ends early, since the model withholds the rest."
_REASONING_NOTICE = (
    "The model's reasoning was shown with the answer: switch it off, or let the model's server mark where it begins."
)


def write_draft(turn: Turn, rounds: TurnRounds | None) -> DraftSteps:
    """Let the generator write. If it fails before its first segment is shown, quotes replace its draft.

    Args:
        rounds: those in which it may call tools in place of an answer.
    """
    votes = _new_votes(turn)
    with closing(votes) if votes else nullcontext():
        while True:
            request = rounds.request if rounds else turn.sources.request
            segments = _new_segments(turn, request, votes, waits=rounds is not None)
            try:
                calls = yield from _write(segments, turn, request, rounds)
            except ProviderError as error:
                return (yield from _replace_draft(error, segments, turn))
            if not (rounds and calls):
                return (yield from _finish(segments, turn, ShownDraft((), turn.models.generator.name)))
            yield from rounds.run(calls)


def check_quotes(quotes: Iterable[Span], turn: Turn, request: GenerationRequest, draft: ShownDraft) -> DraftSteps:
    """Yield quotes without foreign markup, and return the draft with them. What was removed may cost a citation."""
    segments = _new_segments(turn, request)
    for quote in quotes:
        yield from map(make_delta, segments.read(quote))
    yield from map(make_delta, segments.end())
    return (yield from _finish(segments, turn, draft))


def _write(
    segments: Segments, turn: Turn, request: GenerationRequest, rounds: TurnRounds | None
) -> Generator[Delta, None, Sequence[ToolCall]]:
    """Yield what can be shown of a draft; return the calls that came in place of one.

    Raises:
        ProviderError: the model failed, or calls tools when it may not any more.
    """
    models = turn.models
    with models.drafting(), turn.deadline.raising_on_disconnect(), turn.timing("generate"):
        calls = yield from _stream(segments, models.generator.generate(request))
    if segments.shown_spans or not rounds:
        return ()
    calls = calls or rounds.read_calls(segments.draft_reader.text)
    if calls and not request.tools:
        raise silence_error(cut=False)
    return calls


def _stream(
    segments: Segments, pieces: Generator[Span | ToolCall, None, None]
) -> Generator[Delta, None, Sequence[ToolCall]]:
    """Yield what can be shown of a draft; return the calls of tools beside it."""
    calls = list[ToolCall]()
    with closing(pieces) as draft:
        for piece in draft:
            if isinstance(piece, ToolCall):
                calls.append(piece)
            else:
                yield from map(make_delta, segments.read(piece))
            if segments.draft_reader.is_over:
                break
    # What stands before a call, "I will look it up", is no answer, unless it was shown.
    if segments.shown_spans or not calls:
        yield from map(make_delta, segments.end())
    return calls


def _replace_draft(error: ProviderError, segments: Segments, turn: Turn) -> DraftSteps:
    """End the draft of a model that failed, by quotes if nothing of it can be shown."""
    turn.log_failure("generator", error)
    yield from map(make_delta, segments.settle())
    is_withheld = isinstance(error, AnswerWithheld)
    if segments.shown_spans:
        failure = _STOPPED_BY_FILTER if is_withheld else _STOPPED
        return (yield from _finish(segments, turn, ShownDraft((), turn.models.generator.name, failure)))
    if isinstance(error, ModelLoading):
        return (yield from quote_documents(turn, _LOADING))
    return (yield from quote_documents(turn, _WITHHELD) if is_withheld else quote_documents(turn))


def _finish(segments: Segments, turn: Turn, draft: ShownDraft) -> DraftSteps:
    """Say what the shown segments leave open, and return the draft with them and what the check says of them."""
    reader = segments.draft_reader
    # A draft that ends early may still have been about to cite, and what the authors wrote for a question answers it.
    may_answer = draft.failure in (_STOPPED, _STOPPED_BY_FILTER) or turn.sources.found.winner or segments.verified.cited
    not_in_docs = reader.refused or not may_answer
    if segments.shown_spans and (not_in_docs or reader.is_cut):
        language = turn.sources.language
        refusal = phrases.refusal(language, limited=bool(turn.query.filters))
        text = refusal if not_in_docs else phrases.for_language(language).cut
        yield from map(make_delta, segments.add(text))
    verified, notice = segments.verified, _REASONING_NOTICE if segments.restarted else None
    return replace(
        draft,
        spans=verified.spans,
        failure=" ".join(filter(None, (draft.failure, notice))) or None,
        not_in_docs=not_in_docs,
        confidence=verified.confidence,
        partial_reason=verified.partial_reason,
        dropped=verified.dropped,
        checks=verified.checks,
    )


def _new_segments(
    turn: Turn, request: GenerationRequest, votes: SecondVotes | None = None, *, waits: bool = False
) -> Segments:
    sources = turn.sources
    site = SiteText(sources.snapshot)
    return Segments(request, sources.idf, site, first=introduce(turn), votes=votes, waits=waits)


def _new_votes(turn: Turn) -> SecondVotes | None:
    """Return the requests for second votes; None if no checker may be used."""
    if (checker := turn.models.checker) is None:
        return None
    return SecondVotes(checker, turn.query.query or "", turn.deadline, partial(turn.log_failure, "checker"))
