"""Calls of tools by Bedrock's `Converse`, with the real boto3."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chapterverse_api.deadline import Deadline
from chapterverse_api.generation.bedrock import BedrockGenerator
from chapterverse_api.generation.protocols import ToolCaller
from chapterverse_api.generation.requests import ChatMessage, ModelRequest, ToolCall, ToolSpec
from embedding.providers import aws_environment
from fakes.bedrock_server import BedrockServer

pytest.importorskip("boto3")

SCHEMA = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
TOOL = ToolSpec("order_status", "Tells where an order is.", SCHEMA)


@pytest.fixture
def server() -> Iterator[BedrockServer]:
    with BedrockServer() as running, aws_environment(running):
        yield running


def choose(made: BedrockGenerator) -> tuple[ToolCall, ...] | None:
    assert isinstance(made, ToolCaller)
    return made.choose_tools(ModelRequest("Choose.", (ChatMessage("user", "A17?"),), 300, Deadline()), [TOOL])


def test_calls_are_returned_in_order(server: BedrockServer) -> None:
    made = BedrockGenerator.open("amazon.nova-lite-v1:0")
    server.calls.append([("order_status", {"order": "A17"}), ("order_status", {"order": "B"})])
    assert choose(made) == (
        ToolCall("order_status", '{"order": "A17"}'),
        ToolCall("order_status", '{"order": "B"}'),
    )
    (spec,) = server.history[0].body["toolConfig"]["tools"]
    assert spec["toolSpec"]["inputSchema"] == {"json": SCHEMA}
    assert choose(made) == ()


def test_a_model_without_tools_is_not_asked_again(server: BedrockServer) -> None:
    made = BedrockGenerator.open("example.decided-v1:0")
    assert choose(made) is None
    asked = len(server.history)
    assert choose(made) is None
    assert len(server.history) == asked
