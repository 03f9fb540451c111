"""Checks the origin of a request before anything runs; CORS alone would only hide the answer.

A page can also rebind its name: `evil.example` first resolves to the page's server, then to 127.0.0.1. For the browser
that is one origin, so it sends no foreign `Origin` and hides nothing, but the `Host` header still has the name. So
without a list of allowed origins, only requests to names that no one else can own are answered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chapterverse.errors import ConfigurationError
from chapterverse_api.rejections import OPENAI_PATHS, Rejection

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = rf"{_LABEL}(?:\.{_LABEL})*"
# A wildcard is one whole label before a domain of at least two labels: `*.com` is rejected.
_ORIGIN = re.compile(rf"https?://(?:{_NAME}|\*\.{_LABEL}\.{_NAME}|\[[0-9a-f:]+\])(?::\d{{1,5}})?")
_DEFAULT_PORT = re.compile(r"(?<=^http:)(.*):80$|(?<=^https:)(.*):443$")
#: A `Host` header in lower case: a name or an address, optionally a port.
_HOST = re.compile(r"(?:(?P<name>[a-z0-9_.-]+)|\[(?P<v6>[0-9a-f:.]+)\])(?::[0-9]{0,5})?")

#: Headers of a program in a browser that speaks the Model Context Protocol.
_MCP_HEADERS = ", mcp-protocol-version, mcp-method, mcp-name"
#: Seconds for which browsers may cache a preflight; Chromium's maximum.
PREFLIGHT_AGE = 7200


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
        self._hosts = frozenset(_parse_host(host) for host in hosts if host)

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
        address = _host(host)
        if address is None:
            return False
        # Addresses can't be rebound, but only our own show that the request is for us.
        return (
            _is_loopback(address)
            or address in self._hosts
            or (self._is_everywhere and address == _parse_host(local_address))
        )

    @property
    def _is_everywhere(self) -> bool:
        return any(not isinstance(host, str) and host.is_unspecified for host in self._hosts)


class OriginGuard:
    """Rejects foreign origins and names, answers preflights, and adds CORS headers for allowed origins.

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
        await app(scope, receive, _with_cors(send, origin))

    def _decide(self, scope: Scope) -> tuple[ASGIApp, str | None]:
        """Return the application for this request, and the origin that may read the answer."""
        headers = Headers(scope=scope)
        if not self._is_ours(scope, headers.getlist("host")):
            return _unknown_host().response(), None
        origins = headers.getlist("origin")
        if not origins:
            return self._app, None
        own_origin = _own_origin(scope["scheme"], headers.get("host", ""))
        if len(origins) > 1 or not self._allowed.allows_origin(origins[0], own_origin):
            return Rejection(403, "origin_not_allowed", "This site may not ask this service.").response(), None
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            return _preflight(scope["path"]), origins[0]
        return self._app, origins[0]

    def _is_ours(self, scope: Scope, hosts: Sequence[str]) -> bool:
        # Lambda gets only requests to the function's own address, whose name AWS chooses.
        if "aws.event" in scope:
            return True
        server = scope.get("server")
        return self._allowed.allows_host(hosts[0] if len(hosts) == 1 else "", server[0] if server else "")


class AnyOrigin(AllowList):
    """Allows every origin, for an answer that only reports an error."""

    def __init__(self) -> None:
        super().__init__(())
        self._patterns = [re.compile(".+", re.DOTALL)]


def _pattern(origin: str) -> re.Pattern[str]:
    plain = _without_default_port(origin.lower())
    if not _ORIGIN.fullmatch(plain):
        raise ConfigurationError(
            f"CHAPTERVERSE_ALLOWED_ORIGINS: {origin!r} is no origin; write https://docs.example.com, "
            "or https://*.preview.example.com for every name one level below."
        )
    return re.compile(re.escape(plain).replace(r"\*", _LABEL))


def _host(header: str) -> str | IPv4Address | IPv6Address | None:
    """Return the name or address in a `Host` header without the port, None if it is invalid."""
    match = _HOST.fullmatch(header.lower())
    if match is None:
        return None
    address = _parse_host(match["v6"] or match["name"])
    # IPv6 addresses, and only these, have brackets.
    return None if isinstance(address, IPv6Address) != bool(match["v6"]) else address


def _parse_host(host: str) -> str | IPv4Address | IPv6Address:
    """Parse an address in any spelling; return a name in lower case without the root's dot."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.lower().removesuffix(".")
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _is_loopback(host: str | IPv4Address | IPv6Address) -> bool:
    # RFC 6761, section 6.3: no one can own a name below localhost.
    if isinstance(host, str):
        return host == "localhost" or host.endswith(".localhost")
    return host.is_loopback


def _unknown_host() -> Rejection:
    return Rejection(
        403,
        "host_not_allowed",
        "This service is not reached by this name: its owner can list who may ask in CHAPTERVERSE_ALLOWED_ORIGINS.",
    )


def _own_origin(scheme: str, host: str) -> str:
    return _without_default_port(f"{scheme}://{host.lower()}")


def _without_default_port(origin: str) -> str:
    return _DEFAULT_PORT.sub(lambda match: match[1] or match[2], origin)


def _preflight(path: str) -> Response:
    # OpenAI's clients send a key, and headers about themselves, which nothing reads.
    headers = "*, authorization" if path in OPENAI_PATHS else "content-type, x-work"
    headers += _MCP_HEADERS if path == "/mcp" else ""
    return Response(
        status_code=204,
        headers={
            "access-control-allow-methods": "GET, POST, DELETE",
            "access-control-allow-headers": headers,
            "access-control-max-age": str(PREFLIGHT_AGE),
        },
    )


def _with_cors(send: Send, origin: str | None = None) -> Send:
    async def send_with_cors(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            # Even without an origin: a shared cache must not serve that answer to another site's page.
            headers.add_vary_header("Origin")
            if origin is not None:
                headers["access-control-allow-origin"] = origin
                # Without this a page of another origin can't read how long to wait, or which work to do first.
                headers["access-control-expose-headers"] = "retry-after, x-work"
        await send(message)

    return send_with_cors
