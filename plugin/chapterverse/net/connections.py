"""A pool of connections to one server, shared by threads. Every read has a deadline.

The server may have closed a connection that waited, which shows only when it is used: the request fails, and it is
unknown whether the server got it. A request that costs money must not be sent again then, and a reader still wants an
answer. So a connection is used again only after seconds of waiting, not minutes, and if no data and no end came over
it.
"""

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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import Any, TypeVar, cast

from chapterverse.errors import ProviderError
from chapterverse.net.address import Address

T = TypeVar("T")

#: Connects to a host and port within so many seconds.
Dial = Callable[[tuple[str, int], float], socket.socket]

#: How a connection that the server has closed fails.
_CLOSED = (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)

#: Seconds that a connection may have waited. A machine that was halted meanwhile, as on Lambda, doesn't learn that the
#: server closed it; services keep theirs for a minute and more.
IDLE_SECONDS = 30.0

_PIECE = 256 * 1024


class RequestAborted(OSError):
    """The caller no longer waits for the answer."""


class Abort:
    """The end of one request from outside. `trigger` may be called from any thread, at any time, even afterwards."""

    def __init__(self) -> None:
        #: Whether the whole request may have reached the server.
        self.is_sent = False
        self._aborted = Event()
        self._lock = Lock()
        self._socket: socket.socket | None = None

    @property
    def is_aborted(self) -> bool:
        return self._aborted.is_set()

    def trigger(self) -> None:
        """End the wait for the watched socket, and each later one."""
        self._aborted.set()
        with self._lock:
            if self._socket is not None:
                _shut(self._socket)

    def watch(self, sock: socket.socket) -> None:
        """Take the socket that is waited for from now on.

        Raises:
            RequestAborted: `trigger` was called before.
        """
        with self._lock:
            self._socket = sock
        self.check()

    def release(self) -> None:
        """Let go of the socket, which may serve another request after this."""
        with self._lock:
            self._socket = None

    def wait(self, seconds: float) -> None:
        """Sleep; raise `RequestAborted` as soon as `trigger` is called."""
        self._aborted.wait(seconds)
        self.check()

    def check(self) -> None:
        """Raise `RequestAborted` if `trigger` was called."""
        if self.is_aborted:
            raise RequestAborted


@dataclass(frozen=True, slots=True)
class Request:
    """A request, with its limits.

    Attributes:
        deadline: when all of it must be over, replies and pauses included, by `time.monotonic`.
        abort: ends it from another thread.
        data: the body; a path is a file that is sent piece by piece.
        once: whether the server may bill it: it is not sent again unless it is sure that the server never had it whole.
        stall: seconds without a byte after which nothing more is waited for.
    """

    method: str
    path: str
    deadline: float
    abort: Abort
    data: bytes | Path | None = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    stall: float = math.inf
    once: bool = False

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, 0 and less after it."""
        return self.deadline - time.monotonic()

    def write(self, connection: http.client.HTTPConnection, path: str) -> None:
        """Send all of it."""
        connection.sock.settimeout(_seconds_left(self.deadline, self.stall))
        body: bytes | Iterator[bytes] | None
        if isinstance(self.data, Path):
            body = self._pieces(self.data, connection.sock)
            headers = {**self.headers, "Content-Length": str(self.data.stat().st_size)}
        else:
            body, headers = self.data, dict(self.headers)
        connection.request(self.method, path, body=body, headers=headers)
        # No server carries out a request that was not sent to its end.
        self.abort.is_sent = True

    def _pieces(self, path: Path, sock: socket.socket) -> Iterator[bytes]:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                sock.settimeout(_seconds_left(self.deadline, self.stall))
                yield piece


@dataclass(frozen=True, slots=True)
class Exchange:
    """A response whose body is still to be read, and the connection that it comes over."""

    connection: http.client.HTTPConnection
    response: Response


class Connections:
    """The connections to one address, made as they are needed and used again."""

    def __init__(self, address: Address, connect_seconds: float, dial: Dial = socket.create_connection) -> None:
        self._dial = dial
        self._address = address
        self._connect_seconds = connect_seconds
        # Each with the time of day at which it began to wait: that goes on while a machine is halted.
        self._idle: deque[tuple[http.client.HTTPConnection, float]] = deque()
        # Idle connections need no explicit end: they are closed when this is collected.
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
        with self.translating_errors(request):
            if connection := self._idle_connection(request):
                try:
                    return self._exchange(connection, request, use)
                except _CLOSED:
                    # Closed while it was idle, or by what was sent: who knows, and who is billed for it?
                    if request.once and request.abort.is_sent:
                        raise
                    # What happened to it may have happened to all, and once more is enough to find out.
                    _close(self._idle)
            return self._exchange(self._connect(request), request, use)

    def give_back(self, exchange: Exchange, request: Request) -> None:
        """Keep a connection for the next request, if its response was read to the end."""
        # First of all: an abort that comes later must not end the connection's next request.
        request.abort.release()
        if request.abort.is_aborted or exchange.response.will_close or not exchange.response.isclosed():
            exchange.connection.close()
        else:
            self._idle.append((exchange.connection, time.time()))

    @contextmanager
    def translating_errors(self, request: Request) -> Iterator[None]:
        """Raise what goes wrong with a connection in one sentence; see `send`."""
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            meaning = f"{self.host} could not be reached or broke off."
            if request.abort.is_aborted:
                meaning = f"Nobody waits for {self.host} any more: ask again."
            elif isinstance(error, TimeoutError):
                meaning = f"{self.host} did not answer in time."
            failure = ProviderError(meaning, retryable=True)
            failure.unbilled = not request.abort.is_sent
            raise failure from error

    def _idle_connection(self, request: Request) -> http.client.HTTPConnection | None:
        """Return the connection that was used last, if it is certainly open; else None."""
        request.abort.check()
        while True:
            # Checked and taken in one step, because another thread may take the last one in between.
            try:
                connection, since = self._idle.pop()
            except IndexError:
                return None
            if 0 <= time.time() - since < IDLE_SECONDS and _is_quiet(connection):
                return connection
            connection.close()

    def _connect(self, request: Request) -> http.client.HTTPConnection:
        address, seconds = self._address, max(0.001, min(self._connect_seconds, request.seconds_left))
        # With its port always: the library would take the end of an IPv6 address for one.
        connection = http.client.HTTPConnection(*address.place, timeout=seconds)
        if address.scheme == "https":
            connection = http.client.HTTPSConnection(*address.place, context=tls_context())
        sock = self._dial(address.place, seconds)
        try:
            # Small requests: waiting for the last acknowledgement would cost 40 ms.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            request.abort.watch(sock)
            if address.scheme == "https":
                # In two steps, so that the greeting too can be aborted.
                sock = tls_context().wrap_socket(sock, server_hostname=address.host, do_handshake_on_connect=False)
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
    """A response whose every read may only use the rest of the total time, even if the bytes come slowly."""

    def __init__(self, sock: socket.socket, *args: Any, deadline: float, stall: float, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._timed = _TimedReader(self.fp.detach(), sock, deadline, stall)
        self.fp = io.BufferedReader(self._timed)

    def hurry(self, seconds: float) -> None:
        """Give the reads that are still to come no more than this."""
        self._timed.deadline = min(self._timed.deadline, time.monotonic() + seconds)


class _TimedReader(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, sock: socket.socket, deadline: float, stall: float) -> None:
        self.deadline = deadline
        self._stall = stall
        self._raw = raw
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_seconds_left(self.deadline, self._stall))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _close(idle: deque[tuple[http.client.HTTPConnection, float]]) -> None:
    with suppress(IndexError):
        while True:
            idle.pop()[0].close()


def _is_quiet(connection: http.client.HTTPConnection) -> bool:
    """Whether no byte came over it since its last reply: a byte there is its end."""
    try:
        connection.sock.settimeout(0)
        # The plain socket's method, as that of a TLS socket knows no flags.
        socket.socket.recv(connection.sock, 1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def _seconds_left(deadline: float, stall: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return min(seconds, stall)


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Return the context of all connections: making one takes 20 ms."""
    return ssl.create_default_context()


def _shut(sock: socket.socket) -> None:
    # Closing would free the descriptor under the thread that reads from it. The plain socket's method, as that of a
    # TLS socket takes its encryption away from that thread.
    with suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
