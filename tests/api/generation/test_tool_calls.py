"""Calls of tools on the wires of OpenAI's interface and of Cohere: what is sent, and hostile replies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chapterverse.errors import ProviderError
from chapterverse.settings import Settings
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation.factory import open_generator
from chapterverse_api.generation.protocols import ToolCaller
from chapterverse_api.generation.requests import ChatMessage, ModelRequest, ToolCall, ToolSpec
from fakes.cohere_server import KEY as COHERE_KEY
from fakes.cohere_server import CohereServer
from fakes.loopback import Fault
from fakes.openai_server import KEY, OpenAIServer

SCHEMA = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
TOOL = ToolSpec("order_status", "Tells where an order is.", SCHEMA)
ASKED = (ChatMessage("user", "Where is A17?"),)
Server = OpenAIServer | CohereServer


@pytest.fixture(params=[OpenAIServer, CohereServer])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with request.param() as running:
        yield running


def caller(server: Server, model: str = "") -> ToolCaller:
    if isinstance(server, OpenAIServer):
        name = f"openai:{model or 'gpt-4.1-mini'}"
        made = open_generator(Settings(generator=name, openai_url=server.url, openai_api_key=KEY))
    else:
        made = open_generator(Settings(generator="cohere", cohere_url=server.url, cohere_api_key=COHERE_KEY))
    assert isinstance(made, ToolCaller)
    return made


def choose(made: ToolCaller) -> tuple[ToolCall, ...] | None:
    return made.choose_tools(ModelRequest("Choose.", ASKED, 300, Deadline()), [TOOL])


def test_calls_are_returned_in_order(server: Server) -> None:
    server.calls.append([("order_status", {"order": "A17"}), ("order_status", "no JSON")])
    assert choose(caller(server)) == (
        ToolCall("order_status", '{"order": "A17"}'),
        ToolCall("order_status", "no JSON"),
    )
    (request,) = server.history
    (sent,) = request.body["tools"]
    assert sent["function"] == {"name": TOOL.name, "description": TOOL.description, "parameters": SCHEMA}
    assert not request.body["stream"]


def test_a_model_may_need_no_tool(server: Server) -> None:
    assert choose(caller(server)) == ()


def replaced(*path: Any, by: Any) -> Callable[[Any], Any]:
    def change(body: Any) -> Any:
        at = body
        for part in path[:-1]:
            at = at[part]
        at[path[-1]] = by
        return body

    return change


ODD = [
    None,
    7,
    "x",
    {},
    [None, 7, {"function": 7}, {"function": {"name": 7}}],
    [{"function": {"name": "a", "arguments": 7}}],
]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_what_is_no_call_is_left(server: Server, odd: Any) -> None:
    server.calls.append([("order_status", {})])
    message = ("choices", 0, "message") if isinstance(server, OpenAIServer) else ("message",)
    server.play(Fault(change=replaced(*message, "tool_calls", by=odd)))
    assert choose(caller(server)) == ()


def test_a_failure_is_the_providers(server: Server) -> None:
    server.play(Fault(status=401))
    with pytest.raises(ProviderError):
        choose(caller(server))


def test_a_model_without_tools_is_asked_once() -> None:
    with OpenAIServer() as server:
        made = caller(server, "old-model")
        assert choose(made) is None
        assert choose(made) is None
        assert len(server.history) == 1


def test_arguments_may_be_an_object() -> None:
    with OpenAIServer() as server:
        server.calls.append([("order_status", {})])
        path = ("choices", 0, "message", "tool_calls", 0, "function", "arguments")
        server.play(Fault(change=replaced(*path, by={"order": "A17"})))
        assert choose(caller(server)) == (ToolCall("order_status", '{"order": "A17"}'),)
