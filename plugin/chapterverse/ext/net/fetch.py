"""Fetches from addresses that others choose: an owner's list of sources, a redirect, the template of a tool.

Such an address may lead into the network of the machine that fetches. So each hop must be HTTPS, and the address that
is *connected* must be public. The name is resolved once, each result is checked, and the socket is opened to a checked
result. So a name that resolves to something else a moment later gains nothing.

A server in front decodes `%2F` once and asks the next one, which may decode again, drop what stands behind ";", fold
wide letters, or take "\\" for "/". Encoding protects from none of that, so a text that could become more than one
segment of a path is none.
"""

from __future__ import annotations

import re
import socket
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from http.client import IncompleteRead
from urllib.parse import quote, unquote, urljoin, urlsplit

from chapterverse.errors import ConfigurationError, FetchFailed, ProviderError
from chapterverse.ext.net.address import Address, is_public, without_secrets
from chapterverse.ext.net.connections import Abort, Connections, Exchange, Request
from chapterverse.ext.net.messages import is_header_safe, lower_headers, read_body
from chapterverse.ext.net.stream import Closing
from chapterverse.version import __version__

#: What RFC 3986 allows in a segment besides letters and digits, without ";", which separates parameters; and the space.
_PUNCTUATION = frozenset("-._~!$&'()*+,=:@ ")
#: The most bytes of a body, as sent and as unpacked.
MAX_DOWNLOAD_BYTES = 5 * 1024 * 1024
#: Seconds for everything: names, redirects and the whole body.
FETCH_SECONDS = 30.0
#: Seconds for one connection.
_CONNECT_SECONDS = 5.0
_MAX_REDIRECTS = 5
#: Our name in requests, which a `robots.txt` may address.
USER_AGENT = "chapterverse"
#: A name, or an IP address.
_HOST = re.compile(r"[a-z0-9._:-]+\Z")
_REDIRECT_STATUSES = {301, 302, 303, 307, 308}
#: In a path and a query these are sent as they are; everything else is encoded.
_UNENCODED = "/%:@!$&'()*+,;=~-._?[]"
#: Returns the IP addresses of a host and port.
Resolve = Callable[[str, int], Sequence[str]]


def is_segment(text: str) -> bool:
    """Return whether a text stays one segment of a path: no separator, control character, "%" or ".." in any form."""
    return all(map(_is_plain, (text, unicodedata.normalize("NFKC", text))))


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder, which ends in a slash, or leads into it."""
    inside = path[len(folder) :].split("/")
    return folder == "/" or (
        f"{path}/".startswith(folder) and all(not part or is_segment(unquote(part)) for part in inside)
    )


def has_dots(text: str) -> bool:
    """Return whether a text is a dot, or holds two in a row, as what leads out of a folder does."""
    # Marks of a letter, which a server may leave out.
    bare = "".join(char for char in text if unicodedata.category(char)[0] != "M")
    return ".." in bare or not bare.strip(". ")


def _is_plain(text: str) -> bool:
    return not has_dots(text) and all(c in _PUNCTUATION or unicodedata.category(c)[0] in "LMN" for c in text)


@dataclass(frozen=True, slots=True)
class Download:
    """The answer of a server.

    Attributes:
        status: any status but that of a redirect; 304 if the request had validators and nothing changed.
        headers: the headers by their names in lower case.
        body: the unpacked body, at most `max_bytes`.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class Fetcher:
    """Gets addresses over HTTPS from public hosts. Safe to share between threads."""

    def __init__(
        self,
        *,
        allow_private: str = "",
        below: str | None = None,
        max_bytes: int = MAX_DOWNLOAD_BYTES,
        seconds: float = FETCH_SECONDS,
        resolve: Resolve | None = None,
    ) -> None:
        """Prepare, without connecting.

        Args:
            allow_private: the setting of this name, `host:port,…`. Private addresses and plain HTTP are allowed there.
            below: the folder of the server asked first that no redirect may lead out of, with a slash at its end, so
                that no other server is asked either; None for any place.
            max_bytes: the most bytes of a body, as sent and as unpacked.
            seconds: the time for a whole fetch.
            resolve: finds the addresses of a host; None asks the system.

        Raises:
            ConfigurationError: `allow_private` is no such list.
        """
        self._private = private_hosts(allow_private)
        self._below = None if below is None else quote(below, safe=_UNENCODED)
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
            headers: headers of the request. They may hold a key, so they are not sent to another origin after a
                redirect.
            seconds: the time for all of it; None for the fetcher's own.
            closing: registers a function that ends all waiting at once, from any thread; see `Deadline.closing`.

        Raises:
            FetchFailed: the address may not be fetched, no whole answer came in time, or it is too large.
        """
        headers = headers or {}
        for name, value in headers.items():
            if not is_header_safe(name) or not is_header_safe(value):
                raise FetchFailed(f"The header {name[:60]!a} holds characters that no header has.")
        deadline = time.monotonic() + (self._seconds if seconds is None else seconds)
        abort = Abort()
        with closing(abort.trigger):
            for _ in range(_MAX_REDIRECTS + 1):
                result = self._hop(url, headers, deadline, abort)
                if isinstance(result, Download):
                    return result
                if self._leaves(url, result):
                    headers = {}
                url = result
        raise FetchFailed(f"{_split(url)[0].host} redirects more than {_MAX_REDIRECTS} times.")

    def _leaves(self, url: str, target: str) -> bool:
        """Return whether a redirect leads to another origin. Raise `FetchFailed` if it may lead out of `below`."""
        (origin, _), (address, path) = _split(url), _split(target)
        if self._below is not None and not (address == origin and is_below(path.partition("?")[0], self._below)):
            raise FetchFailed(f"{origin.host} redirects to what is not below {self._below}, so it is not followed.")
        return address != origin

    def _hop(self, url: str, headers: Mapping[str, str], deadline: float, abort: Abort) -> Download | str:
        """Return what one request brings: a document, or the address that it is redirected to."""
        address, path = _split(url)
        self._check(address)
        defaults = {"User-Agent": f"{USER_AGENT}/{__version__}", "Accept": "*/*", "Accept-Encoding": "gzip"}
        request = Request("GET", path, deadline, abort, None, {**defaults, **headers})
        try:
            # If two threads open one at once, the second is used by its own thread only.
            connections = self._connections.get(address) or self._connections.setdefault(
                address, Connections(address, _CONNECT_SECONDS, self._dial)
            )
            return connections.send(request, lambda exchange: self._read(exchange, url))
        except ProviderError as error:
            raise FetchFailed(str(error)) from error

    def _check(self, address: Address) -> None:
        if address.scheme != "https" and address.place not in self._private:
            raise FetchFailed(f"{address.authority} is asked without encryption: use https://.")

    def _dial(self, place: tuple[str, int], seconds: float) -> socket.socket:
        """Connect to the first address of a host that answers. Raise `FetchFailed` if one is private."""
        until = time.monotonic() + seconds
        addresses = _in_time(lambda: self._resolve(*place), seconds)
        # One private address is enough, because a host that has both kinds may return either.
        if place not in self._private and not all(map(is_public, addresses)):
            raise FetchFailed(f"{place[0]} is at a private address, which nobody outside could fetch.")
        failure: OSError = ConnectionRefusedError()
        for address in addresses:
            try:
                return socket.create_connection((address, place[1]), max(0.001, until - time.monotonic()))
            except OSError as error:
                failure = error
        raise failure

    def _read(self, exchange: Exchange, url: str) -> Download | str:
        """Return a response with its body, unpacked, or the address that it redirects to."""
        status, headers = exchange.response.status, lower_headers(exchange.response)
        if status in _REDIRECT_STATUSES and (target := headers.get("location")):
            result: Download | str = _join(url, target)
        else:
            result = Download(status, headers, self._body(exchange))
        exchange.release()
        return result

    def _body(self, exchange: Exchange) -> bytes:
        try:
            body = read_body(exchange.response, self._max_bytes)
        except IncompleteRead:
            # In chunks nothing is announced.
            if exchange.response.length is None:
                raise
            raise FetchFailed(f"{exchange.host} sent less than it announced.") from None
        if body is None:
            raise FetchFailed(f"{exchange.host} sent more than {self._max_bytes:,} bytes.")
        return body


def private_hosts(setting: str) -> frozenset[tuple[str, int]]:
    """Return the hosts and ports of `CHAPTERVERSE_ALLOW_PRIVATE`.

    Raises:
        ConfigurationError: an entry is no host with a port.
    """
    try:
        return frozenset(_parse_place(entry) for entry in setting.split(",") if entry.strip())
    except ValueError:
        raise ConfigurationError(
            f"CHAPTERVERSE_ALLOW_PRIVATE is {setting[:60]!a}: list hosts with their ports, such as intranet:8080."
        ) from None


def _split(url: str) -> tuple[Address, str]:
    """Return a server, and the path with its query. Raise `FetchFailed` if the address is malformed."""
    try:
        parts = urlsplit(url)
        address = Address.parse(f"{parts.scheme}://{parts.netloc}")
    except (ValueError, ConfigurationError):
        raise _address_error(url) from None
    if not _HOST.match(address.host.lower()):
        raise _address_error(url)
    path = quote(parts.path or "/", safe=_UNENCODED) + (
        f"?{quote(parts.query, safe=_UNENCODED)}" if parts.query else ""
    )
    # An origin has the same form with and without its usual port.
    return Address(address.scheme, address.host.lower(), address.place[1], ""), path


def _address_error(url: str) -> FetchFailed:
    return FetchFailed(f"{without_secrets(url)[:200]!a} is no address to fetch.")


def _join(url: str, target: str) -> str:
    # Headers are read as Latin-1, but in practice they are UTF-8.
    location = target.encode("latin-1", "replace").decode("utf-8", "replace")
    try:
        return urljoin(url, location)
    except ValueError:
        raise FetchFailed(f"{_split(url)[0].host} redirects to what is no address.") from None


def _parse_place(entry: str) -> tuple[str, int]:
    """Return host and port. Raise `ValueError` if the entry is malformed."""
    parts = urlsplit(f"//{entry.strip()}")
    if not parts.hostname or not parts.port or parts.path or "@" in parts.netloc:
        raise ValueError(entry)
    return parts.hostname.encode("idna").decode().lower(), parts.port


def _system_resolve(host: str, port: int) -> list[str]:
    results = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in results))


def _in_time(resolve: Callable[[], Sequence[str]], seconds: float) -> Sequence[str]:
    """Return the result of `resolve`. A thread waits for it, because the system has no time-out that a caller can set.

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
