"""A server with OpenAI's `POST /v1/embeddings` on loopback: OpenAI itself, or one of the local servers like it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fakes.bags import first_tokens, tokens, vector
from fakes.loopback import Answer, LoopbackServer, Refusal, Request

KEY = "sk-test-key"

#: Dimensions, the most tokens of one text, and whether `dimensions` may ask for fewer.
_MODELS = {
    "text-embedding-3-small": (1536, 8191, True),
    "text-embedding-3-large": (3072, 8191, True),
    "text-embedding-ada-002": (1536, 8191, False),
    "nomic-embed-text": (768, 2048, False),
    "local-model": (64, 600, False),
    "all-minilm": (384, 256, False),
}

_MOST_TOKENS = 300_000


class EmbeddingRequest(BaseModel):
    """`CreateEmbeddingRequest` of the API's published description, for texts."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    input: (
        Annotated[str, Field(min_length=1)]
        | Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=2048)]
    )
    encoding_format: Literal["float"] = "float"
    dimensions: Annotated[int, Field(ge=1)] | None = None
    user: str | None = None


class OpenAIServer(LoopbackServer):
    """`url` is what goes into CHAPTERVERSE_OPENAI_URL.

    Args:
        key: what must come with a request; empty for a local server that asks for none.
        cuts: whether a text over the limit loses its end in silence, as some local servers do.
        most: texts that one request may hold.
    """

    def __init__(self, key: str = KEY, *, cuts: bool = False, most: int = 2048) -> None:
        super().__init__()
        self._key = key
        self._cuts = cuts
        self._most = most

    def answer(self, request: Request) -> Answer:
        if self._key and request.headers.get("authorization") != f"Bearer {self._key}":
            # As the real one does, which is why no service's words may reach our messages.
            raise Refusal(401, f"Incorrect API key provided: {request.headers.get('authorization')}", "invalid_api_key")
        if (request.method, request.path) != ("POST", "/v1/embeddings"):
            raise Refusal(404, "Invalid URL")
        return Answer(200, self._embed(EmbeddingRequest.model_validate(request.body)))

    def failure(self, refusal: Refusal) -> Answer:
        error = {"message": str(refusal), "type": "invalid_request_error", "param": None, "code": refusal.code or None}
        return Answer(refusal.status, {"error": error})

    def _embed(self, request: EmbeddingRequest) -> dict[str, Any]:
        if request.model not in _MODELS:
            raise Refusal(404, f"The model `{request.model}` does not exist", "model_not_found")
        size, limit, shorter = _MODELS[request.model]
        if request.dimensions and not (shorter and request.dimensions <= size):
            raise Refusal(400, "This model does not support specifying dimensions.")
        texts = [request.input] if isinstance(request.input, str) else request.input
        if len(texts) > self._most:
            raise Refusal(422, f"batch size {len(texts)} > maximum allowed batch size {self._most}")
        if self._cuts:
            texts = [first_tokens(text, limit) for text in texts]
        counts = [tokens(text) for text in texts]
        if max(counts) > limit or sum(counts) > _MOST_TOKENS:
            raise Refusal(400, f"This model's maximum context length is {limit} tokens, however you requested more.")
        found = [vector(text, request.dimensions or size) for text in texts]
        data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(found)]
        return {
            "object": "list",
            # The last first: what belongs to which text is for `index` to say.
            "data": data[::-1],
            "model": request.model,
            "usage": {"prompt_tokens": sum(counts), "total_tokens": sum(counts)},
        }
