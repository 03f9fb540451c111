"""Adds headers to every response."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_API = {"v1", "mcp", "widget", "openapi.json"}


def is_api(path: str) -> bool:
    """Whether `path` belongs to the API and not to the documentation beside it."""
    return path.removeprefix("/").partition("/")[0] in _API


class ResponseHeaders:
    """Adds security headers, and a cache rule if the response has none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        api = is_api(scope["path"])

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-content-type-options"] = "nosniff"
                # A page beside the API may be rebuilt at any time, so browsers must revalidate it.
                headers.setdefault("cache-control", "no-store" if api else "no-cache")
                if api:
                    headers["referrer-policy"] = "no-referrer"
            await send(message)

        await self._app(scope, receive, send_with_headers)
