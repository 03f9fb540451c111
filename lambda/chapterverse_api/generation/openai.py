"""Language models of any server with OpenAI's `POST /v1/chat/completions`: OpenAI, Ollama, vLLM, LM Studio, others.

    openai:gpt-4.1-mini    OpenAI itself, which needs a key
    openai:qwen3:8b        with CHAPTERVERSE_OPENAI_URL=http://localhost:11434, which needs none

The address has no `/v1`. These models take no documents, so they get numbered sources (`prompts`) and cite by marks
(`citation_marks`). Fields as in OpenAI's API reference and in Ollama's, November 2026.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from chapterverse.errors import AnswerWithheld, ConfigurationError, ProviderError
from chapterverse.net import Event, JsonClient, Reply, Stream
from chapterverse.net.messages import parse_reply
from chapterverse.providers.openai import OpenAIErrors, access, is_openai, require_key
from chapterverse.settings import Settings
from chapterverse.text.json_text import parse_json
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation.draft import Span, to_spans
from chapterverse_api.generation.prompts import (
    MAX_ANSWER_TOKENS,
    MAX_REASONING_TOKENS,
    conversation,
    instructions,
    new_nonce,
)
from chapterverse_api.generation.reasoning import read_all
from chapterverse_api.generation.requests import (
    TEMPERATURE,
    GenerationRequest,
    ModelRequest,
    ResponseSchema,
    ToolCall,
    ToolSpec,
    Usage,
    chat_messages,
    function_calls,
    function_specs,
)

_PATH = "/v1/chat/completions"

#: Seconds for the token counts that a stream sends after the answer.
_USAGE_SECONDS = 1.0

_PROVIDER = "The model service"

_ERRORS = OpenAIErrors(_PROVIDER, "its name")
#: How servers say that they don't take a field.
_MALFORMED = {400, 422}


@dataclass(frozen=True, slots=True)
class _Dialect:
    """The fields that a server takes, as far as its replies have shown.

    Attributes:
        limit: its name for the length limit of an answer.
        renamed: whether that is the second name that was tried.
        temperature: whether it takes a temperature; reasoning models don't.
        counts: whether a stream reports its tokens, which include those of thoughts.
        schema: whether it takes a `response_format`; else only the instructions describe the data.
        tools: whether it takes `tools`; some models don't.
    """

    limit: str
    renamed: bool = False
    temperature: bool = True
    counts: bool = True
    schema: bool = True
    tools: bool = True

    def fields(self, tokens: int, *, streams: bool) -> dict[str, Any]:
        options: dict[str, Any] = {"stream_options": {"include_usage": True}} if streams and self.counts else {}
        if self.temperature:
            return {self.limit: tokens, "temperature": TEMPERATURE, **options}
        return {self.limit: tokens + MAX_REASONING_TOKENS, **options}

    def adapt(self, reply: Stream | Reply, *, tools: bool = False) -> _Dialect:
        """Return the dialect to try after a rejection.

        Args:
            tools: whether tools were offered.

        Raises:
            ProviderError: another dialect would not help.
        """
        error = json.dumps(reply.body) if reply.status in _MALFORMED else ""
        if tools and self.tools and "tool" in error:
            return replace(self, tools=False)
        if self.schema and ("response_format" in error or "schema" in error):
            return replace(self, schema=False)
        if self.counts and "stream_options" in error:
            return replace(self, counts=False)
        if not self.renamed and self.limit in error:
            other = "max_tokens" if self.limit == "max_completion_tokens" else "max_completion_tokens"
            return replace(self, limit=other, renamed=True)
        if self.temperature and "temperature" in error:
            return replace(self, temperature=False)
        raise _ERRORS.error(reply.status, reply.body)


class OpenAIGenerator:
    """One model behind one address; a `Writer` too. Safe to share between threads."""

    def __init__(self, model: str, rest: JsonClient, limit: str) -> None:
        self._model = model
        self._rest = rest
        self._dialect = _Dialect(limit)

    @classmethod
    def from_settings(cls, settings: Settings, model: str, *, part: str = "generator") -> OpenAIGenerator:
        """Return the generator for a model; nothing is sent yet.

        Args:
            part: the model's purpose, for error messages.

        Raises:
            ConfigurationError: no model is named, or the key is missing or malformed, or the address is.
        """
        if not model:
            raise ConfigurationError(
                "The generator openai needs a model: use openai:MODEL, such as openai:gpt-4.1-mini."
            )
        url, headers = access(settings)
        rest = JsonClient(url, headers, billed=True)
        require_key(url, headers, part)
        # OpenAI's newer models reject the old name, and Ollama silently ignores the new one.
        return cls(model, rest, "max_completion_tokens" if is_openai(url) else "max_tokens")

    @property
    def name(self) -> str:
        return f"openai:{self._model}"

    def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
        """Yield the draft as it is written; see `AnswerGenerator`."""
        nonce = new_nonce()
        messages = conversation(request, nonce)
        system = instructions(request, nonce)
        model_request = ModelRequest(system, messages, MAX_ANSWER_TOKENS, request.deadline, request.usage)
        yield from to_spans(self._texts(model_request))

    def write(self, request: ModelRequest) -> str:
        """Return a short text, and fill in its usage; see `Writer`."""
        return read_all(self._texts(request))

    def write_data(self, request: ModelRequest, schema: ResponseSchema) -> str:
        """Return JSON; see `DataWriter`. A server that takes no schema has it in its instructions."""
        return read_all(self._texts(request, schema))

    def choose_tools(self, request: ModelRequest, tools: Sequence[ToolSpec]) -> tuple[ToolCall, ...] | None:
        """Return the calls that the model asks for; see `ToolCaller`."""
        dialect = self._dialect
        while dialect.tools:
            body = {
                "model": self._model,
                "messages": chat_messages(request),
                "stream": False,
                "tools": function_specs(tools),
                **dialect.fields(request.max_tokens, streams=False),
            }
            reply = self._post(body, request.deadline)
            if reply.status == 200:
                self._dialect = dialect
                return _calls(_first(reply.body).get("message"))
            dialect = dialect.adapt(reply, tools=True)
        self._dialect = dialect
        return None

    def _texts(self, request: ModelRequest, schema: ResponseSchema | None = None) -> Generator[str, None, bool]:
        """Yield the text, as it comes if its usage is to be filled in; return whether the limit ended it."""
        messages, usage, deadline = chat_messages(request), request.usage, request.deadline
        dialect, streams = self._dialect, usage is not None
        while True:
            fields = dialect.fields(request.max_tokens, streams=streams)
            if schema and dialect.schema:
                fields["response_format"] = _response_format(schema)
            body = {"model": self._model, "messages": messages, "stream": streams, **fields}
            reply: Stream | Reply
            if usage is not None:
                with self._rest.stream(_PATH, body, seconds=deadline.seconds_left, closing=deadline.closing) as reply:
                    if reply.status == 200:
                        self._dialect = dialect
                        return (yield from _read_stream(reply, usage))
            else:
                reply = self._post(body, deadline)
                if reply.status == 200:
                    # It may take another schema.
                    self._dialect = replace(dialect, schema=True)
                    return (yield from _read_reply(reply.body))
            dialect = dialect.adapt(reply)

    def _post(self, body: dict[str, Any], deadline: Deadline) -> Reply:
        return self._rest.post(_PATH, body, seconds=deadline.seconds_left, closing=deadline.closing)


def _calls(message: Any) -> tuple[ToolCall, ...]:
    """Return the calls of tools in a message; malformed ones are left out."""
    _require_message(message)
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    return function_calls(calls)


def _response_format(schema: ResponseSchema) -> dict[str, Any]:
    json_schema = {"name": schema.name, "schema": schema.document, "strict": _is_closed(schema.document)}
    return {"type": "json_schema", "json_schema": json_schema}


def _is_closed(schema: Any) -> bool:
    """Whether each object of a schema lists all of its members and requires them, as the strict mode demands."""
    if isinstance(schema, list):
        return all(map(_is_closed, schema))
    if not isinstance(schema, dict):
        return True
    members = schema.get("properties", {})
    if schema.get("type") == "object" or members:
        is_closed = schema.get("additionalProperties") is False and set(members) == set(schema.get("required", ()))
        return is_closed and all(map(_is_closed, members.values()))
    return all(_is_closed(schema[key]) for key in ("items", "anyOf") if key in schema)


def _read_stream(stream: Stream, usage: Usage) -> Generator[str, None, bool]:
    """Yield the text of a reply, in pieces or whole as the server sends it: a second request would be billed, too."""
    if "json" not in stream.headers.get("content-type", ""):
        return (yield from _read_events(stream, usage))
    body = parse_reply(stream.read_all())
    _count(body, usage)
    return (yield from _read_reply(body))


def _read_events(stream: Stream, usage: Usage) -> Generator[str, None, bool]:
    """Yield the text of a stream that ends with a reason, with `[DONE]`, or else has failed."""
    events = stream.events()
    for event in events:
        if event.data.strip() == "[DONE]":
            return False
        # Some servers give their chunks a name.
        chunk = _chunk(event.data if event.name != "error" else "")
        _count(chunk, usage)
        choice = _first(chunk)
        if text := _text(choice.get("delta")):
            yield text
        if reason := choice.get("finish_reason"):
            cut = _read_finish_reason(reason)
            _count_rest(stream, events, usage)
            return cut
    raise _broken_stream_error()


def _count_rest(stream: Stream, events: Iterator[Event], usage: Usage) -> None:
    """Read the token counts behind the answer. If they break off, the answer is complete nevertheless."""
    stream.limit_remaining_time(_USAGE_SECONDS)
    with suppress(ProviderError):
        for event in events:
            if event.data.strip() == "[DONE]":
                return
            _count(_chunk(event.data), usage)


def _count(reply: Any, usage: Usage) -> None:
    """Fill in the token counts of a reply, or of a piece of one."""
    counts = reply.get("usage") if isinstance(reply, dict) else None
    if isinstance(counts, dict):
        usage.take(counts.get("prompt_tokens"), counts.get("completion_tokens"), counts.get("total_tokens"))


def _read_reply(body: Any) -> Generator[str, None, bool]:
    """Yield the text of a reply; return whether the length limit ended it."""
    choice = _first(body)
    yield _text(choice.get("message"))
    return _read_finish_reason(choice.get("finish_reason"))


def _chunk(data: str) -> Any:
    try:
        return parse_json(data)
    except ValueError:
        raise _broken_stream_error() from None


def _first(chunk: Any) -> dict[str, Any]:
    """Return the first choice of a reply or a piece of one; an empty one if it holds none or only others."""
    if not isinstance(chunk, dict) or chunk.get("error"):
        raise _broken_stream_error()
    # A chunk with token counts may leave them out.
    choices = chunk.get("choices", [] if isinstance(chunk.get("usage"), dict) else None)
    if not isinstance(choices, list) or not all(isinstance(c, dict) for c in choices):
        raise _broken_stream_error()
    return next((c for c in choices if c.get("index") in (None, 0)), {})


def _text(message: Any) -> str:
    """Return the text of a message; thoughts have fields and parts of their own and are left out."""
    _require_message(message)
    content = message.get("content") if message else None
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(text for text in texts if isinstance(text, str))
    return content or ""


def _require_message(message: Any) -> None:
    """Raise `ProviderError` unless this is a message, or null in its place, with a content of a known form."""
    if message is None:
        return
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | list | None):
        raise _broken_stream_error()


def _read_finish_reason(reason: Any) -> bool:
    """Return whether the length limit ended the answer.

    Raises:
        AnswerWithheld: a filter ended it.
        ProviderError: an error ended it.
    """
    if reason == "content_filter":
        raise AnswerWithheld(f"{_PROVIDER} withheld the answer by its content filter: ask in other words.")
    if reason == "error":
        raise _broken_stream_error()
    return bool(reason == "length")


def _broken_stream_error() -> ProviderError:
    return ProviderError(f"{_PROVIDER} broke off in the middle of its answer: try again later.", retryable=True)
