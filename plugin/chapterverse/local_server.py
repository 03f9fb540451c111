"""Runs the service on this machine, for `chapterverse serve`, and beside the preview of a generator.

The service is another package, which this one loads by its name and never imports.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from chapterverse.errors import ChapterVerseError, ConfigurationError
from chapterverse.extensions import load, load_part
from chapterverse.settings import Settings

_STARTUP_SECONDS = 10.0
_BACKLOG = 128
#: Addresses that mean every address of a machine, and the one that its own browser uses.
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one.

    Raises:
        ConfigurationError: the port is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, or asyncio leaves Nagle's algorithm on and each event waits 40 ms for the one before.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        # Always this machine (RFC 6761), even without an entry in /etc/hosts, as on a bare Debian.
        sock.bind(("127.0.0.1" if host == "localhost" else host, port))
        # At once, because until then another process may take the same port.
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        reason = error.strerror or str(error)
        raise ConfigurationError(
            f"Port {port} on {host} can't be used ({reason}): choose another with --port or --host."
        ) from None
    return sock


def socket_origin(sock: socket.socket) -> str:
    """Return the socket's origin for a browser on this machine."""
    host, port = sock.getsockname()[:2]
    name = _EVERYWHERE.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}"


def is_everywhere(sock: socket.socket) -> bool:
    """Return whether the socket listens on all addresses of this machine."""
    return sock.getsockname()[0] in _EVERYWHERE


def run(app: Any, sock: socket.socket) -> None:
    """Serve until interrupted, with the log on standard error."""
    load_part("server")(app, log_to=sys.stderr.fileno()).run(sockets=[sock])


def preview_origins(url: str) -> str:
    """Return the origins from which the chat of a preview at `url` asks, as `Settings.allowed_origins` takes them."""
    place = urlsplit(url)
    names = dict.fromkeys([place.netloc, f"127.0.0.1:{place.port or 80}", f"localhost:{place.port or 80}"])
    return ",".join(f"{place.scheme}://{name}" for name in names)


class Background:
    """Runs the service in a thread.

    Raises:
        ConfigurationError: it doesn't start.
    """

    def __init__(self, app: Any, sock: socket.socket) -> None:
        self.address = socket_origin(sock)
        self._server = load_part("server")(app)
        # In a thread, uvicorn leaves Ctrl-C to the main program.
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [sock]}, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _STARTUP_SECONDS
        while not self._server.started and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        if not self._server.started:
            self.stop()
            raise ConfigurationError(f"The service at {self.address} doesn't start: see the messages above.")

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=5)


class Preview:
    """Runs the service beside `mkdocs serve`, and a worker that indexes each rebuild."""

    def __init__(self, service: Background) -> None:
        self.address = service.address
        self._service = service
        self._worker = ThreadPoolExecutor(max_workers=1)
        self._next_run: Future[None] | None = None

    @classmethod
    def start(cls, settings: Settings, site: str, tell: Callable[[str], object]) -> Preview | None:
        """Start it for the site previewed at `site` (host:port); None if it can't run, with a reason to `tell`."""
        origins = preview_origins(f"http://{site}/")
        try:
            app = load("chapterverse_api.app:create_app")(settings=settings.override(allowed_origins=origins))
            preview = cls(Background(app, bind("127.0.0.1", 0)))
        except ChapterVerseError as error:
            tell(f"The preview has no chat: {error}")
            return None
        tell(f"The chat of this preview answers at {preview.address}")
        return preview

    def submit(self, index: Callable[[], None]) -> None:
        """Index in the background; only the newest waiting rebuild runs."""
        if self._next_run is not None:
            self._next_run.cancel()
        self._next_run = self._worker.submit(index)

    def stop(self) -> None:
        self._worker.shutdown(cancel_futures=True)
        self._service.stop()
