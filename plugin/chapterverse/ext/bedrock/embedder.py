"""Cohere's embedding models on Amazon Bedrock, called by `InvokeModel`.

Bodies and limits are those of the Bedrock user guide ("Cohere Embed v3", "Cohere Embed v4"), November 2026.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from chapterverse.embedding import Vector
from chapterverse.errors import TextTooLong
from chapterverse.ext.bedrock.runtime import QUESTION_RETRY, Runtime, profile
from chapterverse.ext.embedders.models import EmbeddingModel, ModelChoice, embed_in_batches
from chapterverse.ext.net.retry import RetryPolicy
from chapterverse.model import EmbedderCard
from chapterverse.settings import Settings

#: Seconds to reach the service, and for one reply.
_BUILD_SECONDS = (3.0, 60.0)
#: Two tries of a question, with a short wait between them, are within a reader's ten seconds.
_QUESTION_SECONDS = (1.5, 3.0)

#: Prices as Amazon listed them in 2025 for its first regions: good for an estimate and no more.
BEDROCK_EMBEDDERS = {
    "cohere.embed-english-v3": EmbeddingModel(1024, 512, 0.10, characters=2048),
    "cohere.embed-multilingual-v3": EmbeddingModel(1024, 512, 0.10, characters=2048),
    "cohere.embed-v4:0": EmbeddingModel(1536, 128_000, 0.12, sizes=(256, 512, 1024, 1536)),
}


@dataclass(frozen=True)
class BedrockEmbedder:
    """One of Cohere's models on Bedrock. Safe to share between threads, as boto3's clients are.

    Attributes:
        choice: `MODEL[/SIZE][@int8]`; documents and questions are embedded alike.
        geography: "us." or the like for a cross-region inference profile, else empty. The space is the model's.
    """

    choice: ModelChoice
    geography: str
    runtime: Runtime = field(repr=False)
    retry: RetryPolicy = field(default_factory=RetryPolicy, repr=False)

    @classmethod
    def from_settings(cls, _: Settings, model: str) -> BedrockEmbedder:
        """Return the embedder for a model or an inference profile; nothing is sent yet."""
        geography, name = profile(model)
        choice = ModelChoice.of(name, BEDROCK_EMBEDDERS, "Bedrock")
        return cls(choice, geography, Runtime.open("embedder", *_QUESTION_SECONDS))

    @cached_property
    def _building(self) -> Runtime:
        return Runtime.open("embedder", *_BUILD_SECONDS)

    @property
    def card(self) -> EmbedderCard:
        choice = self.choice
        name = f"bedrock:{self.geography}{choice}"
        return EmbedderCard(name, choice.size, choice.model.limit, f"bedrock:{choice.space}")

    @property
    def price(self) -> float:
        return self.choice.model.price

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in slices of 96; see `Embedder`. Too many characters are found before sending."""
        self._check_characters(texts)
        send = partial(self._ask, "NONE")
        # What is taken when it may be cut was refused for its length alone.
        return embed_in_batches(texts, send, partial(self._ask, self._cut), self.choice.name)

    def embed_query(self, text: str) -> Vector:
        """Return a question's vector within ten seconds; see `Embedder`."""
        self._check_characters([text])
        return QUESTION_RETRY.run(lambda: self._send(self.runtime, self.choice.body([text], "search_query")))[0]

    def _check_characters(self, texts: Sequence[str]) -> None:
        most = self.choice.model.characters
        for position, text in enumerate(texts):
            if most and len(text) > most:
                message = f"Text {position} is over the {most} characters of {self.choice.name}."
                raise TextTooLong(message, position=position)

    @property
    def _cut(self) -> str:
        # The two generations have different words for the end of a text.
        return "RIGHT" if self.choice.model.sizes else "END"

    def _ask(self, truncate: str, texts: Sequence[str]) -> list[Vector]:
        return self.retry.run(lambda: self._send(self._building, self.choice.body(texts, "search_document", truncate)))

    def _send(self, runtime: Runtime, body: dict[str, Any]) -> list[Vector]:
        reply = runtime.invoke(f"{self.geography}{self.choice.name}", body)
        return self.choice.vectors(reply, len(body["texts"]), "Bedrock")
