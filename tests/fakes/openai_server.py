"""A server with OpenAI's `POST /v1/embeddings` and `/v1/chat/completions` on loopback: OpenAI's own, or a local one."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
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


#: Fields of a chat that each model refuses: the newer ones of OpenAI, and local servers of two kinds.
_CHAT_MODELS: dict[str, dict[str, str]] = {
    "gpt-4.1-mini": {},
    "gpt-5-mini": {
        "max_tokens": "Use 'max_completion_tokens' instead.",
        "temperature": "Only the default (1) value is supported.",
    },
    "local-model": {},
    "bespoke-minicheck": {},
    "strict-model": {"max_completion_tokens": "Extra inputs are not permitted."},
    "old-model": {
        "stream_options": "Extra inputs are not permitted.",
        "response_format": "Extra inputs are not permitted.",
        "tools": "This model does not support tools.",
    },
}

#: The prompt template of https://ollama.com/library/bespoke-minicheck; a claim is one sentence.
_CHECKED = re.compile(r"Document: (.*)\nClaim: ([^\n]+)", re.DOTALL)

#: What a model says, piece by piece; something to call stands for what happens between two pieces.
Script = Iterable[str | Callable[[], object]]


class ChatMessage(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    role: Literal["system", "user", "assistant"]
    content: str


class StreamOptions(BaseModel):
    """`ChatCompletionStreamOptions` of the same description."""

    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool = False


class JsonSchema(BaseModel):
    """`JSONSchema` of `ResponseFormatJsonSchema`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    description: str | None = None
    # A field by the name would hide one of pydantic's.
    document: Annotated[dict[str, Any], Field(alias="schema")]
    strict: bool = False


class ResponseFormat(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["json_schema"]
    json_schema: JsonSchema


class Function(BaseModel):
    """`FunctionObject`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: str
    parameters: dict[str, Any]


class Tool(BaseModel):
    """`ChatCompletionTool`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["function"]
    function: Function


class ChatRequest(BaseModel):
    """`CreateChatCompletionRequest` of the API's published description, for texts."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] = 1
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    response_format: ResponseFormat | None = None
    tools: Annotated[list[Tool], Field(min_length=1, max_length=128)] | None = None


#: What a model calls: names and arguments, which may be no JSON.
Calls = Iterable[tuple[str, Any]]


class OpenAIServer(LoopbackServer):
    """A fake OpenAI; set CHAPTERVERSE_OPENAI_URL to its `url`.

    Attributes:
        scripts: the model's answers to the next chats.
        calls: what the model calls in the next chats with tools; nothing where none is left.
        finish: the finish reason.
        thoughts: billed reasoning tokens before each answer.
        streams: whether a chat is streamed on request.
        verdict: what `bespoke-minicheck` says of a document and a claim.

    Args:
        key: the required key; empty for a local server without one.
        cuts: whether it silently truncates a text over the limit, like some local servers.
        most: most texts of one request.
    """

    def __init__(self, key: str = KEY, *, cuts: bool = False, most: int = 2048) -> None:
        super().__init__()
        self.scripts: deque[Script] = deque()
        self.calls: deque[Calls] = deque()
        self.finish = "stop"
        self.thoughts = 0
        self.streams = True
        self.verdict: Callable[[str, str], str] = lambda document, claim: "Yes"
        self._key = key
        self._cuts = cuts
        self._most = most

    def answer(self, request: Request) -> Answer:
        if self._key and request.headers.get("authorization") != f"Bearer {self._key}":
            # As the real one does, which is why our messages must not quote a service's.
            raise Refusal(401, f"Incorrect API key provided: {request.headers.get('authorization')}", "invalid_api_key")
        if (request.method, request.path) == ("POST", "/v1/chat/completions"):
            return Answer(200, self._chat(ChatRequest.model_validate(request.body)))
        if (request.method, request.path) != ("POST", "/v1/embeddings"):
            raise Refusal(404, "Invalid URL")
        return Answer(200, self._embed(EmbeddingRequest.model_validate(request.body)))

    def failure(self, refusal: Refusal) -> Answer:
        error = {"message": str(refusal), "type": "invalid_request_error", "param": None, "code": refusal.code or None}
        return Answer(refusal.status, {"error": error})

    def _chat(self, request: ChatRequest) -> Any:
        if request.model not in _CHAT_MODELS:
            raise Refusal(404, f"The model `{request.model}` does not exist", "model_not_found")
        for name, reason in _CHAT_MODELS[request.model].items():
            if name in request.model_fields_set:
                raise Refusal(400, f"Unsupported parameter: '{name}' is not supported with this model. {reason}")
        if request.tools and self.calls:
            return self._called(self.calls.popleft(), streams=request.stream and self.streams)
        script = self._script(request)
        if request.stream and self.streams:
            return self._stream(
                script, counts=request.stream_options is not None and request.stream_options.include_usage
            )
        text = "".join(piece for piece in script if isinstance(piece, str))
        message = {"role": "assistant", "content": text}
        return {
            "id": "fake",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish}],
            "usage": self._usage(text),
        }

    def _script(self, request: ChatRequest) -> Script:
        if request.model == "bespoke-minicheck" and not self.scripts:
            asked = _CHECKED.fullmatch(request.messages[-1].content)
            if asked is None:
                raise Refusal(400, "The prompt template is: Document: {document} Claim: {claim}")
            return [self.verdict(asked[1], asked[2])]
        return self.scripts.popleft() if self.scripts else ["It has ", "32 characters [1]."]

    def _called(self, calls: Calls, *, streams: bool) -> Any:
        listed = [
            {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": written(arguments)}}
            for n, (name, arguments) in enumerate(calls)
        ]
        if streams:
            return self._stream_calls(listed)
        message = {"role": "assistant", "content": None, "tool_calls": listed}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return {"id": "fake", "object": "chat.completion", "choices": [choice], "usage": self._usage("")}

    def _stream_calls(self, listed: list[dict[str, Any]]) -> Iterator[bytes]:
        """Yield calls as the service does: the name first, then the arguments in pieces."""
        yield chunk({"role": "assistant", "content": None})
        for n, call in enumerate(listed):
            arguments, named = call["function"]["arguments"], {**call["function"], "arguments": ""}
            yield chunk({"tool_calls": [{"index": n, **call, "function": named}]})
            for at in range(0, len(arguments), 7):
                yield chunk({"tool_calls": [{"index": n, "function": {"arguments": arguments[at : at + 7]}}]})
        yield chunk({}, "tool_calls" if self.finish == "stop" else self.finish)
        yield b"data: [DONE]\n\n"

    def _usage(self, text: str) -> dict[str, int]:
        written = tokens(text) + self.thoughts
        return {"prompt_tokens": 1, "completion_tokens": written, "total_tokens": 1 + written}

    def _stream(self, script: Script, *, counts: bool) -> Iterator[bytes]:
        said = ""
        yield chunk({"role": "assistant", "content": ""})
        for piece in script:
            if isinstance(piece, str):
                said += piece
                yield chunk({"content": piece})
            else:
                piece()
        yield chunk({}, self.finish)
        if counts:
            usage = self._usage(said)
            yield event({"id": "fake", "object": "chat.completion.chunk", "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

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
            # Last first: `index` assigns vectors to texts.
            "data": data[::-1],
            "model": request.model,
            "usage": {"prompt_tokens": sum(counts), "total_tokens": sum(counts)},
        }


def written(arguments: Any) -> str:
    """Return arguments as a model writes them; text is taken as it is."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def chunk(delta: Any, finish: str | None = None) -> bytes:
    """Return one piece of a streamed chat."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return event({"id": "fake", "object": "chat.completion.chunk", "model": "fake", "choices": [choice]})


def event(data: Any) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()
