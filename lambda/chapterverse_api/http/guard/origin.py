"""Decides which origin may ask. CORS alone hides only the answer; this rejects before anything runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chapterverse.errors import ConfigurationError
from chapterverse_api.rejections import Rejection

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = rf"{_LABEL}(?:\.{_LABEL})*"
# A wildcard stands for one whole label with a domain of at least two labels behind it: `*.com` is nobody's preview.
_ORIGIN = re.compile(rf"https?://(?:{_NAME}|\*\.{_LABEL}\.{_NAME}|\[[0-9a-f:]+\])(?::\d{{1,5}})?")
_DEFAULT_PORT = re.compile(r"(?<=^http:)(.*):80$|(?<=^https:)(.*):443$")

#: How long a browser may remember a preflight, in seconds; Chromium's own cap.
PREFLIGHT_AGE = 7200


class AllowList:
    """Exact origins, and patterns such as `https://*.preview.example.com` where `*` is exactly one label.

    Raises:
        ConfigurationError: an entry is neither of the two.
    """

    def __init__(self, origins: Sequence[str]) -> None:
        self._patterns = [_pattern(origin) for origin in origins]

    def admits(self, origin: str, own: str) -> bool:
        """Return whether `origin` may ask; with an empty list only the service's `own` origin may."""
        if not self._patterns:
            return origin == own
        return any(pattern.fullmatch(origin) for pattern in self._patterns)


class OriginGuard:
    """Refuses foreign origins, answers preflights, and adds CORS headers to what an allowed origin is told.

    A request without `Origin` passes: it comes from a program, or from a page of the same origin.
    """

    def __init__(self, app: ASGIApp, allowed: AllowList) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        app, origin = self._decide(scope)
        await app(scope, receive, _adding(send, origin))

    def _decide(self, scope: Scope) -> tuple[ASGIApp, str | None]:
        """Return what answers this request, and the origin that may read the answer."""
        headers = Headers(scope=scope)
        origins = headers.getlist("origin")
        if not origins:
            return self._app, None
        own = _own(scope["scheme"], headers.get("host", ""))
        if len(origins) > 1 or not self._allowed.admits(origins[0], own):
            return Rejection(403, "origin_not_allowed", "This site may not ask this service.").response(), None
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            return _preflight(), origins[0]
        return self._app, origins[0]


class Everyone(AllowList):
    """Every origin: for an answer that says nothing but that there is none."""

    def __init__(self) -> None:
        self._patterns = [re.compile(".+", re.DOTALL)]


def _pattern(origin: str) -> re.Pattern[str]:
    plain = _without_default_port(origin.lower())
    if not _ORIGIN.fullmatch(plain):
        raise ConfigurationError(
            f"CHAPTERVERSE_ALLOWED_ORIGINS: {origin!r} is no origin; write https://docs.example.com, "
            "or https://*.preview.example.com for every name one level below."
        )
    return re.compile(re.escape(plain).replace(r"\*", _LABEL))


def _own(scheme: str, host: str) -> str:
    return _without_default_port(f"{scheme}://{host.lower()}")


def _without_default_port(origin: str) -> str:
    return _DEFAULT_PORT.sub(lambda match: match[1] or match[2], origin)


def _preflight() -> Response:
    return Response(
        status_code=204,
        headers={
            "access-control-allow-methods": "GET, POST, DELETE",
            "access-control-allow-headers": "content-type, x-work",
            "access-control-max-age": str(PREFLIGHT_AGE),
        },
    )


def _adding(send: Send, origin: str | None = None) -> Send:
    async def adding(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            # Also without an origin: a shared cache must not hand that answer to a page of another site.
            headers.add_vary_header("Origin")
            if origin is not None:
                headers["access-control-allow-origin"] = origin
                # Without this a page of another origin can't read how long it should wait, or what it should do first.
                headers["access-control-expose-headers"] = "retry-after, x-work"
        await send(message)

    return adding
