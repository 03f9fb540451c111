"""The host of an address, and where it is: on this machine, or in a private network."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

#: Ends of names of private networks: multicast DNS (RFC 6762), the end set aside for them, that of homes (RFC 8375),
#: Kubernetes' services, and the ends that routers and companies use (RFC 6762, appendix G). No one can register any.
_PRIVATE_NAMES = (
    ".local", ".internal", ".home.arpa", ".svc", ".lan", ".home", ".corp", ".intranet", ".private", ".localdomain",
    ".docker",
)  # fmt: skip
#: Addresses that a provider shares among its customers (RFC 6598); private overlay networks use them too.
_SHARED = ipaddress.IPv4Network("100.64.0.0/10")


def parse_host(url: str) -> str:
    """Return a URL's host without the port, "" if it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Return whether a host name in lower case, or an IP address, is of this machine."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        # RFC 6761, section 6.3: no one can own a name below localhost.
        return host == "localhost" or host.endswith(".localhost")
    return ((isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped) or ip).is_loopback


def is_private(host: str) -> bool:
    """Return whether a host name in lower case, or an IP address, is of this machine or of a private network."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        name = host.rstrip(".")
        # A name without a dot is one of the own network, as those of containers are.
        return is_loopback(name) or ("." not in name and name != "") or name.endswith(_PRIVATE_NAMES)
    return ip.is_private or (ip.version == 4 and ip in _SHARED)
