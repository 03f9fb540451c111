"""Rerankers score a question and a text together. A setting chooses one by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings


class Reranker(Protocol):
    """What the query path needs of a reranking model."""

    @property
    def name(self) -> str:
        """Provider and model, such as "cohere:rerank-v3.5": scores of different ones can't be compared."""
        ...

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the relevance of each text to the question, 0 to 1, in the order of the texts; a blank one has 0.

        Raises:
            ProviderError: the model could not be reached in time, refused, or answered with something that is no
                ranking of these texts.
        """
        ...


def open_reranker(settings: Settings) -> Reranker | None:
    """Return the reranking model that `settings.reranker` names; None for `none`, and for `local`, which is no model.

    Raises:
        ConfigurationError: no such reranker, or its key or package is missing.
    """
    kind, _, model = settings.reranker.partition(":")
    if settings.reranker in {"none", "local"}:
        return None
    if kind == "cohere":
        from chapterverse_api.retrieval.rerankers.cohere import CohereReranker

        return CohereReranker.from_settings(settings, model)
    if kind == "bedrock":
        from chapterverse_api.retrieval.rerankers.bedrock import BedrockReranker

        return BedrockReranker.open(model)
    raise ConfigurationError(
        f"There is no reranker named {settings.reranker!r}: use none, local, cohere[:MODEL] or bedrock:MODEL."
    )
