"""Circuit breaker: skips a failing provider so that readers don't wait for it.

The circuit breaker of M. Nygard, "Release It!" (2007): after a few failures in a row nothing is asked of the part any
more; when some time has passed one question may try it, and decides for the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from chapterverse.errors import AnswerWithheld, KeyRefused, ProviderError

if TYPE_CHECKING:
    from chapterverse.embedding import Embedder, Vector
    from chapterverse.model import EmbedderCard
    from chapterverse_api.deadline import Deadline
    from chapterverse_api.generation import ChatMessage, Writer
    from chapterverse_api.retrieval.rerankers import Reranker

#: Failures in a row after which a part is left alone, and the seconds until it is tried again.
FAILURES = 3
REST_SECONDS = 30.0


class CircuitOpen(ProviderError):
    """The part failed too often a moment ago to be asked now."""

    unbilled = True


class CircuitBreaker:
    """Whether one part may be asked. Safe to use from several threads.

    Attributes:
        key_refused: whether the last failure was that the part doesn't know our key.
    """

    def __init__(self, part: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._part = part
        self._clock = clock
        self._lock = Lock()
        self._failures = 0
        self._since = 0.0
        self.key_refused = False

    @property
    def open(self) -> bool:
        """Whether the part has failed too often to be asked."""
        return self._failures >= FAILURES

    def check(self) -> None:
        """Raise `CircuitOpen` if the part is being left alone."""
        if self.open:
            raise CircuitOpen(f"The {self._part} failed {FAILURES} times in a row and is left alone for a while.")

    @contextmanager
    def asking(self, *answers: type[Exception]) -> Iterator[None]:
        """Run the block that asks the part, and learn from how it ends: `ProviderError` is a failure of the part.

        Args:
            answers: exceptions that say that the part did answer, in a way of its own.

        Raises:
            Resting: the part is being left alone; the block did not run.
        """
        answered: tuple[type[Exception], ...] = (AnswerWithheld, *answers)
        self._admit()
        try:
            yield
        except answered:
            # A reader must not be able to stop the others' answers by a question that no filter lets pass.
            self._failures = 0
            raise
        except ProviderError as error:
            with self._lock:
                self._failures += 1
                self._since = self._clock()
                self.key_refused = isinstance(error, KeyRefused)
            raise
        self._failures, self.key_refused = 0, False

    def _admit(self) -> None:
        with self._lock:
            if not self.open:
                return
            if self._clock() - self._since < REST_SECONDS:
                self.check()
            # This one tries; should it never come back, the next may in as many seconds.
            self._since = self._clock()


@dataclass(frozen=True, slots=True)
class GuardedEmbedder:
    """An embedder behind a circuit, for questions. Implements `chapterverse.embedding.Embedder`."""

    embedder: Embedder
    circuit: CircuitBreaker = field(default_factory=lambda: CircuitBreaker("embedder"))

    @property
    def card(self) -> EmbedderCard:
        with self.circuit.asking():
            return self.embedder.card

    def beside(self, indexed: EmbedderCard) -> EmbedderCard:
        """Return the card without asking anybody: whoever comes by must not cause a cost that nothing is set aside for.

        Args:
            indexed: what made the index.
        """
        # Which a cold start has no need of.
        from chapterverse.embedding import LazySize

        return self.embedder.beside(indexed) if isinstance(self.embedder, LazySize) else self.card

    @property
    def price(self) -> float:
        return self.embedder.price

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        return self.embedder.embed_documents(texts)

    def embed_query(self, text: str) -> Vector:
        with self.circuit.asking():
            return self.embedder.embed_query(text)


@dataclass(frozen=True, slots=True)
class GuardedWriter:
    """A writer that is left alone while its generator is. Implements `chapterverse_api.generation.Writer`.

    What it fails at is not counted: a short text that came too late for its purpose says nothing about answers.
    """

    writer: Writer
    circuit: CircuitBreaker

    def write(self, instructions: str, messages: Sequence[ChatMessage], *, tokens: int, deadline: Deadline) -> str:
        self.circuit.check()
        return self.writer.write(instructions, messages, tokens=tokens, deadline=deadline)


@dataclass(frozen=True, slots=True)
class GuardedReranker:
    """A reranker behind a circuit. Implements `chapterverse_api.retrieval.rerankers.Reranker`."""

    reranker: Reranker
    circuit: CircuitBreaker = field(default_factory=lambda: CircuitBreaker("reranker"))

    @property
    def name(self) -> str:
        return self.reranker.name

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        with self.circuit.asking():
            return self.reranker.rerank(question, texts)
