"""The server of `chapterverse serve` and `mkdocs serve`: uvicorn with bounds on clients and log.

uvicorn and asyncio write a traceback for errors that a client can cause at will. Here each kind becomes one line, at
most every ten seconds.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from queue import Full, Queue
from threading import Thread
from typing import Any

from starlette.types import ASGIApp
from uvicorn import Server

from chapterverse_api import log
from chapterverse_api.ext.server.connections import Bounds, ServerConfig, ThrottledErrors

#: Length of the queue of connections to accept.
_BACKLOG = 128
#: The most lines of the log in the queue; further ones are dropped.
_MAX_QUEUED_LINES = 1000
#: Seconds that an ending process waits for the queue.
_CLOSE_SECONDS = 1.0
_NO_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


def server(app: ASGIApp, *, log_to: int | None = None, bounds: Bounds | None = None) -> Server:
    """Return a server of an application, to be run on listening sockets.

    Args:
        log_to: file descriptor for the log while the server runs; None leaves the log as it is.
        bounds: by default `Bounds.of_process`.
    """
    return _Server(ServerConfig(app, bounds or Bounds.of_process()), log_to)


class _Server(Server):
    def __init__(self, config: ServerConfig, log_to: int | None) -> None:
        super().__init__(config)
        self._stop_loading: Callable[[], None] | None = None
        self._throttled_errors = config.throttled_errors
        self._lines = None if log_to is None else LineWriter(log_to)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._lines:
            log.set_handler(self._lines)
        uvicorn = logging.getLogger("uvicorn.error")
        uvicorn.handlers[:], uvicorn.propagate = [_ErrorHandler(self._throttled_errors)], False
        asyncio.get_running_loop().set_exception_handler(self._report)
        await super().startup(sockets)
        load_models = getattr(getattr(self.config.app, "state", None), "load_models", None)
        self._stop_loading = load_models() if load_models else None
        # asyncio has set a backlog as small as the number it accepts at once.
        for listening in sockets or ():
            listening.listen(_BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._stop_loading:
            self._stop_loading()
        await super().shutdown(sockets)
        if self._lines:
            self._lines.close()

    def _report(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log errors for which asyncio would write a traceback."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _NO_FILES:
            # asyncio tries again a second later.
            self._throttled_errors.log("files_exhausted", "This process may open no more files: raise its `ulimit -n`.")
        else:
            _log_error(self._throttled_errors, error, context["message"])


class LineWriter(logging.Handler):
    """Writes lines in its own thread, so that a full pipe doesn't block the answers. Thread-safe.

    If the queue is full, lines are dropped, and the next line written is preceded by their number.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lines: Queue[str | None] = Queue(_MAX_QUEUED_LINES)
        self._dropped = 0
        self._thread = Thread(target=self._write, name="chapterverse-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.put_nowait(record.getMessage())
        except Full:
            self._dropped += 1

    def close(self) -> None:
        """Wait a moment for the queued lines."""
        super().close()
        with suppress(Full):
            self._lines.put(None, timeout=_CLOSE_SECONDS)
        self._thread.join(_CLOSE_SECONDS)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            dropped, self._dropped = self._dropped, 0
            if dropped:
                head = {"event": "error", "turn_id": None, "thread_id": None, "execution_time": None}
                message = "Lines of the log were dropped, because what reads it is too slow."
                line = f"{log.line(head | {'code': 'log_dropped', 'message': message, 'times': dropped})}\n{line}"
            # Not a file object, because its lock would be held while the pipe is full, and the process could not end.
            data = f"{line}\n".encode()
            with suppress(OSError):
                while data:
                    data = data[os.write(self._descriptor, data) :]


class _ErrorHandler(logging.Handler):
    """Logs uvicorn's errors as events. Its warnings are clients' faults and are dropped."""

    def __init__(self, throttled_errors: ThrottledErrors) -> None:
        super().__init__(logging.ERROR)
        self._throttled_errors = throttled_errors

    def emit(self, record: logging.LogRecord) -> None:
        _log_error(self._throttled_errors, record.exc_info[1] if record.exc_info else None, record.getMessage())


def _log_error(throttled_errors: ThrottledErrors, error: BaseException | None, message: str) -> None:
    if error is None:
        throttled_errors.log("server", message)
    elif isinstance(error, Exception):
        # The message beside an error may quote a reader.
        throttled_errors.log("internal", None, error)
