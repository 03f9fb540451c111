"""The interface of a model that orders the results of a search anew. It loads little, as providers import it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

#: Texts of one request: a question with so many is one search for Cohere and for Bedrock, by which they charge.
MAX_REQUEST_TEXTS = 100

#: Bytes of a text that a model is sent. A chunk of 512 tokens has more only if most of it is blanks or lines, and each
#: further part of a text is paid for like one more text.
MAX_TEXT_BYTES = 3400


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
