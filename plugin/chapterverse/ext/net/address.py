"""Addresses of services.

A service's address is its host, port, path, and whether it uses TLS. Each request adds its API version, as `/v1`.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from chapterverse.errors import ConfigurationError
from chapterverse.ext.net.messages import is_header_safe

_PORTS = {"http": 80, "https": 443}
_VERSION = re.compile(r"/v[12]/*\Z", re.IGNORECASE)

#: The part of IPv6 that is given out (RFC 4291).
_GLOBAL = ipaddress.IPv6Network("2000::/3")
#: Where a network without IPv4 reaches an IPv4 address, which is the last 32 bits (RFC 6052).
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
#: What `ipaddress` takes for public, in this or an earlier Python: the rest of IANA's special-purpose registries. Parts
#: of it are reachable by everyone, but lead to a relay or a sink nearby and to no site.
_SPECIAL = tuple(
    ipaddress.ip_network(network)
    for network in (
        "192.0.0.0/24",  # protocols, one cloud's metadata among them (RFC 6890)
        "192.31.196.0/24", "192.175.48.0/24", "2620:4f:8000::/48",  # sinks for reverse lookups (RFC 7534, 7535)
        "192.52.193.0/24",  # multicast relays (RFC 7450)
        "192.88.99.0/24",  # 6to4 relays (RFC 7526)
        "2001::/23",  # protocols, with Teredo, which holds any IPv4 address (RFC 2928, 4380)
        "2002::/16",  # 6to4, which holds any IPv4 address (RFC 3056)
        "3fff::/20",  # documentation (RFC 9637)
        "168.63.129.16/32",  # in no registry: Azure's services for a virtual machine
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL in its parts; `prefix` is its path without a slash at the end."""

    scheme: str
    host: str
    port: int | None
    prefix: str

    @property
    def authority(self) -> str:
        """The value of the header `Host`: the host, and the port if it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in (None, _PORTS[self.scheme]) else f"{host}:{self.port}"

    @property
    def place(self) -> tuple[str, int]:
        """Host and port to connect to."""
        return self.host, self.port or _PORTS[self.scheme]

    @classmethod
    def parse(cls, base_url: str) -> Address:
        """Read the address of a service.

        Raises:
            ConfigurationError: it is no http or https address, or it holds a password.
        """
        try:
            parts = urlsplit(base_url)
            host, port = (parts.hostname or "").encode("idna").decode(), parts.port
        except ValueError:
            parts, host, port = urlsplit(""), "", None
        if parts.scheme not in {"http", "https"} or not host or not is_header_safe(parts.path) or " " in parts.path:
            raise ConfigurationError(f"{without_secrets(base_url)!r} is no address of a service: use https://HOST.")
        if "@" in parts.netloc:
            raise ConfigurationError(f"The address of {host} holds a user or a password: use https://HOST, and a key.")
        return cls(parts.scheme, host, port, parts.path.rstrip("/"))


def request_target(parts: SplitResult) -> str:
    """Return what a request names of an address: its path with its query."""
    return f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"


def strip_version(url: str) -> str:
    """Return an address without a version at its end, which other programs ask for and each request would repeat."""
    return _VERSION.sub("", url.strip())


def without_secrets(url: str) -> str:
    """Return an address without what stands before an "@", maybe a password, and behind a "?", maybe a token."""
    return url.rpartition("@")[2].partition("?")[0]


def is_public(address: str) -> bool:
    """Return whether an IP address may be that of a public server.

    It is no private, loopback, link-local or multicast address, and none of IANA's special-purpose registries.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inside = ip.ipv4_mapped or (ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else None)
        if inside is None and ip not in _GLOBAL:
            return False
        ip = inside or ip
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _SPECIAL)
