"""Client of Lambda's Runtime API: takes invocations, sends responses.

Source: "Using the Lambda runtime API" and "Building a custom runtime" in the AWS Lambda developer guide.
"""

from __future__ import annotations

import json
import time
from base64 import b64encode
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPMessage
from typing import Any

from chapterverse_api.observability import log

_ROOT = "/2018-06-01/runtime"
_TYPE, _BODY = "Lambda-Runtime-Function-Error-Type", "Lambda-Runtime-Function-Error-Body"
_STREAMING = {
    "Lambda-Runtime-Function-Response-Mode": "streaming",
    "Content-Type": "application/vnd.awslambda.http-integration-response",
    "Transfer-Encoding": "chunked",
    "Trailer": f"{_TYPE}, {_BODY}",
}
#: Seconds: no function may run for longer, and clocks may differ by so much.
_LONGEST, _SKEW = 900, 60


class RuntimeFault(Exception):
    """The Runtime API can't be reached, or did not take what it was sent."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One event, and as much of Lambda's context object as an application may ask for.

    Attributes:
        deadline: seconds since the epoch.
        invocation_id: named by newer hosts, which want it back.
    """

    aws_request_id: str
    body: bytes
    deadline: float
    trace_id: str | None = None
    invoked_function_arn: str | None = None
    invocation_id: str | None = None

    @property
    def left(self) -> float:
        """Seconds until the process may be killed."""
        return max(0.0, self.deadline - time.time())

    def get_remaining_time_in_millis(self) -> int:
        return int(self.left * 1000)


class RuntimeApi:
    """One connection, used for one thing at a time. Every method raises `RuntimeFault`."""

    def __init__(self, address: str) -> None:
        """Take HOST:PORT, as `AWS_LAMBDA_RUNTIME_API` says it; nothing is sent yet."""
        # Sets TCP_NODELAY by itself: without it a chunk waits for the acknowledgment of the one before.
        self._http = HTTPConnection(address)
        self._warned = False

    def next(self) -> Invocation:
        """Return the next invocation, however long it takes to come."""
        headers, body = self._ask("GET", "invocation/next")
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
        headers = {"Content-Type": "application/json", **_echo(invocation)}
        self._ask("POST", _path(invocation, "response"), json.dumps(value).encode(), headers)

    def fail(self, invocation: Invocation, kind: str, message: str) -> None:
        """Say that there is no answer."""
        self._fail(_path(invocation, "error"), kind, message, _echo(invocation))

    def fail_init(self, kind: str, message: str) -> None:
        """Say that the function can't start."""
        self._fail("init/error", kind, message)

    def restore(self) -> None:
        """Wait for a snapshot to be taken and brought back to life."""
        self._ask("GET", "restore/next")
        # The other end of this connection is on the machine where the snapshot was taken.
        self._http.close()

    def fail_restore(self, kind: str, message: str) -> None:
        """Say that the function can't go on after a snapshot."""
        self._fail("restore/error", kind, message)

    def open_stream(self, invocation: Invocation) -> None:
        """Begin an answer that comes in chunks; nothing else may be asked until it is closed."""
        try:
            self._http.putrequest("POST", f"{_ROOT}/{_path(invocation, 'response')}")
            for name, value in (_STREAMING | _echo(invocation)).items():
                self._http.putheader(name, value)
            self._http.endheaders()
        except (OSError, HTTPException) as error:
            raise self._broken(error) from error

    def send(self, data: bytes, seconds: float) -> None:
        """Send a chunk, waiting at most so long for a reader who is slow to take it."""
        try:
            self._http.sock.settimeout(max(seconds, 0.001))
            self._http.send(b"%x\r\n%b\r\n" % (len(data), data))
        except OSError as error:
            raise self._broken(error) from error

    def close_stream(self, kind: str = "", message: str = "") -> None:
        """End the answer, where a `kind` is named as one that broke."""
        trailers = f"{_TYPE}: {kind}\r\n{_BODY}: {_encoded(kind, message)}\r\n" if kind else ""
        try:
            self._http.send(f"0\r\n{trailers}\r\n".encode())
            self._http.sock.settimeout(None)
            self._reply()
        except (OSError, HTTPException) as error:
            raise self._broken(error) from error

    def _deadline(self, milliseconds: str | None) -> float:
        now = time.time()
        try:
            said = int(milliseconds or "")
        except ValueError:
            said = 0
        # As whole numbers: one of a few hundred digits is no float. One that is over before the work begins, or is
        # later than any can be, was told by another clock, and no answer can be made to fit it.
        if now * 1000 < said <= (now + _LONGEST + _SKEW) * 1000:
            return said / 1000
        if not self._warned:
            self._warned = True
            message = "The Runtime API sent an invocation without a deadline that can be: 15 minutes are taken for it."
            log.event("error", turn_id=None, code="runtime_api", message=message)
        return now + _LONGEST

    def _ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[HTTPMessage, bytes]:
        try:
            self._http.request(method, f"{_ROOT}/{path}", body, headers or {})
            return self._reply()
        except (OSError, HTTPException) as error:
            raise self._broken(error) from error

    def _reply(self) -> tuple[HTTPMessage, bytes]:
        reply = self._http.getresponse()
        body = reply.read()
        if reply.status not in (200, 202):
            raise RuntimeFault(f"The Runtime API answered {reply.status}.")
        return reply.headers, body

    def _fail(self, path: str, kind: str, message: str, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(_described(kind, message)).encode()
        self._ask("POST", path, body, {"Content-Type": "application/json", _TYPE: kind, **(headers or {})})

    def _broken(self, error: Exception) -> RuntimeFault:
        # The next request connects anew: what is left of this one would be read as its reply.
        self._http.close()
        return RuntimeFault(f"The connection to the Runtime API broke ({type(error).__name__}).")


def _path(invocation: Invocation, end: str) -> str:
    return f"invocation/{invocation.aws_request_id}/{end}"


def _echo(invocation: Invocation) -> dict[str, str]:
    return {"Lambda-Runtime-Invocation-Id": invocation.invocation_id} if invocation.invocation_id else {}


def _described(kind: str, message: str) -> dict[str, Any]:
    return {"errorMessage": message, "errorType": kind, "stackTrace": []}


def _encoded(kind: str, message: str) -> str:
    return b64encode(json.dumps(_described(kind, message)).encode()).decode()
