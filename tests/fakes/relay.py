"""A relay between a client and a server that records and can be cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Relay:
    """Relays bytes between loopback clients and the server at `port`; records the clients' bytes in `heard`.

    Args:
        cut_at: the connection breaks when a client sends these bytes, which do not arrive.
    """

    def __init__(self, port: int, cut_at: bytes = b"", listen: int = 0) -> None:
        self._server = ("127.0.0.1", port)
        self._cut_at = cut_at
        self._listener = socket.create_server(("127.0.0.1", listen))
        self.port = int(self._listener.getsockname()[1])
        self.heard: list[bytes] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        # Closing alone would not wake the thread that waits in `accept`.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _spawn(self, target: Callable[..., object], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            self.heard.append(b"")
            self._spawn(self._pass_on, client, server, len(self.heard) - 1)
            self._spawn(self._pass_on, server, client, None)

    def _pass_on(self, source: socket.socket, sink: socket.socket, number: int | None) -> None:
        with source, sink:
            try:
                while data := source.recv(65536):
                    if number is not None:
                        self.heard[number] += data
                        if self._cut_at and self._cut_at in data:
                            break
                    sink.sendall(data)
            except OSError:
                pass
            for end in (source, sink):
                # The other end must notice; it may be closed already.
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue
