"""Where the host of an address is: on this machine, in a private network, or public."""

from __future__ import annotations

import ipaddress

#: Ends of names of private networks: multicast DNS (RFC 6762), the end set aside for them, that of homes (RFC 8375),
#: Kubernetes' services, and the ends that routers and companies use (RFC 6762, appendix G). No one can register any.
_PRIVATE_NAMES = (
    ".local", ".internal", ".home.arpa", ".svc", ".lan", ".home", ".corp", ".intranet", ".private", ".localdomain",
    ".docker",
)  # fmt: skip
#: Addresses that a provider shares among its customers (RFC 6598); private overlay networks use them too.
_SHARED = ipaddress.IPv4Network("100.64.0.0/10")

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
