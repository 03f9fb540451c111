"""Cohere's reranking models (`POST /v2/rerank`) over plain REST, since the SDK loads slowly.

Fields and limits are those of Cohere's documentation, August 2026, and of its SDK 7.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from chapterverse.ext.cohere.service import CohereErrors, connect
from chapterverse.ext.net import JsonClient
from chapterverse.settings import Settings
from chapterverse_api.ext.models.wire import read_scores, score_texts

DEFAULT_RERANKER = "rerank-v3.5"

#: Seconds to reach Cohere, and for one request in all, its second try included: the order without it is good too.
_CONNECT_SECONDS = 1.5
_TOTAL_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class CohereReranker:
    """One Cohere model behind one address. Safe to share between threads."""

    model: str
    rest: JsonClient = field(repr=False)
    errors: CohereErrors = field(default_factory=CohereErrors, repr=False)

    @classmethod
    def from_settings(cls, settings: Settings, model: str = "") -> CohereReranker:
        """Return the reranker for `model`, or for the default if that is empty; nothing is sent yet.

        Any name is taken: whether there is such a model, Cohere says at the first question.
        """
        rest = connect(settings, "reranker", connect_seconds=_CONNECT_SECONDS, total_seconds=_TOTAL_SECONDS)
        return cls(model or DEFAULT_RERANKER, rest)

    @property
    def name(self) -> str:
        return f"cohere:{self.model}"

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the relevance of each text within four seconds for 100 texts; see `Reranker`."""
        return score_texts(texts, partial(self._ask, question))

    def _ask(self, question: str, texts: Sequence[str]) -> list[float]:
        # `max_tokens_per_doc` is left out: its default, 4,096, is eight times the longest chunk.
        body = {"model": self.model, "query": question, "documents": list(texts), "top_n": len(texts)}
        reply = self.rest.post("/v2/rerank", body)
        self.errors.check(reply)
        return read_scores(reply.body, len(texts), "Cohere")
