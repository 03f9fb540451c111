"""Cohere's reranking models on Amazon Bedrock, called by `InvokeModel`.

Amazon's own `amazon.rerank-v1:0` is left out: no page of Amazon's says what `InvokeModel` takes for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from chapterverse.errors import ConfigurationError
from chapterverse.ext.bedrock.runtime import QUESTION_RETRY, Runtime, profile
from chapterverse.ext.net.retry import RetryPolicy
from chapterverse.settings import Settings
from chapterverse_api.ext.models.wire import read_scores, score_texts

#: Seconds to reach the service, and for one reply; with a second try about seven in all.
_TIMEOUT_SECONDS = (1.0, 2.0)

#: The only version of the body that the models take.
_API_VERSION = 2


@dataclass(frozen=True, slots=True)
class BedrockReranker:
    """One of Cohere's models on Bedrock. Safe to share between threads, as boto3's clients are.

    Attributes:
        model: the id of the model, or that of an inference profile.
    """

    model: str
    runtime: Runtime = field(repr=False)
    retry: RetryPolicy = field(default=QUESTION_RETRY, repr=False)

    @classmethod
    def from_settings(cls, _: Settings, model: str) -> BedrockReranker:
        """Return the reranker for a model or an inference profile; nothing is sent yet."""
        name = profile(model)[1]
        if not name.startswith("cohere."):
            raise ConfigurationError(
                "The reranker bedrock needs a model of Cohere: use bedrock:MODEL, such as bedrock:cohere.rerank-v3-5:0."
            )
        return cls(model, Runtime.open("reranker", *_TIMEOUT_SECONDS))

    @property
    def name(self) -> str:
        return f"bedrock:{self.model}"

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the relevance of each text within about seven seconds for 100 texts; see `Reranker`."""
        return score_texts(texts, partial(self._ask, question))

    def _ask(self, question: str, texts: Sequence[str]) -> list[float]:
        body = {"api_version": _API_VERSION, "query": question, "documents": list(texts), "top_n": len(texts)}
        return self.retry.run(lambda: read_scores(self.runtime.invoke(self.model, body), len(texts), "Bedrock"))
