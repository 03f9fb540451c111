"""Reads a draft sentence by sentence, checks each and shows it at once, with the citations that hold.

A shown segment stays. Up to three segments wait for the first one that is confirmed, and all of them if the reply may
call a tool instead. If none is confirmed, the answer can still be refused or given by quotes, because the reader has
seen nothing of it. A sentence that needs a second vote waits until the verdict or its deadline. The segments behind it
wait too, so that none overtakes another. A checker votes on each sentence once, and on a few of one answer, while the
generator writes on. After one failure the words decide for the rest of the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Thread

from chapterverse.errors import ProviderError
from chapterverse.text.sentences import Sentence
from chapterverse.text.tokens import utf8_length
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import MAX_VOTE_BYTES, MAX_VOTES, Checker, CheckRequest, Span
from chapterverse_api.draft.requests import GenerationRequest
from chapterverse_api.ext.check.links.known_text import SiteText
from chapterverse_api.ext.check.results import CheckedSentence, IdfFunction, VerifiedDraft
from chapterverse_api.ext.check.verifier import Verifier
from chapterverse_api.ext.models.draft_reader import DraftReader, DraftSentence
from chapterverse_api.ext.models.wire import damage_error

#: Seconds for one vote. Bespoke-MiniCheck takes about .2 on a graphics card.
_VOTE_SECONDS = 3.0
#: Characters of a question that a guardrail takes; a source may have 100,000, a claim 5,000.
_MAX_QUESTION_CHARS = 1_000
#: Seconds more for a transport to notice that its time is up.
_GRACE = 0.5


class SecondVotes:
    """The votes on one answer.

    Args:
        report: is given each failure.
    """

    def __init__(
        self, checker: Checker, question: str, deadline: Deadline, report: Callable[[ProviderError], None]
    ) -> None:
        self._checker, self._deadline, self._report = checker, deadline, report
        self._question = question[:_MAX_QUESTION_CHARS]
        self._votes = list[CheckerVote]()
        self._failed = False

    def ask(self, document: str, claim: str) -> CheckerVote | None:
        """Request a vote on a claim; None after a failure, above the number of votes, or for a text too long."""
        size = sum(utf8_length(text) for text in (document, claim, self._question))
        if self._failed or len(self._votes) == MAX_VOTES or size > MAX_VOTE_BYTES or not self._deadline.seconds_left:
            return None
        request = CheckRequest(document, claim, self._question, self._deadline.step(_VOTE_SECONDS))
        self._votes.append(vote := CheckerVote(self._checker, request, self._fail))
        return vote

    def close(self) -> None:
        """Wait for the open votes, because their price is a part of the turn's."""
        for vote in self._votes:
            vote.wait()

    def _fail(self, error: ProviderError) -> None:
        self._failed = True
        self._report(error)


def check_sentence(
    verifier: Verifier, sentence: Sentence, cited_ids: Sequence[str], votes: SecondVotes | None
) -> tuple[CheckedSentence, CheckerVote | None]:
    """Check one sentence of an answer or of a claim; return it with the open vote on its citations.

    Args:
        cited_ids: the ids that its author cites.
        votes: asks for second votes; None if the words decide.
    """
    checked = verifier.check(sentence, cited_ids)
    if votes is None or not checked.needs_second_vote:
        return checked, None
    return checked, votes.ask(verifier.document(checked), sentence.plain_text)


class CheckerVote:
    """One vote on a citation, in a thread of its own."""

    def __init__(self, checker: Checker, request: CheckRequest, fail: Callable[[ProviderError], None]) -> None:
        self._checker, self._request, self._fail = checker, request, fail
        self._supports = True
        self._error: ProviderError | None = None
        # A daemon: a process that ends must not wait for a vote.
        self._thread = Thread(target=self._run, name="vote", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether `rejects` needs no waiting."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        self._thread.join(self._request.deadline.seconds_left + _GRACE)

    def rejects(self) -> bool:
        """Wait for the vote. Return whether it is against the citations; False if it did not come in time."""
        self.wait()
        if not self.is_over:
            self._error = ProviderError("The checker did not answer in time.", retryable=True)
        if self._error:
            self._fail(self._error)
            return False
        return not self._supports

    def _run(self) -> None:
        try:
            self._supports = self._checker.supports(self._request)
        except ProviderError as error:
            self._error = error
        except Exception:
            # Logged here, because an error of this thread never reaches the caller. Its text may quote the request.
            self._error = ProviderError("The checker failed.")


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
