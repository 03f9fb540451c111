"""A Cohere on loopback that speaks the documented wire format of API v2.

It refuses what the real one refuses: unknown fields, too many texts, empty or over-long ones, a size that a model
doesn't have. A further endpoint is one more entry of `_ENDPOINTS`; the chat, which also streams, is in `cohere_chat`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fakes.bags import first_tokens, tokens, typed_vector
from fakes.cohere_chat import NO_VALID_RESPONSE, ChatReply, ChatRequest, called, quoting, streamed, whole
from fakes.loopback import Answer, Fault, LoopbackServer, Refusal, Request
from fakes.rankings import results

KEY = "test-key"

#: Headers of a trial key's good replies, missing from error responses.
TRIAL_LIMITS = {
    "x-endpoint-monthly-call-limit": "1000",
    "x-trial-endpoint-call-limit": "40",
    "x-trial-endpoint-call-remaining": "0",
}

_V3 = (None,)
_V4 = (None, 256, 512, 1024, 1536)
_V5 = (None, 256, 512, 768, 1024, 1536, 2048)

#: As documented: dimensions, the most tokens of one text, and the values of `output_dimension`.
_MODELS = {
    "embed-english-v3.0": (1024, 512, _V3),
    "embed-multilingual-v3.0": (1024, 512, _V3),
    "embed-english-light-v3.0": (384, 512, _V3),
    "embed-multilingual-light-v3.0": (384, 512, _V3),
    "embed-v4.0": (1536, 128_000, _V4),
    "embed-v5.0-pro": (2048, 128_000, _V5),
    "embed-v5.0-fast": (2048, 128_000, _V5),
}

#: As documented: the most tokens of a question, beyond which it is cut without a word.
_RERANKERS = {
    "rerank-v3.5": 2048,
    "rerank-v4.0-fast": 16_384,
    "rerank-v4.0-pro": 16_384,
    "rerank-v5.0-fast": 16_384,
    "rerank-v5.0-pro": 16_384,
}


def with_vectors(change: Callable[[list[Any]], list[Any]]) -> Fault:
    """A reply of status 200 whose lists of vectors went through `change`."""

    def changed(reply: dict[str, Any]) -> dict[str, Any]:
        return {**reply, "embeddings": {name: change(found) for name, found in reply["embeddings"].items()}}

    return Fault(change=changed)


class CohereServer(LoopbackServer):
    """A fake Cohere; set CHAPTERVERSE_COHERE_URL to its `url`.

    Attributes:
        limits: headers of good replies, as for a trial key.
        replies: the chat's next replies; without one it quotes the first document.
        calls: what the model calls in the next chats with tools; nothing where none is left.
    """

    def __init__(self, limits: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.limits = limits or {}
        self.replies: deque[ChatReply] = deque()
        self.calls: deque[Iterable[tuple[str, Any]]] = deque()

    def say(self, *replies: ChatReply) -> None:
        """Queue the chat's replies to the next requests."""
        self.replies.extend(replies)

    def answer(self, request: Request) -> Answer:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            raise Refusal(401, "invalid api token")
        if request.path == "/v2/chat":
            return self._chat(ChatRequest.model_validate(request.body))
        endpoint = _ENDPOINTS.get(request.path)
        if endpoint is None:
            raise Refusal(404, "not found")
        return Answer(200, endpoint(request.body), self.limits)

    def failure(self, refusal: Refusal) -> Answer:
        body = {"error_type": refusal.code} if refusal.code == NO_VALID_RESPONSE else {}
        return Answer(refusal.status, {**body, "id": "fake", "message": str(refusal)})

    def _chat(self, request: ChatRequest) -> Answer:
        if request.tools and self.calls:
            return Answer(200, called(self.calls.popleft()), {"Content-Type": "text/event-stream", **self.limits})
        reply = self.replies.popleft() if self.replies else quoting(request)
        if request.stream:
            return Answer(200, streamed(reply), {"Content-Type": "text/event-stream", **self.limits})
        return Answer(200, whole(reply), self.limits)


class EmbedRequest(BaseModel):
    """Body of `POST /v2/embed` as documented, for texts."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    input_type: Literal["search_document", "search_query", "classification", "clustering"]
    texts: list[str]
    embedding_types: list[Literal["float", "int8"]] = ["float"]
    truncate: Literal["NONE", "START", "END"] = "END"
    output_dimension: Literal[256, 512, 768, 1024, 1536, 2048] | None = None
    max_tokens: int | None = Field(None, ge=1)
    priority: int | None = Field(None, ge=0, le=999)


def _embed(body: Any) -> dict[str, Any]:
    request = EmbedRequest.model_validate(body)
    if request.model not in _MODELS:
        raise Refusal(404, f"model '{request.model}' not found")
    size, limit, sizes = _MODELS[request.model]
    if request.output_dimension not in sizes:
        raise Refusal(400, "output_dimension is not supported by this model")
    if not 1 <= len(request.texts) <= 96:
        raise Refusal(400, f"total number of texts must be at most 96 - received {len(request.texts)}")
    for i, text in enumerate(request.texts):
        if not text:
            raise Refusal(400, f"inputs contains an element that is the empty string at index {i}")
        if request.truncate == "NONE" and tokens(text) > limit:
            raise Refusal(400, "a text is longer than the model's maximum")
    size = request.output_dimension or size
    return {
        "id": "fake",
        "embeddings": {
            numbers: [typed_vector(text, size, numbers) for text in request.texts]
            for numbers in request.embedding_types
        },
        "texts": request.texts,
        "response_type": "embeddings_by_type",
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": sum(map(tokens, request.texts))}},
    }


class RerankRequest(BaseModel):
    """Body of `POST /v2/rerank` as documented, without fields of Rerank 5 only."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    query: str = Field(min_length=1)
    documents: list[str] = Field(max_length=10_000)
    top_n: int | None = Field(None, ge=1)
    max_tokens_per_doc: int = Field(4096, ge=1)
    priority: int | None = Field(None, ge=0, le=999)


def _rerank(body: Any) -> dict[str, Any]:
    request = RerankRequest.model_validate(body)
    if request.model not in _RERANKERS:
        raise Refusal(404, f"model '{request.model}' not found")
    query = first_tokens(request.query, _RERANKERS[request.model])
    texts = [first_tokens(text, request.max_tokens_per_doc) for text in request.documents]
    return {
        "id": "fake",
        "results": results(query, texts, request.top_n),
        # A search is a question with up to 100 documents.
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": -(-len(texts) // 100)}},
    }


_ENDPOINTS: dict[str, Callable[[Any], dict[str, Any]]] = {"/v2/embed": _embed, "/v2/rerank": _rerank}
