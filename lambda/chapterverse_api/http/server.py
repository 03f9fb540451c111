"""The server of `chapterverse serve` and of `mkdocs serve`: uvicorn, whose clients and log are bounded.

uvicorn and asyncio write a traceback for what a client can cause at will. Here the log says each such thing in one
line, and at most every ten seconds.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from typing import Any

from starlette.types import ASGIApp
from uvicorn import Server

from chapterverse_api.http.connections import Bounds, ServerConfig
from chapterverse_api.observability import log
from chapterverse_api.observability.log import Complaints, LineWriter

#: Connections that may wait for us to take them.
_WAITING = 128
_NO_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


def server(app: ASGIApp, *, log_to: int | None = None, bounds: Bounds | None = None) -> Server:
    """Return a server of an application, to be run on sockets that listen.

    Args:
        log_to: file descriptor that gets the log while it runs; None leaves the log where it goes.
        bounds: those that fit this process where they are left out.
    """
    return _Server(ServerConfig(app, bounds or Bounds.of_process()), log_to)


class _Server(Server):
    def __init__(self, config: ServerConfig, log_to: int | None) -> None:
        super().__init__(config)
        self._complaints = config.complaints
        self._lines = None if log_to is None else LineWriter(log_to)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._lines:
            log.write_by(self._lines)
        uvicorn = logging.getLogger("uvicorn.error")
        uvicorn.handlers[:], uvicorn.propagate = [_Translated(self._complaints)], False
        asyncio.get_running_loop().set_exception_handler(self._report)
        await super().startup(sockets)
        # asyncio has told the system how many it takes in one go.
        for listening in sockets or ():
            listening.listen(_WAITING)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self._lines:
            self._lines.close()

    def _report(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what asyncio would write a traceback for."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _NO_FILES:
            # asyncio itself tries again a second later.
            self._complaints("files_exhausted", "This process may open no more files: raise its `ulimit -n`.")
        else:
            _translate(self._complaints, error, context["message"])


class _Translated(logging.Handler):
    """Logs uvicorn's errors as events. What it warns of is a client's fault, and no error of ours."""

    def __init__(self, complaints: Complaints) -> None:
        super().__init__(logging.ERROR)
        self._complaints = complaints

    def emit(self, record: logging.LogRecord) -> None:
        _translate(self._complaints, record.exc_info[1] if record.exc_info else None, record.getMessage())


def _translate(complaints: Complaints, error: BaseException | None, message: str) -> None:
    if error is None:
        complaints("server", message)
    elif isinstance(error, Exception):
        # What is said beside an error may quote a reader.
        complaints("internal", None, error)
