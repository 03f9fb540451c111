"""Writes the text of an answer, checks it sentence by sentence, and yields each segment that can be shown."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from chapterverse.errors import AnswerWithheld, ModelLoading, ProviderError
from chapterverse_api import phrases
from chapterverse_api.answering.context import AnswerContext, DraftSources, IdfLookup
from chapterverse_api.answering.response import make_segment
from chapterverse_api.answering.segments import Segments
from chapterverse_api.answering.turn import Turn
from chapterverse_api.contract import Delta
from chapterverse_api.generation.curated import CuratedAnswer
from chapterverse_api.generation.draft import Span
from chapterverse_api.generation.extractive import Extractive
from chapterverse_api.generation.protocols import AnswerGenerator
from chapterverse_api.grounding.links.site_text import SiteText

if TYPE_CHECKING:
    from chapterverse_api.answering.second_votes import SecondVotes

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
        generator: name of the one that wrote it.
        failure: a sentence about the model's failure; None if it did not fail.
    """

    segments: Segments
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


#: Yields the deltas of a draft that the reader sees, and returns the draft.
DraftSteps: TypeAlias = Generator[Delta, None, ShownDraft]


def write_draft(sources: DraftSources, turn: Turn) -> DraftSteps:
    """Let the generator write. If it fails before its first segment is shown, quotes replace its draft."""
    models, context, votes = turn.models, sources.context, _new_votes(turn)
    with closing(votes) if votes else nullcontext():
        segments = _new_segments(context, sources.idf, votes)
        try:
            with models.circuit.calling(), turn.deadline.raising_on_disconnect(), turn.timing("generate"):
                yield from _stream(segments, models.generator, context)
        except ProviderError as error:
            turn.log_failure("generator", error)
            yield from map(make_delta, segments.settle())
            is_withheld = isinstance(error, AnswerWithheld)
            if segments.shown_spans:
                return ShownDraft(segments, models.generator.name, _STOPPED_BY_FILTER if is_withheld else _STOPPED)
            return (yield from quote_documents(sources, turn, _reason(error)))
        return ShownDraft(segments, models.generator.name)


def _reason(error: ProviderError) -> str:
    """Return why the answer is quoted."""
    if isinstance(error, ModelLoading):
        return _LOADING
    return _WITHHELD if isinstance(error, AnswerWithheld) else _QUOTED


def quote_documents(sources: DraftSources, turn: Turn, reason: str = _QUOTED) -> DraftSteps:
    """Quote the documentation for this reason. Without passages there is nothing to quote."""
    segments = _new_segments(sources.documents, sources.idf)
    if not sources.documents.request.passages:
        return ShownDraft(segments, turn.models.generator.name, _FAILED)
    yield from _stream(segments, Extractive(), sources.documents)
    return ShownDraft(segments, Extractive.name, reason)


def quote_entry(sources: DraftSources) -> DraftSteps:
    """Quote the FAQ entry that is the answer."""
    context = sources.context
    segments = _new_segments(context, sources.idf)
    yield from _stream(segments, CuratedAnswer(context.language), context)
    return ShownDraft(segments, CuratedAnswer.name)


def _new_segments(context: AnswerContext, idf: IdfLookup, votes: SecondVotes | None = None) -> Segments:
    """Return the segments of an answer. They begin with a note if the passages are in another language."""
    note = f"{phrases.for_language(context.language).other_language}\n\n" if context.other_language else ""
    return Segments(context.request, idf, SiteText(context.snapshot), note=note, votes=votes)


def _new_votes(turn: Turn) -> SecondVotes | None:
    """Return the requests for second votes; None if no checker may be used."""
    checker = turn.models.checker
    if checker is None:
        return None
    # Lazy: only needed with a checker.
    from chapterverse_api.answering.second_votes import SecondVotes

    return SecondVotes(checker, turn.query.query or "", turn.deadline, lambda e: turn.log_failure("checker", e))


def _stream(segments: Segments, generator: AnswerGenerator, context: AnswerContext) -> Generator[Delta, None, None]:
    with closing(generator.generate(context.request)) as draft:
        for span in draft:
            yield from map(make_delta, segments.read(span))
            if segments.draft_reader.is_over:
                break
    yield from map(make_delta, segments.end())


def make_delta(span: Span) -> Delta:
    return Delta(**make_segment(span).model_dump())
