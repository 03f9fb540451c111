"""Bounds the connections of `chapterverse serve`: their number, and how long each client may keep us waiting.

uvicorn bounds only the time between two requests. A client that sends a byte now and then, or none, would keep its
connection for ever, and enough of them would use up all file descriptors.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from math import inf
from threading import Lock
from typing import Any, Literal

import h11
from starlette.responses import JSONResponse
from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

from chapterverse_api import log
from chapterverse_api.rejections import Rejection, head_too_large
from chapterverse_api.request_limits import MAX_HEAD_BYTES

#: The client's next step: send a request's head, send its body, start another request, or read. Empty while the client
#: waits for the service.
Step = Literal["head", "body", "idle", "read", ""]

#: Most concurrent connections, if the process may open as many files. Answers run in fewer threads
#: (`http.guard`); further clients wait, connected.
_MAX_CONNECTIONS = 512
#: Other open files of the process: its own, those of the index and of databases.
_RESERVED_FILES = 64
#: Least number of connections; with fewer files the index could not be opened either.
_MIN_CONNECTIONS = 8
#: Connections that asyncio accepts at once, before `Connection` sees the first.
_ACCEPT_BACKLOG = 16
#: Seconds in which `ThrottledErrors` writes an error once.
_THROTTLE_SECONDS = 10.0
#: Bytes that are parsed at once.
_PARSED_BYTES = 16 * 1024
_FULL = (
    "There are {} connections, the most that this process takes, so the client that had kept it waiting longest was "
    "disconnected. Clients that connect and say nothing do that; more readers need a higher `ulimit -n`."
)
#: The headers that the application adds to all responses, too.
_HEADERS = {"connection": "close", "cache-control": "no-store", "x-content-type-options": "nosniff"}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits for clients; times in seconds.

    Attributes:
        connections: most concurrent connections of all clients.
        head: from the connection, or the first byte after an answer, to the end of a request's headers.
        body: from there to the end of its body.
        idle: from an answer to the first byte of the next request.
        read: for which the client may read nothing of an answer.
    """

    connections: int = _MAX_CONNECTIONS
    head: float = 10.0
    body: float = 15.0
    idle: float = 5.0
    read: float = 30.0

    @classmethod
    def of_process(cls) -> Bounds:
        """Return bounds for the files that this process may open: two a connection, as an answer may need one."""
        return cls(connections=int(max(_MIN_CONNECTIONS, min(_MAX_CONNECTIONS, (_max_files() - _RESERVED_FILES) // 2))))


def _max_files() -> float:
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ImportError:
        # On Windows a connection is no file.
        return inf
    limit = getrlimit(RLIMIT_NOFILE)[0]
    return inf if limit == RLIM_INFINITY else limit


class ThrottledErrors:
    """Logs errors that a client can cause at will: each once in ten seconds, with the number of times.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._written: dict[tuple[log.FieldValue, ...], tuple[float, int]] = {}

    def log(self, code: str, message: str | None = None, error: BaseException | None = None) -> None:
        """Write an `error` event, or only count it if the same one was just written."""
        fields: dict[str, Any] = {"code": code, **(log.error_origin(error) if error else {}), "message": message}
        key, now = tuple(fields.values()), self._clock()
        with self._lock:
            last, missed = self._written.get(key, (-_THROTTLE_SECONDS, 0))
            is_throttled = now - last < _THROTTLE_SECONDS
            self._written[key] = (last, missed + 1) if is_throttled else (now, 0)
        if not is_throttled:
            log.event("error", **fields, times=missed + 1)


class ServerConfig(Config):
    """uvicorn's configuration, with the further settings of a connection."""

    def __init__(self, app: ASGIApp, bounds: Bounds) -> None:
        super().__init__(
            app,
            # The bounds work with this event loop and protocol only.
            loop="asyncio",
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            backlog=_ACCEPT_BACKLOG,
            timeout_keep_alive=bounds.idle,  # type: ignore[arg-type] # a number of seconds, whole or not
            timeout_graceful_shutdown=2,
        )
        self.bounds = bounds
        self.throttled_errors = ThrottledErrors()


class _RequestParser(h11.Connection):
    """A connection's parser, which gives h11 a next piece only if that needs one, so the bound holds for each event.

    It holds for a request's line and headers together, as sent, and for those behind a chunked body. h11 bounds only
    what is incomplete: headers that came in one piece could be as large as the piece.

    Attributes:
        refusal_status: the status for a request that could not be read.
    """

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)
        self.refusal_status = 400
        self._unread = bytearray()

    @property
    def trailing_data(self) -> tuple[bytes, bool]:
        parsing, closed = super().trailing_data
        return parsing + self._unread, closed

    def receive_data(self, data: bytes) -> None:
        self._unread += data

    def next_event(self) -> Any:
        try:
            while True:
                event = self._parse()
                if event is not h11.NEED_DATA or not self._unread:
                    return event
                super().receive_data(bytes(self._unread[:_PARSED_BYTES]))
                del self._unread[:_PARSED_BYTES]
        except h11.RemoteProtocolError as error:
            self.refusal_status = error.error_status_hint
            raise

    def _parse(self) -> Any:
        before = self._parsing_bytes()
        event = super().next_event()
        if isinstance(event, h11.Request | h11.EndOfMessage) and before - self._parsing_bytes() > MAX_HEAD_BYTES:
            raise h11.RemoteProtocolError("Headers too large", error_status_hint=431)
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                # RFC 9112, section 6.3: a server may reject it, because a proxy before us may believe the other length,
                # and must close the connection.
                raise h11.RemoteProtocolError("Content-Length beside Transfer-Encoding")
        return event

    def _parsing_bytes(self) -> int:
        return len(super().trailing_data[0])


class Connection(H11Protocol):
    """A uvicorn connection that ends if its client keeps us waiting for too long.

    If there are too many, the one whose client has been silent longest is closed. So readers, who send requests at
    once, are answered while thousands of clients connect and stay silent.
    """

    def __init__(self, config: ServerConfig, *arguments: Any, **options: Any) -> None:
        super().__init__(config, *arguments, **options)
        self.conn: _RequestParser = _RequestParser()
        self._bounds: Bounds = config.bounds
        self._throttled_errors: ThrottledErrors = config.throttled_errors
        self._step: Step = ""
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_step("head")
        if len(self.connections) > self._bounds.connections:
            self._throttled_errors.log("connections_exhausted", _FULL.format(self._bounds.connections))
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_step("")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._step == "idle":
            # Timed from the first byte, so that further bytes win no time.
            self._set_step("head")
        super().data_received(data)
        self._update_step()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._update_step()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._update_step()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._update_step()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._update_step()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 uvicorn has its own words
        too_large = self.conn.refusal_status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        self._reject(head_too_large() if too_large else Rejection(400, "malformed", "The request is not valid HTTP."))

    def _update_step(self) -> None:
        """Find the client's next step; its time starts when the step changes."""
        if self.transport.is_closing() or self.flow.write_paused:
            self._set_step("read")
        elif self.conn.their_state is h11.SEND_BODY:
            self._set_step("body")
        elif self.conn.their_state is not h11.IDLE:
            self._set_step("")
        elif self._step != "head":
            self._set_step("head" if self.conn.trailing_data[0] else "idle")

    def _set_step(self, step: Step) -> None:
        if step == self._step:
            return
        if self._timer:
            self._timer.cancel()
        self._step, self._since, self._timer = step, self.loop.time(), None
        if step:
            self._timer = self.loop.call_later(getattr(self._bounds, step), self._give_up)

    def _give_up(self) -> None:
        if self._step == "read":
            # Unsent data would keep a closed connection open.
            self.transport.abort()
        elif self._is_half_sent():
            self._reject(Rejection(408, "too_slow", "The request took too long to arrive."))
        else:
            self.transport.close()
            self._update_step()

    def _is_half_sent(self) -> bool:
        """Whether a part of a request arrived and nothing of its answer was sent."""
        if self._step == "body":
            return not self.cycle.response_started
        return self._step == "head" and bool(self.conn.trailing_data[0])

    def _make_room(self) -> None:
        candidates = [c for c in self.connections if isinstance(c, Connection) and c._step and c is not self]
        if candidates:
            slowest = min(candidates, key=lambda connection: connection._since)
            self.connections.discard(slowest)
            slowest.transport.abort()
        else:
            busy = "Everybody is being answered at the moment: try again soon."
            self._reject(Rejection(503, "busy", busy, retryable=True, retry_after=1))

    def _reject(self, rejection: Rejection) -> None:
        """Send a rejection and close, because the start of a next request can't be found."""
        response = JSONResponse(rejection.document(), rejection.status, {**rejection.headers, **_HEADERS})
        lines = [f"HTTP/1.1 {rejection.status} {HTTPStatus(rejection.status).phrase}".encode()]
        lines += [b"%b: %b" % header for header in response.raw_headers]
        self.transport.write(b"\r\n".join([*lines, b"", response.body]))
        self.transport.close()
        self._update_step()
