"""Lets a reranker order the results of a search anew: its interface, and the use of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from chapterverse.errors import ProviderError
from chapterverse_api.search.ranking import weigh_memories
from chapterverse_api.search.results import Retrieval

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


def rerank(retrieval: Retrieval, question: str, reranker: Reranker) -> Retrieval:
    """Order the candidates by a model, ties as before. If the model fails, keep the order, and note the failure."""
    if not retrieval.candidates:
        return retrieval
    started, failures, relevance = time.perf_counter(), retrieval.failures, None
    try:
        relevance = reranker.rerank(question, [c.chunk.embed_text for c in retrieval.candidates])
    except ProviderError as error:
        failures = {**failures, "reranker": error}
    timings = {**retrieval.timings, "rerank": time.perf_counter() - started}
    if relevance is None:
        return replace(retrieval, failures=failures, timings=timings)
    pairs = zip(retrieval.candidates, relevance, strict=True)
    scored = [c._replace(score=v, components={**c.components, "rerank": v}) for c, v in pairs]
    return replace(
        retrieval,
        candidates=tuple(weigh_memories(sorted(scored, key=lambda c: -c.score))),
        algorithm=f"{retrieval.algorithm} + {reranker.name}",
        timings=timings,
    )
