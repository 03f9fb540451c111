"""moto's DynamoDB on loopback, with a front door that loses answers, doubles requests and refuses on demand.

moto is not DynamoDB, but here it keeps what counting rests on: a conditional write is checked and applied at once.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import random
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from io import BytesIO
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from chapterverse.aws import AwsService

Environ = dict[str, Any]
Application = Callable[[Environ, Any], Iterable[bytes]]
#: Handles one request in place of the table, or with its help.
Fault = Callable[[Environ, Any, Application], Iterable[bytes]]

_NAMES = itertools.count()


class DynamoServer:
    """One server; every test takes a table of its own by `table()`. See `shared`.

    Attributes:
        calls: the operation and the body of every request that came.
        faults: what happens to the next requests, first come first served.
        chance: draws a fault, or None, for every other request.
    """

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.faults: deque[Fault] = deque()
        self.chance: Callable[[], Fault | None] = lambda: None
        self._moto: Application = DomainDispatcherApplication(create_backend_app)
        self._turn = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        threading.Thread(target=self._server.serve_forever, name="dynamodb", daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a client finds the server."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing-secret",
            "AWS_REGION": "us-east-1",
        }

    def reset(self) -> None:
        """Forget what the last test wanted."""
        self.calls.clear()
        self.faults.clear()
        self.chance = lambda: None

    def table(self, key: str = "pk") -> str:
        """Make a new table and return its name; needs the variables."""
        name = f"limits-{next(_NAMES)}"
        self.call(
            "CreateTable",
            TableName=name,
            KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        return name

    def call(self, operation: str, **body: Any) -> dict[str, Any]:
        """Ask the server something directly; needs the variables."""
        return patient().call(f"DynamoDB_20120810.{operation}", body)

    def items(self, table: str) -> list[dict[str, Any]]:
        """Return all that a table holds; needs the variables."""
        found: list[dict[str, Any]] = self.call("Scan", TableName=table)["Items"]
        return found

    def _answer(self, environ: Environ, start: Any) -> Iterable[bytes]:
        raw = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(raw)
        self.calls.append((environ["HTTP_X_AMZ_TARGET"].partition(".")[2], json.loads(raw)))
        with contextlib.suppress(IndexError):
            return self.faults.popleft()(environ, start, self._table)
        if fault := self.chance():
            return fault(environ, start, self._table)
        return self._table(environ, start)

    def _table(self, environ: Environ, start: Any) -> Iterable[bytes]:
        # moto looks at a condition and writes in two steps; DynamoDB does both at once.
        with self._turn:
            return list(self._moto(environ, start))


@cache
def shared() -> DynamoServer:
    """Return the one server of a test run: moto takes a second to start."""
    return DynamoServer()


def patient() -> AwsService:
    """Return a client that waits for a machine that is busy with other tests; needs the variables."""
    return AwsService.open("dynamodb", seconds=120.0)


def sometimes(draw: random.Random, share: float, *faults: Fault) -> Callable[[], Fault | None]:
    """Return what draws one of the faults for this share of the requests."""
    return lambda: draw.choice(faults) if draw.random() < share else None


def well(environ: Environ, start: Any, table: Application) -> Iterable[bytes]:
    """No fault: lets one request pass."""
    return table(environ, start)


def refused(code: str, status: str = "400 Bad Request") -> Fault:
    """Answer with an error, as DynamoDB names it."""

    def answer(environ: Environ, start: Any, table: Application) -> Iterable[bytes]:
        body = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "secret words"}).encode()
        start(status, [("Content-Type", "application/x-amz-json-1.0"), ("Content-Length", str(len(body)))])
        return [body]

    return answer


def unanswered(environ: Environ, start: Any, table: Application) -> Iterable[bytes]:
    """Do what was asked, and lose the answer."""
    b"".join(table(environ, lambda *_: None))
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError


def doubled(environ: Environ, start: Any, table: Application) -> Iterable[bytes]:
    """Do what was asked twice, as when a proxy sends it again, and give the second answer."""
    raw = environ["wsgi.input"].read()
    b"".join(table({**environ, "wsgi.input": BytesIO(raw)}, lambda *_: None))
    return table({**environ, "wsgi.input": BytesIO(raw)}, start)


class _Quiet(WSGIRequestHandler):
    # Connections stay open, as DynamoDB's do.
    protocol_version = "HTTP/1.1"

    def log(self, *_: Any) -> None:
        pass
