"""Cohere's `POST /v2/chat` as documented: its validation, and the events of its stream in order."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fakes.loopback import Refusal

#: The name of the refusal that chats with documents meet for no reason that a client could know.
NO_VALID_RESPONSE = "NO_VALID_RESPONSE_GENERATED"

#: The models with their most tokens of an answer.
_CHATS = {
    "command-a-03-2025": 8000,
    "command-a-plus-05-2026": 64_000,
    "command-a-reasoning-08-2025": 32_000,
    "command-r7b-12-2024": 4000,
    "command-r-08-2024": 4000,
    "command-r-plus-08-2024": 4000,
}

Events = list[dict[str, Any]]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Text(_Part):
    type: Literal["text"]
    text: str


class Message(_Part):
    role: Literal["system", "user", "assistant"]
    content: str | list[_Text]


class Document(_Part):
    id: str | None = None
    data: dict[str, Any] | str


class _CitationOptions(_Part):
    mode: Literal["ENABLED", "DISABLED", "FAST", "ACCURATE", "OFF"]


class _Thinking(_Part):
    type: Literal["enabled", "disabled"]
    token_budget: int | None = Field(None, ge=1)


class _ResponseFormat(_Part):
    """`ResponseFormatV2`."""

    type: Literal["text", "json_object"]
    json_schema: dict[str, Any] | None = None


class _Function(_Part):
    name: Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")]
    description: str
    parameters: dict[str, Any]


class _Tool(_Part):
    """`ToolV2`."""

    type: Literal["function"]
    function: _Function


class ChatRequest(_Part):
    """Body of `POST /v2/chat` as documented, without the results of tools."""

    tools: Annotated[list[_Tool], Field(min_length=1)] | None = None

    model: str
    messages: Annotated[list[Message], Field(min_length=1)]
    stream: bool = False
    documents: list[str | Document] = []
    citation_options: _CitationOptions | None = None
    response_format: _ResponseFormat | None = None
    safety_mode: Literal["CONTEXTUAL", "STRICT", "OFF"] | None = None
    max_tokens: int | None = Field(None, ge=1)
    stop_sequences: list[str] = Field([], max_length=5)
    temperature: float = Field(0.3, ge=0, le=1)
    seed: int | None = None
    frequency_penalty: float | None = Field(None, ge=0, le=1)
    presence_penalty: float | None = Field(None, ge=0, le=1)
    k: int = Field(0, ge=0, le=500)
    p: float = Field(0.75, ge=0.01, le=0.99)
    logprobs: bool = False
    thinking: _Thinking | None = None
    priority: int | None = Field(None, ge=0, le=999)

    @model_validator(mode="after")
    def refused(self) -> Self:
        """Raise the error for a request that is invalid despite valid types."""
        if self.model not in _CHATS:
            raise Refusal(404, f"model '{self.model}' not found, make sure the correct model ID was used")
        if any(message.role == "system" for message in self.messages[1:]):
            raise Refusal(400, "invalid request: system message must be the first message")
        if self.messages[-1].role != "user":
            raise Refusal(400, "invalid request: the last message must be from the user")
        if any(not message.content for message in self.messages):
            raise Refusal(400, "invalid request: all elements in messages must have content")
        ids = [d.id for d in self.documents if isinstance(d, Document) and d.id is not None]
        if len(set(ids)) < len(ids):
            raise Refusal(400, "duplicate document ID")
        if self.documents and self.safety_mode is not None:
            raise Refusal(400, "safety_mode is not configurable in combination with documents")
        if self.documents and self.response_format is not None:
            raise Refusal(400, "response_format is not supported with RAG")
        if self.response_format is not None and self.model == "command-r7b-12-2024":
            raise Refusal(400, "response_format is not supported by this model")
        if self.frequency_penalty and self.presence_penalty:
            raise Refusal(400, "frequency_penalty and presence_penalty can't both be set")
        if (self.max_tokens or 0) > _CHATS[self.model]:
            raise Refusal(400, "too many tokens: max_tokens is over the model's limit")
        return self


@dataclass(frozen=True)
class ChatReply:
    """The model's reply.

    Attributes:
        text: the answer, sent word by word, or in these pieces.
        cited: (quote, ids) for each citation, placed at the quote's first occurrence in the text.
        thinking: sent before the text, in its own part.
        finish: the finish reason.
        error: sent with `finish`.
        inline: send each citation behind the piece that its words end with, as in mode FAST, and not behind the text.
        pause: seconds of silence before each event.
        change: maps the documented events to those that are sent.
        ended: called when the stream was sent to its end.
    """

    text: str | Sequence[str]
    cited: Sequence[tuple[str, Sequence[str]]] = ()
    thinking: str = ""
    finish: str = "COMPLETE"
    error: str | None = None
    inline: bool = True
    pause: float = 0.0
    change: Callable[[Events], Events] | None = None
    ended: Callable[[], None] = lambda: None

    @property
    def pieces(self) -> Sequence[str]:
        return re.findall(r"\S+\s*|\s+", self.text) if isinstance(self.text, str) else self.text

    @property
    def citations(self) -> Events:
        text = "".join(self.pieces)
        return [citation(text.index(quote), quote, ids, int(bool(self.thinking))) for quote, ids in self.cited]


def citation(start: int, text: str, ids: Sequence[str], index: int = 0) -> dict[str, Any]:
    sources = [{"type": "document", "id": i, "document": {"id": i, "snippet": "as sent"}} for i in ids]
    return {
        "start": start,
        "end": start + len(text),
        "text": text,
        "sources": sources,
        "content_index": index,
        "type": "TEXT_CONTENT",
    }


def quoting(request: ChatRequest) -> ChatReply:
    """Return an answer that quotes the first document."""
    first = next((d for d in request.documents if isinstance(d, Document)), None)
    if first is None:
        return ChatReply("In short: as you asked.")
    said = str(first.data["snippet"] if isinstance(first.data, dict) else first.data).split("\n\n")[0]
    return ChatReply(said, [(said, [first.id or "doc:0"])])


def whole(reply: ChatReply) -> dict[str, Any]:
    """Return the body of a reply that is not a stream."""
    thoughts = [{"type": "thinking", "thinking": reply.thinking}] if reply.thinking else []
    message: dict[str, Any] = {
        "role": "assistant",
        "content": [*thoughts, {"type": "text", "text": "".join(reply.pieces)}],
    }
    if reply.cited:
        message["citations"] = reply.citations
    return {"id": "fake", "finish_reason": reply.finish, "message": message, "usage": _USAGE}


def called(calls: Iterable[tuple[str, Any]]) -> Iterator[bytes]:
    """Yield the events of a reply that calls tools: a plan, then of each call its name and its arguments in pieces."""
    end = {"finish_reason": "TOOL_CALL", "usage": _USAGE}
    events: Events = [
        {"type": "message-start", "id": "fake", "delta": {"message": {"role": "assistant", "content": []}}},
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I will look it up."}}},
    ]
    for n, (name, given) in enumerate(calls):
        arguments = given if isinstance(given, str) else json.dumps(given)
        named = {"id": f"{name}_{n}", "type": "function", "function": {"name": name, "arguments": ""}}
        pieces = [{"function": {"arguments": arguments[at : at + 7]}} for at in range(0, len(arguments), 7)]
        events += [
            {"type": "tool-call-start", "index": n, "delta": {"message": {"tool_calls": named}}},
            *({"type": "tool-call-delta", "index": n, "delta": {"message": {"tool_calls": one}}} for one in pieces),
            {"type": "tool-call-end", "index": n},
        ]
    for event in (*events, {"type": "message-end", "id": "fake", "delta": end}):
        yield _sent(event)


def streamed(reply: ChatReply) -> Iterator[bytes]:
    """Yield a reply's events as server-sent ones."""
    events = _documented(reply)
    for event in reply.change(events) if reply.change else events:
        time.sleep(reply.pause)
        yield _sent(event)
    reply.ended()


def _sent(event: dict[str, Any]) -> bytes:
    return f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n".encode()


_USAGE = {
    "billed_units": {"input_tokens": 20, "output_tokens": 10},
    "tokens": {"input_tokens": 500, "output_tokens": 12},
}


def _documented(reply: ChatReply) -> Events:
    index = int(bool(reply.thinking))
    text = _part(index, "text", reply.pieces)
    if reply.inline:
        text = list(_woven(text, reply))
    cited = [] if reply.inline else list(_cited(reply.citations))
    end: dict[str, Any] = {"finish_reason": reply.finish, "usage": _USAGE}
    return [
        {"type": "message-start", "id": "fake", "delta": {"message": {"role": "assistant", "content": []}}},
        *(_part(0, "thinking", [reply.thinking]) if reply.thinking else []),
        *text,
        *cited,
        {"type": "message-end", "id": "fake", "delta": end | ({"error": reply.error} if reply.error else {})},
    ]


def _part(index: int, kind: str, pieces: Sequence[str]) -> Events:
    deltas = ({"message": {"content": {kind: piece}}} for piece in pieces)
    return [
        {"type": "content-start", "index": index, "delta": {"message": {"content": {"type": kind, kind: ""}}}},
        *({"type": "content-delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content-end", "index": index},
    ]


def _woven(text: Events, reply: ChatReply) -> Iterator[dict[str, Any]]:
    """Yield the events of a text with each citation behind the delta in which its words end."""
    pairs = [(one["end"], list(_cited([one]))) for one in reply.citations]
    waiting, length = sorted(pairs, key=lambda pair: pair[0]), 0
    yield text[0]
    for piece, delta in zip(reply.pieces, text[1:-1], strict=True):
        yield delta
        length += len(piece)
        while waiting and waiting[0][0] <= length:
            yield from waiting.pop(0)[1]
    yield text[-1]


def _cited(citations: Events) -> Iterator[dict[str, Any]]:
    for index, one in enumerate(citations):
        # One object under a name for many.
        yield {"type": "citation-start", "index": index, "delta": {"message": {"citations": one}}}
        yield {"type": "citation-end", "index": index}
