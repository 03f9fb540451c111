"""Connections of clients to `chapterverse serve`: how many there may be, and how long each may keep us waiting.

uvicorn bounds the time between two requests and nothing else. A client that sends a byte now and then, or none, would
keep its connection for ever, and enough of them leave no descriptor for anybody else.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from math import inf
from typing import Any, Literal

import h11
from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from chapterverse_api.observability.log import Complaints
from chapterverse_api.rejections import Rejection

#: What a client has to do next: send a request's line and headers, send its body, ask again, or read. Empty while the
#: client waits for us.
Awaited = Literal["head", "body", "idle", "read", ""]

#: Connections at the same time, where the process may open as many files. An answer takes one of fewer threads
#: (`guard.threads`); whoever has none waits for it, connected.
CONNECTIONS = 512
#: Files that the process has open besides: its own, those of the index and of databases.
_OWN_FILES = 64
#: Connections that are always taken; with so few files the index could not be opened either.
_LEAST = 8
#: asyncio takes so many connections in one go before we see the first of them.
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Bounds:
    """What clients may hold; times in seconds.

    Attributes:
        connections: how many all of them may have at the same time.
        head: from the connection, or from the first byte after an answer, to the end of a request's headers.
        body: from there to the end of its body.
        idle: from an answer to the first byte of the next request.
        read: for which a client may read nothing of an answer.
    """

    connections: int = CONNECTIONS
    head: float = 10.0
    body: float = 15.0
    idle: float = 5.0
    read: float = 30.0

    @classmethod
    def of_process(cls) -> Bounds:
        """Return bounds for as many files as this process may open: an answer may take one besides its connection."""
        return cls(connections=int(max(_LEAST, min(CONNECTIONS, (_most_files() - _OWN_FILES) // 2))))


def _most_files() -> float:
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ImportError:
        # On Windows, where a connection is no file.
        return inf
    limit = getrlimit(RLIMIT_NOFILE)[0]
    return inf if limit == RLIM_INFINITY else limit


class ServerConfig(Config):
    """How uvicorn is set up, and what a connection needs besides."""

    def __init__(self, app: ASGIApp, bounds: Bounds) -> None:
        super().__init__(
            app,
            # Others accept and read in ways of their own, which nothing here bounds.
            loop="asyncio",
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            backlog=_AT_ONCE,
            timeout_keep_alive=bounds.idle,  # type: ignore[arg-type] # a number of seconds, whole or not
            timeout_graceful_shutdown=2,
        )
        self.bounds = bounds
        self.complaints = Complaints()


class Connection(H11Protocol):
    """One connection of uvicorn's, which ends where its client keeps us waiting for too long.

    Where there is one too many, the client that has kept us waiting longest makes room: a reader asks at once, and is
    answered while thousands of others connect and say nothing.
    """

    def __init__(
        self,
        config: ServerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = _Strict(h11.SERVER)
        self._bounds: Bounds = config.bounds
        self._complaints: Complaints = config.complaints
        self._awaited: Awaited = ""
        self._since = 0.0
        self._overdue: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await("head")
        if len(self.connections) > self._bounds.connections:
            self._complaints("connections_exhausted", _FULL.format(self._bounds.connections))
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._await("")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._awaited == "idle":
            # Counted from the first byte, so that more of them win no time.
            self._await("head")
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._look()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._look()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 uvicorn has its own words
        self._refuse(Rejection(400, "malformed", "The request is not valid HTTP."))

    def _look(self) -> None:
        """See what the client has to do now; the time for that begins when it changes."""
        if self.transport.is_closing() or self.flow.write_paused:
            self._await("read")
        elif self.conn.their_state is h11.SEND_BODY:
            self._await("body")
        elif self.conn.their_state is not h11.IDLE:
            self._await("")
        elif self._awaited != "head":
            self._await("head" if self.conn.trailing_data[0] else "idle")

    def _await(self, awaited: Awaited) -> None:
        if awaited == self._awaited:
            return
        if self._overdue:
            self._overdue.cancel()
        self._awaited, self._since, self._overdue = awaited, self.loop.time(), None
        if awaited:
            self._overdue = self.loop.call_later(getattr(self._bounds, awaited), self._give_up)

    def _give_up(self) -> None:
        begun = bool(self.conn.trailing_data[0]) if self._awaited == "head" else not self.cycle.response_started
        if self._awaited == "read":
            # What is left to send would keep a closed connection open.
            self.transport.abort()
        elif self._awaited in ("head", "body") and begun:
            self._refuse(Rejection(408, "too_slow", "The request took too long to arrive."))
        else:
            self.transport.close()
            self._look()

    def _make_room(self) -> None:
        others = [c for c in self.connections if isinstance(c, Connection) and c._awaited and c is not self]
        if others:
            slowest = min(others, key=lambda other: other._since)
            self.connections.discard(slowest)
            slowest.transport.abort()
        else:
            busy = "Everybody is being answered at the moment: try again soon."
            self._refuse(Rejection(503, "busy", busy, retryable=True, retry_after=1))

    def _refuse(self, refusal: Rejection) -> None:
        """Say why in our own shape, and close: nobody can tell where another request would begin."""
        response = refusal.response(_HEADERS)
        lines = [f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}".encode()]
        lines += [b"%b: %b" % header for header in response.raw_headers]
        self.transport.write(b"\r\n".join([*lines, b"", response.body]))
        self.transport.close()
        self._look()


class _Strict(h11.Connection):
    """Refuses a request that names two lengths: what stands between us and the client may believe the other one."""

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                # RFC 9112, section 6.3: a server may refuse it, and has to close the connection.
                raise h11.RemoteProtocolError("Content-Length beside Transfer-Encoding")
        return event


_FULL = (
    "There are {} connections, the most that this process takes, so the client that had kept it waiting longest was "
    "disconnected. Clients that connect and say nothing do that; more readers need a higher `ulimit -n`."
)
#: What the application says of all its answers, too.
_HEADERS = {"connection": "close", "cache-control": "no-store", "x-content-type-options": "nosniff"}
