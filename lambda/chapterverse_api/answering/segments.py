"""Checks a draft sentence by sentence and shows each at once, with the citations that hold. A shown segment stays.

Up to three segments wait for the first one that is confirmed. If none of them is confirmed, the answer can still be
refused or given by quotes, because the reader has seen nothing of it. A sentence that needs a second vote waits until
the verdict or its deadline. The segments behind it wait too, so that none overtakes another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from chapterverse_api.answering.draft_reader import DraftReader, DraftSentence
from chapterverse_api.generation.draft import Span
from chapterverse_api.generation.requests import GenerationRequest
from chapterverse_api.grounding.checked_sentence import CheckedSentence
from chapterverse_api.grounding.results import IdfFunction, VerifiedDraft
from chapterverse_api.grounding.verifier import Verifier

#: Segments that wait for the first one that is confirmed, at most.
MAX_WAITING_SEGMENTS = 3


class Vote(Protocol):
    """A second vote on a citation, which a checker may still be working on."""

    @property
    def is_over(self) -> bool:
        """Whether `rejects` needs no waiting."""
        ...

    def rejects(self) -> bool:
        """Return whether the vote is against the citations; False where none was given in time."""
        ...


class VoteSource(Protocol):
    """Asks for second votes on the sentences of one answer."""

    def ask(self, document: str, claim: str) -> Vote | None:
        """Return the vote on a claim; None where none is asked."""
        ...


@dataclass(slots=True)
class _Waiting:
    """A segment that was not shown yet; `vote` is open on the citations of `sentence`."""

    span: Span
    sentence: CheckedSentence | None = None
    vote: Vote | None = None


class Segments:
    """The segments of one answer.

    Args:
        votes: asks for second votes; None where the words decide alone.

    Attributes:
        shown: the segments that the reader has.
        draft_reader: reads the model's text.
        restarted: thoughts were shown before it was known that they were some.
    """

    def __init__(
        self, request: GenerationRequest, idf: IdfFunction, *, note: str = "", votes: VoteSource | None = None
    ) -> None:
        self.draft_reader = DraftReader(request.passages)
        self.shown: list[Span] = []
        self.restarted = False
        self._request, self._idf, self._votes = request, idf, votes
        self._verifier = self._new_verifier()
        self._waiting = [_Waiting(Span(note, kind="framing"))] if note else []
        self._restarts = 0

    def read(self, span: Span) -> Iterator[Span]:
        """Yield the segments that can be shown after this span.

        Raises:
            ProviderError: the model writes more than its limit.
        """
        yield from self._check(self.draft_reader.read(span))
        yield from self._settle()

    def end(self) -> Iterator[Span]:
        """Yield the segments that remain.

        Raises:
            ProviderError: the model wrote nothing.
        """
        yield from self._check(self.draft_reader.end())
        yield from self.settle()

    def settle(self) -> Iterator[Span]:
        """Wait for the open votes, and yield the segments that can be shown then."""
        for one in self._waiting:
            self._count(one)
        yield from self._settle()

    def add(self, text: str) -> Iterator[Span]:
        """Yield words of our own behind the answer."""
        fence = "\n```" if self.draft_reader.is_open else ""
        self._waiting.append(_Waiting(Span(f"{fence}\n\n{text}", kind="framing")))
        yield from self._release(len(self._waiting))

    @property
    def verified(self) -> VerifiedDraft:
        """The result of the check for the shown segments."""
        verified = self._verifier.to_result(self.shown)
        if not (self.draft_reader.is_cut and self.shown):
            return verified
        return replace(verified, spans=(*self.shown[:-1], replace(self.shown[-1], cut=True)))

    def _check(self, sentences: Iterable[DraftSentence]) -> Iterator[Span]:
        for one in sentences:
            if self._restarts < self.draft_reader.restarts:
                self._restart()
            for waiting in self._read(one):
                self._waiting.append(waiting)
                yield from self._settle()

    def _read(self, one: DraftSentence) -> Iterator[_Waiting]:
        if one.span is None:
            checked = self._verifier.check(one.sentence, one.claimed)
            vote = None
            if self._votes and checked.needs_second_vote:
                vote = self._votes.ask(self._verifier.document(checked), one.sentence.said)
            yield _Waiting(Span(one.text, checked.citations, check=checked.check), checked, vote)
        elif one.span.kind == "framing":
            yield _Waiting(replace(one.span, citations=()))
        else:
            yield from map(_Waiting, self._verifier.check_quote(one.span))

    def _count(self, one: _Waiting) -> None:
        """Count the vote on a segment, once it is there."""
        vote, one.vote = one.vote, None
        if vote and one.sentence and vote.rejects():
            self._verifier.reject(one.sentence)
            one.span = replace(one.span, citations=one.sentence.citations, check=one.sentence.check)

    def _new_verifier(self) -> Verifier:
        # A sentence that repeats only the reader or a memory claims nothing of the documentation.
        own = "\n\n".join((self._request.context, *self._request.memories))
        return Verifier(self._request.passages, self._request.language, self._idf, context=own)

    def _restart(self) -> None:
        """Drop the segments that turned out to be thoughts, unless they were shown."""
        self._restarts = self.draft_reader.restarts
        self._waiting = [one for one in self._waiting if one.span.kind == "framing"]
        self.restarted = bool(self.shown)
        if not self.shown:
            self._verifier = self._new_verifier()

    def _settle(self) -> Iterator[Span]:
        """Yield the segments before the first open vote, unless they still wait for a confirmed one."""
        ready = 0
        for one in self._waiting:
            if one.vote and not one.vote.is_over:
                break
            self._count(one)
            ready += 1
        before = [one.span for one in self._waiting[:ready]]
        wait = sum(span.kind != "framing" for span in before) < MAX_WAITING_SEGMENTS
        if self.shown or not wait or any(span.check == "confirmed" for span in before):
            yield from self._release(ready)

    def _release(self, count: int) -> Iterator[Span]:
        ready, self._waiting = self._waiting[:count], self._waiting[count:]
        for one in ready:
            self.shown.append(one.span)
            yield one.span
