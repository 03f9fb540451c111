"""Checks the origin of a request before anything runs; CORS alone would only hide the answer.

A page can also rebind its name: `evil.example` first resolves to the page's server, then to 127.0.0.1. For the browser
that is one origin, so it sends no foreign `Origin` and hides nothing, but the `Host` header still has the name. So
without a list of allowed origins, only requests to names that no one else can own are answered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias

from chapterverse.errors import ConfigurationError

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


def own_origin(scheme: str, host: str) -> str:
    """Return the origin of a page that was requested by this scheme and `Host`."""
    return _without_default_port(f"{scheme}://{host.lower()}")


def _without_default_port(origin: str) -> str:
    return _DEFAULT_PORT.sub(lambda match: match[1] or match[2], origin)
