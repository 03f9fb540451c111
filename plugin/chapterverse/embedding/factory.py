"""Opens the embedder that a setting names."""

from __future__ import annotations

from chapterverse.embedding.protocols import Embedder
from chapterverse.errors import ConfigurationError
from chapterverse.model import EmbedderCard
from chapterverse.settings import Settings


def open_embedder(settings: Settings, index_card: EmbedderCard | None = None) -> Embedder | None:
    """Return the embedder that `settings.embedder` names; None for `none`.

    Args:
        settings: its name, address and key.
        index_card: the card of the index, which states the size of the vectors of a model of that name.

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

        size = index_card.size if index_card and index_card.name == settings.embedder else 0
        return OpenAIEmbedder.from_settings(settings, model, size=size)
    if kind == "fastembed":
        from chapterverse.embedding.fastembed import FastEmbedder

        return FastEmbedder(model)
    raise ConfigurationError(
        f"There is no embedder named {kind!r}: use none, cohere[:MODEL], bedrock:MODEL, openai:MODEL or "
        "fastembed:MODEL-or-PATH."
    )
