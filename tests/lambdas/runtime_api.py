"""Lambda's Runtime API on loopback for one process: it sends invocations and receives responses.

Written from "Using the Lambda runtime API" and "Building a custom runtime" in the AWS Lambda developer guide.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from queue import Queue
from types import TracebackType

from fakes.local_server import LocalServer

ROOT = "/2018-06-01/runtime"
#: Largest answer in bytes where it comes whole.
BUFFERED_LIMIT = 6 * 1024 * 1024
MODE = "lambda-runtime-function-response-mode"
ERROR_TYPE = "lambda-runtime-function-error-type"
ERROR_BODY = "lambda-runtime-function-error-body"

_ids = itertools.count(1)


@dataclass
class Invocation:
    """One event on its way to the process, and what came back.

    Attributes:
        seconds: how long the process may take.
        sent: headers of the answer; there once its first piece is.
        pieces: of the answer's body as they come, None after the last.
        trailers: behind a body that came in chunks.
        error: type and body of what the process said instead of an answer.
    """

    event: bytes
    seconds: float = 30.0
    headers: Mapping[str, str] = field(default_factory=dict)
    id: str = field(default_factory=lambda: f"request-{next(_ids)}")
    sent: dict[str, str] = field(default_factory=dict)
    pieces: Queue[bytes | None] = field(default_factory=Queue)
    trailers: dict[str, str] = field(default_factory=dict)
    error: tuple[str, bytes] | None = None

    @property
    def is_streamed(self) -> bool:
        return self.sent.get(MODE) == "streaming"

    def body(self, seconds: float = 60.0) -> bytes:
        """Wait for the end of the answer and return its rest."""
        return b"".join(iter(lambda: self.pieces.get(timeout=seconds), None))


class RuntimeApi(LocalServer):
    """The server, for the time of a `with`.

    Attributes:
        address: what goes into AWS_LAMBDA_RUNTIME_API.
        asked: set when the process has asked for its first invocation, which ends its start.
        failed: error type and body that `init/error` was told, by its path.
        history: method and path of every request.
        faults: what the next requests for an invocation meet instead: a status, or bytes before the line is cut.
        refusals: status with which the next answers are refused.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.failed: dict[str, tuple[str, bytes]] = {}
        self.history: list[str] = []
        self.faults: deque[int | bytes] = deque()
        self.refusals: deque[int] = deque()
        self._waiting: Queue[Invocation | None] = Queue()
        self._out: dict[str, Invocation] = {}
        super().__init__(_handler(self))
        self.address = self.url.removeprefix("http://")

    def invoke(self, event: bytes, seconds: float = 30.0, headers: Mapping[str, str] | None = None) -> Invocation:
        """Queue an event and return at once."""
        invocation = Invocation(event, seconds, headers or {})
        self._waiting.put(invocation)
        return invocation

    def take(self) -> Invocation | None:
        """Wait for the next invocation; None when the server closes."""
        invocation = self._waiting.get()
        if invocation:
            self._out[invocation.id] = invocation
        return invocation

    def give_back(self, request_id: str) -> Invocation | None:
        """Return the invocation that is answered now; it can't be answered twice."""
        return self._out.pop(request_id, None)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._waiting.put(None)
        super().__exit__(kind, error, tb)


def _handler(api: RuntimeApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle(self) -> None:
            try:
                super().handle()
            except (ConnectionError, ValueError):
                # The process was killed, or cut its answer off.
                self.close_connection = True

        def do_GET(self) -> None:
            path = self.path.removeprefix(ROOT)
            api.history.append(f"GET {path}")
            if path == "/invocation/next":
                self._next()
            else:
                self._say(404)

        def do_POST(self) -> None:
            path = self.path.removeprefix(ROOT)
            api.history.append(f"POST {path}")
            if path == "/init/error":
                api.failed[path] = (self.headers.get(ERROR_TYPE, ""), b"".join(self._pieces({})))
                self._say(202)
                return
            _, _, request_id, end = path.split("/")
            self._answered(api.give_back(request_id), end)

        def _next(self) -> None:
            fault = api.faults.popleft() if api.faults else None
            if isinstance(fault, int):
                self._say(fault)
            elif fault is not None:
                self.wfile.write(fault)
                self.close_connection = True
            else:
                api.asked.set()
                self._hand_out(api.take())

        def _hand_out(self, invocation: Invocation | None) -> None:
            if invocation is None:
                self.close_connection = True
                return
            deadline = int((time.time() + invocation.seconds) * 1000)
            known = {"Lambda-Runtime-Aws-Request-Id": invocation.id, "Lambda-Runtime-Deadline-Ms": str(deadline)}
            self._say(200, invocation.event, {**known, "Content-Type": "application/json", **invocation.headers})

        def _answered(self, invocation: Invocation | None, end: str) -> None:
            if invocation is None or api.refusals:
                b"".join(self._pieces({}))
                self._say(api.refusals.popleft() if api.refusals else 410)
                if invocation:
                    invocation.pieces.put(None)
                return
            invocation.sent |= {name.lower(): value for name, value in self.headers.items()}
            if end == "error":
                invocation.error = (self.headers.get(ERROR_TYPE, ""), b"".join(self._pieces({})))
            else:
                self._take(invocation)
            self._say(202)
            invocation.pieces.put(None)

        def _take(self, invocation: Invocation) -> None:
            size = 0
            for piece in self._pieces(invocation.trailers):
                size += len(piece)
                if size > BUFFERED_LIMIT and not invocation.is_streamed:
                    invocation.error = ("Function.ResponseSizeTooLarge", b"")
                invocation.pieces.put(piece)

        def _pieces(self, trailers: dict[str, str]) -> Iterator[bytes]:
            if self.headers.get("Transfer-Encoding") != "chunked":
                yield self.rfile.read(int(self.headers.get("Content-Length", 0)))
                return
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            while line := self.rfile.readline().strip():
                name, _, value = line.decode().partition(":")
                trailers[name.lower()] = value.strip()

        def _say(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing: the history holds it."""

    return Handler
