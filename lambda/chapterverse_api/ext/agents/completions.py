"""A question and its answer in the form of OpenAI's chat completions.

Fields as in OpenAI's API reference, "Create chat completion" and "The chat completion chunk object", November 2026.
Fields of OpenAI's that set how a model writes are accepted and have no effect.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from chapterverse_api.ext.agents.message_formats import ExternalMessage, read_messages
from chapterverse_api.rejections import make_query
from chapterverse_api.request_limits import (
    MAX_CONTEXT_CHARS,
    MAX_HISTORY_CHARS,
    MAX_HISTORY_MESSAGES,
    MAX_MESSAGE_CHARS,
)

#: Name of the model if a request names none.
MODEL = "chapterverse"
#: Characters of a model's name that are repeated, in each chunk of a stream.
_MAX_MODEL_CHARS = 100
#: Ends a stream.
DONE = "data: [DONE]\n\n"
#: Fields of `ChatQuery` that are allowed beside OpenAI's. `top_k` is not: in other services it is a sampling setting.
_EXTRA_FIELDS = ("thread_id", "page_url", "language", "version", "filters", "output")


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
        model, stream, options = body.get("model", MODEL), body.get("stream"), body.get("stream_options")
        if not isinstance(model, str):
            raise InputError("model must be text.", field="model")
        if not isinstance(stream, bool | None):
            raise InputError("stream must be true or false.", field="stream")
        include_usage = isinstance(options, Mapping) and options.get("include_usage") is True
        return cls(_query(body), model[:_MAX_MODEL_CHARS] or MODEL, bool(stream), include_usage)


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
        annotations = [a for one in response.segments for a in self._annotations(one)]
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
        done = [DONE] if isinstance(event, ChatResponse) else []
        return "".join([*(f"data: {json.dumps(chunk)}\n\n" for chunk in self._chunks(event)), *done])

    def _chunks(self, event: AnswerEvent) -> Iterator[dict[str, Any]]:
        if isinstance(event, Meta):
            self._begin(event.turn_id, event.sources)
            yield self._chunk({"role": "assistant", "content": ""})
        elif isinstance(event, Delta):
            cited = [_citation(self._sources[i]) for i in event.citations if i in self._sources]
            delta = {"content": event.text, "annotations": list(self._annotations(event))}
            yield self._chunk(delta, cited)
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
        ids = dict.fromkeys(i for one in response.segments for i in one.citations if i in self._sources)
        extension = {k: v for k, v in dump(response).items() if k not in ("response", "segments", "source_chunks")}
        citations = [_citation(self._sources[i]) for i in ids]
        choices = [{"index": 0, **choice, "citations": citations}]
        # At the top too, because front ends for Perplexity's API look there.
        return self._head(kind) | {"choices": choices, "citations": citations, "chapterverse": extension}

    def _annotations(self, segment: Segment) -> Iterator[dict[str, Any]]:
        """Yield which text rests on which address, in characters from the beginning of the answer."""
        start, self._length = self._length, self._length + len(segment.text)
        for source in (self._sources[i] for i in segment.citations if i in self._sources):
            if source.url:
                place = {"start_index": start, "end_index": self._length, "title": _title(source), "url": source.url}
                yield {"type": "url_citation", "url_citation": place}

    def _usage(self, response: ChatResponse) -> dict[str, int]:
        query = self.request.query
        texts = (*(m.content for m in query.conversation_history), query.user_context or "", query.query or "")
        prompt, completion = round(sum(map(estimate_tokens, texts))), round(estimate_tokens(response.response))
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def model_list() -> dict[str, Any]:
    """Return the list of models, with its one entry."""
    return {"object": "list", "data": [model_entry()]}


def model_entry() -> dict[str, Any]:
    """Return the one model."""
    return {"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}


def _query(body: Mapping[str, Any]) -> ChatQuery:
    messages = read_messages(body)
    at = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "user"), None)
    if at is None:
        raise InputError("messages must hold a message of the user with text.", field="messages")
    # Another program may write system messages, so they inform the model and can't instruct it.
    context = "\n\n".join(m.content for m in messages if m.role in ("system", "tool"))[:MAX_CONTEXT_CHARS]
    extras = {name: body[name] for name in _EXTRA_FIELDS if body.get(name) is not None}
    try:
        return make_query(
            query=messages[at].content,
            conversation_history=_latest(messages[:at]),
            user_context=context or None,
            **extras,
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


def _citation(source: SourceChunk) -> dict[str, Any]:
    return {**dump(source), "title": _title(source)}


def _title(source: SourceChunk) -> str:
    return " › ".join(dict.fromkeys(part for part in (source.chapter, source.section) if part))
