"""Calls of tools on the wires of OpenAI's interface, of Cohere and of Bedrock: what is sent, and hostile replies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from api.generation.drafts import make_request, passage
from chapterverse.errors import ProviderError
from chapterverse.settings import Settings
from chapterverse_api.answering.draft_reader import DraftReader
from chapterverse_api.generation.draft import Span
from chapterverse_api.generation.factory import open_generator
from chapterverse_api.generation.protocols import AnswerGenerator
from chapterverse_api.generation.requests import ToolCall, ToolSpec
from chapterverse_api.generation.tool_calls import CallReader, read_search_lines, read_written_calls
from embedding.providers import aws_environment
from fakes.bedrock_server import BedrockServer
from fakes.cohere_server import KEY as COHERE_KEY
from fakes.cohere_server import CohereServer
from fakes.loopback import Fault
from fakes.openai_server import KEY, OpenAIServer

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
    if isinstance(server, OpenAIServer):
        name = f"openai:{model or 'gpt-4.1-mini'}"
        return open_generator(Settings(generator=name, openai_url=server.url, openai_api_key=KEY))
    if isinstance(server, CohereServer):
        return open_generator(Settings(generator="cohere", cohere_url=server.url, cohere_api_key=COHERE_KEY))
    return open_generator(Settings(generator=f"bedrock:{model or 'amazon.nova-lite-v1:0'}"))


def read_calls(text: str) -> list[ToolCall] | None:
    searches = read_search_lines(text)
    return read_written_calls(text, NAMES) if searches is None else searches


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


def test_code_that_shows_a_call_is_an_answer_behind_a_text() -> None:
    code = '```json\n{"name": "search_docs", "arguments": {"query": "a"}}\n```\n'
    for before, calls in (("Send this:\n\n", 0), ("", 1)):
        reader = DraftReader((), tools=NAMES)
        read = [*reader.read(Span(f"{before}{code}")), *reader.end()]
        assert len(reader.calls) == calls
        assert any("search_docs" in one.text for one in read) == (not calls)


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
        ("SEARCH:", []),
        ('<tool_call>\n{"name": "search_docs", "arguments": {"query": "a {b}"}}\n</tool_call>', ["a {b}"]),
        ('[TOOL_CALLS][{"name": "search_docs", "parameters": {"query": "a"}}]', ["a"]),
    ],
)
def test_a_call_in_a_text_is_read(text: str, queries: list[str]) -> None:
    calls = read_calls(text)
    assert calls is not None
    assert [json.loads(call.arguments)["query"] for call in calls] == queries


@pytest.mark.parametrize("text", ['{"name": "search_docs", "arguments": {"query": "a', '{"name": "order_status"}'])
def test_a_call_that_is_cut_has_no_arguments(text: str) -> None:
    assert [call.arguments for call in read_written_calls(text, NAMES) or ()] == [""]


@pytest.mark.parametrize("text", ["Search: is a menu.", "Use `SEARCH: x` there.", '{"name": "get_weather", "a": 1}'])
def test_other_texts_are_no_calls(text: str) -> None:
    assert read_calls(text) is None


@pytest.mark.parametrize(
    "answer",
    [
        "The commands are these [1]:\n\n- FETCH: reads a key.\n- SEARCH: finds a word.\n- STORE: writes a key.",
        "- **FETCH:** reads a key.\n- **SEARCH:** finds a word.",
        "SEARCH: finds a word in a text [1].",
        'Send `x` or {"name": "search_docs", "arguments": {}} to the server [1].',
    ],
)
@pytest.mark.parametrize("may_call", [True, False])
def test_an_answer_may_speak_of_a_call(answer: str, may_call: bool) -> None:
    reader = DraftReader([passage("1", "Commands", text="FETCH reads.")], tools=NAMES, may_call=may_call)
    read = "".join(one.text for one in [*reader.read(Span(answer)), *reader.end()])
    assert reader.calls == []
    assert "search_docs" in read or "finds a word" in read


@pytest.mark.parametrize(
    "call",
    [
        '{"name": "search_docs", "arguments": {"query": "a"}}',
        '<tool_call>\n{"type": "function", "name": "search_docs", "parameters": {"query": "a"}}\n</tool_call>',
        '{"type": "function", "function": {"name": "search_docs", "arguments": {"query": "a"}}}',
    ],
)
def test_a_call_in_the_last_reply_is_neither_made_nor_shown(call: str) -> None:
    reader = DraftReader([passage("1", "Commands", text="FETCH reads.")], tools=NAMES, may_call=False)
    read = [*reader.read(Span(f"FETCH reads a key [1].\n\n{call}")), *reader.end()]
    assert [one.text.strip() for one in read] == ["FETCH reads a key."]
    alone = DraftReader((), tools=NAMES, may_call=False)
    with pytest.raises(ProviderError):
        [*alone.read(Span(call)), *alone.end()]
