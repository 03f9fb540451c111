"""Fetches from addresses that others choose: an owner's list of sources, a redirect, the template of a tool.

Such an address may lead into the network of the machine that fetches. So each hop must be HTTPS, and the address that
is *connected* must be public: the name is resolved once, each result is checked, and the socket is opened to a checked
result. A name that resolves to something else a moment later gains nothing.
"""

from __future__ import annotations

import re
import socket
import threading
import time
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from urllib.parse import quote, urljoin, urlsplit

from chapterverse import __version__
from chapterverse.errors import ConfigurationError, FetchFailed, ProviderError
from chapterverse.net.address import Address, is_public
from chapterverse.net.connections import Abort, Connections, Exchange, Request
from chapterverse.net.messages import is_header_safe, lower_headers
from chapterverse.net.stream import Closing

#: Bytes of a body, as sent and as unpacked.
MAX_BYTES = 5 * 1024 * 1024
#: Seconds for everything: names, redirects and the whole body; and of these for one connection.
SECONDS = 30.0
_CONNECT_SECONDS = 5.0
_MAX_REDIRECTS = 5

#: How we name ourselves to other servers, and the name that a `robots.txt` may address.
AGENT = "chapterverse"

#: A name, or an IP address.
_HOST = re.compile(r"[a-z0-9._:-]+\Z")

_REDIRECT = {301, 302, 303, 307, 308}
#: In a path and a query these are sent as they are; everything else is encoded.
_SAFE = "/%:@!$&'()*+,;=~-._?[]"


#: Returns the addresses of a host; `socket.getaddrinfo` reduced to what is needed here.
Resolve = Callable[[str, int], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Download:
    """The answer of a server.

    Attributes:
        url: the address after all redirects, without its fragment.
        status: any but that of a redirect; 304 if the request had validators and nothing changed.
        headers: by their names in lower case.
        body: unpacked, at most `max_bytes`.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Redirect:
    url: str


class Fetcher:
    """Gets addresses over HTTPS from public hosts. Safe to share between threads."""

    def __init__(
        self,
        *,
        allow_private: str = "",
        hosts: Collection[str] | None = None,
        max_bytes: int = MAX_BYTES,
        seconds: float = SECONDS,
        resolve: Resolve | None = None,
    ) -> None:
        """Prepare, without connecting.

        Args:
            allow_private: the setting of this name, `host:port,…`: from these, private addresses and plain HTTP are
                allowed.
            hosts: the only hosts that may be fetched from, redirects included, as `host` (port 443) or `host:port`;
                None for every public one.
            max_bytes: of a body, as sent and as unpacked.
            seconds: for a whole fetch.
            resolve: finds the addresses of a host; None asks the system.

        Raises:
            ConfigurationError: `allow_private` is no such list.
        """
        self._private = private_hosts(allow_private)
        self._hosts = None if hosts is None else frozenset(_place(host, 443) for host in hosts)
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._resolve = resolve or _system_resolve
        self._connections: dict[Address, Connections] = {}

    def get(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        seconds: float | None = None,
        closing: Closing = nullcontext,
    ) -> Download:
        """Return the document at an address, after redirects.

        Args:
            headers: sent with the request, but not to another origin that it is redirected to: they may hold a key.
            seconds: for all of it, in place of the fetcher's own.
            closing: takes what ends all waiting at once, from any thread; `Deadline.closing` is one.

        Raises:
            FetchFailed: the address may not be fetched, no whole answer came in time, or it is too large.
        """
        for name, value in (headers or {}).items():
            if not is_header_safe(name) or not is_header_safe(value):
                raise FetchFailed(f"The header {name[:60]!a} holds characters that no header has.")
        deadline = time.monotonic() + (self._seconds if seconds is None else seconds)
        abort = Abort()
        with closing(abort.trigger):
            for _ in range(_MAX_REDIRECTS + 1):
                result = self._hop(url, headers or {}, deadline, abort)
                if isinstance(result, Download):
                    return result
                if _split(result.url)[0] != _split(url)[0]:
                    headers = None
                url = result.url
        raise FetchFailed(f"{_split(url)[0].host} redirects more than {_MAX_REDIRECTS} times.")

    def _hop(self, url: str, headers: Mapping[str, str], deadline: float, abort: Abort) -> Download | _Redirect:
        address, path = _split(url)
        self._check(address)
        usual = {"User-Agent": f"{AGENT}/{__version__}", "Accept": "*/*", "Accept-Encoding": "gzip"}
        request = Request("GET", path, deadline, abort, None, {**usual, **headers})
        try:
            # Two threads may make one at once; the second is then used by its own thread alone.
            connections = self._connections.get(address) or self._connections.setdefault(address, self._open(address))
            result = connections.send(request, lambda exchange: self._read(exchange, connections, request, url))
        except ProviderError as error:
            raise FetchFailed(str(error)) from error
        if isinstance(result, Download):
            return replace(result, body=self._unpack(result.body, result.headers, address.host))
        return result

    def _open(self, address: Address) -> Connections:
        def dial(place: tuple[str, int], seconds: float) -> socket.socket:
            return self._dial(place, seconds)

        return Connections(address, _CONNECT_SECONDS, dial)

    def _check(self, address: Address) -> None:
        if address.scheme != "https" and address.place not in self._private:
            raise FetchFailed(f"{address.authority} is asked without encryption: use https://.")
        if self._hosts is not None and address.place not in self._hosts:
            raise FetchFailed(f"{address.authority} is not an allowed host.")

    def _dial(self, place: tuple[str, int], seconds: float) -> socket.socket:
        """Connect to a checked address of a host, the first that answers. Raises `FetchFailed` if one is private."""
        until = time.monotonic() + seconds
        found = _in_time(lambda: self._resolve(*place), seconds)
        # One private address is enough: a host that has both gives out the private one when it likes.
        if place not in self._private and not all(is_public(one) for one in found):
            raise FetchFailed(f"{place[0]} is at a private address, which nobody outside could fetch.")
        failure: OSError = ConnectionRefusedError()
        for one in found:
            try:
                return socket.create_connection((one, place[1]), max(0.001, until - time.monotonic()))
            except OSError as error:
                failure = error
        raise failure

    def _read(self, exchange: Exchange, connections: Connections, request: Request, url: str) -> Download | _Redirect:
        """Return a response with its body as it was sent."""
        response = exchange.response
        headers = lower_headers(response)
        result: Download | _Redirect
        if response.status in _REDIRECT and (target := headers.get("location")):
            result = _Redirect(_join(url, target))
        else:
            result = Download(url.partition("#")[0], response.status, headers, self._body(exchange))
        connections.give_back(exchange, request)
        return result

    def _body(self, exchange: Exchange) -> bytes:
        response, host = exchange.response, exchange.connection.host
        if (response.length or 0) > self._max_bytes:
            raise self._too_large(host)
        body = response.read(self._max_bytes + 1)
        if len(body) > self._max_bytes:
            raise self._too_large(host)
        # `read` with a number of bytes takes fewer for an answer.
        if response.length:
            raise FetchFailed(f"{host} sent less than it announced.")
        return body

    def _unpack(self, body: bytes, headers: Mapping[str, str], host: str) -> bytes:
        coding = headers.get("content-encoding", "").strip().lower()
        if not body or coding in {"", "identity"}:
            return body
        if coding not in {"gzip", "x-gzip"}:
            raise FetchFailed(f"{host} sent its answer in an encoding that was not asked for.")
        unpacked = gunzip(body, self._max_bytes)
        if unpacked is None:
            raise FetchFailed(f"{host} sent a damaged answer.")
        if len(unpacked) > self._max_bytes:
            raise self._too_large(host)
        return unpacked

    def _too_large(self, host: str) -> FetchFailed:
        return FetchFailed(f"{host} sent more than {self._max_bytes:,} bytes.")


def private_hosts(setting: str) -> frozenset[tuple[str, int]]:
    """Return the hosts and ports of `CHAPTERVERSE_ALLOW_PRIVATE`.

    Raises:
        ConfigurationError: an entry is no host with a port.
    """
    try:
        return frozenset(_place(entry, None) for entry in setting.split(",") if entry.strip())
    except ValueError:
        raise ConfigurationError(
            f"CHAPTERVERSE_ALLOW_PRIVATE is {setting[:60]!a}: list hosts with their ports, such as intranet:8080."
        ) from None


def gunzip(data: bytes, most: int) -> bytes | None:
    """Unpack at most `most` + 1 bytes of a gzip file, None if it is damaged. More is never unpacked."""
    unpacked = bytearray()
    while data and len(unpacked) <= most:
        member = zlib.decompressobj(wbits=31)
        try:
            unpacked += member.decompress(data, most + 1 - len(unpacked))
        except zlib.error:
            return None
        if not member.eof:
            return bytes(unpacked) if len(unpacked) > most else None
        data = member.unused_data
    return bytes(unpacked)


def _split(url: str) -> tuple[Address, str]:
    """Return a server, and the path with its query. Raises `FetchFailed` for a malformed address."""
    try:
        parts = urlsplit(url)
        address = Address.parse(f"{parts.scheme}://{parts.netloc}")
    except (ValueError, ConfigurationError):
        raise _no_address(url) from None
    if not _HOST.match(address.host.lower()):
        raise _no_address(url)
    path = quote(parts.path or "/", safe=_SAFE) + (f"?{quote(parts.query, safe=_SAFE)}" if parts.query else "")
    # One origin has one form, whether its port is written or not.
    return Address(address.scheme, address.host.lower(), address.place[1], ""), path


def _no_address(url: str) -> FetchFailed:
    # The part before an "@" may hold a password, and the part after a "?" a token.
    return FetchFailed(f"{url.rpartition('@')[2].partition('?')[0][:200]!a} is no address to fetch.")


def _join(url: str, target: str) -> str:
    # A header is Latin-1 by the book, and UTF-8 in practice.
    with_bytes = target.encode("latin-1", "replace").decode("utf-8", "replace")
    try:
        return urljoin(url, with_bytes)
    except ValueError:
        raise FetchFailed(f"{_split(url)[0].host} redirects to what is no address.") from None


def _place(entry: str, default: int | None) -> tuple[str, int]:
    """Return host and port. Raises `ValueError`."""
    parts = urlsplit(f"//{entry.strip()}")
    port = parts.port or default
    if not parts.hostname or not port or parts.path or "@" in parts.netloc:
        raise ValueError(entry)
    return parts.hostname.encode("idna").decode().lower(), port


def _system_resolve(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


def _in_time(resolve: Callable[[], Sequence[str]], seconds: float) -> Sequence[str]:
    """Return what `resolve` returns. The system bounds it by nothing that a caller could set, so a thread waits for it.

    Raises:
        OSError: it failed, or took longer.
    """
    results: list[Sequence[str]] = []
    failures: list[Exception] = []

    def run() -> None:
        try:
            results.append(resolve())
        except (OSError, UnicodeError) as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if results and results[0]:
        return results[0]
    raise OSError("no such host") from failures[0] if failures else TimeoutError()
