"""JSON over HTTP by the standard library alone: the way to models and to the store on the query path.

An SDK costs 0.3 s and more where it is constructed, which a cold Lambda would pay for its first question;
`http.client` with one TLS context costs 40 ms. Connections stay open between requests and are shared by threads.
Messages name the host and nothing else of an address: the rest may hold what nobody should read in a log.
"""

from __future__ import annotations

import functools
import http.client
import io
import json
import math
import socket
import ssl
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from chapterverse.errors import ConfigurationError, ProviderError

#: Seconds to reach the server, and for one request in all: every try, the waits between them and the reply.
CONNECT_SECONDS = 3.0
TOTAL_SECONDS = 10.0
TRIES = 2

#: Seconds before the next try where the server names none, and the most to wait: a reader is waiting too.
_PAUSE = 0.25
_LONGEST_PAUSE = 1.0

#: A reply that is larger is no reply of a model or a store: 96 vectors of 3,072 numbers take 8 MB.
_MOST_BYTES = 16 * 1024 * 1024

_RETRIED = {429, 500, 502, 503, 504}

#: How a connection that the server has closed fails.
_CLOSED = (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server said.

    Attributes:
        body: parsed JSON, None where it was none.
        headers: by their names in lower case.
    """

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def pause(self) -> float | None:
        """Seconds that the server asks to be left alone; None where it doesn't say."""
        return asked_pause(self.headers)


class JsonClient:
    """Sends JSON to one server; every request must be one that may be sent twice."""

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        *,
        connect_seconds: float = CONNECT_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
        tries: int = TRIES,
    ) -> None:
        """Prepare, without connecting.

        Args:
            tries: how often a request is sent that is answered with 429 or 5xx.

        Raises:
            ConfigurationError: `base_url` is no http or https address, or a header holds what no header may.
        """
        self._scheme, self._host, self._port, self._prefix = _address(base_url)
        for name, value in headers.items():
            if not _plain(value):
                raise ConfigurationError(f"The header {name} for {self._host} holds characters that no header has.")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        self._connect_seconds = connect_seconds
        self._total_seconds = total_seconds
        self._tries = tries
        self._idle: deque[http.client.HTTPConnection] = deque()
        # Nobody has to close a client: its idle connections go with it.
        weakref.finalize(self, _close, self._idle)

    def get(self, path: str) -> Reply:
        """Return the reply to a GET; else as `post`."""
        return self._request("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        """Send `body` and return the reply; 429 and 5xx are tried again after a short wait.

        Raises:
            ProviderError: no complete reply came within the time (worth another try later), or it was too large.
        """
        return self._request("POST", path, _encoded(body))

    def _request(self, method: str, path: str, data: bytes | None) -> Reply:
        deadline = time.monotonic() + self._total_seconds
        for _ in range(self._tries - 1):
            reply = self._once(method, path, data, deadline)
            asked = reply.pause
            pause = _PAUSE if asked is None else asked
            if reply.status not in _RETRIED or pause > min(_LONGEST_PAUSE, deadline - time.monotonic()):
                return reply
            time.sleep(pause)
        return self._once(method, path, data, deadline)

    def _once(self, method: str, path: str, data: bytes | None, deadline: float) -> Reply:
        try:
            while connection := self._idle_connection():
                try:
                    return self._exchange(connection, method, path, data, deadline)
                except _CLOSED:
                    # The server closed it while it was idle, as they do; that says nothing about a fresh one.
                    continue
            return self._exchange(self._connect(deadline), method, path, data, deadline)
        except TimeoutError as error:
            raise ProviderError(f"{self._host} did not answer in time.", retryable=True) from error
        except (OSError, http.client.HTTPException) as error:
            raise ProviderError(f"{self._host} could not be reached or broke off.", retryable=True) from error

    def _idle_connection(self) -> http.client.HTTPConnection | None:
        # Asked and taken in one step: another thread may take the last one in between.
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _connect(self, deadline: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        seconds = max(0.001, min(self._connect_seconds, deadline - time.monotonic()))
        if self._scheme == "https":
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=seconds, context=_tls())
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        connection.connect()
        # Small requests: waiting for the last acknowledgement would cost 40 ms.
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, data: bytes | None, deadline: float
    ) -> Reply:
        try:
            connection.response_class = functools.partial(_Response, deadline=deadline)  # type: ignore[assignment]
            connection.sock.settimeout(_left(deadline))
            connection.request(method, self._prefix + path, body=data, headers=self._headers)
            response = connection.getresponse()
            raw = response.read(_MOST_BYTES + 1)
            if len(raw) > _MOST_BYTES:
                raise ProviderError(f"{self._host} sent more than a reply may hold: check its address.")
            # `read` with a number of bytes takes fewer for an answer.
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
        except BaseException:
            connection.close()
            raise
        if response.will_close or not response.isclosed():
            connection.close()
        else:
            self._idle.append(connection)
        return Reply(response.status, _parsed(raw), {name.lower(): value for name, value in response.headers.items()})


class _Response(http.client.HTTPResponse):
    """A response whose every read may use only what is left of the total time, however slowly the bytes drip in."""

    def __init__(self, sock: socket.socket, *args: Any, deadline: float, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), sock, deadline))


class _Timed(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, sock: socket.socket, deadline: float) -> None:
        self._raw = raw
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _encoded(body: Mapping[str, Any]) -> bytes:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate, which JSON may hold and UTF-8 may not, is sent as the "?" that it shows as.
    return text.encode(errors="replace")


def _close(connections: deque[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def bearer(key: str, variable: str) -> dict[str, str]:
    """Return the header that carries a key; `variable` is where the key came from.

    Raises:
        ConfigurationError: the key is malformed. Told here, as the HTTP layer would quote the key in its own message.
    """
    if not _plain(key):
        raise ConfigurationError(f"{variable} holds characters that no key has: copy it again.")
    return {"Authorization": f"Bearer {key}"}


def asked_pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that a reply asks for, None where it names none; header names in lower case."""
    for name, seconds in _PAUSES.items():
        try:
            pause = seconds(headers[name])
        except (KeyError, ValueError, OverflowError):
            continue
        if not math.isnan(pause):
            return max(0.0, pause)
    return None


def _retry_after(value: str) -> float:
    """Return the seconds of a `Retry-After`, which holds a number or a date."""
    try:
        return float(value)
    except ValueError:
        return parsedate_to_datetime(value).timestamp() - time.time()


_PAUSES: dict[str, Callable[[str], float]] = {
    "retry-after-ms": lambda value: float(value) / 1000,
    "retry-after": _retry_after,
    "x-ratelimit-reset": lambda value: float(value) - time.time(),
}


def _plain(value: str) -> bool:
    return value.isascii() and value.isprintable()


def _address(base_url: str) -> tuple[str, str, int | None, str]:
    try:
        parts = urlsplit(base_url)
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    if parts.scheme not in {"http", "https"} or not host or not _plain(parts.path) or " " in parts.path:
        raise ConfigurationError(f"{_shown(base_url)!r} is no address of a service: use https://HOST.")
    if "@" in parts.netloc:
        raise ConfigurationError(f"The address of {host} holds a user or a password: use https://HOST, and a key.")
    return parts.scheme, host, port, parts.path.rstrip("/")


def _shown(base_url: str) -> str:
    # What stands before an "@" may be a password, and after a "?" a token.
    return base_url.rpartition("@")[2].partition("?")[0]


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    # Brackets nested a hundred thousand deep are no reply either.
    except (ValueError, RecursionError):
        return None
