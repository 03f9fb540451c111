"""A question and its answer in the form of OpenAI's chat completions.

Fields as in OpenAI's API reference ("Create chat completion", "The chat completion chunk object"), Gemini's ("Content")
and Ollama's ("Generate a chat message"), November 2026. Fields that set how a model writes are accepted and have no
effect. The messages may have the form of any of the three:

    OpenAI   {"messages": [{"role": …, "content": text or parts}]}
    Ollama   the same with text alone
    Gemini   {"systemInstruction": {"parts": …}, "contents": [{"role": "user" or "model", "parts": …}]}; a tool's
             result is a part with a "functionResponse"

Only their text is read: pictures, sound, files, thoughts and calls of tools are left out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from chapterverse.errors import InputError
from chapterverse_api.contract import (
    AnswerEvent,
    ChatQuery,
    ChatResponse,
    Delta,
    Meta,
    Segment,
    SourceChunk,
    dump,
)
from chapterverse_api.draft.requests import estimate_tokens
from chapterverse_api.rejections import make_query
from chapterverse_api.request_limits import (
    MAX_CONTEXT_CHARS,
    MAX_HISTORY_CHARS,
    MAX_HISTORY_MESSAGES,
    MAX_MESSAGE_CHARS,
)

#: Name of the model if a request names none.
_MODEL = "chapterverse"
#: Characters of a model's name that are repeated, in each chunk of a stream.
_MAX_MODEL_CHARS = 100
#: Fields of `ChatQuery` that are allowed beside OpenAI's. `top_k` is not: in other services it is a sampling setting.
_EXTRA_FIELDS = ("thread_id", "page_url", "language", "version", "filters", "output")

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
_TEXT_PARTS = (None, "text", "input_text", "output_text")


class ExternalMessage(NamedTuple):
    """A message as another program states it. Its role is not proven."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request for a completion.

    Attributes:
        stream: whether the answer comes in chunks.
        include_usage: whether the last chunk states the usage.
    """

    query: ChatQuery
    model: str
    stream: bool
    include_usage: bool

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> CompletionRequest:
        """Read a request's body. A long conversation is cut, and messages of system and tools are the reader's words.

        Raises:
            InputError: there is no question, or a field can't be understood.
        """
        model, stream, options = body.get("model", _MODEL), body.get("stream"), body.get("stream_options")
        if not isinstance(model, str):
            raise InputError("model must be text.", field="model")
        if not isinstance(stream, bool | None):
            raise InputError("stream must be true or false.", field="stream")
        include_usage = isinstance(options, Mapping) and options.get("include_usage") is True
        return cls(_query(body), model[:_MAX_MODEL_CHARS] or _MODEL, bool(stream), include_usage)


def _query(body: Mapping[str, Any]) -> ChatQuery:
    messages = read_messages(body)
    at = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if at is None:
        raise InputError("messages must hold a message of the user with text.", field="messages")
    # Another program may write system messages, so they inform the model and can't instruct it.
    context = "\n\n".join(m.content for m in messages if m.role in ("system", "tool"))[:MAX_CONTEXT_CHARS]
    extras = {name: body[name] for name in _EXTRA_FIELDS if body.get(name) is not None}
    history = _latest(messages[:at])
    try:
        return make_query(
            query=messages[at].content, conversation_history=history, user_context=context or None, **extras
        )
    except InputError as error:
        if error.field != "query":
            raise
        rule = str(error).removeprefix("query ")
        raise InputError(f"The last message of the user {rule}", field="messages") from None


def _latest(messages: Sequence[ExternalMessage]) -> list[dict[str, str]]:
    """Return the latest messages of a conversation, as many as a query may hold, oldest first."""
    spoken = [m for m in messages if m.role in ("user", "assistant")][-MAX_HISTORY_MESSAGES:]
    history: list[dict[str, str]] = []
    remaining_chars = MAX_HISTORY_CHARS
    for message in reversed(spoken):
        content = message.content[: min(MAX_MESSAGE_CHARS, remaining_chars)]
        remaining_chars -= len(content)
        if content:
            history.insert(0, {"role": message.role, "content": content})
    return history


def read_messages(body: Mapping[str, Any]) -> tuple[ExternalMessage, ...]:
    """Return the messages of a request in any of the formats, oldest first, without those that hold no text.

    Raises:
        InputError: there is no list of messages, or a message has no known role or no content that can be read.
    """
    field = "contents" if "contents" in body and "messages" not in body else "messages"
    messages = body.get(field)
    if not isinstance(messages, list) or not messages:
        raise InputError(f"{field} must be a list of at least one message.", field=field)
    system = body.get("systemInstruction", body.get("system_instruction")) if field == "contents" else None
    first = [{"role": "system", **system}] if isinstance(system, Mapping) else []
    read = (message for one in [*first, *messages] for message in _read_message(one, field))
    return tuple(message for message in read if message.content.strip())


def _read_message(message: object, field: str) -> Iterator[ExternalMessage]:
    """Yield a message's own text, and then what tools answered, as Gemini states it among the parts."""
    role = _ROLES.get(str(message.get("role") or "user")) if isinstance(message, Mapping) else None
    if role is None or not isinstance(message, Mapping):
        raise InputError(
            f"{field} must hold objects with a role: system, developer, user, assistant, model, tool or function.",
            field=field,
        )
    content = message.get("parts", message.get("content"))
    if not isinstance(content, str | list | None):
        raise InputError(f"{field} must hold messages whose content is text or a list of parts.", field=field)
    parts = [content] if isinstance(content, str) else content or []
    yield ExternalMessage(role, "\n\n".join(text for part in parts if (text := _read_text(part)) is not None))
    yield from (ExternalMessage("tool", result) for part in parts if (result := _read_result(part)) is not None)


def _read_text(part: object) -> str | None:
    if isinstance(part, Mapping) and part.get("type") in _TEXT_PARTS and not part.get("thought"):
        part = part.get("text")
    return part if isinstance(part, str) else None


def _read_result(part: object) -> str | None:
    result = part.get("functionResponse", part.get("function_response")) if isinstance(part, Mapping) else None
    if not isinstance(result, Mapping):
        return None
    answer = result.get("response")
    text = answer.get("result") if isinstance(answer, Mapping) else None
    return text if isinstance(text, str) else json.dumps(answer, ensure_ascii=False)


@dataclass(slots=True)
class Completion:
    """Writes one answer, as one document or as a stream of chunks.

    Attributes:
        created: seconds since 1970.
    """

    request: CompletionRequest
    created: int = field(default_factory=lambda: int(time.time()))
    _turn_id: str = ""
    _sources: Mapping[str, SourceChunk] = field(default_factory=dict)
    _length: int = 0

    def document(self, response: ChatResponse) -> dict[str, Any]:
        """Return the whole answer: its text with OpenAI's annotations, and the sources that it cites beside it."""
        self._begin(response.turn_id, response.source_chunks)
        annotations = [note for segment in response.segments for note in self._annotate(segment)]
        message = {
            "role": "assistant",
            "content": response.text_with_choices,
            "refusal": None,
            "annotations": annotations,
        }
        choice = {"message": message, "finish_reason": "stop", "logprobs": None}
        return self._write("chat.completion", choice, response) | {"usage": self._usage(response)}

    def frame(self, event: AnswerEvent) -> str:
        """Return the server-sent events for a part of the answer: `Meta`, each `Delta`, and last the response."""
        frames = [f"data: {json.dumps(chunk)}\n\n" for chunk in self._chunks(event)]
        return "".join([*frames, "data: [DONE]\n\n"] if isinstance(event, ChatResponse) else frames)

    def _chunks(self, event: AnswerEvent) -> Iterator[dict[str, Any]]:
        if isinstance(event, Meta):
            self._begin(event.turn_id, event.sources)
            yield self._chunk({"role": "assistant", "content": ""})
        elif isinstance(event, Delta):
            delta = {"content": event.text, "annotations": self._annotate(event)}
            yield self._chunk(delta, self._cite(event.citations))
        elif isinstance(event, ChatResponse):
            # A refusal comes without segments before it.
            if not self._length:
                yield self._chunk({"content": event.text_with_choices})
            self._begin(event.turn_id, event.source_chunks)
            yield self._write("chat.completion.chunk", {"delta": {}, "finish_reason": "stop"}, event)
            if self.request.include_usage:
                yield self._head("chat.completion.chunk") | {"choices": [], "usage": self._usage(event)}

    def _begin(self, turn_id: str, sources: Sequence[SourceChunk]) -> None:
        self._turn_id, self._sources = turn_id, {source.id: source for source in sources}

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self._turn_id}",
            "object": kind,
            "created": self.created,
            "model": self.request.model,
        }

    def _chunk(self, delta: dict[str, Any], citations: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "citations": list(citations), "finish_reason": None, "logprobs": None}
        return self._head("chat.completion.chunk") | {"choices": [choice]}

    def _write(self, kind: str, choice: dict[str, Any], response: ChatResponse) -> dict[str, Any]:
        citations = self._cite(dict.fromkeys(i for segment in response.segments for i in segment.citations))
        extension = {k: v for k, v in dump(response).items() if k not in ("response", "segments", "source_chunks")}
        choices = [{"index": 0, **choice, "citations": citations}]
        # At the top too, because front ends for Perplexity's API look there.
        return self._head(kind) | {"choices": choices, "citations": citations, "chapterverse": extension}

    def _annotate(self, segment: Segment) -> list[dict[str, Any]]:
        """Return which text rests on which address, in characters from the beginning of the answer."""
        start, self._length = self._length, self._length + len(segment.text)
        place = {"start_index": start, "end_index": self._length}
        return [
            {"type": "url_citation", "url_citation": {**place, "title": cited["title"], "url": cited["url"]}}
            for cited in self._cite(segment.citations)
            if cited["url"]
        ]

    def _cite(self, ids: Iterable[str]) -> list[dict[str, Any]]:
        sources = [self._sources[i] for i in ids if i in self._sources]
        return [{**dump(source), "title": _title(source)} for source in sources]

    def _usage(self, response: ChatResponse) -> dict[str, int]:
        query = self.request.query
        texts = (*(m.content for m in query.conversation_history), query.user_context or "", query.query or "")
        prompt, completion = round(sum(map(estimate_tokens, texts))), round(estimate_tokens(response.response))
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _title(source: SourceChunk) -> str:
    return " › ".join(dict.fromkeys(filter(None, (source.chapter, source.section))))
