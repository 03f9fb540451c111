"""Writes metrics of each request that holds a question, is rejected, fails, or starts the process."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chapterverse_api.http.guard.headers import is_api
from chapterverse_api.observability.metrics import request_line


class RequestMetrics:
    """Counts errors and rejections by the status of the response; see `observability.metrics` for the rest."""

    def __init__(self, app: ASGIApp, site: str) -> None:
        self._app = app
        self._site = site
        self._cold = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # The application is created once per process.
        cold, self._cold = self._cold, False
        with request_line(self._site, cold) as measured:

            async def watch(message: Message) -> None:
                if message["type"] == "http.response.start" and is_api(scope["path"]):
                    status = message["status"]
                    measured["Errors"], measured["Rejections"] = int(status >= 500), int(400 <= status < 500)
                await send(message)

            await self._app(scope, receive, watch)
