"""An HTTP server on loopback that answers from a script, misbehaves on demand, and records every request.

The fakes of paid APIs are this server with an `answer` each.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from pydantic import ValidationError

from fakes.local_server import LocalServer


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes


@dataclass(frozen=True)
class Answer:
    """A reply. A `body` that is an iterator of bytes is sent as it comes, each piece as one chunk."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """The real service's response to a bad request; `code` is its name for the error, if it has one."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class Fault:
    """One misbehavior instead of a good reply.

    Attributes:
        status: sent instead of 200, with `headers` and a body with the message `said` and the error code `code`.
        change: maps the good reply to the one sent; may return invalid JSON, or an iterator of bytes.
        cut: stop in the middle of the body and close the connection; a stream is made at once, without its pauses.
        drip: seconds between single bytes of the reply, headers included.
        hang: seconds of silence before the reply.
        close: close the connection after a good reply without announcing it.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    said: str = "as asked"
    code: str = ""
    change: Callable[[Any], Any] | None = None
    cut: bool = False
    drip: float = 0.0
    hang: float = 0.0
    close: bool = False


def rate_limited(seconds: float = 0.001) -> Fault:
    return Fault(429, {"Retry-After": str(seconds), "retry-after-ms": str(seconds * 1000)}, code="ThrottlingException")


def failing(status: int) -> Fault:
    """Return a failure that asks for a retry at once, which keeps the tests fast."""
    return Fault(status, {"Retry-After": "0.001", "retry-after-ms": "1"})


def sending(reply: object) -> Fault:
    """Return a fault that sends this in place of the good reply."""
    return Fault(change=lambda _: reply)


#: Seconds in which something happens that waits for nothing, on a machine that is busy with other work too.
SOON = 5.0
#: Seconds of a silence that nobody may wait out: far more, so that it shows if somebody does.
LONG = 30.0


@contextmanager
def leaving(server: LoopbackServer, cut: Callable[[], None]) -> Iterator[None]:
    """Call `cut` when the server has been asked and is silent; what is inside must end by that, and soon."""
    asked, at = len(server.history), list[float]()

    def leave() -> None:
        while len(server.history) == asked and not over.is_set():
            time.sleep(0.01)
        over.wait(0.1)
        at.append(time.monotonic())
        cut()

    over, thread = threading.Event(), threading.Thread(target=leave)
    thread.start()
    try:
        yield
        ended = time.monotonic()
    finally:
        over.set()
        thread.join()
    assert 0 <= ended - at[0] < SOON


class LoopbackServer(LocalServer):
    """The server, a context manager.

    Attributes:
        left: set when a client hung up before its reply was complete, also between two pieces. The generator of the
            pieces is closed after its next one.
        connections: how many were opened.
        closed: how many of them the server has closed.
    """

    def __init__(self) -> None:
        super().__init__(_handler(self))
        self.history: list[Request] = []
        self.faults: deque[Fault] = deque()
        self.connections = 0
        self.closed = 0
        self.left = threading.Event()

    def play(self, *faults: Fault) -> None:
        """Queue misbehaviors for the next requests, one each."""
        self.faults.extend(faults)

    def wait_closed(self) -> None:
        """Wait until every connection is closed, as `Fault(close=True)` asks for."""
        until = time.monotonic() + LONG
        while self.closed < self.connections:
            assert time.monotonic() < until
            time.sleep(0.001)

    def answer(self, request: Request) -> Answer:
        """Return the good reply to a request; raise `Refusal`, or pydantic's `ValidationError`, for a bad one."""
        return Answer(200, {"path": request.path, "body": request.body})

    def failure(self, refusal: Refusal) -> Answer:
        """Return an error response in the service's format."""
        return Answer(refusal.status, {"message": str(refusal)})

    def reply(self, request: Request, fault: Fault) -> Answer:
        if fault.status != 200:
            failed = self.failure(Refusal(fault.status, fault.said, fault.code))
            return Answer(failed.status, failed.body, {**failed.headers, **fault.headers})
        try:
            good = self.answer(request)
        except Refusal as refusal:
            return self.failure(refusal)
        except ValidationError as error:
            first = error.errors()[0]
            return self.failure(Refusal(400, f"invalid request: {first['loc']}: {first['msg']}"))
        changed = fault.change(good.body) if fault.change else good.body
        return Answer(good.status, changed, {**good.headers, **fault.headers})


def _handler(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            server.connections += 1

        def handle(self) -> None:
            # A client that hangs up between two requests may reset the connection.
            with suppress(ConnectionError):
                super().handle()

        def finish(self) -> None:
            super().finish()
            # Before it is counted, or a client might still take it for open.
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            server.closed += 1

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {k.lower(): v for k, v in self.headers.items()}
            request = Request(self.command, self.path, headers, json.loads(raw) if raw else None, raw)
            server.history.append(request)
            fault = server.faults.popleft() if server.faults else Fault()
            self._send(server.reply(request, fault), fault)

        do_GET = do_POST  # noqa: N815 the library names it

        def _send(self, answer: Answer, fault: Fault) -> None:
            self.close_connection = fault.cut or fault.close
            slow = isinstance(answer.body, Iterator) or bool(fault.hang or fault.drip)
            with _watched(self.connection, server.left, slow) as caller:
                try:
                    caller.wait(fault.hang)
                    for data, is_last in _halved(answer) if fault.cut else _whole(answer):
                        caller.has_all = is_last and not fault.drip
                        for piece in [data[i : i + 1] for i in range(len(data))] if fault.drip else [data]:
                            self.wfile.write(piece)
                            caller.wait(fault.drip)
                except OSError:
                    # The client gave up first, as slow faults intend.
                    caller.leave()
                    self.close_connection = True
                finally:
                    if isinstance(answer.body, Generator):
                        answer.body.close()

        def log_message(self, *args: object) -> None:
            """Log nothing: the history has every request."""

    return Handler


def _whole(answer: Answer) -> Iterator[tuple[bytes, bool]]:
    """Yield the bytes of a reply, a stream piece by piece, and whether they are the last."""
    if not isinstance(answer.body, Iterator):
        yield b"".join(_head_and_body(answer)), True
        return
    yield _stream_head(answer), False
    for piece in answer.body:
        if piece:
            yield _chunk(piece), False
    yield _chunk(b""), True


def _halved(answer: Answer) -> Iterator[tuple[bytes, bool]]:
    if isinstance(answer.body, Iterator):
        body = b"".join(answer.body)
        yield _stream_head(answer) + _chunk(body[: len(body) // 2]), False
    else:
        head, body = _head_and_body(answer)
        yield (head + body)[: -len(body) // 2], False


def _head_and_body(answer: Answer) -> tuple[bytes, bytes]:
    body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
    return _head(answer, {"Content-Type": "application/json", "Content-Length": str(len(body))}), body


def _stream_head(answer: Answer) -> bytes:
    return _head(answer, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})


def _head(answer: Answer, usual: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**usual, **answer.headers}.items())
    return f"HTTP/1.1 {answer.status} As asked\r\n{lines}\r\n".encode()


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


class _Caller:
    """The client of a request, and whether it is still connected."""

    def __init__(self, connection: socket.socket, left: threading.Event) -> None:
        self.has_all = False
        self.is_served = False
        self._connection = connection
        self._left = left
        self._gone = threading.Event()

    def wait(self, seconds: float) -> None:
        if self._gone.wait(seconds):
            raise ConnectionResetError

    def leave(self) -> None:
        self._gone.set()
        if not self.has_all:
            self._left.set()

    def watch(self) -> None:
        """Detect a hang-up while nothing is written."""
        try:
            while not select.select([self._connection], [], [], 0.01)[0]:
                if self.is_served:
                    return
            # Bytes would be the next request.
            gone = not self._connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            gone = True
        if gone and not self.is_served:
            self.leave()


@contextmanager
def _watched(connection: socket.socket, left: threading.Event, slow: bool) -> Iterator[_Caller]:
    caller = _Caller(connection, left)
    if slow:
        threading.Thread(target=caller.watch, daemon=True).start()
    try:
        yield caller
    finally:
        caller.is_served = True
