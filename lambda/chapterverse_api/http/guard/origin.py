"""Checks the origin of a request before anything runs; CORS alone would only hide the answer.

A page can also rebind its name: `evil.example` first resolves to the page's server, then to 127.0.0.1. For the browser
that is one origin, so it sends no foreign `Origin` and hides nothing, but the `Host` header still has the name. So
without a list of allowed origins, only requests to names that no one else can own are answered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from chapterverse.errors import ConfigurationError
from chapterverse.net.address import is_loopback, parse_ip

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = rf"{_LABEL}(?:\.{_LABEL})*"
# A wildcard is one whole label before a domain of at least two labels: `*.com` is rejected.
_ORIGIN = re.compile(rf"https?://(?:{_NAME}|\*\.{_LABEL}\.{_NAME}|\[[0-9a-f:]+\])(?::\d{{1,5}})?")
_DEFAULT_PORT = re.compile(r"(?<=^http:)(.*):80$|(?<=^https:)(.*):443$")
#: A `Host` header in lower case: a name or an address, optionally a port.
_HOST = re.compile(r"(?:(?P<name>[a-z0-9_.-]+)|\[(?P<v6>[0-9a-f:.]+)\])(?::[0-9]{0,5})?")
#: Addresses of a server that mean each one at which a connection arrives.
_EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104


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
        self._hosts = frozenset(_normalize(host) for host in hosts if host)

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
        name = _name(host)
        # Addresses can't be rebound, but only our own show that the request is for us.
        return bool(name) and (
            is_loopback(name)
            or name in self._hosts
            or (not self._hosts.isdisjoint(_EVERYWHERE) and name == _normalize(local_address))
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


def _name(header: str) -> str:
    """Return the name or address in a `Host` header without the port, "" if it is invalid."""
    match = _HOST.fullmatch(header.lower())
    name = _normalize(match["v6"] or match["name"]) if match else ""
    # IPv6 addresses, and only these, have brackets.
    return name if match and (":" in name) == bool(match["v6"]) else ""


def _normalize(host: str) -> str:
    """Return an address in its one spelling, and a name in lower case without the root's dot."""
    ip = parse_ip(host)
    return str(ip) if ip else host.lower().removesuffix(".")


def own_origin(scheme: str, host: str) -> str:
    """Return the origin of a page that was requested by this scheme and `Host`."""
    return _without_default_port(f"{scheme}://{host.lower()}")


def _without_default_port(origin: str) -> str:
    return _DEFAULT_PORT.sub(lambda match: match[1] or match[2], origin)
