"""Cohere's chat models (`POST /v2/chat`) over plain REST: passages as documents, native citations back.

Fields, events and errors are those of Cohere's documentation, August 2026, and of its SDK 7.3. Beside `documents`
Cohere takes neither `safety_mode` nor `response_format`. It documents `tools` and `documents` in one request, and not
which models take both: one that rejects the tools is asked without them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from chapterverse.ext.cohere.service import CohereErrors, connect
from chapterverse.ext.net import JsonClient, Reply, Stream
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

_Reply = TypeVar("_Reply", Reply, Stream)
_Send: TypeAlias = Callable[[dict[str, Any], Deadline], AbstractContextManager[_Reply]]


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
        """
        return cls(model or DEFAULT_GENERATOR, connect(settings, "generator", connect_seconds=_CONNECT_SECONDS))

    @property
    def name(self) -> str:
        return f"cohere:{self.model}"

    def generate(self, request: GenerationRequest) -> Generator[Span | ToolCall, None, None]:
        """Yield the text as Cohere writes it, with Cohere's own citations; see `AnswerGenerator`."""
        answer = CohereAnswer()
        with self._sending(self._question(request), request.deadline, self._stream) as stream:
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
        with self._sending(body, deadline, self._post) as reply:
            return read_reply_text(reply.body)

    @contextmanager
    def _post(self, body: dict[str, Any], deadline: Deadline) -> Iterator[Reply]:
        yield self.rest.post(_PATH, body, seconds=deadline.seconds_left, closing=deadline.closing)

    def _stream(self, body: dict[str, Any], deadline: Deadline) -> AbstractContextManager[Stream]:
        return self.rest.stream(_PATH, body, seconds=deadline.seconds_left, closing=deadline.closing)

    @contextmanager
    def _sending(self, body: dict[str, Any], deadline: Deadline, send: _Send[_Reply]) -> Iterator[_Reply]:
        """Give the reply to a request, without the fields that the model rejects.

        Raises:
            ProviderError: the status of the reply is not 200.
        """
        rejected = set[str]()
        while True:
            with send(body, deadline) as reply:
                name = _rejected_field(reply, body)
                if name is None:
                    self.errors.check(reply)
                    self._takes.difference_update(rejected)
                    yield reply
                    return
            body = _without(name, body)
            rejected.add(name)

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


def _rejected_field(reply: Reply | Stream, body: Mapping[str, Any]) -> str | None:
    """Return the field that a model rejects. Cohere doesn't document which models take it, nor which schemas."""
    if reply.status not in _MALFORMED:
        return None
    said = str(reply.body).lower()
    named = next((name for name in _OPTIONAL if name in body and name.removesuffix("s") in said), None)
    return named or ("response_format" if "response_format" in body else None)


def _document(passage: Passage) -> dict[str, Any]:
    """Return a passage as it is sent. All of `data` enters the prompt, so there is no address in it."""
    title = " > ".join(passage.path)
    return {"id": passage.id, "data": {"title": prompts.defuse(title), "snippet": prompts.defuse(passage.section)}}


def _without(field_name: str, body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != field_name}
