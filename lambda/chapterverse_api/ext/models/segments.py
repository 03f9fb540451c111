"""Reads a draft sentence by sentence, checks each and shows it at once, with the citations that hold.

A shown segment stays. Up to three segments wait for the first one that is confirmed, and all of them if the reply may
call a tool instead. If none is confirmed, the answer can still be refused or given by quotes, because the reader has
seen nothing of it. A sentence that needs a second vote waits until the verdict or its deadline. The segments behind it
wait too, so that none overtakes another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from chapterverse.text.sentences import Sentence
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import GenerationRequest
from chapterverse_api.ext.check.links.known_text import SiteText
from chapterverse_api.ext.check.results import CheckedSentence, IdfFunction, VerifiedDraft
from chapterverse_api.ext.check.verifier import Verifier
from chapterverse_api.ext.models.draft_reader import DraftReader, DraftSentence
from chapterverse_api.ext.models.second_votes import CheckerVote, SecondVotes, check_sentence
from chapterverse_api.ext.models.wire import damage_error

#: Segments that wait for the first one that is confirmed, at most.
_MAX_WAITING_SEGMENTS = 3


@dataclass(slots=True)
class _QueuedSegment:
    """A segment that was not shown yet; `vote` is the open vote on the citations of `sentence`."""

    span: Span
    sentence: CheckedSentence | None = None
    vote: CheckerVote | None = None


class Segments:
    """The segments of one answer.

    Args:
        site: the rest of the site, whose addresses may stand in the answer too.
        first: the service's own words before the answer.
        votes: asks for second votes; None if the words decide.
        waits: whether all segments wait for the first one that is confirmed.

    Attributes:
        shown_spans: the segments that the reader has.
        draft_reader: reads the draft.
        restarted: reasoning was shown as answer, before its end mark came.
    """

    def __init__(
        self,
        request: GenerationRequest,
        idf: IdfFunction,
        site: SiteText | None = None,
        *,
        first: Iterable[Span] = (),
        votes: SecondVotes | None = None,
        waits: bool = False,
    ) -> None:
        self.draft_reader = DraftReader(request.passages, site)
        self.shown_spans: list[Span] = []
        self.restarted = False
        self._max_waiting = math.inf if waits else _MAX_WAITING_SEGMENTS
        self._request, self._idf, self._votes = request, idf, votes
        self._verifier = self._new_verifier()
        self._queue = [*map(_QueuedSegment, first)]
        self._restarts = 0

    def read(self, span: Span) -> Iterator[Span]:
        """Yield the segments that can be shown after this span.

        Raises:
            ProviderError: the model writes more than its limit.
        """
        yield from self._check(self.draft_reader.read(span))
        yield from self._release_settled()

    def end(self) -> Iterator[Span]:
        """Yield the segments that remain.

        Raises:
            ProviderError: the model wrote nothing, or its text was damaged and nothing of it was shown.
        """
        yield from self._check(self.draft_reader.end())
        yield from self.settle()
        if not self.shown_spans and any(one.sentence and one.sentence.is_damaged for one in self._queue):
            raise damage_error()

    def settle(self) -> Iterator[Span]:
        """Wait for the open votes, and yield the segments that can be shown then."""
        for segment in self._queue:
            self._apply_vote(segment)
        yield from self._release_settled()

    def add(self, text: str) -> Iterator[Span]:
        """Yield the service's own words behind the answer."""
        fence = "\n```" if self.draft_reader.is_open else ""
        self._queue.append(_QueuedSegment(Span(f"{fence}\n\n{text}", kind="framing")))
        yield from self._release(len(self._queue))

    @property
    def verified(self) -> VerifiedDraft:
        """The result of the check for the shown segments."""
        verified = self._verifier.to_result(self.shown_spans)
        if not (self.draft_reader.is_cut and self.shown_spans):
            return verified
        return replace(verified, spans=(*self.shown_spans[:-1], replace(self.shown_spans[-1], cut=True)))

    def _check(self, sentences: Iterable[DraftSentence]) -> Iterator[Span]:
        for one in sentences:
            if self._restarts < self.draft_reader.restarts:
                self._restart()
            for segment in self._read(one.span, one.sentence):
                self._queue.append(segment)
                yield from self._release_settled()

    def _read(self, span: Span, sentence: Sentence | None) -> Iterator[_QueuedSegment]:
        if sentence:
            checked, vote = check_sentence(self._verifier, sentence, span.citations, self._votes)
            yield _QueuedSegment(_with_citations(span, checked), checked, vote)
        elif span.kind == "framing":
            yield _QueuedSegment(replace(span, citations=()))
        else:
            yield from map(_QueuedSegment, self._verifier.check_quote(span))

    def _apply_vote(self, segment: _QueuedSegment) -> None:
        """Wait for the vote on a segment, and remove its citations if the vote is against them."""
        vote, segment.vote = segment.vote, None
        if vote and segment.sentence and vote.rejects():
            self._verifier.reject(segment.sentence)
            segment.span = _with_citations(segment.span, segment.sentence)

    def _new_verifier(self) -> Verifier:
        # A sentence that repeats only the reader or a memory claims nothing of the documentation.
        reader_text = "\n\n".join((self._request.context, *self._request.memories))
        request = self._request
        return Verifier(request.passages, request.language, self._idf, context=reader_text, question=request.words)

    def _restart(self) -> None:
        """Drop the segments that turned out to be reasoning, unless they were shown."""
        self._restarts = self.draft_reader.restarts
        self._queue = [segment for segment in self._queue if segment.span.kind == "framing"]
        self.restarted = bool(self.shown_spans)
        if not self.shown_spans:
            self._verifier = self._new_verifier()

    def _release_settled(self) -> Iterator[Span]:
        """Yield the segments before the first open vote, unless they still wait for a confirmed one."""
        ready = 0
        for segment in self._queue:
            if segment.vote and not segment.vote.is_over:
                break
            self._apply_vote(segment)
            ready += 1
        before = [segment.span for segment in self._queue[:ready]]
        wait = sum(span.kind != "framing" for span in before) < self._max_waiting
        if self.shown_spans or not wait or any(span.check == "confirmed" for span in before):
            yield from self._release(ready)

    def _release(self, count: int) -> Iterator[Span]:
        ready, self._queue = self._queue[:count], self._queue[count:]
        for segment in ready:
            self.shown_spans.append(segment.span)
            yield segment.span


def _with_citations(span: Span, checked: CheckedSentence) -> Span:
    """Return a span with the citations that hold."""
    return replace(span, citations=checked.citations, check=checked.check)
