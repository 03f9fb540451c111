"""Lets another thread end a wait on a socket."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Event, Lock


class RequestAborted(OSError):
    """The caller no longer waits for the answer."""


class Abort:
    """The end of one request from outside. `cut` may be called from any thread, and at any time, even afterwards."""

    def __init__(self) -> None:
        #: Whether the whole request may have reached the server.
        self.is_sent = False
        self._cut = Event()
        self._lock = Lock()
        self._socket: socket.socket | None = None

    @property
    def is_cut(self) -> bool:
        return self._cut.is_set()

    def cut(self) -> None:
        """End the wait for the watched socket, and each later one."""
        self._cut.set()
        with self._lock:
            if self._socket is not None:
                _shut(self._socket)

    def watch(self, sock: socket.socket) -> None:
        """Take the socket that is waited for from now on.

        Raises:
            RequestAborted: `cut` was called before.
        """
        with self._lock:
            self._socket = sock
        self.check()

    def release(self) -> None:
        """Let go of the socket, which may serve another request after this."""
        with self._lock:
            self._socket = None

    def wait(self, seconds: float) -> None:
        """Sleep; raise `RequestAborted` as soon as `cut` is called."""
        self._cut.wait(seconds)
        self.check()

    def check(self) -> None:
        """Raise `RequestAborted` if `cut` was called."""
        if self.is_cut:
            raise RequestAborted


def _shut(sock: socket.socket) -> None:
    # Closing would free the descriptor under the thread that reads from it. The plain socket's method, as that of a
    # TLS socket takes its encryption away from that thread.
    with suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
