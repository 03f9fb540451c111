"""`POST /mcp` without a socket: both eras, the guard, the budget of requests, and hostile messages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api import quill
from api.http.guard.test_rate import came_from
from api.mcp.calls import VERSION, headers, legacy, modern
from api.scripted import Client, Scripted, error_of
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.ext.agents.mcp.messages import LEGACY

DOCS = "https://docs.example.com"
SEARCH = {"name": "search_docs", "arguments": {"query": "clear the cache"}}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return quill.publish(tmp_path_factory.mktemp("index")).override(mcp=True)


@pytest.fixture(scope="module")
def client(settings: Settings) -> Client:
    return Client(create_app(quill.service(settings)))


def ask(client: Client, message: dict[str, Any], status: int = 200, **more: str) -> dict[str, Any]:
    """Send a message with its own metadata, and return the reply."""
    response = client.post("/mcp", message, headers=headers(message, **more))
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in response.headers
    reply: dict[str, Any] = response.json()
    assert (reply["jsonrpc"], reply["id"]) == ("2.0", message["id"])
    return reply


def test_it_is_absent_unless_it_is_switched_on() -> None:
    off = Client(create_app(Scripted()))
    for method in ("GET", "POST", "DELETE"):
        response = off.request(method, "/mcp", json={})
        assert (response.status_code, error_of(response)["code"]) == (404, "not_found")
    assert "/mcp" not in off.get("/openapi.json").json()["paths"]
    on = Client(create_app(Scripted(), settings=Settings(mcp=True)))
    assert set(on.get("/openapi.json").json()["paths"]["/mcp"]) == {"post"}


def test_who_does_without_it_does_not_load_it() -> None:
    script = (
        "import sys, json; from chapterverse_api.app import create_app; from chapterverse.settings import Settings;"
        "import chapterverse_api.service; create_app(settings=Settings(mcp=len(sys.argv) > 1));"
        "print(json.dumps(sorted(sys.modules)))"
    )

    def loaded(*arguments: str) -> set[str]:
        run = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
        ours = (
            "chapterverse_api.ext.agents.mcp",
            "chapterverse_api.ext.agents.tools",
            "mcp",
        )
        return {name for name in json.loads(run.stdout) if name.startswith(ours)}

    assert loaded() == set()
    # What a first call needs waits for it.
    assert loaded("on") == {
        "chapterverse_api.ext.agents.mcp",
        "chapterverse_api.ext.agents.mcp.messages",
        "chapterverse_api.ext.agents.mcp.route",
    }


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
def test_there_is_no_stream_and_no_session(client: Client, method: str) -> None:
    response = client.request(method, "/mcp")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_a_server_says_what_it_can(client: Client) -> None:
    result = ask(client, modern("server/discover"))["result"]
    assert result["supportedVersions"] == [VERSION, *LEGACY]
    assert result["capabilities"] == {"tools": {}, "resources": {}}
    assert result["resultType"] == "complete"
    assert result["ttlMs"] > 0
    assert result["cacheScope"] == "public"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "chapterverse"


@pytest.mark.parametrize(("asked", "given"), [("2025-06-18", "2025-06-18"), ("2099-01-01", LEGACY[0])])
def test_an_old_client_is_initialized_without_a_session(client: Client, asked: str, given: str) -> None:
    parameters = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    response = client.post("/mcp", legacy("initialize", **parameters))
    assert response.json()["result"]["protocolVersion"] == given
    assert "mcp-session-id" not in response.headers
    taken = client.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (taken.status_code, taken.content) == (202, b"")
    assert client.post("/mcp", legacy("ping")).json()["result"] == {}
    listed = client.post("/mcp", legacy("tools/list"), headers={"mcp-protocol-version": given}).json()["result"]
    assert len(listed["tools"]) == 4
    assert not {"ttlMs", "resultType", "_meta"} & set(listed)


def test_tools_are_listed_with_both_schemas_and_called(client: Client) -> None:
    listed = ask(client, modern("tools/list"))["result"]
    assert all({"inputSchema", "outputSchema", "annotations"} <= set(tool) for tool in listed["tools"])
    result = ask(client, modern("tools/call", **SEARCH))["result"]
    assert result["isError"] is False
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert result["structuredContent"]["results"][0]["url"] == f"{quill.BASE}cache/#clearing-the-cache"


def test_a_mistake_in_arguments_is_for_the_model_to_read(client: Client) -> None:
    result = ask(client, modern("tools/call", name="search_docs", arguments={"query": ""}))["result"]
    assert result["isError"] is True
    assert "structuredContent" not in result
    assert result["content"] == [{"type": "text", "text": "query must hold at least one letter or digit."}]


def test_pages_are_resources_as_markdown(client: Client) -> None:
    listed = ask(client, modern("resources/list"))["result"]
    assert [r["uri"] for r in listed["resources"]][:2] == [f"{quill.BASE}cache/", f"{quill.BASE}deploy/"]
    assert "nextCursor" not in listed
    result = ask(client, modern("resources/read", uri=f"{quill.BASE}cache/"))["result"]
    (content,) = result["contents"]
    assert content["mimeType"] == "text/markdown"
    assert content["text"].startswith("# Caching\n\nQuill keeps")
    assert "\n\n## Clearing the cache\n\n- `quill cache clean`" in content["text"]
    assert result["ttlMs"] > 0
    assert ask(client, modern("resources/templates/list"))["result"]["resourceTemplates"] == []
    section = ask(client, modern("resources/read", uri=f"{quill.BASE}cache/#cache-location"))["result"]["contents"]
    assert section[0]["text"].endswith("names another folder.\n")


def test_many_pages_are_listed_in_parts(tmp_path: Path) -> None:
    pages = {f"p{n:03}.md": f"# Page {n}\n\nText {n} of Quill.\n" for n in range(120)}
    on = Client(create_app(quill.service(quill.publish(tmp_path, pages).override(mcp=True))))
    found, cursor = list[str](), dict[str, str]()
    while True:
        result = ask(on, modern("resources/list", **cursor))["result"]
        found += [r["uri"] for r in result["resources"]]
        if "nextCursor" not in result:
            break
        cursor = {"cursor": result["nextCursor"]}
    assert len(found) == len(set(found)) == 120
    for wrong in ("x", "", "120", "-1", "9" * 40, 7):
        assert ask(on, modern("resources/list", cursor=wrong), 400)["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        (modern("no/such/method"), 404, -32601),
        (modern("prompts/list"), 404, -32601),
        (modern("initialize"), 404, -32601),
        (modern("ping"), 404, -32601),
        (modern("tools/call", name="rm", arguments={}), 400, -32602),
        (modern("tools/call", name="search_docs", arguments=[1]), 400, -32602),
        (modern("tools/call"), 400, -32602),
        (modern("resources/read"), 400, -32602),
        (modern("resources/read", uri="https://elsewhere.example/"), 400, -32602),
    ],
)
def test_errors_are_those_of_the_protocol(client: Client, message: dict[str, Any], status: int, code: int) -> None:
    error = ask(client, message, status)["error"]
    assert error["code"] == code
    assert error["message"].endswith(".")
    old = legacy(message["method"], **{k: v for k, v in message["params"].items() if k != "_meta"})
    if message["method"] not in ("initialize", "ping"):
        response = client.post("/mcp", old)
        assert response.status_code == 200
        assert response.json()["error"]["code"] == (-32002 if "uri" in message["params"] else code)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, -32700),
        (b"{", 400, -32700),
        (b"\xff", 400, -32700),
        (b'{"jsonrpc": "2.0", "id": NaN}', 400, -32700),
        (b'{"a": 1, "a": 2}', 400, -32700),
        (b"[" * 5000, 400, -32700),
        (b"[]", 400, -32600),
        (json.dumps([legacy("ping"), legacy("ping")]).encode(), 400, -32600),
        (b'"ping"', 400, -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {}}', 400, -32600),
        (json.dumps(modern("tools/call", name="search_docs", arguments={"query": "a" * 2**20})).encode(), 413, -32600),
    ],
)
def test_hostile_bodies_get_an_error_soon(client: Client, body: bytes, status: int, code: int) -> None:
    started = time.process_time()
    response = client.post_raw("/mcp", body)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert time.process_time() - started < 2


def test_another_type_of_body_is_told(client: Client) -> None:
    response = client.request("POST", "/mcp", content=b"{}", headers={"content-type": "text/plain"})
    assert (response.status_code, response.json()["error"]["code"]) == (415, -32600)


def arguments() -> Iterator[object]:
    deep: Any = "cAnArY"
    for _ in range(9):
        deep = {"$and": [deep]}
    yield from (
        {"query": value}
        for value in (None, 1, True, list[int](), dict[str, int](), "\x1b[2J" * 9, "‮" * 50, "' OR 1=1 --")
    )
    yield from ({"query": "cache", "filters": value} for value in (deep, {"url": "x" * 9000}, {"tags": ["a"] * 2000}))
    yield from ({"query": "cache", "version": "../../etc"}, {"query": "cache", "language": "x" * 35})


@pytest.mark.parametrize("given", [*arguments()])
@pytest.mark.parametrize("name", ["search_docs", "ask_docs", "verify_claim", "read_section"])
def test_hostile_arguments_get_a_result_or_a_sentence(client: Client, name: str, given: dict[str, Any]) -> None:
    own = {"search_docs": "query", "ask_docs": "question", "verify_claim": "claim", "read_section": "url"}[name]
    renamed = {own if key == "query" else key: value for key, value in given.items()}
    result = ask(client, modern("tools/call", name=name, arguments=renamed))["result"]
    if result["isError"]:
        (content,) = result["content"]
        assert content["text"].endswith(".")
        assert "cAnArY" not in content["text"]


def test_the_guard_of_origins_stands_before_it(settings: Settings) -> None:
    only = Client(create_app(quill.service(settings.override(allowed_origins=DOCS))))
    message = modern("tools/list")
    assert only.post("/mcp", message, headers=headers(message, origin="https://evil.example")).status_code == 403
    assert only.post("/mcp", message, headers=headers(message, origin=DOCS)).status_code == 200
    asks = {"origin": DOCS, "access-control-request-method": "POST"}
    preflight = only.request("OPTIONS", "/mcp", headers=asks)
    assert "mcp-protocol-version" in preflight.headers["access-control-allow-headers"]
    # A name that was rebound.
    unlisted = Client(create_app(quill.service(settings)), origin="http://evil.example")
    assert unlisted.post("/mcp", message, headers=headers(message)).status_code == 403


def test_calls_are_counted_apart_from_questions_and_connecting_is_not(settings: Settings) -> None:
    limited = settings.override(rates="1/min", mcp_rates="2/min")
    client = came_from(create_app(quill.service(limited), settings=limited), client=("203.0.113.7", 1))
    for _ in range(5):
        ask(client, modern("server/discover"))
        ask(client, modern("tools/list"))
    call = modern("tools/call", **SEARCH)
    results = [ask(client, call)["result"] for _ in range(3)]
    assert [result["isError"] for result in results] == [False, False, True]
    assert re.search(r"retry after \d+ seconds", results[2]["content"][0]["text"])
    # What is no tool's call gets an error of the protocol; a reader's questions are counted for themselves.
    error = ask(client, modern("resources/list"))["error"]
    assert (error["code"], error["data"]["code"]) == (429, "too_many_requests")
    assert 1 <= error["data"]["retry_after"] <= 60
    assert [client.post("/v1/chat", {"query": "cache"}).status_code for _ in range(2)] == [200, 429]


def test_no_rates_are_none_for_programs_either(settings: Settings) -> None:
    unlimited = settings.override(rates="off", mcp_rates="1/day")
    client = came_from(create_app(quill.service(unlimited), settings=unlimited), client=("203.0.113.7", 1))
    assert not any(ask(client, modern("tools/call", **SEARCH))["result"]["isError"] for _ in range(3))


def test_an_index_that_is_missing_is_one_sentence(tmp_path: Path) -> None:
    nowhere = Client(create_app(settings=Settings(store=f"edge:{tmp_path}/nothing", mcp=True)))
    result = ask(nowhere, modern("tools/call", **SEARCH))["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"] == "This documentation has not been indexed yet."
    assert ask(nowhere, modern("resources/list"), 503)["error"]["code"] == -32603
