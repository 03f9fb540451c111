"""Checks a draft sentence by sentence and shows each at once, with the citations that hold. What was shown stays.

Up to three segments wait for the first one that is confirmed: an answer of which nothing holds by then can still be
refused, or given by quotes, as if nothing had been written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from chapterverse_api.answering.draft_reader import DraftReader, DraftSentence
from chapterverse_api.generation import GenerationRequest, Span
from chapterverse_api.grounding import Verified, Verifier, Weigh

#: Segments that wait for the first one that is confirmed, at most.
MOST_WAITING = 3


class Segments:
    """The segments of one answer.

    Attributes:
        shown: what was given to the reader.
        draft: what it is read by.
        restarted: thoughts were shown before it was known that they were some.
    """

    def __init__(self, task: GenerationRequest, weigh: Weigh, *, note: str = "") -> None:
        self.draft = DraftReader(task.passages)
        self.shown: list[Span] = []
        self.restarted = False
        self._task, self._weigh = task, weigh
        self._verifier = self._new_verifier()
        self._waiting = [Span(note, kind="framing")] if note else []
        self._restarts = 0

    def read(self, span: Span) -> Iterator[Span]:
        """Yield what can be shown now that a span has come.

        Raises:
            ProviderError: the model says more than it was asked for.
        """
        yield from self._checked(self.draft.read(span))

    def end(self) -> Iterator[Span]:
        """Yield what is left to show.

        Raises:
            ProviderError: the model said nothing.
        """
        yield from self._checked(self.draft.end())

    def add(self, text: str) -> Iterator[Span]:
        """Yield words of our own behind the answer."""
        fence = "\n```" if self.draft.is_open else ""
        self._waiting.append(Span(f"{fence}\n\n{text}", kind="framing"))
        yield from self._release()

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
            for span in self._spans(one):
                self._waiting.append(span)
                wait = sum(span.kind != "framing" for span in self._waiting) < MOST_WAITING
                if self.shown or span.check == "confirmed" or not wait:
                    yield from self._release()

    def _spans(self, one: DraftSentence) -> Iterator[Span]:
        if one.span is None:
            citations, check = self._verifier.check(one.sentence, one.claimed)
            yield Span(one.text, citations, check=check)
        elif one.span.kind == "framing":
            yield replace(one.span, citations=())
        else:
            yield from self._verifier.check_quote(one.span)

    def _new_verifier(self) -> Verifier:
        # What only the reader or a memory says is no claim of the documentation.
        own = "\n\n".join((self._task.context, *self._task.memories))
        return Verifier(self._task.passages, self._task.language, self._weigh, context=own)

    def _restart(self) -> None:
        """Forget what were thoughts, as far as nobody saw it."""
        self._restarts = self.draft.restarts
        self._waiting = [span for span in self._waiting if span.kind == "framing"]
        self.restarted = bool(self.shown)
        if not self.shown:
            self._verifier = self._new_verifier()

    def _release(self) -> Iterator[Span]:
        waiting, self._waiting = self._waiting, []
        for span in waiting:
            self.shown.append(span)
            yield span
