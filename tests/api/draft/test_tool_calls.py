"""Calls of tools on the wires of OpenAI's interface, of Cohere and of Bedrock: what is sent, and hostile replies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from api.draft.drafts import make_request
from chapterverse.errors import ProviderError
from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.draft.draft import AnswerGenerator
from chapterverse_api.draft.requests import ToolCall, ToolSpec
from chapterverse_api.ext.models.wire import CallReader, read_written_calls
from embedding.providers import aws_environment
from fakes.bedrock_server import BedrockServer
from fakes.cohere_server import KEY as COHERE_KEY
from fakes.cohere_server import CohereServer
from fakes.loopback import Fault
from fakes.openai_server import KEY, OpenAIServer
from growth import assert_linear

SCHEMA = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
TOOL = ToolSpec("order_status", "Tells where an order is.", SCHEMA)
NAMES = ("search_docs", "read_section", "order_status")
Server = OpenAIServer | CohereServer | BedrockServer


@pytest.fixture(params=[OpenAIServer, CohereServer, BedrockServer])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with request.param() as running:
        if isinstance(running, BedrockServer):
            pytest.importorskip("boto3")
        with aws_environment(running) if isinstance(running, BedrockServer) else nullcontext():
            yield running


def generator(server: Server, model: str = "") -> AnswerGenerator:
    opened: AnswerGenerator = open_offer("generator", _settings(server, model))
    return opened


def _settings(server: Server, model: str) -> Settings:
    if isinstance(server, OpenAIServer):
        name = f"openai:{model or 'gpt-4.1-mini'}"
        return Settings(generator=name, openai_url=server.url, openai_api_key=KEY)
    if isinstance(server, CohereServer):
        return Settings(generator="cohere", cohere_url=server.url, cohere_api_key=COHERE_KEY)
    return Settings(generator=f"bedrock:{model or 'amazon.nova-lite-v1:0'}")


def calls_of(made: AnswerGenerator) -> list[ToolCall]:
    pieces = list(made.generate(replace(make_request(), tools=(TOOL,))))
    return [piece for piece in pieces if isinstance(piece, ToolCall)]


def test_calls_are_returned_in_order(server: Server) -> None:
    server.calls.append([("order_status", {"order": "A17"}), ("order_status", "no JSON"), ("order_status", {})])
    assert calls_of(generator(server)) == [
        ToolCall("order_status", '{"order": "A17"}'),
        ToolCall("order_status", "no JSON"),
        ToolCall("order_status", "{}"),
    ]
    (request,) = server.history
    if isinstance(server, BedrockServer):
        (sent,) = request.body["toolConfig"]["tools"]
        assert sent["toolSpec"] == {
            "name": TOOL.name, "description": TOOL.description, "inputSchema": {"json": SCHEMA},
        }  # fmt: skip
    else:
        (sent,) = request.body["tools"]
        assert sent["function"] == {"name": TOOL.name, "description": TOOL.description, "parameters": SCHEMA}
        assert request.body["stream"]


def test_a_model_may_need_no_tool(server: Server) -> None:
    assert calls_of(generator(server)) == []
    assert len(server.history) == 1


def test_a_failure_is_the_providers(server: Server) -> None:
    server.play(Fault(status=403))
    with pytest.raises(ProviderError):
        calls_of(generator(server))


@pytest.mark.parametrize(("kind", "model"), [(OpenAIServer, "old-model"), (BedrockServer, "example.decided-v1:0")])
def test_a_model_without_tools_answers_and_is_offered_none_again(
    kind: type[OpenAIServer | BedrockServer], model: str
) -> None:
    with kind() as server, aws_environment(server) if isinstance(server, BedrockServer) else nullcontext():
        made = generator(server, model)
        assert calls_of(made) == []
        asked = len(server.history)
        assert calls_of(made) == []
        assert len(server.history) == asked + 1
        assert not {"tools", "toolConfig"} & server.history[-1].body.keys()


def test_a_stream_that_breaks_off_in_a_call_has_failed() -> None:
    with OpenAIServer() as server:
        server.calls.append([("order_status", {"order": "A17"})])
        server.play(Fault(cut=True))
        with pytest.raises(ProviderError):
            calls_of(generator(server))


@pytest.mark.parametrize(
    "odd",
    [None, 7, "x", {}, [None, 7, {"function": 7}, {"function": {"name": 7}}], [{"function": {"arguments": "{}"}}]],
    ids=repr,
)
def test_what_is_no_call_is_left_out(odd: Any) -> None:
    reader = CallReader()
    reader.read(odd)
    assert reader.calls == []


def test_arguments_may_be_an_object_and_are_bounded() -> None:
    reader = CallReader()
    reader.read([{"function": {"name": "a", "arguments": {"order": "A17"}}}, {"function": {"name": "b"}}])
    reader.extend(7)
    for _ in range(1000):
        reader.extend("x" * 1000)
    first, second = reader.calls
    assert first == ToolCall("a", '{"order": "A17"}')
    assert len(second.arguments) < 10_000


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("SEARCH: retry on status", ["retry on status"]),
        ("**SEARCH:** retry on status\n- SEARCH: `dashboard access`", ["retry on status", "dashboard access"]),
        ("1. SEARCH: a. Then b\n2) SEARCH：c?", ["a. Then b", "c?"]),
        ("The sources do not say it, so I search:\n\n> SEARCH: a", ["a"]),
        ("SEARCH:", []),
        ("Search: is a menu. Use `SEARCH: x` there.", []),
        (
            '<tool_call>\n{"name": "search_docs", "arguments": {"query": "Is it {on}? Set it."}}\n</tool_call>',
            ["Is it {on}? Set it."],
        ),
        ('[TOOL_CALLS][{"name": "search_docs", "parameters": {"query": "a"}}]', ["a"]),
        ('I look: {"type": "function", "name": "search_docs", "arguments": "{\\"query\\": \\"a\\"}"} now.', ["a"]),
        ('{"type": "function", "function": {"name": "search_docs", "arguments": {"query": "a"}}}', ["a"]),
        ('{"name": "get_weather", "arguments": {"query": "a"}} { {{', []),
    ],
)
def test_a_call_in_a_text_is_read(text: str, queries: list[str]) -> None:
    calls = read_written_calls(text, NAMES)
    assert [json.loads(call.arguments)["query"] for call in calls] == queries
    assert {call.name for call in calls} <= {"search_docs"}


@pytest.mark.parametrize("text", ['{"name": "search_docs", "arguments": {"query": "a', 'So { "name": "order_status"}'])
def test_a_call_that_is_cut_has_no_arguments(text: str) -> None:
    assert [call.arguments for call in read_written_calls(text, NAMES)] == [""]


@pytest.mark.parametrize("text", ["{", '{"name": ', "{" * 50, "SEARCH", "1.", '{"a": [', "\n> "])
def test_a_hostile_reply_is_read_in_time_in_proportion(text: str) -> None:
    assert_linear(lambda n: read_written_calls(text * n, NAMES), 1_000, 8_000)
