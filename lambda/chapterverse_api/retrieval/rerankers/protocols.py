"""The interface of rerankers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


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
