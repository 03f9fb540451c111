"""Wraps the application: decides who may ask, names and counts each request, and completes each response."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from anyio.to_thread import current_default_thread_limiter
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chapterverse_api import rejections
from chapterverse_api.http.guard.origin import AllowList, own_origin
from chapterverse_api.observability import log, metrics
from chapterverse_api.rejections import OPENAI_PATHS, Rejection

#: A core makes some 30 answers a second (`benchmarks/load.py`), and each answer holds a thread while models think: with
#: answers of four seconds, 120 wait at a time. anyio's default of 40 would leave two thirds of the core idle.
WORKER_THREADS = 128
#: Seconds for which browsers may cache a preflight; Chromium's maximum.
_PREFLIGHT_AGE = 7200
#: Headers of a program in a browser that speaks the Model Context Protocol.
_MCP_HEADERS = ", mcp-protocol-version, mcp-method, mcp-name"
_API = {"v1", "mcp", "widget", "openapi.json"}

_UNKNOWN_HOST = Rejection(
    403,
    "host_not_allowed",
    "This service is not reached by this name: its owner can list who may ask in CHAPTERVERSE_ALLOWED_ORIGINS.",
)
_FOREIGN_ORIGIN = Rejection(403, "origin_not_allowed", "This site may not ask this service.")


class Guard:
    """Rejects foreign origins and names, answers preflights and crashes, and adds the headers that each response needs.

    A request without `Origin` passes: it comes from a program, or from a page of the same origin.

    Args:
        site: the site whose metrics are written; None writes none.
    """

    def __init__(self, app: ASGIApp, allowed: AllowList, site: str | None = None) -> None:
        self._app = app
        self._allowed = allowed
        self._site = site
        self._cold = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Lambda's id, elsewhere a random one, and never a client's header.
        request_id = getattr(scope.get("aws.context"), "aws_request_id", None) or uuid4().hex
        # The application is created once per process.
        cold, self._cold = self._cold, False
        app, origin = self._decide(scope)

        with log.request(request_id), metrics.request_line(self._site, cold):

            async def send_whole(message: Message) -> None:
                if message["type"] == "http.response.start":
                    api = is_api(scope["path"])
                    _add_headers(MutableHeaders(scope=message), api, origin, request_id)
                    if api:
                        metrics.measure_status(message["status"])
                await send(message)

            await app(scope, receive, send_whole)

    def _decide(self, scope: Scope) -> tuple[ASGIApp, str | None]:
        """Return the application for this request, and the origin that may read the answer."""
        headers = Headers(scope=scope)
        if not self._is_ours(scope, headers.getlist("host")):
            return _UNKNOWN_HOST, None
        origins = headers.getlist("origin")
        if not origins:
            return self._run, None
        own = own_origin(scope["scheme"], headers.get("host", ""))
        if len(origins) > 1 or not self._allowed.allows_origin(origins[0], own):
            return _FOREIGN_ORIGIN, None
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            return _preflight(scope["path"]), origins[0]
        return self._run, origins[0]

    def _is_ours(self, scope: Scope, hosts: Sequence[str]) -> bool:
        # Lambda gets only requests to the function's own address, whose name AWS chooses.
        if "aws.event" in scope:
            return True
        server = scope.get("server")
        return self._allowed.allows_host(hosts[0] if len(hosts) == 1 else "", server[0] if server else "")

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application, and answer if it raises. Starlette's own handler is outside of CORS and raises again."""
        # The limit belongs to an event loop, so it is set during a request.
        current_default_thread_limiter().total_tokens = WORKER_THREADS
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
            await rejection(scope, receive, send)


def is_api(path: str) -> bool:
    """Whether `path` belongs to the API and not to the documentation beside it."""
    return path.removeprefix("/").partition("/")[0] in _API


def _preflight(path: str) -> Response:
    # OpenAI's clients send a key, and headers about themselves, which nothing reads.
    headers = "*, authorization" if path in OPENAI_PATHS else "content-type, x-work"
    headers += _MCP_HEADERS if path == "/mcp" else ""
    return Response(
        status_code=204,
        headers={
            "access-control-allow-methods": "GET, POST, DELETE",
            "access-control-allow-headers": headers,
            "access-control-max-age": str(_PREFLIGHT_AGE),
        },
    )


def _add_headers(headers: MutableHeaders, api: bool, origin: str | None, request_id: str) -> None:
    # Even without an origin: a shared cache must not serve that answer to another site's page.
    headers.add_vary_header("Origin")
    if origin is not None:
        headers["access-control-allow-origin"] = origin
        # Without this a page of another origin can't read how long to wait, or which work to do first.
        headers["access-control-expose-headers"] = "retry-after, x-work"
    headers["x-content-type-options"] = "nosniff"
    # A page beside the API may be rebuilt at any time, so browsers must revalidate it.
    headers.setdefault("cache-control", "no-store" if api else "no-cache")
    if api:
        headers["referrer-policy"] = "no-referrer"
    headers["x-request-id"] = request_id
