"""Cohere's embedding models (`POST /v2/embed`): the official SDK while building, plain REST for a question.

Both send the body that `_body` makes, so that a question and the documents meet in one space; they differ in
`input_type` alone, as Cohere asks for retrieval. Sizes and limits are those of Cohere's documentation, August 2026.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chapterverse.embedding import Vector
from chapterverse.errors import ConfigurationError, ProviderError, TextTooLong
from chapterverse.model import EmbedderCard
from chapterverse.rest import JsonClient
from chapterverse.settings import Settings

if TYPE_CHECKING:
    from cohere import ClientV2

DEFAULT_MODEL = "embed-english-v3.0"

#: Texts that one request may hold; the SDK's `ClientV2.embed` doesn't cut a longer list itself.
SLICE = 96

#: A build waits as `Retry-After` says, or 1 s doubling up to 60 s, and gives up after the sixth try.
_TRIES = 6
_BUILD_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Model:
    """What Cohere documents of one model.

    Attributes:
        size: dimensions of its vectors.
        limit: tokens that it reads of one text.
        family: models of one family share a vector space; empty for a model with a space of its own.
        sized: whether it takes `output_dimension`, which we then send, so that a new default can't change the size.
    """

    size: int
    limit: int
    family: str = ""
    sized: bool = True


MODELS = {
    "embed-english-v3.0": Model(1024, 512, sized=False),
    "embed-multilingual-v3.0": Model(1024, 512, sized=False),
    "embed-english-light-v3.0": Model(384, 512, sized=False),
    "embed-multilingual-light-v3.0": Model(384, 512, sized=False),
    "embed-v4.0": Model(1536, 128_000),
    "embed-v5.0-pro": Model(2048, 128_000, family="embed-v5.0"),
    "embed-v5.0-fast": Model(2048, 128_000, family="embed-v5.0"),
}

#: No 32-bit float is larger.
_LARGEST = 3.4e38

_REASONS = {
    400: "refused the request as malformed",
    401: "refused the key: check COHERE_API_KEY",
    402: "asks for payment: check the account's billing",
    403: "refused the key: check COHERE_API_KEY",
    404: "does not know this model: check the embedder's name and CHAPTERVERSE_COHERE_URL",
    429: "has a rate limit that was reached: try again later",
}


@dataclass(frozen=True, slots=True)
class CohereEmbedder:
    """One Cohere model behind one address. Safe to share between threads."""

    model: str
    key: str = field(repr=False)
    url: str
    rest: JsonClient = field(repr=False)

    @classmethod
    def from_settings(cls, settings: Settings, model: str = "") -> CohereEmbedder:
        """Return the embedder for `model`, or for the default if that is empty; nothing is sent yet.

        Raises:
            ConfigurationError: the model is unknown, or the key is missing or malformed.
        """
        name = model or DEFAULT_MODEL
        if name not in MODELS:
            raise ConfigurationError(f"There is no Cohere embedding model {name!r}: use one of {', '.join(MODELS)}.")
        key = settings.cohere_api_key.strip()
        if not key:
            raise ConfigurationError("The embedder cohere needs a key: set COHERE_API_KEY in the environment.")
        # Checked here because the HTTP layer would quote the offending key in its own message.
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError("COHERE_API_KEY holds characters that no key has: copy it again.")
        return cls(name, key, settings.cohere_url, JsonClient(settings.cohere_url, {"Authorization": f"Bearer {key}"}))

    @property
    def card(self) -> EmbedderCard:
        known = MODELS[self.model]
        space = f"cohere:{known.family or self.model}"
        return EmbedderCard(f"cohere:{self.model}", known.size, known.limit, space)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, sent in slices of 96; see `Embedder`.

        A text over the limit is refused by Cohere without saying which it is, so the refused slice is bisected.

        Raises:
            ConfigurationError: the package `cohere` is not installed.
            TextTooLong: one text is over the model's limit.
            ProviderError: Cohere could not be reached, refused six times, or answered with something that is no vector.
        """
        if not texts:
            return []
        with self._sdk() as client:
            vectors: list[Vector] = []
            for start in range(0, len(texts), SLICE):
                vectors += self._embed_slice(client, texts[start : start + SLICE], start)
            return vectors

    def embed_query(self, text: str) -> Vector:
        """Return a question's vector within ten seconds; see `Embedder`."""
        reply = self.rest.post("/v2/embed", self._body([text], "search_query"))
        if reply.status != 200:
            raise _failure(reply.status)
        vectors = reply.body.get("embeddings") if isinstance(reply.body, dict) else None
        return self._checked(vectors.get("float") if isinstance(vectors, dict) else None, 1)[0]

    def _body(self, texts: Sequence[str], input_type: str, truncate: str = "NONE") -> dict[str, Any]:
        body = {
            "texts": list(texts),
            "model": self.model,
            "input_type": input_type,
            "embedding_types": ["float"],
            "truncate": truncate,
        }
        return {**body, "output_dimension": MODELS[self.model].size} if MODELS[self.model].sized else body

    def _sdk(self) -> ClientV2:
        try:
            from cohere import ClientV2
        except ImportError as error:
            raise ConfigurationError(
                'The embedder cohere needs a package to index with: pip install "chapterverse[build]".'
            ) from error
        return ClientV2(self.key, base_url=self.url.rstrip("/"), timeout=_BUILD_SECONDS, max_retries=_TRIES - 1)

    def _embed_slice(self, client: ClientV2, texts: Sequence[str], start: int) -> list[Vector]:
        try:
            return self._send(client, texts)
        except _BadRequestError:
            at = self._first_refused(client, texts)
            # Taken when it may be cut, so its length was all that was wrong with it.
            self._send(client, texts[at : at + 1], truncate="END")
            message = f"Text {start + at} is over the {self.card.limit} tokens of {self.model}."
            raise TextTooLong(message, position=start + at) from None

    def _first_refused(self, client: ClientV2, texts: Sequence[str]) -> int:
        low, high = 0, len(texts)
        while high - low > 1:
            middle = (low + high) // 2
            try:
                self._send(client, texts[low:middle])
                low = middle
            except _BadRequestError:
                high = middle
        return low

    def _send(self, client: ClientV2, texts: Sequence[str], truncate: str = "NONE") -> list[Vector]:
        import httpx
        from cohere.core.api_error import ApiError
        from cohere.core.parse_error import ParsingError

        try:
            reply = client.embed(**self._body(texts, "search_document", truncate))
        except ApiError as error:
            raise _failure(error.status_code or 0) from error
        except httpx.HTTPError as error:
            raise ProviderError("Cohere could not be reached or broke off.", retryable=True) from error
        # The SDK builds its values from whatever came, unchecked, and stumbles in these ways.
        except (ParsingError, TypeError, ValueError) as error:
            raise ProviderError("Cohere answered with something that is no reply.", retryable=True) from error
        return self._checked(getattr(reply.embeddings, "float_", None), len(texts))

    def _checked(self, vectors: Any, count: int) -> list[Vector]:
        """Return the vectors of a reply, or refuse the reply whole: nothing doubtful is ever stored."""
        size = MODELS[self.model].size
        if not isinstance(vectors, list) or len(vectors) != count:
            raise ProviderError(f"Cohere did not answer with {count} vectors.")
        if not all(isinstance(v, list) and len(v) == size and all(map(_usable, v)) for v in vectors):
            raise ProviderError(f"Cohere answered with something that is no vector of {size} numbers.")
        return [tuple(map(float, v)) for v in vectors]


class _BadRequestError(ProviderError):
    """Status 400: Cohere will never take the request as it is."""


def _failure(status: int) -> ProviderError:
    # Cohere's own message is left out: it may quote what was sent, and ours are printed and logged.
    kind = _BadRequestError if status == 400 else ProviderError
    reason = _REASONS.get(status, f"failed with status {status}")
    return kind(f"Cohere {reason}.", retryable=status == 429 or status >= 500)


def _usable(number: Any) -> bool:
    # False for NaN and infinity too; stores keep 32-bit floats.
    return isinstance(number, int | float) and -_LARGEST < number < _LARGEST
