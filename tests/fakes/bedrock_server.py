"""A `bedrock-runtime` on loopback that serves Cohere's models by `InvokeModel`, as the user guide and Cohere's SDK say.

AWS_ENDPOINT_URL leads boto3 here. Signatures are asked for and not verified.
"""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field

from fakes.bags import tokens, typed_vector
from fakes.loopback import Answer, LoopbackServer, Refusal, Request
from fakes.rankings import results

#: The names of errors by status, as the service's model lists them.
_CODES = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    texts: list[str] = Field(min_length=1, max_length=96)
    input_type: Literal["search_document", "search_query", "classification", "clustering"]


class EmbedV3(_Request):
    """Body of "Cohere Embed v3", for texts."""

    truncate: Literal["NONE", "START", "END"] = "NONE"
    embedding_types: list[Literal["float", "int8"]] | None = None


class EmbedV4(_Request):
    """Body of "Cohere Embed v4", for texts."""

    truncate: Literal["NONE", "LEFT", "RIGHT"] = "NONE"
    embedding_types: list[Literal["float", "int8"]] | None = None
    output_dimension: Literal[256, 512, 1024, 1536] = 1536
    max_tokens: int = Field(128_000, ge=1)


class Rerank(BaseModel):
    """Body of "Cohere Rerank 3.5"."""

    model_config = ConfigDict(extra="forbid", strict=True)

    api_version: int = Field(ge=2)
    query: str = Field(min_length=1)
    documents: list[str] = Field(max_length=1000)
    top_n: int | None = Field(None, ge=1)


class BedrockServer(LoopbackServer):
    def answer(self, request: Request) -> Answer:
        if not request.headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 Credential="):
            raise Refusal(403, "missing authentication token", "MissingAuthenticationTokenException")
        path = re.fullmatch(r"/model/([^/]+)/invoke", request.path)
        if path is None:
            raise Refusal(404, "unknown operation", "UnknownOperationException")
        model = re.sub(r"^(us|eu|global)\.", "", unquote(path[1]))
        serve = _rerank if model == "cohere.rerank-v3-5:0" else _embed
        body, count = serve(model, request.body)
        return Answer(200, body, {"x-amzn-bedrock-input-token-count": str(count)})

    def failure(self, refusal: Refusal) -> Answer:
        code = refusal.code or _CODES.get(refusal.status, "InternalServerException")
        return Answer(refusal.status, {"message": str(refusal)}, {"x-amzn-ErrorType": code})


def _embed(model: str, body: Any) -> tuple[dict[str, Any], int]:
    if model in {"cohere.embed-english-v3", "cohere.embed-multilingual-v3"}:
        request: EmbedV3 | EmbedV4 = EmbedV3.model_validate(body)
        size, limit = 1024, 512
        if any(len(text) > 2048 for text in request.texts):
            raise Refusal(400, "Malformed input request: expected maxLength: 2048")
    elif model == "cohere.embed-v4:0":
        request = EmbedV4.model_validate(body)
        size, limit = request.output_dimension, 128_000
    else:
        raise Refusal(404, "This model version has reached the end of its life.")
    if not all(request.texts) or (request.truncate == "NONE" and any(tokens(t) > limit for t in request.texts)):
        raise Refusal(400, "a text is empty or longer than the model's maximum")
    types = request.embedding_types
    found = {n: [typed_vector(t, size, n) for t in request.texts] for n in types or ["float"]}
    reply = {
        "id": "fake",
        # Without types the reply is the old one: a bare list of floats.
        "embeddings": found if types else found["float"],
        "response_type": "embeddings_by_type" if types else "embeddings_floats",
        "texts": request.texts,
    }
    return reply, sum(map(tokens, request.texts))


def _rerank(_model: str, body: Any) -> tuple[dict[str, Any], int]:
    request = Rerank.model_validate(body)
    reply = {"results": results(request.query, request.documents, request.top_n)}
    return reply, sum(map(tokens, [request.query, *request.documents]))
