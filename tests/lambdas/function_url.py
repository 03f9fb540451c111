"""A Function URL on loopback: HTTP before execution environments with one request each.

Written from "Invoking Lambda function URLs" (payload format 2.0) and "Response streaming" in the developer guide.
"""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any

from fakes.local_server import LocalServer
from lambdas.environments import Environment, Failed
from lambdas.runtime_api import ERROR_TYPE, Invocation

_DOMAIN = "abc123.lambda-url.eu-central-1.on.aws"


class Throttled(Exception):
    """Every environment is busy, and there may be no more."""


class FunctionUrl(LocalServer):
    """The address, for the time of a `with`.

    Attributes:
        url: where it listens.
        environments: every process that was started, the killed ones too.
    """

    def __init__(self, start: Callable[[], Environment], *, most: int = 1, seconds: float = 60.0) -> None:
        """Take how an environment is started, how many there may be at once, and the time-out of the function."""
        self.environments: list[Environment] = []
        self._start = start
        self._most = most
        self._seconds = seconds
        self._busy: set[int] = set()
        self._lock = threading.Lock()
        self._processes = ExitStack()
        super().__init__(_handler(self))

    def answer(self, event: dict[str, Any]) -> Iterator[tuple[Invocation, bytes]]:
        """Yield the pieces of the answer to an event, in one environment that is busy for so long.

        Raises:
            Throttled: there is no free environment.
            Failed: the function failed.
        """
        environment = self._take()
        try:
            invocation = environment.api.invoke(json.dumps(event).encode(), self._seconds)
            for piece in environment.pieces(invocation):
                yield invocation, piece
        finally:
            with self._lock:
                self._busy.discard(id(environment))

    def _take(self) -> Environment:
        with self._lock:
            alive = [e for e in self.environments if e.process.poll() is None]
            free = next((e for e in alive if id(e) not in self._busy), None)
            if free is None:
                if len(alive) >= self._most:
                    raise Throttled
                free = self._processes.enter_context(self._start())
                self.environments.append(free)
            self._busy.add(id(free))
            return free

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        self._processes.close()


def event_of(method: str, path: str, headers: dict[str, str], body: bytes, client: str = "127.0.0.1") -> dict[str, Any]:
    """Return the event of a request."""
    raw_path, _, query = path.partition("?")
    cookies = headers.pop("cookie", "")
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": raw_path,
        "rawQueryString": query,
        "headers": {**headers, "host": _DOMAIN, "x-forwarded-for": client, "x-forwarded-proto": "https"},
        **({"cookies": cookies.split("; ")} if cookies else {}),
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "abc123",
            "domainName": _DOMAIN,
            "http": {"method": method, "path": raw_path, "protocol": "HTTP/1.1", "sourceIp": client},
            "requestId": "e1506fd5-9e7b-434f-bd42-4f8fa224b599",
            "stage": "$default",
        },
        "body": body.decode(),
        "isBase64Encoded": False,
    }


def _handler(function: FunctionUrl) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            self._begun = self._left = False
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                self._forward(function.answer(event_of(self.command, self.path, headers, body)))
            except Throttled:
                self._say(429, {"content-type": "application/json"}, b'{"Reason":"ConcurrentInvocationLimitExceeded"}')
            except Failed:
                # Of an answer that has begun nothing is left to change: it ends without its end.
                self.close_connection = True
                if not self._begun:
                    self._say(502, {"content-type": "application/json"}, b'{"Message":"Internal Server Error"}')

        do_GET = do_POST  # noqa: N815 the library names it

        def _forward(self, pieces: Iterator[tuple[Invocation, bytes]]) -> None:
            held, invocation = b"", None
            for invocation, piece in pieces:
                held += piece
                if not self._begun and invocation.is_streamed and b"\0" * 8 in held:
                    head, _, held = held.partition(b"\0" * 8)
                    self._begin(json.loads(head))
                if self._begun:
                    self._chunk(held)
                    held = b""
            if not self._begun:
                answer = json.loads(held)
                body = answer.get("body", "")
                self._say(
                    answer["statusCode"],
                    answer.get("headers", {}),
                    b64decode(body) if answer.get("isBase64Encoded") else body.encode(),
                )
            elif invocation and ERROR_TYPE in invocation.trailers:
                raise Failed(invocation.trailers[ERROR_TYPE])
            else:
                self._write(b"0\r\n\r\n")

        def _begin(self, head: dict[str, Any]) -> None:
            self._begun = True
            self.send_response(head["statusCode"])
            for name, value in head["headers"].items():
                self.send_header(name, value)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()

        def _chunk(self, data: bytes) -> None:
            if data:
                self._write(b"%x\r\n%b\r\n" % (len(data), data))

        def _write(self, data: bytes) -> None:
            # Lambda lets a function run to its end when the client is gone, and tells it nothing.
            if not self._left:
                with suppress(OSError):
                    self.wfile.write(data)
                    return
                self._left = self.close_connection = True

        def _say(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self._write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing: the environments' logs tell it."""

    return Handler
