"""Cohere's chat models (`POST /v2/chat`) over plain REST: passages as documents, native citations back.

Fields, events and errors are those of Cohere's documentation, August 2026, and of its SDK 7.3. Beside `documents`
Cohere takes neither `safety_mode` nor `response_format`.
"""

from __future__ import annotations

from collections.abc import Generator as Steps
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from threading import Event
from typing import Any

from chapterverse.errors import AnswerWithheld
from chapterverse.net import JsonClient, Reply, Stream, bearer
from chapterverse.providers.cohere import CohereErrors, access
from chapterverse.settings import Settings
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation import prompts
from chapterverse_api.generation.cohere_answer import CohereAnswer, called_tools, whole_text
from chapterverse_api.generation.draft import Span
from chapterverse_api.generation.passage import Passage
from chapterverse_api.generation.requests import GenerationRequest, ModelRequest, ResponseSchema, ToolCall, ToolSpec

DEFAULT_MODEL = "command-a-03-2025"

#: Nearly always the likeliest word: the same question should get the same answer. At 0 some models repeat themselves.
_TEMPERATURE = 0.1

_PATH = "/v2/chat"
_CONNECT_SECONDS = 1.5

#: Readers wait for thoughts and never see them, and their tokens are billed. Two models think unless this is sent.
_THINKING = {"type": "disabled"}

_NO_ANSWER = "no_valid_response"
#: How a request is refused that a model can't take.
_MALFORMED = {400, 422}


@dataclass(frozen=True, slots=True)
class CohereGenerator:
    """One Cohere model behind one address. Safe to share between threads. Implements `Generator` and `Writer`."""

    model: str
    rest: JsonClient = field(repr=False)
    errors: CohereErrors = field(default_factory=CohereErrors, repr=False)
    _never_thinks: Event = field(default_factory=Event, repr=False, compare=False)
    _no_tools: Event = field(default_factory=Event, repr=False, compare=False)

    @classmethod
    def from_settings(cls, settings: Settings, model: str = "") -> CohereGenerator:
        """Return the generator for `model`, or for the default if that is empty; nothing is sent yet.

        Any name is taken: whether there is such a model, Cohere says at the first question.

        Raises:
            ConfigurationError: the key is missing or malformed, or the address is.
        """
        url, key = access(settings, "generator")
        headers = bearer(key, "COHERE_API_KEY")
        return cls(model or DEFAULT_MODEL, JsonClient(url, headers, connect_seconds=_CONNECT_SECONDS, billed=True))

    @property
    def name(self) -> str:
        return f"cohere:{self.model}"

    def generate(self, request: GenerationRequest) -> Steps[Span, None, None]:
        """Yield the text as Cohere writes it, with Cohere's own citations; see `Generator`."""
        answer = CohereAnswer()
        with self._stream(self._question(request), request.deadline) as stream:
            for event in stream.events():
                yield from answer.read(event)
                if answer.is_over:
                    break
        request.usage.read, request.usage.written = answer.usage.read, answer.usage.written
        yield from answer.end()

    def write(self, request: ModelRequest) -> str:
        """Return the model's whole text; see `Writer`."""
        return self._write(self._body(request), request.deadline)

    def write_data(self, request: ModelRequest, schema: ResponseSchema) -> str:
        """Return JSON; see `DataWriter`. A model that takes no schema has it in its instructions."""
        form = {"type": "json_object", "json_schema": schema.document}
        return self._write({**self._body(request), "response_format": form}, request.deadline)

    def choose_tools(self, request: ModelRequest, tools: Sequence[ToolSpec]) -> tuple[ToolCall, ...] | None:
        """Return the calls that the model asks for; see `ToolCaller`."""
        if self._no_tools.is_set():
            return None
        functions = [{"type": "function", "function": asdict(tool)} for tool in tools]
        body = {**self._body(request), "tools": functions}
        reply = self._post(body, request.deadline)
        if reply.status in _MALFORMED and "tool" in str(reply.body).lower():
            self._no_tools.set()
            return None
        self._check(reply.status, reply.body, reply.headers)
        return called_tools(reply.body)

    def _write(self, body: dict[str, Any], deadline: Deadline) -> str:
        reply = self.rest.post(_PATH, body, seconds=deadline.left, closing=deadline.closing)
        if (
            "response_format" in body
            and reply.status in _MALFORMED
            and not self._is_about_thinking(reply.status, reply.body, body)
        ):
            # Not every model takes one, nor every schema.
            body = {name: value for name, value in body.items() if name != "response_format"}
            reply = self.rest.post(_PATH, body, seconds=deadline.left, closing=deadline.closing)
        reply = self._thought_of(reply, body, deadline)
        self._check(reply.status, reply.body, reply.headers)
        return whole_text(reply.body)

    def _post(self, body: dict[str, Any], deadline: Deadline) -> Reply:
        reply = self.rest.post(_PATH, body, seconds=deadline.left, closing=deadline.closing)
        return self._thought_of(reply, body, deadline)

    def _thought_of(self, reply: Reply, body: dict[str, Any], deadline: Deadline) -> Reply:
        """Return the reply. If it rejects the field about thinking, send the request again without that field."""
        if not self._is_about_thinking(reply.status, reply.body, body):
            return reply
        reply = self.rest.post(_PATH, _without_thinking(body), seconds=deadline.left, closing=deadline.closing)
        self._learn(reply.status)
        return reply

    def _question(self, request: GenerationRequest) -> dict[str, Any]:
        instructions, messages = prompts.instructions(request), prompts.conversation(request)
        return {
            **self._body(ModelRequest(instructions, messages, prompts.ANSWER_TOKENS, request.deadline)),
            "stream": True,
            "documents": [_document(passage) for passage in request.passages],
            # Citations among the text, each behind its words, so that a sentence can be checked when it is whole; the
            # newer models know no other way: https://docs.cohere.com/docs/rag-citations
            "citation_options": {"mode": "FAST"},
        }

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        messages = ({"role": m.role, "content": m.content} for m in request.messages)
        body = {
            "model": self.model,
            "messages": [{"role": "system", "content": request.instructions}, *messages],
            "stream": False,
            "max_tokens": request.max_tokens,
            "temperature": _TEMPERATURE,
            "thinking": _THINKING,
        }
        return _without_thinking(body) if self._never_thinks.is_set() else body

    @contextmanager
    def _stream(self, body: dict[str, Any], deadline: Deadline) -> Iterator[Stream]:
        """Give the open stream of an answer."""
        with self.rest.stream(_PATH, body, seconds=deadline.left, closing=deadline.closing) as stream:
            if not self._is_about_thinking(stream.status, stream.body, body):
                self._check(stream.status, stream.body, stream.headers)
                yield stream
                return
        body = _without_thinking(body)
        with self.rest.stream(_PATH, body, seconds=deadline.left, closing=deadline.closing) as stream:
            self._learn(stream.status)
            self._check(stream.status, stream.body, stream.headers)
            yield stream

    def _is_about_thinking(self, status: int, reply: Any, sent: Mapping[str, Any]) -> bool:
        """Whether the model rejects the field that turns thinking off. Cohere doesn't document which models take it."""
        return status == 400 and "thinking" in sent and "thinking" in str(reply).lower()

    def _learn(self, status: int) -> None:
        if status == 200:
            self._never_thinks.set()

    def _check(self, status: int, reply: Any, headers: Mapping[str, str]) -> None:
        """Raise the `ProviderError` that a refusal is."""
        if status == 200:
            self.errors.note_limits(headers)
        elif status == 422 and _NO_ANSWER in str(reply).lower():
            # Seen on requests with nothing wrong in them; the same one meets the same end.
            raise AnswerWithheld("Cohere found no valid answer to this question: ask it in other words.")
        elif status == 498:
            raise AnswerWithheld("Cohere refused a word of the question or of its answer: ask in other words.")
        else:
            raise self.errors.error(status, reply, headers)


def _document(passage: Passage) -> dict[str, Any]:
    """Return a passage as it is sent. All of `data` enters the prompt, so there is no address in it."""
    title = " > ".join(passage.path)
    return {"id": passage.id, "data": {"title": prompts.defuse(title), "snippet": prompts.defuse(passage.section)}}


def _without_thinking(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "thinking"}
