"""Gives each request an id, in its response and in every line of its log."""

from __future__ import annotations

from uuid import uuid4

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chapterverse_api.observability import log


class RequestId:
    """Uses Lambda's request id, elsewhere a random one, and never a client's header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = getattr(scope.get("aws.context"), "aws_request_id", None) or uuid4().hex

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        token = log.request_id.set(request_id)
        try:
            await self._app(scope, receive, send_with_id)
        finally:
            log.request_id.reset(token)
