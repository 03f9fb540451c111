"""JSON over HTTP by the standard library alone: the way to models and to the store on the query path.

An SDK costs 0.3 s and more where it is constructed, which a cold Lambda would pay for its first question;
`http.client` with one TLS context costs 40 ms. Connections stay open between requests and are shared by threads.
"""

from __future__ import annotations

import functools
import http.client
import io
import json
import socket
import ssl
import time
import weakref
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from chapterverse.errors import ConfigurationError, ProviderError

#: Seconds to reach the server, and for one `post` in all: both tries, the wait between them and the reply.
CONNECT_SECONDS = 3.0
TOTAL_SECONDS = 10.0

#: Seconds before the second try where the server names none, and the most to wait: a reader is waiting too.
_PAUSE = 0.25
_LONGEST_PAUSE = 1.0

#: A reply that is larger is no reply of a model.
_MOST_BYTES = 8 * 1024 * 1024

_RETRIED = {429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server said: `body` is parsed JSON, None where it was none."""

    status: int
    body: Any
    pause: float


class JsonClient:
    """Sends JSON to one server; every request must be one that may be sent twice."""

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        *,
        connect_seconds: float = CONNECT_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
    ) -> None:
        """Prepare, without connecting.

        Raises:
            ConfigurationError: `base_url` is no http or https address.
        """
        self._scheme, self._host, self._port, self._prefix = _address(base_url)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        self._connect_seconds = connect_seconds
        self._total_seconds = total_seconds
        self._idle: deque[http.client.HTTPConnection] = deque()
        # Nobody has to close a client: its idle connections go with it.
        weakref.finalize(self, _close, self._idle)

    def get(self, path: str) -> Reply:
        """Return the reply to a GET; else as `post`."""
        return self._request("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        """Send `body` and return the reply; 429 and 5xx are tried once more after a short wait.

        Raises:
            ProviderError: no complete reply came within the time; always worth another try later.
        """
        return self._request("POST", path, _encoded(body))

    def _request(self, method: str, path: str, data: bytes | None) -> Reply:
        deadline = time.monotonic() + self._total_seconds
        reply = self._once(method, path, data, deadline)
        if reply.status in _RETRIED and reply.pause <= min(_LONGEST_PAUSE, deadline - time.monotonic()):
            time.sleep(reply.pause)
            reply = self._once(method, path, data, deadline)
        return reply

    def _once(self, method: str, path: str, data: bytes | None, deadline: float) -> Reply:
        try:
            while self._idle:
                connection = self._idle.pop()
                try:
                    return self._exchange(connection, method, path, data, deadline)
                except (http.client.RemoteDisconnected, ConnectionError):
                    # The server closed it while it was idle, as they do; that says nothing about a fresh one.
                    continue
            return self._exchange(self._connect(deadline), method, path, data, deadline)
        except TimeoutError as error:
            raise ProviderError(f"{self._host} did not answer in time.", retryable=True) from error
        except (OSError, http.client.HTTPException) as error:
            raise ProviderError(f"{self._host} could not be reached or broke off.", retryable=True) from error

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
                raise http.client.HTTPException("too much")
        except BaseException:
            connection.close()
            raise
        if response.will_close or not response.isclosed():
            connection.close()
        else:
            self._idle.append(connection)
        return Reply(response.status, _parsed(raw), _pause(response.headers.get("Retry-After")))


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
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _close(connections: deque[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _address(base_url: str) -> tuple[str, str, int | None, str]:
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigurationError(f"{base_url!r} is no address of a service: use https://HOST.")
    return parts.scheme, parts.hostname, port, parts.path.rstrip("/")


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _pause(retry_after: str | None) -> float:
    """Return the seconds to wait; a date counts as too long to wait for."""
    if retry_after is None:
        return _PAUSE
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        return float("inf")
