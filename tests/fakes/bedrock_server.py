"""A `bedrock-runtime` on loopback: Cohere's models by `InvokeModel`, as the user guide and Cohere's SDK say, and
language models by `Converse` and `ConverseStream`, as the API reference says, in the event stream's own binary frames;
and guardrails by `ApplyGuardrail`, with the limits of contextual grounding in the user guide.

AWS_ENDPOINT_URL leads boto3 here. Signatures are asked for and not verified.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field

from fakes.bags import tokens, typed_vector
from fakes.loopback import Answer, LoopbackServer, Refusal, Request
from fakes.openai_server import Script
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


#: Language models, and whether they take a temperature.
_SPEAKERS = {
    "amazon.nova-lite-v1:0": True,
    "anthropic.claude-haiku-4-5-20251001-v1:0": True,
    "example.decided-v1:0": False,
}


class Text(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    text: Annotated[str, Field(pattern=r"\S")]


class Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    role: Literal["user", "assistant"]
    content: Annotated[list[Text], Field(min_length=1)]


class InferenceConfig(BaseModel):
    model_config = ConfigDict(extra="forbid")

    maxTokens: Annotated[int, Field(ge=1)] | None = None  # noqa: N815 the service names it
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None


class JsonSchemaDefinition(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    # JSON as text. A field by the name would hide one of pydantic's.
    document: Annotated[str, Field(alias="schema", min_length=1)]
    name: str | None = None
    description: str | None = None


class OutputFormatStructure(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    jsonSchema: JsonSchemaDefinition  # noqa: N815 the service names it


class OutputFormat(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["json_schema"]
    structure: OutputFormatStructure


class OutputConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    textFormat: OutputFormat | None = None  # noqa: N815 the service names it


class ToolInputSchema(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    # A field by the name would hide one of pydantic's.
    document: Annotated[dict[str, Any], Field(alias="json")]


class ToolSpecification(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: Annotated[str, Field(min_length=1)]
    inputSchema: ToolInputSchema  # noqa: N815 the service names it


class Tool(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    toolSpec: ToolSpecification  # noqa: N815 the service names it


class ToolConfiguration(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    tools: Annotated[list[Tool], Field(min_length=1)]


class ConverseRequest(BaseModel):
    """Body of `Converse`, for texts."""

    model_config = ConfigDict(extra="forbid", strict=True)

    messages: Annotated[list[Message], Field(min_length=1)]
    system: list[Text] = []
    inferenceConfig: InferenceConfig = InferenceConfig()  # noqa: N815
    outputConfig: OutputConfig | None = None  # noqa: N815
    toolConfig: ToolConfiguration | None = None  # noqa: N815


class GuardrailText(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    text: Annotated[str, Field(min_length=1)]
    qualifiers: list[Literal["grounding_source", "query", "guard_content"]] = []


class GuardrailContent(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    text: GuardrailText


class GuardrailRequest(BaseModel):
    """Body of `ApplyGuardrail`, for texts."""

    model_config = ConfigDict(extra="forbid", strict=True)

    source: Literal["INPUT", "OUTPUT"]
    content: Annotated[list[GuardrailContent], Field(min_length=1)]

    def texts(self, qualifier: str) -> str:
        return " ".join(c.text.text for c in self.content if qualifier in c.text.qualifiers)


#: Characters that contextual grounding takes of each text.
_MOST_CHARACTERS = {"grounding_source": 100_000, "query": 1_000, "guard_content": 5_000}


class BedrockServer(LoopbackServer):
    """A fake Bedrock; set AWS_ENDPOINT_URL_BEDROCK_RUNTIME to its `url`.

    Attributes:
        scripts: a language model's answers to the next conversations.
        calls: what it calls in the next conversations with tools; nothing where none is left.
        stop: the stop reason.
        thoughts: billed reasoning tokens before each answer.
        grounding: how grounded a claim is in a document, 0 to 1, for the guardrail "abc123"; its threshold is .7.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scripts: deque[Script] = deque()
        self.calls: deque[Iterable[tuple[str, Any]]] = deque()
        self.stop = "end_turn"
        self.thoughts = 0
        self.grounding: Callable[[str, str], float] = lambda document, claim: 0.9

    def answer(self, request: Request) -> Answer:
        if not request.headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 Credential="):
            raise Refusal(403, "missing authentication token", "MissingAuthenticationTokenException")
        if guardrail := re.fullmatch(r"/guardrail/([^/]+)/version/([^/]+)/apply", request.path):
            return Answer(200, self._apply(unquote(guardrail[1]), guardrail[2], request.body))
        path = re.fullmatch(r"/model/([^/]+)/(invoke|converse|converse-stream)", request.path)
        if path is None:
            raise Refusal(404, "unknown operation", "UnknownOperationException")
        if path[2] != "invoke":
            return self._converse(unquote(path[1]), path[2], ConverseRequest.model_validate(request.body))
        model = re.sub(r"^(us|eu|global)\.", "", unquote(path[1]))
        serve = _rerank if model == "cohere.rerank-v3-5:0" else _embed
        body, count = serve(model, request.body)
        return Answer(200, body, {"x-amzn-bedrock-input-token-count": str(count)})

    def _apply(self, name: str, version: str, body: Any) -> dict[str, Any]:
        if name.rpartition("/")[2] != "abc123" or version not in {"DRAFT", "2"}:
            raise Refusal(404, "The guardrail identifier or version provided in the request does not exist.")
        request = GuardrailRequest.model_validate(body)
        asked = {qualifier: request.texts(qualifier) for qualifier in _MOST_CHARACTERS}
        if request.source != "OUTPUT" or not all(asked.values()):
            raise Refusal(400, "Contextual grounding needs a source, a query and content to guard.")
        if any(len(text) > _MOST_CHARACTERS[qualifier] for qualifier, text in asked.items()):
            raise Refusal(400, "The text is longer than contextual grounding takes.")
        score = self.grounding(asked["grounding_source"], asked["guard_content"])
        scores = {"GROUNDING": score, "RELEVANCE": 0.1}
        filters = [
            {"type": kind, "threshold": 0.7, "score": found, "action": "BLOCKED" if found < 0.7 else "NONE"}
            for kind, found in scores.items()
        ]
        units = sum(-(-len(text) // 1000) for text in asked.values())
        return {
            "usage": {
                "topicPolicyUnits": 0,
                "contentPolicyUnits": 0,
                "wordPolicyUnits": 0,
                "sensitiveInformationPolicyUnits": 0,
                "sensitiveInformationPolicyFreeUnits": 0,
                "contextualGroundingPolicyUnits": units,
            },
            "action": "GUARDRAIL_INTERVENED",
            "outputs": [{"text": "Sorry, the model cannot answer this question."}],
            "assessments": [{"contextualGroundingPolicy": {"filters": filters}}],
        }

    def _converse(self, model: str, operation: str, request: ConverseRequest) -> Answer:
        _check(re.sub(r"^(arn:.*/)?((us|eu|apac|global)\.)?", "", model), request)
        if request.toolConfig and self.calls:
            stream = _called(self.calls.popleft())
            return Answer(200, stream, {"Content-Type": "application/vnd.amazon.eventstream"})
        script = self.scripts.popleft() if self.scripts else ["It has ", "32 characters [1]."]
        if operation == "converse-stream":
            return Answer(200, self._stream(script), {"Content-Type": "application/vnd.amazon.eventstream"})
        text = "".join(piece for piece in script if isinstance(piece, str))
        message = {"role": "assistant", "content": [{"text": text}]}
        usage = {"inputTokens": 1, "outputTokens": tokens(text), "totalTokens": 1 + tokens(text)}
        reply = {"output": {"message": message}, "stopReason": self.stop, "usage": usage, "metrics": {"latencyMs": 1}}
        return Answer(200, reply)

    def _stream(self, script: Script) -> Iterator[bytes]:
        yield event("messageStart", {"role": "assistant"})
        for piece in script:
            if isinstance(piece, str):
                yield event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}})
            else:
                piece()
        yield event("contentBlockStop", {"contentBlockIndex": 0})
        yield event("messageStop", {"stopReason": self.stop})
        written = sum(tokens(piece) for piece in script if isinstance(piece, str)) + self.thoughts
        usage = {"inputTokens": 1, "outputTokens": written, "totalTokens": 1 + written}
        yield event("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})

    def failure(self, refusal: Refusal) -> Answer:
        code = refusal.code or _CODES.get(refusal.status, "InternalServerException")
        return Answer(refusal.status, {"message": str(refusal)}, {"x-amzn-ErrorType": code})


def event(name: str, payload: Any) -> bytes:
    """Return one event of a stream; "p" is padding, with which the service hides lengths."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, json.dumps({**payload, "p": "abcdefgh"}).encode())


def exception(name: str) -> bytes:
    """Return a failure inside a stream."""
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, b'{"message": "as asked: s3cret"}')


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """Return a message of `application/vnd.amazon.eventstream`: lengths and their CRC, headers, payload, CRC of all."""
    named = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    lengths = struct.pack("!II", 16 + len(named) + len(payload), len(named))
    message = lengths + struct.pack("!I", zlib.crc32(lengths)) + named + payload
    return message + struct.pack("!I", zlib.crc32(message))


def _check(model: str, request: ConverseRequest) -> None:
    if model not in _SPEAKERS:
        raise Refusal(404, "This model version has reached the end of its life.")
    roles = [message.role for message in request.messages]
    if roles[0] != "user" or any(a == b for a, b in pairwise(roles)):
        raise Refusal(400, "A conversation must alternate between user and assistant roles and start with a user.")
    if request.toolConfig and model == "example.decided-v1:0":
        raise Refusal(400, "This model doesn't support tool use.")
    if request.outputConfig and not model.startswith("anthropic."):
        raise Refusal(400, "This model does not support structured output.")
    if request.inferenceConfig.temperature is not None and not _SPEAKERS[model]:
        raise Refusal(400, "`temperature` is deprecated for this model.")


def _called(calls: Iterable[tuple[str, Any]]) -> Iterator[bytes]:
    yield event("messageStart", {"role": "assistant"})
    for n, (name, arguments) in enumerate(calls):
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        start = {"toolUse": {"toolUseId": f"tooluse_{n}", "name": name}}
        yield event("contentBlockStart", {"contentBlockIndex": n, "start": start})
        for at in range(0, len(written), 7):
            delta = {"toolUse": {"input": written[at : at + 7]}}
            yield event("contentBlockDelta", {"contentBlockIndex": n, "delta": delta})
        yield event("contentBlockStop", {"contentBlockIndex": n})
    yield event("messageStop", {"stopReason": "tool_use"})
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    yield event("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})


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
