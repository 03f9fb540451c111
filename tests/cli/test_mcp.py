"""The official client against `serve` and `chapterverse mcp`, as processes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import TextResourceContents

from cli.shell import BASE, Shell, clean, command
from cli.test_serve import served

CLAIM = "Eighty degrees are enough for green tea."


async def use(server: Any, mode: str) -> None:
    async with Client(server, mode=mode) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["search_docs", "read_section", "ask_docs", "verify_claim"]
        found = await client.call_tool("verify_claim", {"claim": CLAIM})
        assert found.structured_content["verdict"] == "supported"
        assert found.structured_content["url"] == f"{BASE}brew/#green-tea"
        asked = await client.call_tool("ask_docs", {"question": "How many degrees are enough for green tea?"})
        assert asked.structured_content["status"] == "answered"
        wrong = await client.call_tool("search_docs", {"query": ""})
        assert wrong.is_error
        resources = await client.list_resources()
        assert f"{BASE}brew/" in [str(resource.uri) for resource in resources.resources]
        page = await client.read_resource(f"{BASE}brew/")
        (content,) = page.contents
        assert isinstance(content, TextResourceContents)
        assert "## Green tea" in content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_asks_a_server(indexed: Shell, mode: str) -> None:
    with served(indexed, CHAPTERVERSE_MCP="1") as running:
        asyncio.run(use(f"{running.address}/mcp", mode))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_asks_by_standard_input(indexed: Shell, mode: str, tmp_path: Path) -> None:
    program, *arguments = command("mcp")
    parameters = StdioServerParameters(command=program, args=arguments, env=clean(), cwd=indexed.root)
    with (tmp_path / "log").open("w") as log:
        asyncio.run(use(stdio_client(parameters, log), mode))
    assert "Traceback" not in (tmp_path / "log").read_text("utf-8")
