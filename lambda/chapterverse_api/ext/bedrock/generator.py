"""Language models on Amazon Bedrock, called by `Converse`, the same for all vendors.

    bedrock:amazon.nova-lite-v1:0                         a model's id
    bedrock:eu.anthropic.claude-haiku-4-5-20251001-v1:0   an inference profile's, or its ARN

Numbered sources are sent for all: citations of Converse's own are for a few models. Fields as in the API reference of
`ConverseStream`, November 2026.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any

from chapterverse.errors import TextRejected
from chapterverse.ext.bedrock.runtime import BEDROCK_ERRORS, Runtime
from chapterverse.ext.net.model_errors import no_reply_error
from chapterverse.settings import Settings
from chapterverse_api.deadline import TOTAL_SECONDS
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import (
    TEMPERATURE,
    GenerationRequest,
    ModelRequest,
    ResponseSchema,
    ToolCall,
    ToolSpec,
    Usage,
)
from chapterverse_api.ext.models.prompts import number_sources
from chapterverse_api.ext.models.wire import CallReader, ModelText, read_all, to_spans

#: Seconds to reach the service, and between two pieces: the turn's own end comes first.
_TIMEOUT_SECONDS = (1.5, TOTAL_SECONDS)


class BedrockGenerator:
    """One model; a `Writer` too. Safe to share between threads, as boto3's clients are."""

    def __init__(self, model: str, runtime: Runtime) -> None:
        self._model = model
        self._runtime = runtime
        # Empty for a model that takes none. Bedrock's error for a malformed request doesn't name the field.
        self._temperature: dict[str, float] = {"temperature": TEMPERATURE}
        self._takes_tools = True

    @classmethod
    def from_settings(cls, _: Settings, model: str) -> BedrockGenerator:
        """Return the generator for a model or an inference profile; nothing is sent yet."""
        return cls(model, Runtime.open("generator", *_TIMEOUT_SECONDS))

    @property
    def name(self) -> str:
        # Anybody may read it, and an ARN begins with the number of an account.
        return f"bedrock:{self._model.rpartition('/')[2]}"

    def generate(self, request: GenerationRequest) -> Generator[Span | ToolCall, None, None]:
        """Yield the draft as it is written; see `AnswerGenerator`."""
        yield from to_spans(self._texts(number_sources(request)))

    def write(self, request: ModelRequest) -> str:
        """Return a short text; see `Writer`."""
        body = self._body(request)
        try:
            reply = self._write(body, request, self._temperature)
        except TextRejected:
            if not self._temperature:
                raise
            reply = self._write(body, request, {})
            self._temperature = {}
        return read_all(_read_reply(reply))

    def write_data(self, request: ModelRequest, schema: ResponseSchema) -> str:
        """Return JSON; see `Writer`. A model that takes no schema has it in its instructions."""
        json_schema = {"name": schema.name, "schema": json.dumps(schema.document)}
        structure = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": json_schema}}}
        body = {**self._body(request), "outputConfig": structure}
        try:
            reply = self._write(body, request, self._temperature)
        except TextRejected:
            # Bedrock's error doesn't say whether it is the schema.
            return self.write(request)
        return read_all(_read_reply(reply))

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        return {
            "modelId": self._model,
            "system": [{"text": request.instructions}],
            "messages": [{"role": one.role, "content": [{"text": one.content}]} for one in request.messages],
        }

    def _write(self, body: dict[str, Any], request: ModelRequest, temperature: dict[str, float]) -> Any:
        body = {**body, "inferenceConfig": {"maxTokens": request.max_tokens, **temperature}}
        deadline = request.deadline
        return self._runtime.ask("converse", body, deadline.seconds_left, deadline.closing)

    def _texts(self, request: ModelRequest) -> ModelText:
        """Yield the text as it comes. Bedrock doesn't name the field that it rejects, so one after the other is left
        out, those of tools last."""
        temperatures = [self._temperature, {}] if self._temperature else [{}]
        offers = [_tool_config(request.tools), {}] if request.tools and self._takes_tools else [{}]
        tries = [(offered, temperature) for offered in offers for temperature in temperatures]
        for number, (offered, temperature) in enumerate(tries, 1):
            fields = {**offered, "inferenceConfig": {"maxTokens": request.max_tokens, **temperature}}
            try:
                cut = yield from self._stream({**self._body(request), **fields}, request)
            except TextRejected:
                if number == len(tries):
                    raise
                continue
            self._temperature, self._takes_tools = temperature, self._takes_tools and offered is offers[0]
            return cut
        raise AssertionError

    def _stream(self, body: dict[str, Any], request: ModelRequest) -> ModelText:
        deadline, usage, calls = request.deadline, request.usage or Usage(), CallReader()
        reason, has_events = None, False
        try:
            with closing(self._runtime.events(body, deadline.seconds_left, deadline.closing)) as events:
                for event in events:
                    has_events = True
                    delta = _child(_child(event, "contentBlockDelta"), "delta")
                    if text := _text(delta):
                        yield text
                    calls.begin(_child(_child(_child(event, "contentBlockStart"), "start"), "toolUse").get("name"))
                    calls.extend(_child(delta, "toolUse").get("input"))
                    reason = _child(event, "messageStop").get("stopReason", reason)
                    counts = _child(_child(event, "metadata"), "usage")
                    usage.take(counts.get("inputTokens"), counts.get("outputTokens"), counts.get("totalTokens"))
        except TextRejected:
            # Events before it are shown, so the request can't be repeated.
            if has_events:
                raise no_reply_error("Bedrock") from None
            raise
        is_cut = BEDROCK_ERRORS.check_ending(reason, is_ended=True)
        yield from calls.calls
        return is_cut


def _tool_config(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    specs = [
        {"toolSpec": {"name": t.name, "description": t.description, "inputSchema": {"json": t.parameters}}}
        for t in tools
    ]
    return {"toolConfig": {"tools": specs}}


def _read_reply(reply: Any) -> ModelText:
    """Yield the text of a reply; return whether the length limit ended it."""
    content = _child(_child(reply, "output"), "message").get("content")
    text = "".join(map(_text, content)) if isinstance(content, list) else ""
    yield text
    return BEDROCK_ERRORS.check_ending(
        reply.get("stopReason") if isinstance(reply, dict) else None, is_ended=bool(text)
    )


def _child(value: Any, name: str) -> dict[str, Any]:
    """Return an object inside another; an empty one if it is missing, as in events of other kinds."""
    part = value.get(name) if isinstance(value, dict) else None
    return part if isinstance(part, dict) else {}


def _text(block: Any) -> str:
    """Return the text of a content block; thoughts are blocks of their own and are left out."""
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else ""
