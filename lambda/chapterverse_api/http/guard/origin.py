"""Decides which origin may ask. CORS alone hides only the answer; this rejects before anything runs.

A page can also rebind its name: `evil.example` first leads to the server of the page, then to 127.0.0.1. To the browser
that is one origin, so it sends no foreign `Origin` and hides nothing. The `Host` header still holds the name. Where no
list says who may ask, only names that nobody else can own are answered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

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
#: A `Host` header in lower case: a name or an address, and perhaps a port.
_HOST = re.compile(r"(?:(?P<name>[a-z0-9_.-]+)|\[(?P<v6>[0-9a-f:.]+)\])(?::[0-9]{0,5})?")

#: How long a browser may remember a preflight, in seconds; Chromium's own cap.
PREFLIGHT_AGE = 7200


class AllowList:
    """Exact origins, and patterns such as `https://*.preview.example.com` where `*` is exactly one label.

    Args:
        hosts: names and addresses that the service is reached by, besides those of the machine itself; `0.0.0.0` and
            `::` stand for every address that a connection can come in at. They count where `origins` is empty.

    Raises:
        ConfigurationError: an entry is neither an origin nor a pattern.
    """

    def __init__(self, origins: Sequence[str], hosts: Collection[str] = ()) -> None:
        self._patterns = [_pattern(origin) for origin in origins]
        self._hosts = frozenset(_named(host) for host in hosts if host)

    def admits(self, origin: str, own: str) -> bool:
        """Return whether `origin` may ask; with an empty list only the service's `own` origin may."""
        if not self._patterns:
            return origin == own
        return any(pattern.fullmatch(origin) for pattern in self._patterns)

    def answers(self, host: str, arrived: str = "") -> bool:
        """Return whether a request with this `Host` is answered; where a list says who may ask, any is.

        Args:
            arrived: the address of ours that the connection came in at.
        """
        if self._patterns:
            return True
        named = _host(host)
        if named is None:
            return False
        # An address is no name, so nobody can rebind it; but only one that is ours says that we were meant.
        return _is_loopback(named) or named in self._hosts or (self._is_everywhere and named == _named(arrived))

    @property
    def _is_everywhere(self) -> bool:
        return any(not isinstance(host, str) and host.is_unspecified for host in self._hosts)


class OriginGuard:
    """Refuses foreign origins and names, answers preflights, adds CORS headers to what an allowed origin is told.

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
        if not self._is_ours(scope, headers.getlist("host")):
            return _not_answered().response(), None
        origins = headers.getlist("origin")
        if not origins:
            return self._app, None
        own = _own(scope["scheme"], headers.get("host", ""))
        if len(origins) > 1 or not self._allowed.admits(origins[0], own):
            return Rejection(403, "origin_not_allowed", "This site may not ask this service.").response(), None
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            return _preflight(), origins[0]
        return self._app, origins[0]

    def _is_ours(self, scope: Scope, hosts: Sequence[str]) -> bool:
        # AWS passes on what came to the function's own address, and names that as it likes.
        if "aws.event" in scope:
            return True
        server = scope.get("server")
        return self._allowed.answers(hosts[0] if len(hosts) == 1 else "", server[0] if server else "")


class Everyone(AllowList):
    """Every origin: for an answer that says nothing but that there is none."""

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
    """Return who a `Host` header means, without the port; None where it is none."""
    match = _HOST.fullmatch(header.lower())
    if match is None:
        return None
    named = _named(match["v6"] or match["name"])
    # Brackets are for addresses of IPv6, which stand in nothing else.
    return None if isinstance(named, IPv6Address) != bool(match["v6"]) else named


def _named(host: str) -> str | IPv4Address | IPv6Address:
    """Return an address as one, however it is written, and a name in lower case without the dot of the root."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.lower().removesuffix(".")
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _is_loopback(host: str | IPv4Address | IPv6Address) -> bool:
    # RFC 6761, section 6.3: nobody can own a name below localhost.
    if isinstance(host, str):
        return host == "localhost" or host.endswith(".localhost")
    return host.is_loopback


def _not_answered() -> Rejection:
    return Rejection(
        403,
        "host_not_allowed",
        "This service is not reached by this name: its owner can list who may ask in CHAPTERVERSE_ALLOWED_ORIGINS.",
    )


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
