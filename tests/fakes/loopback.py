"""An HTTP server on loopback that answers as told, misbehaves on demand, and remembers every request.

The fakes of paid APIs are this server with an `answer` each.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """What the real service says to a bad request; `code` is its name for it, where it has names."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class Fault:
    """One misbehavior, played in place of a good reply.

    Attributes:
        status: answered instead of 200, with `headers` and a body that says `said` under the name `code`.
        change: maps the good reply to what is sent; may return bytes that are no JSON.
        cut: stop in the middle of the body and close the connection.
        drip: seconds between single bytes of the reply, headers included.
        hang: seconds of silence before anything is sent.
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
    """A failure that asks for the next try at once, which keeps the tests fast."""
    return Fault(status, {"Retry-After": "0.001", "retry-after-ms": "1"})


class LoopbackServer:
    """The server, for the time of a `with`; `url` is where it listens."""

    def __init__(self) -> None:
        self.history: list[Request] = []
        self.faults: deque[Fault] = deque()
        self.connections = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def play(self, *faults: Fault) -> None:
        """Queue misbehaviors for the next requests, one each."""
        self.faults.extend(faults)

    def answer(self, request: Request) -> Answer:
        """Return the good reply to a request; raise `Refusal`, or pydantic's `ValidationError`, for a bad one."""
        return Answer(200, {"path": request.path, "body": request.body})

    def failure(self, refusal: Refusal) -> Answer:
        """Return a refusal in the service's own form."""
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

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            server.connections += 1

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {k.lower(): v for k, v in self.headers.items()}
            request = Request(self.command, self.path, headers, json.loads(raw) if raw else None, raw)
            server.history.append(request)
            fault = server.faults.popleft() if server.faults else Fault()
            self._send(server.reply(request, fault), fault)

        do_GET = do_POST  # noqa: N815 the library names it

        def _send(self, answer: Answer, fault: Fault) -> None:
            body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **answer.headers}
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            data = f"HTTP/1.1 {answer.status} As asked\r\n{lines}\r\n".encode() + body
            self.close_connection = fault.cut or fault.close
            time.sleep(fault.hang)
            try:
                self._write(data[: -len(body) // 2] if fault.cut else data, fault.drip)
            except OSError:
                # The client gave up first, which is what the slow faults are for.
                self.close_connection = True

        def _write(self, data: bytes, pause: float) -> None:
            for piece in [data[i : i + 1] for i in range(len(data))] if pause else [data]:
                self.wfile.write(piece)
                time.sleep(pause)

        def log_message(self, *args: object) -> None:
            """Say nothing: the history holds it."""

    return Handler
