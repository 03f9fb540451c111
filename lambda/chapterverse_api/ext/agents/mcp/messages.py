"""Reads a JSON-RPC message of the Model Context Protocol, of both eras, and writes its replies.

Since revision 2026-07-28 each request states its revision in `_meta`, and over HTTP some headers repeat the body's
values. Clients of earlier revisions state it once, by `initialize`; they are served without a session.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from chapterverse.version import __version__
from chapterverse_api.rejections import Rejection

#: The supported revisions: with metadata in each request, and with a handshake by `initialize`.
MODERN = ("2026-07-28",)
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

_PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
_INTERNAL_ERROR, _HEADER_MISMATCH, _UNSUPPORTED_VERSION = -32603, -32020, -32022
#: Before 2026-07-28.
RESOURCE_NOT_FOUND = -32002
#: Errors of the newest revision with the HTTP status 400. An unknown method has 404, and all other errors 200.
_BAD_REQUESTS = (_PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, _HEADER_MISMATCH, _UNSUPPORTED_VERSION)

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SERVER_INFO = {"name": "chapterverse", "title": "Chapter & Verse", "version": __version__}
_VERSION, _METHOD, _NAME = "mcp-protocol-version", "mcp-method", "mcp-name"
#: Further headers that browsers may send.
HEADERS = (_VERSION, _METHOD, _NAME)
#: The parameter that the header `Mcp-Name` repeats.
_NAME_PARAMETERS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_BASE64 = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
#: Characters of a request's id; it is sent back.
_MAX_ID_CHARS = 256

#: The headers of a request, lower-case names first, each as often as it was sent.
Headers: TypeAlias = Sequence[tuple[str, str]]
Id: TypeAlias = str | int | None


class McpError(Exception):
    """A request that gets an error of the protocol.

    Attributes:
        message: one sentence, which repeats nothing of the request.
        status: over HTTP.
        headers: further ones over HTTP.
    """

    def __init__(
        self,
        code: int,
        message: str,
        data: Mapping[str, Any] | None = None,
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data
        self.status = status or (400 if code in _BAD_REQUESTS else 404 if code == METHOD_NOT_FOUND else 200)
        self.headers = dict(headers or {})

    @classmethod
    def from_rejection(cls, rejection: Rejection) -> McpError:
        """Return the error for a request that the service rejects."""
        # JSON-RPC reserves no codes above -32000, so the error has the HTTP status as its code.
        status = rejection.status
        codes = {400: _PARSE_ERROR, 413: INVALID_REQUEST, 415: INVALID_REQUEST, 422: INVALID_REQUEST}
        code = _INTERNAL_ERROR if status >= 500 else codes.get(status, status)
        status, data = 400 if status == 422 else status, {"code": rejection.code}
        return cls(code, rejection.message, data, status=status, headers=rejection.headers)

    def reply(self, request: Id) -> dict[str, Any]:
        """Return the error as a message."""
        data = {} if self.data is None else {"data": dict(self.data)}
        return {"jsonrpc": "2.0", "id": request, "error": {"code": self.code, "message": self.message, **data}}


@dataclass(frozen=True, slots=True)
class McpCall:
    """A request, or a notification if it has no id.

    Attributes:
        version: the revision that it speaks.
    """

    id: Id
    method: str
    params: Mapping[str, Any]
    version: str

    @property
    def modern(self) -> bool:
        return self.version in MODERN


def limit_reply(call: McpCall, rejection: Rejection) -> dict[str, Any]:
    """Return the message for a call too many: of a tool a result that a model can read, else an error."""
    seconds = rejection.retry_after or 1
    if call.method != "tools/call":
        data = {"code": rejection.code, "retry_after": seconds}
        return McpError(rejection.status, rejection.message, data).reply(call.id)
    text = f"These are more calls than this server takes from one address: retry after {seconds} seconds."
    return result_reply(call, {"content": [{"type": "text", "text": text}], "isError": True})


def result_reply(call: McpCall, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message with a result, with the fields that the revision of the call adds to each."""
    if call.modern:
        result = {**result, "resultType": "complete", "_meta": {_SERVER_KEY: SERVER_INFO}}
    else:
        result = {key: value for key, value in result.items() if key not in ("ttlMs", "cacheScope")}
    return {"jsonrpc": "2.0", "id": call.id, "result": result}


def read_id(message: object) -> Id:
    """Return the id for an error's reply; None if the message has no valid one."""
    value = message.get("id") if isinstance(message, Mapping) else None
    if isinstance(value, str) and len(value) <= _MAX_ID_CHARS:
        return value
    return value if type(value) is int else None


def read_call(message: object, headers: Headers | None) -> McpCall:
    """Return a parsed message as a call.

    Args:
        headers: the headers of the HTTP request; None on standard input.

    Raises:
        McpError: it is no message of the protocol, contradicts its headers, or has another revision.
    """
    if not isinstance(message, Mapping):
        raise McpError(INVALID_REQUEST, "Send one JSON-RPC request, and no batch.")
    method, params = message.get("method"), message.get("params", {})
    identified = "id" not in message or read_id(message) is not None
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str) or not identified:
        raise McpError(INVALID_REQUEST, "This is no JSON-RPC 2.0 request: it needs jsonrpc, id and method.")
    if not isinstance(params, Mapping):
        raise McpError(INVALID_PARAMS, "params must be an object.")
    header_values = _read_headers(headers or ())
    version = _version(method, params, header_values, over_http=headers is not None, notifies="id" not in message)
    call = McpCall(read_id(message), method, params, version)
    if call.modern and headers is not None and "id" in message:
        _check_headers(call, header_values)
    return call


def _read_headers(headers: Headers) -> dict[str, str]:
    values = dict[str, str]()
    for name, value in headers:
        if name in HEADERS and name in values:
            # A proxy may read the first value and a server the last.
            raise McpError(_HEADER_MISMATCH, f"The header {name} occurs twice.")
        values[name] = value
    return values


def _version(
    method: str, params: Mapping[str, Any], headers: Mapping[str, str], *, over_http: bool, notifies: bool
) -> str:
    """Return the revision that a request speaks."""
    header, meta = headers.get(_VERSION), params.get("_meta")
    meta = meta if isinstance(meta, Mapping) else {}
    version = meta.get(_VERSION_KEY)
    if version is None and (header in LEGACY or header is None or method == "initialize"):
        return header if header in LEGACY else LEGACY[-1]
    if header is not None and header not in (*MODERN, *LEGACY) and version in (None, header):
        raise _unsupported_error(header)
    if notifies:
        return MODERN[0]
    if not isinstance(version, str) or not isinstance(meta.get(_CAPABILITIES_KEY), Mapping):
        raise McpError(INVALID_PARAMS, f"params._meta must hold {_VERSION_KEY} and {_CAPABILITIES_KEY}.")
    if over_http and header != version:
        raise _mismatch(_VERSION)
    if version not in MODERN:
        raise _unsupported_error(version)
    return version


def _check_headers(call: McpCall, headers: Mapping[str, str]) -> None:
    if headers.get(_METHOD) != call.method:
        raise _mismatch(_METHOD)
    if parameter := _NAME_PARAMETERS.get(call.method):
        name = call.params.get(parameter)
        if name is not None and _decode(headers.get(_NAME)) != name:
            raise _mismatch(_NAME)


def _decode(value: str | None) -> str | None:
    """Return a header's value, which may be written in base64; None if it is no such text."""
    match = _BASE64.fullmatch(value or "")
    try:
        return base64.b64decode(match[1], validate=True).decode() if match else value
    except ValueError:
        return None


def _mismatch(header: str) -> McpError:
    return McpError(_HEADER_MISMATCH, f"The header {header} is missing, or the body says otherwise.")


def _unsupported_error(revision: str) -> McpError:
    # The client's own value returns to that client only, as data, because the protocol requires it.
    data = {"supported": [*MODERN, *LEGACY], "requested": revision[:_MAX_ID_CHARS]}
    return McpError(_UNSUPPORTED_VERSION, "Unsupported protocol version.", data)
