"""Messages as clients of both eras send them."""

from __future__ import annotations

from typing import Any

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


def legacy(method: str, request_id: object = 1, **params: Any) -> dict[str, Any]:
    """Return a request of a client that has called `initialize`."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def modern(method: str, request_id: object = 1, **params: Any) -> dict[str, Any]:
    """Return a request that carries its own metadata."""
    return legacy(method, request_id, **params, _meta=META)


def headers(message: dict[str, Any], **more: str) -> dict[str, str]:
    """Return the HTTP headers that belong to a request with its own metadata."""
    name = message["params"].get("name", message["params"].get("uri"))
    own = {"mcp-protocol-version": VERSION, "mcp-method": message["method"]}
    return {**own, **({"mcp-name": name} if name else {}), **more}
