"""moto on loopback, one request at a time: AWS checks and writes atomically, moto in two steps."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

Environ = dict[str, Any]
Application = Callable[[Environ, Any], Iterable[bytes]]
#: Handles one request in place of the service, or with its help.
Fault = Callable[[Environ, Any, Application], Iterable[bytes]]


class Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        pass


class MotoServer:
    """A server of all services, with faults before it.

    Attributes:
        faults: what happens to the next requests, first come first served.
    """

    def __init__(self, handler: type[Quiet] = Quiet) -> None:
        logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
        self.faults: deque[Fault] = deque()
        self._moto: Application = DomainDispatcherApplication(create_backend_app)
        self._turn = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=handler)
        threading.Thread(target=self._server.serve_forever, name="moto", daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a client finds the server."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing-secret",
            "AWS_REGION": "us-east-1",
        }

    def _answer(self, environ: Environ, start: Any) -> Iterable[bytes]:
        with contextlib.suppress(IndexError):
            return self.faults.popleft()(environ, start, self._whole)
        return self._whole(environ, start)

    def _whole(self, environ: Environ, start: Any) -> Iterable[bytes]:
        with self._turn:
            return list(self._moto(environ, start))
