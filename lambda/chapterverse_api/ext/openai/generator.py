"""Language models of any server with OpenAI's `POST /v1/chat/completions`: OpenAI, Ollama, vLLM, LM Studio, others.

    openai:gpt-4.1-mini    OpenAI itself, which needs a key
    openai:qwen3:8b        with CHAPTERVERSE_OPENAI_URL=http://localhost:11434, which needs none

The address has no `/v1`. These models take no documents, so they get numbered sources (`prompts`) and cite by marks
(`ext.models.citation_marks`). Fields as in OpenAI's API reference and in Ollama's, November 2026.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from chapterverse.ext.net import JsonClient
from chapterverse.ext.net.model_errors import PromptTooLong
from chapterverse.ext.net.model_replies import Fault
from chapterverse.ext.openai.service import OpenAIService, service_errors
from chapterverse.settings import Settings
from chapterverse.text.hosts import is_private
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import (
    TEMPERATURE,
    GenerationRequest,
    ModelRequest,
    ResponseSchema,
    ToolCall,
    Usage,
)
from chapterverse_api.ext.models.prompts import MAX_REASONING_TOKENS, number_sources
from chapterverse_api.ext.models.wire import ModelText, chat_messages, function_specs, read_all, to_spans
from chapterverse_api.ext.openai.chat_reply import RequestRejected, read_texts
from chapterverse_api.ext.openai.model_loader import ModelLoader

_ROUTE = "/chat/completions"

_ERRORS = service_errors("The model service", "its name")

#: How servers say that they don't take a field; some do so inside a reply.
_MALFORMED = {200, 400, 422}
#: How they name what offers tools.
_TOOL_FIELDS = ("tools?", "tool_choice", "tool_calls?", "functions?")
#: How often a prompt that is too long is sent again with half of its sources.
_MAX_HALVINGS = 3


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
        system: whether it takes a system message; else the first message of the user begins with the instructions.
        streams: whether it streams.
    """

    limit: str
    renamed: bool = False
    temperature: bool = True
    counts: bool = True
    schema: bool = True
    tools: bool = True
    system: bool = True
    streams: bool = True

    def fields(self, tokens: int, *, streams: bool) -> dict[str, Any]:
        options: dict[str, Any] = {"stream_options": {"include_usage": True}} if streams and self.counts else {}
        if self.temperature:
            return {self.limit: tokens, "temperature": TEMPERATURE, **options}
        return {self.limit: tokens + MAX_REASONING_TOKENS, **options}

    def messages(self, request: ModelRequest) -> list[dict[str, str]]:
        messages = chat_messages(request)
        if self.system:
            return messages
        system, first, *others = messages
        return [{"role": "user", "content": f"{system['content']}\n\n{first['content']}"}, *others]

    def adapt(self, status: int, body: Any, *, tools: bool = False) -> _Dialect:
        """Return the dialect to try after a rejection.

        Args:
            tools: whether tools were offered.

        Raises:
            ProviderError: another dialect would not help.
        """
        cause = _ERRORS.cause(status, body)
        dialect: _Dialect | None = None
        if cause == "no_stream" and self.streams:
            dialect = replace(self, streams=False)
        elif cause == "no_system" and self.system:
            dialect = replace(self, system=False)
        elif cause is None and tools and self.tools and Fault.read(body).names(*_TOOL_FIELDS):
            # At any status: llama.cpp without templates answers 500.
            dialect = replace(self, tools=False)
        elif cause is None and status in _MALFORMED:
            dialect = self._without_field(Fault.read(body))
        if dialect is None:
            raise _ERRORS.error_in_reply(body) if status == 200 else _ERRORS.error(status, body)
        return dialect

    def _without_field(self, fault: Fault) -> _Dialect | None:
        """Return the dialect without the field that a server rejects; None if that is none of ours."""
        if self.schema and fault.names("response_format", "json_schema", "schema"):
            return replace(self, schema=False)
        if self.counts and fault.names("stream_options"):
            return replace(self, counts=False)
        if not self.renamed and fault.names(self.limit):
            other = "max_tokens" if self.limit == "max_completion_tokens" else "max_completion_tokens"
            return replace(self, limit=other, renamed=True)
        return replace(self, temperature=False) if self.temperature and fault.names("temperature") else None


class OpenAIGenerator:
    """One model behind one address; a `Writer` too. Safe to share between threads."""

    def __init__(self, model: str, service: OpenAIService) -> None:
        self._model = model
        self._path = service.path(_ROUTE)
        self._rest = JsonClient(service.url, service.headers, billed=True)
        self._is_private = is_private(urlsplit(service.url).hostname or "")
        self._loader: ModelLoader | None = None
        # OpenAI's newer models reject the old name, and Ollama silently ignores the new one.
        self._dialect = _Dialect("max_completion_tokens" if service.is_openai else "max_tokens")

    @classmethod
    def from_settings(cls, settings: Settings, model: str, *, part: str = "generator") -> OpenAIGenerator:
        """Return the generator for a model; nothing is sent yet.

        Args:
            part: the model's purpose, for error messages.
        """
        service = OpenAIService.from_settings(settings)
        service.require_key(part)
        return cls(model, service)

    @property
    def name(self) -> str:
        return f"openai:{self._model}"

    def open_loader(self) -> ModelLoader | None:
        """Return what loads the model in the background; None for a server that is not one's own."""
        if self._is_private and self._loader is None:
            self._loader = ModelLoader(self._load)
        return self._loader

    def _load(self, deadline: Deadline) -> None:
        body = {"model": self._model, "messages": [{"role": "user", "content": "Hello"}], self._dialect.limit: 1}
        reply = self._rest.post(self._path, body, seconds=deadline.seconds_left, closing=deadline.closing)
        if reply.status != 200:
            raise _ERRORS.error(reply.status, reply.body)

    def _asking(self, deadline: Deadline) -> AbstractContextManager[Deadline]:
        return self._loader.asking(deadline) if self._loader else nullcontext(deadline)

    def generate(self, request: GenerationRequest) -> Generator[Span | ToolCall, None, None]:
        """Yield the draft as it is written; see `AnswerGenerator`. A prompt too long is sent with fewer sources."""
        for _ in range(_MAX_HALVINGS):
            try:
                return (yield from to_spans(self._texts(number_sources(request))))
            except PromptTooLong:
                if len(request.passages) < 2:
                    raise
            request = _halve(request)
        yield from to_spans(self._texts(number_sources(request)))

    def write(self, request: ModelRequest) -> str:
        """Return a short text, and fill in its usage; see `Writer`."""
        return read_all(self._texts(request))

    def write_data(self, request: ModelRequest, schema: ResponseSchema) -> str:
        """Return JSON; see `Writer`. A server that takes no schema has it in its instructions."""
        return read_all(self._texts(request, schema))

    def _texts(self, request: ModelRequest, schema: ResponseSchema | None = None) -> ModelText:
        """Yield the text, as it comes if its usage is to be filled in."""
        with self._asking(request.deadline) as deadline:
            return (yield from self._ask(replace(request, deadline=deadline), schema))

    def _ask(self, request: ModelRequest, schema: ResponseSchema | None) -> ModelText:
        dialect = self._dialect
        while True:
            streams = dialect.streams and request.usage is not None
            body = self._body(request, dialect, streams=streams)
            if schema and dialect.schema:
                body["response_format"] = _response_format(schema)
            if request.tools and dialect.tools:
                body["tools"] = function_specs(request.tools)
            with self._rest.stream(
                self._path,
                body,
                seconds=request.deadline.seconds_left,
                closing=request.deadline.closing,
                accept="text/event-stream" if streams else "application/json",
            ) as reply:
                status, rejected = reply.status, reply.body
                if status == 200:
                    known = self._dialect
                    # It may take another schema.
                    self._dialect = replace(dialect, schema=True)
                    if self._loader:
                        self._loader.note_answer()
                    try:
                        return (yield from read_texts(reply, request.usage or Usage(), _ERRORS))
                    except RequestRejected as rejection:
                        self._dialect, rejected = known, rejection.body
            dialect = dialect.adapt(status, rejected, tools=bool(request.tools))

    def _body(self, request: ModelRequest, dialect: _Dialect, *, streams: bool) -> dict[str, Any]:
        fields = dialect.fields(request.max_tokens, streams=streams)
        return {"model": self._model, "messages": dialect.messages(request), "stream": streams, **fields}


def _halve(request: GenerationRequest) -> GenerationRequest:
    """Return a request with half of its sources: the first ones, and each second one of those that were looked up."""
    first = len(request.passages) - request.from_tools
    found = request.passages[first::2]
    return replace(request, passages=(*request.passages[: first // 2], *found), from_tools=len(found))


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
