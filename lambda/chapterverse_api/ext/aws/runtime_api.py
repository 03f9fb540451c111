"""Client of Lambda's Runtime API: takes invocations and sends responses.

Source: "Using the Lambda runtime API" and "Building a custom runtime" in the AWS Lambda developer guide.
"""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPMessage
from typing import Any

from chapterverse_api import log

_ROOT = "/2018-06-01/runtime"
_ERROR_TYPE, _ERROR_BODY = "Lambda-Runtime-Function-Error-Type", "Lambda-Runtime-Function-Error-Body"
_STREAMING = {
    "Lambda-Runtime-Function-Response-Mode": "streaming",
    "Content-Type": "application/vnd.awslambda.http-integration-response",
    "Transfer-Encoding": "chunked",
    "Trailer": f"{_ERROR_TYPE}, {_ERROR_BODY}",
}
#: Lambda's longest time-out.
_MAX_RUN_SECONDS = 900
#: The difference between Lambda's clock and ours that is tolerated.
_MAX_SKEW_SECONDS = 60


class RuntimeFault(Exception):
    """The Runtime API can't be reached, or rejected a request."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One event, and the parts of Lambda's context object that an application may use.

    Attributes:
        deadline: the end of the invocation, in seconds since the epoch.
        invocation_id: an id that newer hosts send and expect back.
    """

    aws_request_id: str
    body: bytes
    deadline: float
    trace_id: str | None = None
    invoked_function_arn: str | None = None
    invocation_id: str | None = None

    @property
    def seconds_left(self) -> float:
        """Seconds until the process may be killed."""
        return max(0.0, self.deadline - time.time())

    @property
    def echo(self) -> dict[str, str]:
        """The headers of an answer that newer hosts expect."""
        return {"Lambda-Runtime-Invocation-Id": self.invocation_id} if self.invocation_id else {}

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds_left * 1000)

    def path(self, end: str) -> str:
        return f"invocation/{self.aws_request_id}/{end}"


class RuntimeApi:
    """One connection, for one request at a time. Every method raises `RuntimeFault`."""

    def __init__(self, address: str) -> None:
        """Take HOST:PORT from `AWS_LAMBDA_RUNTIME_API`, without connecting."""
        # HTTPConnection sets TCP_NODELAY, without which a chunk waits for the acknowledgment of the previous one.
        self._http = HTTPConnection(address)
        self._warned = False

    def next(self) -> Invocation:
        """Wait for the next invocation."""
        headers, body = self._send("GET", "invocation/next")
        request_id = headers["Lambda-Runtime-Aws-Request-Id"]
        if not request_id:
            raise RuntimeFault("The Runtime API sent an invocation without an id.")
        return Invocation(
            request_id,
            body,
            self._deadline(headers["Lambda-Runtime-Deadline-Ms"]),
            headers["Lambda-Runtime-Trace-Id"],
            headers["Lambda-Runtime-Invoked-Function-Arn"],
            headers["Lambda-Runtime-Invocation-Id"],
        )

    def answer(self, invocation: Invocation, value: Any) -> None:
        """Answer with one JSON document."""
        headers = {"Content-Type": "application/json", **invocation.echo}
        self._send("POST", invocation.path("response"), json.dumps(value).encode(), headers)

    def fail(self, kind: str, message: str, invocation: Invocation | None = None) -> None:
        """Report that an invocation failed, or without one, that the function can't start."""
        path = "init/error" if invocation is None else invocation.path("error")
        headers = {} if invocation is None else invocation.echo
        body = json.dumps(_describe(kind, message)).encode()
        self._send("POST", path, body, {"Content-Type": "application/json", _ERROR_TYPE: kind, **headers})

    def open_stream(self, invocation: Invocation) -> None:
        """Start a chunked answer; no other request is possible until it is closed."""
        with self._connected():
            self._http.putrequest("POST", f"{_ROOT}/{invocation.path('response')}")
            for name, value in (_STREAMING | invocation.echo).items():
                self._http.putheader(name, value)
            self._http.endheaders()

    def send(self, data: bytes, seconds: float) -> None:
        """Send a chunk, waiting at most `seconds` for a slow reader."""
        with self._connected():
            self._http.sock.settimeout(max(seconds, 0.001))
            self._http.send(b"%x\r\n%b\r\n" % (len(data), data))

    def close_stream(self, kind: str = "", message: str = "") -> None:
        """End the answer; a `kind` marks it as failed."""
        trailers = ""
        if kind:
            body = b64encode(json.dumps(_describe(kind, message)).encode()).decode()
            trailers = f"{_ERROR_TYPE}: {kind}\r\n{_ERROR_BODY}: {body}\r\n"
        with self._connected():
            self._http.send(f"0\r\n{trailers}\r\n".encode())
            self._http.sock.settimeout(None)
            self._read_reply()

    def _deadline(self, milliseconds: str | None) -> float:
        now = time.time()
        try:
            deadline_ms = int(milliseconds or "")
        except ValueError:
            deadline_ms = 0
        # Compare integers, because one of hundreds of digits can't be a float. A deadline in the past, or later than
        # any time-out, comes from another clock and can't be met.
        if now * 1000 < deadline_ms <= (now + _MAX_RUN_SECONDS + _MAX_SKEW_SECONDS) * 1000:
            return deadline_ms / 1000
        if not self._warned:
            self._warned = True
            message = "The Runtime API sent an invocation without a deadline that can be: 15 minutes are taken for it."
            log.event("error", code="runtime_api", message=message)
        return now + _MAX_RUN_SECONDS

    def _send(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[HTTPMessage, bytes]:
        with self._connected():
            self._http.request(method, f"{_ROOT}/{path}", body, headers or {})
            return self._read_reply()

    def _read_reply(self) -> tuple[HTTPMessage, bytes]:
        reply = self._http.getresponse()
        body = reply.read()
        if reply.status not in (200, 202):
            raise RuntimeFault(f"The Runtime API answered {reply.status}.")
        return reply.headers, body

    @contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            yield
        except (OSError, HTTPException) as error:
            # The next request needs a new connection, or it would read the rest of this reply.
            self._http.close()
            raise RuntimeFault(f"The connection to the Runtime API broke ({type(error).__name__}).") from error


def _describe(kind: str, message: str) -> dict[str, Any]:
    return {"errorMessage": message, "errorType": kind, "stackTrace": []}
