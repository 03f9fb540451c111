"""A pool of connections to one server, shared by threads. Every read has a deadline.

The server may have closed an idle connection, which shows only when it is used. The request fails then, and it is
unknown whether the server got it. A request that costs money must not be sent again, and a reader would get no answer.
So a connection is used again only if it was idle for seconds, not minutes, and neither data nor an end came over it.

urllib3 has the pool, about a third of this file, but by public means not the rest: a deadline over bytes that come
slowly, an end from another thread during the handshake, and whether the whole request was sent, which is then billed.
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
from chapterverse.ext.net.address import Address
from chapterverse.ext.net.messages import DamagedBody, UnknownCoding

_T = TypeVar("_T")

#: Connects to a host and port within so many seconds.
Connector = Callable[[tuple[str, int], float], socket.socket]

#: The errors of a connection that the server has closed.
_CLOSED_ERRORS = (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)

#: Seconds that a connection may have been idle. A machine that was frozen meanwhile, as on Lambda, doesn't notice that
#: the server closed it. Services keep theirs open for a minute and more.
IDLE_SECONDS = 30.0

_PIECE_BYTES = 256 * 1024


class _RequestAborted(OSError):
    """The caller no longer waits for the answer."""


class Abort:
    """Ends one request from outside. `trigger` may be called from any thread, at any time, even afterwards."""

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
                _shut_down(self._socket)

    def watch(self, sock: socket.socket) -> None:
        """Set the socket for which the request waits from now on.

        Raises:
            _RequestAborted: `trigger` was called before.
        """
        with self._lock:
            self._socket = sock
        self.check()

    def release(self) -> None:
        """Forget the socket, which may serve another request from now on."""
        with self._lock:
            self._socket = None

    def wait(self, seconds: float) -> None:
        """Sleep; raise `_RequestAborted` as soon as `trigger` is called."""
        self._aborted.wait(seconds)
        self.check()

    def check(self) -> None:
        """Raise `_RequestAborted` if `trigger` was called."""
        if self.is_aborted:
            raise _RequestAborted


@dataclass(frozen=True, slots=True)
class Request:
    """A request, with its limits.

    Attributes:
        deadline: the end of all of it, including replies and pauses, by `time.monotonic`.
        abort: ends it from another thread.
        data: the body; a path is a file that is sent piece by piece.
        once: whether the server may bill it. Then it is sent again only if the server certainly never had it whole.
        stall: seconds without a byte after which it fails.
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
        """Seconds until the deadline; 0 or less after it."""
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
        # Until here the server can't have carried it out, because it was not sent to its end.
        self.abort.is_sent = True

    def _pieces(self, path: Path, sock: socket.socket) -> Iterator[bytes]:
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                sock.settimeout(_seconds_left(self.deadline, self.stall))
                yield piece


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, its response whose body is still to be read, and the connection that it comes over."""

    request: Request
    connection: http.client.HTTPConnection
    response: Response
    pool: Connections

    @property
    def host(self) -> str:
        return self.connection.host

    def release(self) -> None:
        """Keep the connection for the next request, if the response was read to the end."""
        # This comes first, because a later abort must not end the connection's next request.
        self.request.abort.release()
        if self.request.abort.is_aborted or self.response.will_close or not self.response.isclosed():
            self.connection.close()
        else:
            self.pool.idle.append((self.connection, time.time()))


class Connections:
    """The connections to one address. They are opened as needed and used again."""

    def __init__(self, address: Address, connect_seconds: float, connect: Connector = socket.create_connection) -> None:
        self._connect_socket = connect
        self._address = address
        self._connect_seconds = connect_seconds
        # Each with the time of day at which it became idle, because that clock goes on while a machine is frozen.
        self.idle: deque[tuple[http.client.HTTPConnection, float]] = deque()
        # Idle connections are closed when this object is collected.
        weakref.finalize(self, _close_all, self.idle)

    def send(self, request: Request, use: Callable[[Exchange], _T]) -> _T:
        """Send a request and return what `use` makes of the response.

        `use` must call `release` when the response is read. If it raises, the connection is closed.

        Raises:
            ProviderError: the server could not be reached, broke off or took too long, or the request was aborted.
        """
        with translating_errors(self._address.host, request):
            if connection := self._idle_connection(request):
                try:
                    return self._exchange(connection, request, use)
                except _CLOSED_ERRORS:
                    # The server closed it while it was idle, or after it got the request, which it may bill.
                    if request.once and request.abort.is_sent:
                        raise
                    # The server may have closed all of them, so the request is sent once more over a new one.
                    _close_all(self.idle)
            return self._exchange(self._connect(request), request, use)

    def _idle_connection(self, request: Request) -> http.client.HTTPConnection | None:
        """Return the connection that was used last and is certainly open; None if there is none."""
        request.abort.check()
        while True:
            # One step, because another thread could take the last one after a check.
            try:
                connection, since = self.idle.pop()
            except IndexError:
                return None
            if 0 <= time.time() - since < IDLE_SECONDS and _is_quiet(connection):
                return connection
            connection.close()

    def _connect(self, request: Request) -> http.client.HTTPConnection:
        address, seconds = self._address, max(0.001, min(self._connect_seconds, request.seconds_left))
        # With the port in any case, because the library would take the end of an IPv6 address for one.
        connection = http.client.HTTPConnection(*address.place, timeout=seconds)
        if address.scheme == "https":
            connection = http.client.HTTPSConnection(*address.place, context=tls_context())
        sock = self._connect_socket(address.place, seconds)
        try:
            # Without this, small requests would wait 40 ms for the last acknowledgement.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            request.abort.watch(sock)
            if address.scheme == "https":
                # In two steps, so that the handshake can be aborted, too.
                sock = tls_context().wrap_socket(sock, server_hostname=address.host, do_handshake_on_connect=False)
                request.abort.watch(sock)
                sock.do_handshake()
        except BaseException:
            sock.close()
            raise
        connection.sock = sock
        return connection

    def _exchange(self, connection: http.client.HTTPConnection, request: Request, use: Callable[[Exchange], _T]) -> _T:
        try:
            request.abort.watch(connection.sock)
            bounded = functools.partial(Response, deadline=request.deadline, stall=request.stall)
            connection.response_class = bounded  # type: ignore[assignment]
            request.write(connection, self._address.prefix + request.path)
            return use(Exchange(request, connection, cast(Response, connection.getresponse()), self))
        except BaseException:
            request.abort.release()
            connection.close()
            raise


@contextmanager
def translating_errors(host: str, request: Request) -> Iterator[None]:
    """Turn errors of a connection into a `ProviderError` with one sentence; see `Connections.send`."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        meaning = f"{host} could not be reached or broke off."
        if request.abort.is_aborted:
            meaning = f"Nobody waits for {host} any more: ask again."
        elif isinstance(error, TimeoutError):
            meaning = f"{host} did not answer in time."
        elif isinstance(error, UnknownCoding):
            meaning = f"{host} sent its answer in an encoding that was not asked for."
        elif isinstance(error, DamagedBody):
            meaning = f"{host} sent a damaged answer."
        failure = ProviderError(meaning, retryable=True)
        failure.unbilled = not request.abort.is_sent
        raise failure from error


class Response(http.client.HTTPResponse):
    """A response whose every read may only use the rest of the total time, even if the bytes come slowly."""

    def __init__(self, sock: socket.socket, *args: Any, deadline: float, stall: float, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._timed = _TimedReader(self.fp.detach(), sock, deadline, stall)
        self.fp = io.BufferedReader(self._timed)

    def limit_remaining_time(self, seconds: float | None) -> None:
        """Limit the time of all further reads to so many seconds; None for the time of the whole request again."""
        self._timed.limit(seconds)


class _TimedReader(io.RawIOBase):
    """Reads from a socket, each time with the rest of the total time as its limit."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, deadline: float, stall: float) -> None:
        self.deadline = self._total = deadline
        self._stall = stall
        self._raw = raw
        self._sock = sock

    def limit(self, seconds: float | None) -> None:
        self.deadline = self._total if seconds is None else min(self._total, time.monotonic() + seconds)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_seconds_left(self.deadline, self._stall))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _close_all(idle: deque[tuple[http.client.HTTPConnection, float]]) -> None:
    with suppress(IndexError):
        while True:
            idle.pop()[0].close()


def _is_quiet(connection: http.client.HTTPConnection) -> bool:
    """Return whether no byte came since the last reply. One that came means that the server is closing."""
    try:
        connection.sock.settimeout(0)
        # The plain socket's method, because that of a TLS socket takes no flags.
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
    """Return the context of all connections. To make one takes 20 ms."""
    return ssl.create_default_context()


def _shut_down(sock: socket.socket) -> None:
    # Not `close`, because that would free the descriptor while another thread reads from it. The plain socket's method,
    # because that of a TLS socket would remove the encryption while that thread reads.
    with suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
