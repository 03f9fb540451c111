"""Turns an unforeseen error into a plain 500 and one line in the log."""

from __future__ import annotations

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chapterverse_api import rejections


class LastResort:
    """Answers for an application that failed. Starlette's own net stands outside of CORS and raises again."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watching(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watching)
        except ClientDisconnect:
            # Nobody is left to tell, and nothing of ours failed.
            return
        except Exception as error:
            refusal = rejections.report(error)
            if started:
                # The server has to break the connection, or half a response would look whole.
                raise
            await refusal.response()(scope, receive, send)
