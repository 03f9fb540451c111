from __future__ import annotations

import base64
from typing import Any

import pytest

from api.mcp.calls import META, VERSION, headers, legacy, modern
from chapterverse_api.ext.agents.mcp.messages import LEGACY, McpError, read_call, read_id
from chapterverse_api.rejections import Rejection

CALL = modern("tools/call", name="search_docs", arguments={})


def code_of(message: object, sent: dict[str, str] | None) -> int:
    with pytest.raises(McpError) as error:
        read_call(message, None if sent is None else list(sent.items()))
    assert error.value.message.endswith(".")
    return error.value.code


def test_a_request_with_its_own_metadata_is_read() -> None:
    call = read_call(CALL, list(headers(CALL).items()))
    assert (call.id, call.method, call.version, call.modern) == (1, "tools/call", VERSION, True)
    assert read_call(CALL, None) == call


NO_IDS: list[Any] = [None, True, 1.5, [], {}, "x" * 257]


@pytest.mark.parametrize("version", [*LEGACY, None])
def test_a_request_without_is_one_of_a_client_that_initialized(version: str | None) -> None:
    sent = [("mcp-protocol-version", version)] if version else []
    call = read_call(legacy("tools/list"), sent)
    assert not call.modern
    assert call.version == (version or LEGACY[-1])


@pytest.mark.parametrize(
    "message",
    [
        [],
        [legacy("ping"), legacy("ping")],
        "ping",
        None,
        {},
        {"jsonrpc": "2.0", "id": 1},
        {"id": 1, "method": "ping"},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        *(
            {"jsonrpc": "2.0", "id": wrong, "method": "ping"}
            for wrong in (None, True, 1.5, list[int](), dict[str, int](), "x" * 257)
        ),
    ],
)
def test_what_is_no_request_is_an_invalid_one(message: object) -> None:
    assert code_of(message, {}) == -32600
    assert code_of(message, None) == -32600


@pytest.mark.parametrize("params", [[], "a", 1, None])
def test_parameters_are_an_object(params: object) -> None:
    assert code_of({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": params}, {}) == -32602


@pytest.mark.parametrize(
    "meta",
    [
        {**META, "io.modelcontextprotocol/protocolVersion": 7},
        {k: v for k, v in META.items() if "Capabilities" not in k},
        {**META, "io.modelcontextprotocol/clientCapabilities": "all"},
    ],
)
def test_metadata_that_is_incomplete_is_told(meta: dict[str, Any]) -> None:
    message = legacy("tools/list", _meta=meta)
    assert code_of(message, headers(message)) == -32602


@pytest.mark.parametrize(
    "wrong",
    [
        {"mcp-protocol-version": "2025-11-25"},
        {"mcp-method": "tools/list"},
        {"mcp-method": "TOOLS/CALL"},
        {"mcp-name": "ask_docs"},
        {"mcp-name": "=?base64????=?="},
        {"mcp-name": "=?base64?/w==?="},
    ],
)
def test_a_header_that_says_otherwise_is_told(wrong: dict[str, str]) -> None:
    assert code_of(CALL, headers(CALL, **wrong)) == -32020


@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-method", "mcp-name"])
def test_a_header_that_is_missing_or_stands_twice_is_told(name: str) -> None:
    sent = headers(CALL)
    assert code_of(CALL, {k: v for k, v in sent.items() if k != name}) == -32020
    with pytest.raises(McpError) as error:
        read_call(CALL, [*sent.items(), (name, sent[name])])
    assert error.value.code == -32020


def test_a_name_may_be_written_in_base64() -> None:
    uri = "https://docs.example.com/größe/"
    message = modern("resources/read", uri=uri)
    sent = headers(message, **{"mcp-name": f"=?base64?{base64.b64encode(uri.encode()).decode()}?="})
    assert read_call(message, list(sent.items())).params["uri"] == uri


def test_another_revision_is_told_which_there_are() -> None:
    message = legacy("tools/list", _meta={**META, "io.modelcontextprotocol/protocolVersion": "1900-01-01"})
    for sent in (headers(message, **{"mcp-protocol-version": "1900-01-01"}), None):
        with pytest.raises(McpError) as error:
            read_call(message, None if sent is None else list(sent.items()))
        assert (error.value.code, error.value.status) == (-32022, 400)
        assert error.value.data == {"supported": [VERSION, *LEGACY], "requested": "1900-01-01"}
    assert code_of(legacy("tools/list"), {"mcp-protocol-version": "1900-01-01"}) == -32022


def test_an_initialize_is_always_of_an_old_client() -> None:
    call = read_call(legacy("initialize", protocolVersion="2099-01-01"), [("mcp-protocol-version", "2099-01-01")])
    assert not call.modern


def test_an_id_that_could_be_one_is_found_in_any_message() -> None:
    messages: list[object] = [{"id": 7}, {"id": "a"}, {"id": True}, {"id": "x" * 257}, [], None, {}]
    assert [read_id(m) for m in messages] == [7, "a", None, None, None, None, None]


def test_a_rejection_keeps_its_status_and_when_to_come_again() -> None:
    error = McpError.from_rejection(Rejection(429, "too_many_requests", "Wait.", retry_after=7))
    assert (error.code, error.status, error.headers) == (429, 429, {"retry-after": "7"})
    assert error.reply(3) == {
        "jsonrpc": "2.0",
        "id": 3,
        "error": {"code": 429, "message": "Wait.", "data": {"code": "too_many_requests"}},
    }
    codes = {
        status: McpError.from_rejection(Rejection(status, "a", "B.")).code for status in (400, 413, 415, 422, 500, 503)
    }
    assert codes == {400: -32700, 413: -32600, 415: -32600, 422: -32600, 500: -32603, 503: -32603}
