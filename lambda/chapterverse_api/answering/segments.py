"""Checks a draft sentence by sentence and shows each at once, with the citations that hold. What was shown stays.

Up to three segments wait for the first one that is confirmed: an answer of which nothing holds by then can still be
refused, or given by quotes, as if nothing had been written. A sentence on which a second vote is asked is held until
the verdict or its deadline, and so is what follows it: no segment overtakes another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from chapterverse_api.answering.draft_reader import DraftReader, DraftSentence
from chapterverse_api.generation import GenerationRequest, Span
from chapterverse_api.grounding import CheckedSentence, Verified, Verifier, Weigh

#: Segments that wait for the first one that is confirmed, at most.
MOST_WAITING = 3


class Vote(Protocol):
    """A second vote that was asked for."""

    @property
    def is_over(self) -> bool:
        """Whether `rejects` needs no waiting."""
        ...

    def rejects(self) -> bool:
        """Return whether the vote is against the citations; False where none was given in time."""
        ...


class Voting(Protocol):
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
        voting: asks for second votes; None where the words decide alone.

    Attributes:
        shown: what was given to the reader.
        draft: what it is read by.
        restarted: thoughts were shown before it was known that they were some.
    """

    def __init__(self, task: GenerationRequest, weigh: Weigh, *, note: str = "", voting: Voting | None = None) -> None:
        self.draft = DraftReader(task.passages)
        self.shown: list[Span] = []
        self.restarted = False
        self._task, self._weigh, self._voting = task, weigh, voting
        self._verifier = self._new_verifier()
        self._waiting = [_Waiting(Span(note, kind="framing"))] if note else []
        self._restarts = 0

    def read(self, span: Span) -> Iterator[Span]:
        """Yield what can be shown now that a span has come.

        Raises:
            ProviderError: the model says more than it was asked for.
        """
        yield from self._checked(self.draft.read(span))
        yield from self._settled()

    def end(self) -> Iterator[Span]:
        """Yield what is left to show.

        Raises:
            ProviderError: the model said nothing.
        """
        yield from self._checked(self.draft.end())
        yield from self.settle()

    def settle(self) -> Iterator[Span]:
        """Wait for the votes that are open, and yield what can be shown then."""
        for one in self._waiting:
            self._count(one)
        yield from self._settled()

    def add(self, text: str) -> Iterator[Span]:
        """Yield words of our own behind the answer."""
        fence = "\n```" if self.draft.is_open else ""
        self._waiting.append(_Waiting(Span(f"{fence}\n\n{text}", kind="framing")))
        yield from self._release(len(self._waiting))

    @property
    def verified(self) -> Verified:
        """What the check amounts to, of what was shown."""
        verified = self._verifier.verified(self.shown)
        if not (self.draft.is_cut and self.shown):
            return verified
        return replace(verified, spans=(*self.shown[:-1], replace(self.shown[-1], cut=True)))

    def _checked(self, sentences: Iterable[DraftSentence]) -> Iterator[Span]:
        for one in sentences:
            if self._restarts < self.draft.restarts:
                self._restart()
            for waiting in self._read(one):
                self._waiting.append(waiting)
                yield from self._settled()

    def _read(self, one: DraftSentence) -> Iterator[_Waiting]:
        if one.span is None:
            checked = self._verifier.check(one.sentence, one.claimed)
            vote = None
            if self._voting and checked.undecided:
                vote = self._voting.ask(self._verifier.document(checked), one.sentence.said)
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
        # What only the reader or a memory says is no claim of the documentation.
        own = "\n\n".join((self._task.context, *self._task.memories))
        return Verifier(self._task.passages, self._task.language, self._weigh, context=own)

    def _restart(self) -> None:
        """Forget what were thoughts, as far as nobody saw it."""
        self._restarts = self.draft.restarts
        self._waiting = [one for one in self._waiting if one.span.kind == "framing"]
        self.restarted = bool(self.shown)
        if not self.shown:
            self._verifier = self._new_verifier()

    def _settled(self) -> Iterator[Span]:
        """Yield what stands before the first open vote, unless it is better to wait for a confirmed one."""
        ready = 0
        for one in self._waiting:
            if one.vote and not one.vote.is_over:
                break
            self._count(one)
            ready += 1
        before = [one.span for one in self._waiting[:ready]]
        wait = sum(span.kind != "framing" for span in before) < MOST_WAITING
        if self.shown or not wait or any(span.check == "confirmed" for span in before):
            yield from self._release(ready)

    def _release(self, count: int) -> Iterator[Span]:
        ready, self._waiting = self._waiting[:count], self._waiting[count:]
        for one in ready:
            self.shown.append(one.span)
            yield one.span
