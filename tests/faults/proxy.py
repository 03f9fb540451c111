"""A proxy that misbehaves by a seed, as networks and gateways do between a publisher and a store."""

from __future__ import annotations

import os
import random
import socket
import struct
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

#: Headers that belong to one wire and not to what is sent over it.
_OF_THE_WIRE = {"connection", "content-length", "date", "expect", "keep-alive", "server", "transfer-encoding"}
_SECONDS = 30.0


class Trouble(StrEnum):
    """What may happen to a request."""

    #: The connection is closed before the request was read.
    REFUSED = "refused"
    #: The request is done, and the connection reset in the middle of the answer.
    RESET = "reset"
    #: The request is done, and the answer ends too early, as if that were all.
    TRUNCATED = "truncated"
    #: The request is done, and the answer comes late and in pieces.
    SLOW = "slow"
    #: The request is done twice.
    DUPLICATED = "duplicated"
    #: A gateway answers 429 to this request and to the next few.
    THROTTLED = "throttled"
    #: A gateway answers 500, 502 or 503 to this request and to the next few.
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said, or a gateway in its place."""

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @classmethod
    def of(cls, response: HTTPResponse) -> Answer:
        headers = tuple((k, v) for k, v in response.getheaders() if k.lower() not in _OF_THE_WIRE)
        # The length of what is not sent: an answer to HEAD.
        stated = response.getheader("Content-Length", "0")
        body = response.read()
        return cls(response.status, response.reason, (*headers, ("Content-Length", str(len(body) or stated))), body)


_THROTTLED = Answer(429, "Too Many Requests", (("Retry-After", "0"), ("Content-Length", "0")), b"")


class Proxy:
    """Stands before the HTTP server at `port` for the time of a `with`.

    Args:
        share: of the requests that meet trouble.
        calm: how many requests pass before any does.

    Attributes:
        met: what happened, in order.
    """

    def __init__(self, port: int, trouble: Trouble, seed: int, share: float = 0.3, calm: int = 0) -> None:
        self.met: list[Trouble] = []
        self._server = port
        self._trouble = trouble
        self._share = share
        self._calm = calm
        self._storm = 0
        self._chance = random.Random(f"{trouble} {seed}")
        self._turn = threading.Lock()
        self._http = _Listener(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def next_trouble(self) -> Trouble | None:
        """Return what shall happen to the next request."""
        with self._turn:
            self._calm -= 1
            if self._storm:
                self._storm -= 1
            elif self._calm >= 0 or self._chance.random() >= self._share:
                return None
            elif self._trouble in (Trouble.THROTTLED, Trouble.BROKEN):
                self._storm = self._chance.randrange(4)
            self.met.append(self._trouble)
            return self._trouble

    def forward(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """Let the server do a request; return its answer."""
        connection = HTTPConnection("127.0.0.1", self._server, timeout=_SECONDS)
        try:
            connection.request(method, target, body or None, headers)
            return Answer.of(connection.getresponse())
        finally:
            connection.close()

    def broken(self) -> Answer:
        status, reason = self._chance.choice([(500, "Internal Server Error"), (502, "Bad Gateway"), (503, "Slow Down")])
        return Answer(status, reason, (("Content-Length", "0"),), b"")


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing: a client that goes away in the middle is what this is for."""


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            trouble = proxy.next_trouble()
            if trouble is Trouble.REFUSED:
                return self._reset()
            body = self._body()
            if trouble is Trouble.THROTTLED:
                return self._send(_THROTTLED)
            if trouble is Trouble.BROKEN:
                return self._send(proxy.broken())
            wanted = {k: v for k, v in self.headers.items() if k.lower() not in _OF_THE_WIRE}
            if trouble is Trouble.DUPLICATED:
                proxy.forward(self.command, self.path, wanted, body)
            return self._send(proxy.forward(self.command, self.path, wanted, body), trouble)

        do_PUT = do_POST = do_DELETE = do_HEAD = do_GET  # noqa: N815

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                """Pass over what follows the last piece."""
            return b"".join(pieces)

        def _send(self, answer: Answer, trouble: Trouble | None = None) -> None:
            headers = "".join(f"{k}: {v}\r\n" for k, v in answer.headers)
            data = f"HTTP/1.1 {answer.status} {answer.reason}\r\n{headers}\r\n".encode("latin-1") + answer.body
            half = len(data) - len(answer.body) // 2 - 1
            if trouble in (Trouble.RESET, Trouble.TRUNCATED):
                self.wfile.write(data[:half])
                self._reset() if trouble is Trouble.RESET else self._end()
            elif trouble is Trouble.SLOW:
                for piece in (data[:half], data[half:]):
                    time.sleep(0.02)
                    self.wfile.write(piece)
            else:
                self.wfile.write(data)

        def _reset(self) -> None:
            # Closed at once and without a goodbye: the other end learns of it as a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())
            self._end()

        def _end(self) -> None:
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Say nothing: the proxy remembers what happened."""

    return Handler
