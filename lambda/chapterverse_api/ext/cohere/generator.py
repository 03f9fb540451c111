"""Cohere's chat models (`POST /v2/chat`) over plain REST: passages as documents, native citations back.

Fields, events and errors are those of Cohere's documentation, August 2026, and of its SDK 7.3. Beside `documents`
Cohere takes neither `safety_mode` nor `response_format`. It documents `tools` and `documents` in one request, and not
which models take both: one that rejects the tools is asked without them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from chapterverse.ext.cohere.service import CohereErrors, access
from chapterverse.ext.net import JsonClient, Reply, Stream, bearer
from chapterverse.settings import Settings
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import (
    TEMPERATURE,
    GenerationRequest,
    ModelRequest,
    Passage,
    ResponseSchema,
    ToolCall,
)
from chapterverse_api.ext.cohere.answer import CohereAnswer, read_reply_text
from chapterverse_api.ext.models import prompts
from chapterverse_api.ext.models.wire import chat_messages, function_specs

DEFAULT_GENERATOR = "command-a-03-2025"

_PATH = "/v2/chat"
_CONNECT_SECONDS = 1.5

#: Readers wait for thoughts and never see them, and their tokens are billed. Two models think unless this is sent.
_THINKING = {"type": "disabled"}

#: Fields that some models reject.
_OPTIONAL = ("thinking", "tools")

#: Statuses for a request that a model can't take.
_MALFORMED = {400, 422}


@dataclass(frozen=True, slots=True)
class CohereGenerator:
    """One Cohere model behind one address. Safe to share between threads. Implements `AnswerGenerator` and `Writer`."""

    model: str
    rest: JsonClient = field(repr=False)
    errors: CohereErrors = field(default_factory=CohereErrors, repr=False)
    # The optional fields that the model takes, as far as its replies have shown.
    _takes: set[str] = field(default_factory=lambda: {*_OPTIONAL}, repr=False, compare=False)

    @classmethod
    def from_settings(cls, settings: Settings, model: str = "") -> CohereGenerator:
        """Return the generator for `model`, or for the default if that is empty; nothing is sent yet.

        Cohere says at the first question whether there is such a model.

        Raises:
            ConfigurationError: the key is missing or malformed, or the address is.
        """
        url, key = access(settings, "generator")
        headers = bearer(key, "COHERE_API_KEY")
        return cls(model or DEFAULT_GENERATOR, JsonClient(url, headers, connect_seconds=_CONNECT_SECONDS, billed=True))

    @property
    def name(self) -> str:
        return f"cohere:{self.model}"

    def generate(self, request: GenerationRequest) -> Generator[Span | ToolCall, None, None]:
        """Yield the text as Cohere writes it, with Cohere's own citations; see `AnswerGenerator`."""
        answer = CohereAnswer()
        with self._stream(self._question(request), request.deadline) as stream:
            for event in stream.events():
                yield from answer.read(event)
                if answer.is_over:
                    break
        request.usage.input_tokens, request.usage.output_tokens = answer.usage.input_tokens, answer.usage.output_tokens
        yield from answer.end()

    def write(self, request: ModelRequest) -> str:
        """Return the model's whole text; see `Writer`."""
        return self._write(self._body(request), request.deadline)

    def write_data(self, request: ModelRequest, schema: ResponseSchema) -> str:
        """Return JSON; see `Writer`. A model that takes no schema has it in its instructions."""
        form = {"type": "json_object", "json_schema": schema.document}
        return self._write({**self._body(request), "response_format": form}, request.deadline)

    def _write(self, body: dict[str, Any], deadline: Deadline) -> str:
        reply = self._post_adapted(body, deadline)
        self._check(reply.status, reply.body, reply.headers)
        return read_reply_text(reply.body)

    def _post_adapted(self, body: dict[str, Any], deadline: Deadline) -> Reply:
        """Return the reply to a request. If the model rejects a field of it, send it again without that field."""
        reply = self._post(body, deadline)
        rejected = self._rejected_field(reply.status, reply.body, body)
        if "response_format" in body and reply.status in _MALFORMED and not rejected:
            # Not every model takes one, nor every schema.
            body = _without("response_format", body)
            reply = self._post(body, deadline)
            rejected = self._rejected_field(reply.status, reply.body, body)
        if rejected:
            reply = self._post(_without(rejected, body), deadline)
            self._note_rejected([rejected], reply.status)
        return reply

    def _post(self, body: dict[str, Any], deadline: Deadline) -> Reply:
        return self.rest.post(_PATH, body, seconds=deadline.seconds_left, closing=deadline.closing)

    def _question(self, request: GenerationRequest) -> dict[str, Any]:
        instructions, messages = prompts.instructions(request), prompts.conversation(request)
        offered = {"tools": function_specs(request.tools)} if request.tools and "tools" in self._takes else {}
        return {
            **self._body(ModelRequest(instructions, messages, prompts.MAX_ANSWER_TOKENS, request.deadline)),
            **offered,
            "stream": True,
            "documents": [_document(passage) for passage in request.passages],
            # Citations among the text, each behind its words, so that a sentence can be checked when it is whole; the
            # newer models know no other way: https://docs.cohere.com/docs/rag-citations
            "citation_options": {"mode": "FAST"},
        }

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        body = {
            "model": self.model,
            "messages": chat_messages(request),
            "stream": False,
            "max_tokens": request.max_tokens,
            "temperature": TEMPERATURE,
            "thinking": _THINKING,
        }
        return body if "thinking" in self._takes else _without("thinking", body)

    @contextmanager
    def _stream(self, body: dict[str, Any], deadline: Deadline) -> Iterator[Stream]:
        """Give the open stream of an answer, without the fields that the model rejects."""
        rejected = tuple[str, ...]()
        while True:
            with self.rest.stream(_PATH, body, seconds=deadline.seconds_left, closing=deadline.closing) as stream:
                field_name = self._rejected_field(stream.status, stream.body, body)
                if field_name is None:
                    self._note_rejected(rejected, stream.status)
                    self._check(stream.status, stream.body, stream.headers)
                    yield stream
                    return
            body, rejected = _without(field_name, body), (*rejected, field_name)

    def _rejected_field(self, status: int, reply: Any, body: Mapping[str, Any]) -> str | None:
        """Return the field that the model rejects. Cohere doesn't document which models take it."""
        said = str(reply).lower() if status in _MALFORMED else ""
        return next((name for name in _OPTIONAL if name in body and name.removesuffix("s") in said), None)

    def _note_rejected(self, names: Sequence[str], status: int) -> None:
        """Send these fields no more if the request without them succeeded."""
        if status == 200:
            self._takes.difference_update(names)

    def _check(self, status: int, reply: Any, headers: Mapping[str, str]) -> None:
        """Raise the `ProviderError` for a status other than 200."""
        if status != 200:
            raise self.errors.error(status, reply, headers)
        self.errors.save_limits(headers)


def _document(passage: Passage) -> dict[str, Any]:
    """Return a passage as it is sent. All of `data` enters the prompt, so there is no address in it."""
    title = " > ".join(passage.path)
    return {"id": passage.id, "data": {"title": prompts.defuse(title), "snippet": prompts.defuse(passage.section)}}


def _without(field_name: str, body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != field_name}
