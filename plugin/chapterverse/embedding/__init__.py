"""Embedders: text to dense vectors. One protocol, its implementations beside it, chosen by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from chapterverse.errors import ConfigurationError
from chapterverse.model import EmbedderCard
from chapterverse.settings import Settings

Vector = tuple[float, ...]


class Embedder(Protocol):
    """What sync and the query path need of a model."""

    @property
    def card(self) -> EmbedderCard:
        """What the index remembers of this embedder."""
        ...

    @property
    def price(self) -> float:
        """US dollars for a million tokens as listed by the provider, by which a cost is estimated; 0 where none is."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector of `card.size` finite numbers for each text, in order.

        Raises:
            TextTooLong: one text is over the model's own limit; nothing is truncated in silence.
            ProviderError: the model could not be reached, refused, or answered with something that is no vector.
        """
        ...

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question. Raises `ProviderError` as above."""
        ...


@runtime_checkable
class LazySize(Protocol):
    """An embedder that may have to ask for a vector, which costs money, to know the size of its vectors."""

    def beside(self, indexed: EmbedderCard) -> EmbedderCard:
        """Return the card as far as it is known without asking; an index that this model made tells the size."""
        ...


def open_embedder(settings: Settings, indexed: EmbedderCard | None = None) -> Embedder | None:
    """Return the embedder that `settings.embedder` names; None for `none`.

    Args:
        settings: its name, and what it needs.
        indexed: what made the index, which spares a model of that name from being asked for the size of its vectors.

    Raises:
        ConfigurationError: no such embedder, or its key or package is missing.
    """
    kind, _, model = settings.embedder.partition(":")
    if kind == "none":
        return None
    if kind == "cohere":
        from chapterverse.embedding.cohere import CohereEmbedder

        return CohereEmbedder.from_settings(settings, model)
    if kind == "bedrock":
        from chapterverse.embedding.bedrock import BedrockEmbedder

        return BedrockEmbedder.open(model)
    if kind == "openai":
        from chapterverse.embedding.openai import OpenAIEmbedder

        size = indexed.size if indexed and indexed.name == settings.embedder else 0
        return OpenAIEmbedder.from_settings(settings, model, size=size)
    if kind == "fastembed":
        from chapterverse.embedding.fastembed import FastEmbedder

        return FastEmbedder(model)
    raise ConfigurationError(
        f"There is no embedder named {kind!r}: use none, cohere[:MODEL], bedrock:MODEL, openai:MODEL or "
        "fastembed:MODEL-or-PATH."
    )
