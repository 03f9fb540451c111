"""Open connections to one server, shared by threads; every read from them ends in time."""

from __future__ import annotations

import functools
import http.client
import io
import math
import socket
import ssl
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from chapterverse.errors import ProviderError
from chapterverse.rest.abort import Abort
from chapterverse.rest.address import Address

T = TypeVar("T")

#: How a connection that the server has closed fails.
_CLOSED = (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)

_PIECE = 256 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent, and what bounds it.

    Attributes:
        deadline: when all of it must be over, replies and pauses included, by `time.monotonic`.
        abort: ends it from another thread.
        data: the body; a path is a file that is sent piece by piece.
        stall: seconds without a byte after which nothing more is waited for.
    """

    method: str
    path: str
    deadline: float
    abort: Abort
    data: bytes | Path | None = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    stall: float = math.inf

    @property
    def left(self) -> float:
        """Seconds until the deadline, 0 and less after it."""
        return self.deadline - time.monotonic()

    def write(self, connection: http.client.HTTPConnection, path: str) -> None:
        """Send all of it."""
        connection.sock.settimeout(_left(self.deadline, self.stall))
        self.abort.sent = True
        if not isinstance(self.data, Path):
            connection.request(self.method, path, body=self.data, headers=dict(self.headers))
            return
        headers = {**self.headers, "Content-Length": str(self.data.stat().st_size)}
        connection.request(self.method, path, body=self._pieces(self.data, connection.sock), headers=headers)

    def _pieces(self, path: Path, sock: socket.socket) -> Iterator[bytes]:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                sock.settimeout(_left(self.deadline, self.stall))
                yield piece


@dataclass(frozen=True, slots=True)
class Exchange:
    """A response whose body is still to be read, and the connection that it comes over."""

    connection: http.client.HTTPConnection
    response: Response


class Connections:
    """The connections to one address, made as they are needed and used again."""

    def __init__(self, address: Address, connect_seconds: float) -> None:
        self._address = address
        self._connect_seconds = connect_seconds
        self._idle: deque[http.client.HTTPConnection] = deque()
        # Nobody has to close them: those that are idle go with this.
        weakref.finalize(self, _close, self._idle)

    @property
    def host(self) -> str:
        return self._address.host

    def send(self, request: Request, use: Callable[[Exchange], T]) -> T:
        """Send a request and return what `use` makes of the response.

        `use` has to hand the exchange to `give_back` once it is read; where it raises, the connection is closed.

        Raises:
            ProviderError: the server could not be reached, broke off or took too long, or the request was aborted.
        """
        with self.told(request):
            while connection := self._idle_connection(request):
                try:
                    return self._exchange(connection, request, use)
                except _CLOSED:
                    # The server closed it while it was idle, as they do; that says nothing about a fresh one.
                    continue
            return self._exchange(self._connect(request), request, use)

    def give_back(self, exchange: Exchange, request: Request) -> None:
        """Keep a connection for the next request, if its response was read to the end."""
        # First of all: an abort that comes later must not meet whoever has the connection next.
        request.abort.release()
        if request.abort.is_cut or exchange.response.will_close or not exchange.response.isclosed():
            exchange.connection.close()
        else:
            self._idle.append(exchange.connection)

    @contextmanager
    def told(self, request: Request) -> Iterator[None]:
        """Raise what goes wrong with a connection in one sentence; see `send`."""
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            meaning = f"{self.host} could not be reached or broke off."
            if request.abort.is_cut:
                meaning = f"Nobody waits for {self.host} any more: ask again."
            elif isinstance(error, TimeoutError):
                meaning = f"{self.host} did not answer in time."
            failure = ProviderError(meaning, retryable=True)
            failure.unbilled = not request.abort.sent
            raise failure from error

    def _idle_connection(self, request: Request) -> http.client.HTTPConnection | None:
        request.abort.check()
        # Asked and taken in one step: another thread may take the last one in between.
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _connect(self, request: Request) -> http.client.HTTPConnection:
        address, seconds = self._address, max(0.001, min(self._connect_seconds, request.left))
        connection = http.client.HTTPConnection(address.host, address.port, timeout=seconds)
        if address.scheme == "https":
            connection = http.client.HTTPSConnection(address.host, address.port, context=_tls())
        sock = socket.create_connection((connection.host, connection.port), seconds)
        try:
            # Small requests: waiting for the last acknowledgement would cost 40 ms.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            request.abort.watch(sock)
            if address.scheme == "https":
                # In two steps, so that the greeting too can be aborted.
                sock = _tls().wrap_socket(sock, server_hostname=address.host, do_handshake_on_connect=False)
                request.abort.watch(sock)
                sock.do_handshake()
        except BaseException:
            sock.close()
            raise
        connection.sock = sock
        return connection

    def _exchange(self, connection: http.client.HTTPConnection, request: Request, use: Callable[[Exchange], T]) -> T:
        try:
            request.abort.watch(connection.sock)
            bounded = functools.partial(Response, deadline=request.deadline, stall=request.stall)
            connection.response_class = bounded  # type: ignore[assignment]
            request.write(connection, self._address.prefix + request.path)
            return use(Exchange(connection, cast(Response, connection.getresponse())))
        except BaseException:
            request.abort.release()
            connection.close()
            raise


class Response(http.client.HTTPResponse):
    """A response whose every read may use only what is left of the total time, however slowly the bytes drip in."""

    def __init__(self, sock: socket.socket, *args: Any, deadline: float, stall: float, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._timed = _Timed(self.fp.detach(), sock, deadline, stall)
        self.fp = io.BufferedReader(self._timed)

    def hurry(self, seconds: float) -> None:
        """Give the reads that are still to come no more than this."""
        self._timed.deadline = min(self._timed.deadline, time.monotonic() + seconds)


class _Timed(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, sock: socket.socket, deadline: float, stall: float) -> None:
        self.deadline = deadline
        self._stall = stall
        self._raw = raw
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self.deadline, self._stall))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _close(connections: deque[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _left(deadline: float, stall: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return min(left, stall)


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
