"""The interface of rerankers, their texts and replies. A doubtful reply is rejected as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from chapterverse.errors import ProviderError
from chapterverse.text.shortening import cut_to_bytes

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


def score_texts(texts: Sequence[str], send: Callable[[Sequence[str]], list[float]]) -> list[float]:
    """Return one score a text, in order; a blank one is never sent, as models refuse those, and has 0.

    Of a text that is too long, only the beginning is sent.

    Args:
        send: one request of at most 100 texts.

    Raises:
        ProviderError: as `send` says.
    """
    scores = [0.0] * len(texts)
    beginnings = [cut_to_bytes(text, MAX_TEXT_BYTES) for text in texts]
    indexes = [i for i, text in enumerate(beginnings) if text.strip()]
    for start in range(0, len(indexes), MAX_REQUEST_TEXTS):
        part = indexes[start : start + MAX_REQUEST_TEXTS]
        for i, score in zip(part, send([beginnings[i] for i in part]), strict=True):
            scores[i] = score
    return scores


def read_scores(reply: Any, count: int, provider: str) -> list[float]:
    """Return the scores of a reply, each where its `index` says; Cohere's format, on Bedrock too.

    Args:
        reply: the parsed body, best text first.
        count: how many texts were sent.
        provider: the service's name, for the message.

    Raises:
        ProviderError: a text has no score or two, or a score is no number from 0 to 1.
    """
    results = reply.get("results") if isinstance(reply, dict) else None
    entries = [r for r in results if isinstance(r, dict)] if isinstance(results, list) else []
    # By type, as True is an int too; NaN is in no range.
    scores: dict[int, Any] = {r["index"]: r.get("relevance_score") for r in entries if type(r.get("index")) is int}
    # Each index once, and no other: else a score might belong to another text.
    is_complete = isinstance(results, list) and len(results) == count and scores.keys() == set(range(count))
    if not is_complete or not all(type(s) in (float, int) and 0 <= s <= 1 for s in scores.values()):
        raise ProviderError(f"{provider} answered with something that is no ranking of {count} texts.")
    return [float(scores[i]) for i in range(count)]
