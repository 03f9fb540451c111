"""Turns an unexpected error into a plain 500 and one log line."""

from __future__ import annotations

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chapterverse_api import rejections


class LastResort:
    """Answers for an application that raised. Starlette's own handler is outside of CORS and raises again."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except ClientDisconnect:
            # The client is gone, and nothing of this service failed.
            return
        except Exception as error:
            rejection = rejections.report(error)
            if started:
                # The server must abort the connection, or half a response would look complete.
                raise
            await rejection.response()(scope, receive, send)
