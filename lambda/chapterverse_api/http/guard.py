"""Wraps the application: decides who may ask, names and counts each request, and completes each response.

A request is checked before it can cause costs, the cheapest check first:

    origin      origin and host name against an allow-list              here                     403
    method, path                                                        the router               404, 405
    body        content type, size, UTF-8, strict JSON                  http/admission.py        415, 413, 400
    contract    the pydantic model of the route                         contract.py              422
    work        optional proof of work after half of a window           ext/work                 429
    rate        requests of this client: all windows, atomic            http/admission.py        429
    budget      the rest of the day's budget for models                 ext/budget               a free answer

Rejections and crashes have the same headers as answers: without CORS headers a browser reports a network error instead
of our message. The origin is checked before anything runs; CORS alone would only hide the answer. A page can also
rebind its name: `evil.example` first resolves to the page's server, then to 127.0.0.1. For the browser that is one
origin, so it sends no foreign `Origin` and hides nothing, but the `Host` header still has the name. So without a list
of allowed origins, only requests to names that no one else can own are answered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias
from uuid import uuid4

from anyio.to_thread import current_default_thread_limiter
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chapterverse.errors import ConfigurationError
from chapterverse_api import log, rejections
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

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = rf"{_LABEL}(?:\.{_LABEL})*"
# A wildcard is one whole label before a domain of at least two labels: `*.com` is rejected.
_ORIGIN = re.compile(rf"https?://(?:{_NAME}|\*\.{_LABEL}\.{_NAME}|\[[0-9a-f:]+\])(?::\d{{1,5}})?")
_DEFAULT_PORT = re.compile(r"(?<=^http:)(.*):80$|(?<=^https:)(.*):443$")
#: A `Host` header in lower case: a name or an address, optionally a port.
_HOST = re.compile(r"(?:(?P<name>[a-z0-9_.-]+)|\[(?P<v6>[0-9a-f:.]+)\])(?::[0-9]{0,5})?")
#: Addresses of a server that mean each one at which a connection arrives.
_EVERYWHERE = {IPv4Address(0), IPv6Address(0)}

#: A name never equals an address, not even `127.0.0.1.`, which is a name.
Host: TypeAlias = str | IPv4Address | IPv6Address


class AllowList:
    """Exact origins, and patterns such as `https://*.preview.example.com` where `*` is exactly one label.

    Args:
        hosts: names and addresses of the service besides loopback; `0.0.0.0` and `::` mean every address that a
            connection arrives at. Used only if `origins` is empty.

    Raises:
        ConfigurationError: an entry is neither an origin nor a pattern.
    """

    def __init__(self, origins: Sequence[str], hosts: Collection[str] = ()) -> None:
        self._patterns = [_pattern(origin) for origin in origins]
        self._hosts = frozenset(_parse(host) for host in hosts if host)

    def allows_origin(self, origin: str, own_origin: str) -> bool:
        """Whether `origin` may ask; with an empty list only the service's `own_origin` may."""
        if not self._patterns:
            return origin == own_origin
        return any(pattern.fullmatch(origin) for pattern in self._patterns)

    def allows_host(self, host: str, local_address: str = "") -> bool:
        """Whether a request with this `Host` is answered. Any is, if there is a list of origins.

        Args:
            local_address: the service's address at which the connection arrived.
        """
        if self._patterns:
            return True
        address = _address(host)
        # Addresses can't be rebound, but only our own show that the request is for us.
        return address is not None and (
            _is_loopback(address)
            or address in self._hosts
            or (not self._hosts.isdisjoint(_EVERYWHERE) and address == _parse(local_address))
        )


class AnyOrigin(AllowList):
    """Allows every origin, for an answer that only reports an error."""

    def __init__(self) -> None:
        super().__init__(())
        self._patterns = [re.compile(".+", re.DOTALL)]


class Guard:
    """Rejects foreign origins and names, answers preflights and crashes, and adds the headers that each response needs.

    A request without `Origin` passes: it comes from a program, or from a page of the same origin.

    Args:
        write_metrics: is called with those of each request, if any are written.
    """

    def __init__(
        self,
        app: ASGIApp,
        allowed: AllowList,
        write_metrics: Callable[[Mapping[str, float]], None] | None = None,
    ) -> None:
        self._app = app
        self._allowed = allowed
        self._write_metrics = write_metrics
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
        started = False

        async def send_whole(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started, api = True, is_api(scope["path"])
                _add_headers(MutableHeaders(scope=message), api, origin, request_id)
                if api:
                    status = message["status"]
                    log.measure(Errors=int(status >= 500), Rejections=int(400 <= status < 500))
            await send(message)

        # The limit belongs to an event loop, so it is set during a request.
        current_default_thread_limiter().total_tokens = WORKER_THREADS
        with log.request(request_id) as measured:
            measured["ColdStarts"] = int(cold)
            try:
                await app(scope, receive, send_whole)
            except ClientDisconnect:
                # The client is gone, and nothing of this service failed.
                return
            # Starlette's own handler is outside of CORS and raises again.
            except Exception as error:
                rejection = rejections.report(error)
                if started:
                    # The server must abort the connection, or half a response would look complete.
                    raise
                await rejection(scope, receive, send_whole)
            finally:
                if self._write_metrics:
                    self._write_metrics(measured)

    def _decide(self, scope: Scope) -> tuple[ASGIApp, str | None]:
        """Return the application for this request, and the origin that may read the answer."""
        headers = Headers(scope=scope)
        if not self._is_ours(scope, headers.getlist("host")):
            return _UNKNOWN_HOST, None
        origins = headers.getlist("origin")
        if not origins:
            return self._app, None
        own = _own_origin(scope["scheme"], headers.get("host", ""))
        if len(origins) > 1 or not self._allowed.allows_origin(origins[0], own):
            return _FOREIGN_ORIGIN, None
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            return _preflight(scope["path"]), origins[0]
        return self._app, origins[0]

    def _is_ours(self, scope: Scope, hosts: Sequence[str]) -> bool:
        # Lambda gets only requests to the function's own address, whose name AWS chooses.
        if "aws.event" in scope:
            return True
        server = scope.get("server")
        return self._allowed.allows_host(hosts[0] if len(hosts) == 1 else "", server[0] if server else "")


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


def _pattern(origin: str) -> re.Pattern[str]:
    plain = _without_default_port(origin.lower())
    if not _ORIGIN.fullmatch(plain):
        raise ConfigurationError(
            f"CHAPTERVERSE_ALLOWED_ORIGINS: {origin!r} is no origin; write https://docs.example.com, "
            "or https://*.preview.example.com for every name one level below."
        )
    return re.compile(re.escape(plain).replace(r"\*", _LABEL))


def _address(header: str) -> Host | None:
    """Return the name or address in a `Host` header without the port, None if it is invalid."""
    match = _HOST.fullmatch(header.lower())
    if match is None:
        return None
    address = _parse(match["v6"] or match["name"])
    # IPv6 addresses, and only these, have brackets.
    return None if isinstance(address, IPv6Address) != bool(match["v6"]) else address


def parse_ip(host: str) -> IPv4Address | IPv6Address | None:
    """Return an IP address, as IPv4 if it only wraps one of IPv4; None for a name."""
    try:
        ip = ip_address(host)
    except ValueError:
        return None
    return (isinstance(ip, IPv6Address) and ip.ipv4_mapped) or ip


def _parse(host: str) -> Host:
    """Return an address of any spelling, and a name in lower case without the root's dot."""
    return parse_ip(host) or host.lower().removesuffix(".")


def _is_loopback(host: Host) -> bool:
    # RFC 6761, section 6.3: no one can own a name below localhost.
    if isinstance(host, str):
        return host == "localhost" or host.endswith(".localhost")
    return host.is_loopback


def _own_origin(scheme: str, host: str) -> str:
    """Return the origin of a page that was requested by this scheme and `Host`."""
    return _without_default_port(f"{scheme}://{host.lower()}")


def _without_default_port(origin: str) -> str:
    return _DEFAULT_PORT.sub(lambda match: match[1] or match[2], origin)
