"""Internet addresses in numbers, in every form that a browser or a shell reads, and versions, which look like them."""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from chapterverse_api.grounding.links.host_names import is_reserved

#: Addresses of the reader's own network, or of no machine: a sentence may name them.
_LOCAL = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16 224.0.0.0/3"
    ).split()
)
#: IPv6 addresses of any other machine; what else reads as one is mostly a name in a program, as "abc::def".
_PUBLIC = (IPv6Network("2000::/3"), IPv6Network("64:ff9b::/96"))
# "10.0.0.0/8", "3.11/3.12": the text behind the slash is another number, and no path.
_NUMERIC_PATH = re.compile(r"/\d[\d./]*")
# A day, and numbers in thousands or thousandths.
_DATE_OR_THOUSANDS = re.compile(r"(?:19|20)\d\d[01]\d[0-3]\d|\d+000|\d{1,3}(?:\.\d{3})+")
#: Characters of the longest number of four parts that is a version, "11.8.172.15", and the greatest that begins one.
_MAX_VERSION_CHARS, _MAX_VERSION_START = 11, 39


def is_numeric_address(number: str, path: str, *, user: bool, argument: bool) -> bool:
    """Whether a number is the address of a machine.

    Args:
        number: one to four parts, or an IPv6 address; with its brackets if it has some.
        path: the port and path behind the number, "" if none follow.
        user: whether the name of a user precedes it.
        argument: whether a command connects to it.
    """
    address = _read_address(number)
    if address is None:
        return False
    if not (user or argument) and _NUMERIC_PATH.fullmatch(path):
        if _is_network(number + path):
            return False
        path = ""
    if ":" not in number and number.rstrip(".").count(".") < 3:
        return int(address) >> 24 > 0 and _is_short(number, int(address), path, user=user, argument=argument)
    if user or (path and (address.version == 4 or "]" in number)):
        return True
    if argument:
        return not (address.is_loopback or address.is_unspecified)
    return _is_public(number, address)


def leads_nowhere(host: str) -> bool:
    """Whether a host is of the reader's own machine or network, or of no machine."""
    address = _read_address(host)
    return is_reserved(host) if address is None else _is_local(address)


def _is_local(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return any(address in network for network in _LOCAL)
    return not any(address in network for network in _PUBLIC)


def _is_public(number: str, address: IPv4Address | IPv6Address) -> bool:
    """Whether a number is the address of a machine elsewhere, and neither a version nor a name in a program."""
    if isinstance(address, IPv6Address):
        return not _is_local(address)
    if _is_local(address):
        return False
    return len(number) > _MAX_VERSION_CHARS or "x" in number.lower() or int(address) >> 24 > _MAX_VERSION_START


def _is_short(number: str, address: int, path: str, *, user: bool, argument: bool) -> bool:
    """Whether a number of fewer than four parts is an address: it is too long for a version, and leads somewhere."""
    if max(map(len, number.split("."))) < 3 or _DATE_OR_THOUSANDS.fullmatch(number):
        return argument and bool(path)
    return bool(path) or argument or (user and (number.count(".") < 2 or address >> 24 > _MAX_VERSION_START))


def _read_address(number: str) -> IPv4Address | IPv6Address | None:
    try:
        if ":" in number:
            address = ip_address(number.strip("[].,"))
            return getattr(address, "ipv4_mapped", None) or address
        # The C library reads what shells and browsers read, such as octal numbers and fewer than four parts.
        return IPv4Address(socket.inet_aton(number.rstrip(".")))
    except (OSError, ValueError):
        return None


def _is_network(text: str) -> bool:
    """Whether a text names a range of addresses, as "10.0.0.0/8" does and "10.0.0.1/8" does not."""
    try:
        return ip_network(text).num_addresses > 2
    except ValueError:
        return False
