"""Cohere's embedding models (`POST /v2/embed`). Builds use the SDK; questions use plain REST.

Both send the body that `_body` makes, so that a question and the documents meet in one space; they differ in
`input_type` alone, as Cohere asks for retrieval. Sizes and limits are those of Cohere's documentation, August 2026.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from chapterverse.embedding import Vector
from chapterverse.errors import ConfigurationError, ProviderError
from chapterverse.ext.cohere.service import CohereErrors, access
from chapterverse.ext.embedders.models import EmbeddingModel, ModelChoice, embed_in_batches
from chapterverse.ext.net import JsonClient, bearer
from chapterverse.ext.net.model_errors import no_reply_error
from chapterverse.ext.net.retry import RateLimiter, RetryPolicy
from chapterverse.model import EmbedderCard
from chapterverse.settings import Settings
from chapterverse.text.json_text import MAX_LEVELS, check_depth

if TYPE_CHECKING:
    import httpx
    from cohere import ClientV2

_DEFAULT_EMBEDDER = "embed-english-v3.0"

#: Inputs that any key may send in a minute. A second more, as requests don't all travel equally fast.
_INPUTS = 2000
_WINDOW_SECONDS = 61.0

#: Seconds for one reply while building.
_BUILD_SECONDS = 60.0

_V5 = (256, 512, 768, 1024, 1536, 2048)

#: Prices are listings of November 2026 by others than Cohere, good for an estimate and no more.
COHERE_EMBEDDERS = {
    "embed-english-v3.0": EmbeddingModel(1024, 512, 0.10),
    "embed-multilingual-v3.0": EmbeddingModel(1024, 512, 0.10),
    "embed-english-light-v3.0": EmbeddingModel(384, 512),
    "embed-multilingual-light-v3.0": EmbeddingModel(384, 512),
    "embed-v4.0": EmbeddingModel(1536, 128_000, 0.12, sizes=(256, 512, 1024, 1536)),
    "embed-v5.0-pro": EmbeddingModel(2048, 128_000, 0.12, sizes=_V5, family="embed-v5.0"),
    "embed-v5.0-fast": EmbeddingModel(2048, 128_000, 0.08, sizes=_V5, family="embed-v5.0"),
}


@dataclass(frozen=True)
class CohereEmbedder:
    """One Cohere model behind one address. Safe to share between threads.

    Attributes:
        choice: `MODEL[/SIZE][@int8]`; documents and questions are embedded alike.
    """

    choice: ModelChoice
    key: str = field(repr=False)
    url: str
    rest: JsonClient = field(repr=False)
    retry: RetryPolicy = field(default_factory=RetryPolicy, repr=False)
    rate_limiter: RateLimiter = field(default_factory=lambda: RateLimiter(_INPUTS, _WINDOW_SECONDS), repr=False)
    errors: CohereErrors = field(default_factory=CohereErrors, repr=False)

    @classmethod
    def from_settings(cls, settings: Settings, model: str = "") -> CohereEmbedder:
        """Return the embedder for `model`, or for the default if that is empty; nothing is sent yet."""
        choice = ModelChoice.of(model or _DEFAULT_EMBEDDER, COHERE_EMBEDDERS, "Cohere")
        url, key = access(settings, "embedder")
        return cls(choice, key, url, JsonClient(url, bearer(key, "COHERE_API_KEY"), billed=True))

    @property
    def card(self) -> EmbedderCard:
        choice = self.choice
        return EmbedderCard(f"cohere:{choice}", choice.size, choice.model.limit, f"cohere:{choice.space}")

    @property
    def price(self) -> float:
        return self.choice.model.price

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in slices of 96 and at most 2,000 texts a minute; see `Embedder`.

        Raises:
            ConfigurationError: the package `cohere` is not installed.
        """
        if not texts:
            return []
        # What is taken when it may be cut was refused for its length alone.
        return embed_in_batches(texts, partial(self._ask, "NONE"), partial(self._ask, "END"), self.choice.name)

    def embed_query(self, text: str) -> Vector:
        """Return a question's vector within ten seconds; see `Embedder`."""
        reply = self.rest.post("/v2/embed", self._body([text], "search_query"))
        self.errors.check(reply)
        return self.choice.vectors(reply.body, 1, "Cohere")[0]

    def _body(self, texts: Sequence[str], input_type: str, truncate: str = "NONE") -> dict[str, Any]:
        return {"model": self.choice.name, **self.choice.body(texts, input_type, truncate)}

    @cached_property
    def _sdk(self) -> ClientV2:
        try:
            import httpx
            from cohere import ClientV2
        except ImportError as error:
            raise ConfigurationError(
                'The embedder cohere needs a package to index with: pip install "chapterverse[build]".'
            ) from error
        # Kept, as one takes a third of a second to make; its connections go with the embedder.
        hooks = {"response": [_check_depth]}
        http = httpx.Client(timeout=_BUILD_SECONDS, follow_redirects=True, event_hooks=hooks)
        weakref.finalize(self, http.close)
        # The SDK's own retries leave out timeouts and broken replies, and know nothing of the pace.
        return ClientV2(
            self.key, base_url=self.url.rstrip("/"), timeout=_BUILD_SECONDS, max_retries=0, httpx_client=http
        )

    def _ask(self, truncate: str, texts: Sequence[str]) -> list[Vector]:
        body, client = self._body(texts, "search_document", truncate), self._sdk
        return self.retry.run(lambda: self._send(client, body))

    def _send(self, client: ClientV2, body: dict[str, Any]) -> list[Vector]:
        import httpx
        from cohere.core.api_error import ApiError
        from cohere.core.parse_error import ParsingError

        self.rate_limiter.wait(len(body["texts"]))
        try:
            reply = client.with_raw_response.embed(**body)
            # As it came: the SDK's own value has 0 where the reply has 0.5, and 1 where it has true.
            answer = reply._response.json()
        # The SDK's errors print the whole reply, which may quote what was sent, so none is left as a cause.
        except ApiError as error:
            raise self.errors.error(error.status_code or 0, error.body, error.headers or {}) from None
        except httpx.HTTPError:
            raise ProviderError("Cohere could not be reached or broke off.", retryable=True) from None
        # The SDK builds its values from the reply unchecked, and raises these errors for a malformed one.
        except (ParsingError, TypeError, ValueError):
            raise no_reply_error("Cohere") from None
        self.errors.save_limits(reply.headers)
        return self.choice.vectors(answer, len(body["texts"]), "Cohere")


def _check_depth(reply: httpx.Response) -> None:
    """Refuse a reply that the SDK's parser would follow to the end of the stack."""
    reply.read()
    check_depth(reply.text, MAX_LEVELS)
