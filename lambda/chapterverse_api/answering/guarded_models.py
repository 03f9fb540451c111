"""Models behind circuit breakers: each is skipped while it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chapterverse.embedding import Embedder, LazySize, Vector
from chapterverse.model import EmbedderCard
from chapterverse_api.circuit_breaker import CircuitBreaker
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation import ChatMessage, Writer
from chapterverse_api.retrieval.rerankers import Reranker


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
