"""Embedding models of any server with OpenAI's `POST /v1/embeddings`: OpenAI, Ollama, vLLM, LM Studio and others.

    openai:text-embedding-3-small        OpenAI itself, which needs a key
    openai:text-embedding-3-large/1024   with `dimensions`, for models that can make shorter vectors
    openai:nomic-embed-text              with CHAPTERVERSE_OPENAI_URL=http://localhost:11434, which needs none

The address has no `/v1`. A server's name for a model is trusted: one name means one vector space. Some models were
trained with a marker before each text and find little without it. The models of `_MARKERS` get theirs here, so a server
must not add another one. Fields and limits: OpenAI's API reference, November 2026.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from chapterverse.embedding import Vector
from chapterverse.errors import ConfigurationError, TextRejected
from chapterverse.ext.embedders.models import EmbeddingModel, Spelling, check_vectors, embed_in_batches
from chapterverse.ext.net import JsonClient, Reply
from chapterverse.ext.net.model_errors import no_reply_error
from chapterverse.ext.net.retry import RetryPolicy
from chapterverse.ext.openai.service import OpenAIService, service_errors
from chapterverse.model import EmbedderCard
from chapterverse.settings import Settings

#: Prices as OpenAI listed them, seen in May 2026: good for an estimate and no more.
_OPENAI_EMBEDDERS = {
    "text-embedding-3-small": EmbeddingModel(1536, 8191, 0.02),
    "text-embedding-3-large": EmbeddingModel(3072, 8191, 0.13),
    "text-embedding-ada-002": EmbeddingModel(1536, 8191, 0.10),
}

#: The markers before a document and before a question, as models' cards state them, by a pattern of the model's name.
_MARKERS = (
    (r"nomic-embed-text", "search_document: ", "search_query: "),
    (r"\be5-(small|base|large)(?!.*instruct)", "passage: ", "query: "),
    (
        r"mxbai-embed-large|snowflake-arctic-embed(?!2|.*v2)",
        "",
        "Represent this sentence for searching relevant passages: ",
    ),
)

#: Seconds for one reply while building; a local model may have no more than a processor.
_BUILD_SECONDS = 120.0

#: Characters of a text that no model finds too long.
_SHORT_CHARS = 64

_PROVIDER = "The embedding service"

#: How servers say that they will never take a request as it is: 413 and 422 are those of text-embeddings-inference.
_ERRORS = service_errors(_PROVIDER, "the embedder's name", rejected_statuses=frozenset({400, 413, 422}))


class OpenAIEmbedder:
    """One model behind one address. Safe to share between threads."""

    def __init__(self, spelling: Spelling, service: OpenAIService, retry: RetryPolicy) -> None:
        self._name = spelling.name
        self._asked_size = spelling.size
        self._entry = _OPENAI_EMBEDDERS.get(spelling.name)
        self._document, self._question = _markers(spelling.name)
        self._path = service.path("/embeddings")
        self._asking = JsonClient(service.url, service.headers, billed=True)
        self._building = JsonClient(service.url, service.headers, total_seconds=_BUILD_SECONDS, tries=1)
        self._retry = retry
        self._size = spelling.size or (self._entry.size if self._entry else 0)
        # A model of the table rejects long texts.
        self._tells = self._entry is not None

    @classmethod
    def from_settings(cls, settings: Settings, model: str, retry: RetryPolicy | None = None) -> OpenAIEmbedder:
        """Return the embedder for a model; nothing is sent yet.

        Args:
            settings: address and key.
            model: as in the module's docstring.
            retry: how a build waits.
        """
        spelling = Spelling.read(model)
        if not spelling.name or spelling.int8:
            raise ConfigurationError(
                "The embedder openai needs a model: use openai:MODEL or openai:MODEL/SIZE, such as "
                "openai:text-embedding-3-small."
            )
        entry = _OPENAI_EMBEDDERS.get(spelling.name)
        if entry and spelling.size > entry.size:
            raise ConfigurationError(f"{spelling.name} makes no vectors of over {entry.size} numbers.")
        service = OpenAIService.from_settings(settings)
        embedder = cls(spelling, service, retry or RetryPolicy())
        service.require_key("embedder")
        return embedder

    @property
    def card(self) -> EmbedderCard:
        """See `Embedder`; the size of a model that is not of OpenAI is learned from its first vector.

        Raises:
            ProviderError: the service doesn't answer the request for it.
        """
        return self._card(self._learned_size())

    def beside(self, index_card: EmbedderCard) -> EmbedderCard:
        """Return the card without asking; see `LazySize`. Its size is 0 where neither the model nor the index tells."""
        own = self._card(self._size)
        if index_card.name != own.name:
            return own
        # A model that has made an index was tested then.
        self._size = self._size if self._asked_size or self._entry else index_card.size
        self._tells = True
        return self._card(self._size)

    def _card(self, size: int) -> EmbedderCard:
        name = f"{self._name}/{size}" if self._asked_size else self._name
        space = f"{self._name} {self._document}".strip()
        return EmbedderCard(f"openai:{name}", size, self._entry.limit if self._entry else 0, f"openai:{space}")

    @property
    def price(self) -> float:
        return self._entry.price if self._entry else 0.0

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in slices of 96; see `Embedder`.

        Raises:
            ConfigurationError: the server drops the end of long texts in silence.
        """
        if not texts:
            return []
        self._check_that_it_tells()
        return embed_in_batches(texts, self._build, lambda one: self._build([one[0][:_SHORT_CHARS]]), self._name)

    def embed_query(self, text: str) -> Vector:
        """Return a question's vector within ten seconds; see `Embedder`."""
        size = self._learned_size()
        return _vectors(self._asking.post(self._path, self._body([self._question + text])), 1, size)[0]

    def _learned_size(self) -> int:
        if not self._size:
            reply = self._asking.post(self._path, self._body(["size"]))
            self._size = len(_vectors(reply, 1)[0])
        return self._size

    def _body(self, texts: Sequence[str]) -> dict[str, Any]:
        body = {"model": self._name, "input": list(texts), "encoding_format": "float"}
        return {**body, "dimensions": self._asked_size} if self._asked_size else body

    def _build(self, texts: Sequence[str]) -> list[Vector]:
        size, body = self._learned_size(), self._body([self._document + text for text in texts])
        return self._retry.run(lambda: _vectors(self._building.post(self._path, body), len(texts), size))

    def _check_that_it_tells(self) -> None:
        """Reject a server that silently truncates long texts, as some do.

        It gives one vector to two texts of about 512 tokens, the most that a chunk has, that differ in their last 32.
        """
        if self._tells:
            return
        start = "word " * 480
        try:
            one, other = self._build([start + "river " * 32, start + "seven " * 32])
        except TextRejected:
            pass  # it does tell
        else:
            if _cosine(one, other) > 1 - 1e-6:
                raise ConfigurationError(
                    f"The model {self._name!r} reads only the start of 512 tokens and drops the rest in silence: use "
                    "one with a longer context, or give it one in the server's settings."
                )
        self._tells = True


def _markers(name: str) -> tuple[str, str]:
    return next(((d, q) for pattern, d, q in _MARKERS if re.search(pattern, name.lower())), ("", ""))


def _vectors(reply: Reply, count: int, size: int = 0) -> list[Vector]:
    """Return the vectors of a reply, each where its `index` says; without a `size` they have that of the first."""
    if reply.status != 200:
        raise _ERRORS.error(reply.status, reply.body, reply.pause)
    if reply.body is None:
        raise no_reply_error(_PROVIDER)
    data = reply.body.get("data") if isinstance(reply.body, dict) else None
    entries = [e for e in data if isinstance(e, dict)] if isinstance(data, list) else []
    by_index = {e["index"]: e.get("embedding") for e in entries if type(e.get("index")) is int}
    # Each index once, and no other: else a vector might belong to another text.
    is_complete = len(entries) == count and by_index.keys() == set(range(count))
    ordered = [by_index[i] for i in range(count)] if is_complete else None
    if not size and ordered and isinstance(ordered[0], list):
        size = len(ordered[0])
    return check_vectors(ordered, count, size, _PROVIDER)


def _cosine(a: Vector, b: Vector) -> float:
    return _dot(a, b) / math.sqrt(_dot(a, a) * _dot(b, b))


def _dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))
