"""moto's DynamoDB on loopback, with a proxy that can lose answers, duplicate requests and reject them.

moto is not DynamoDB, but here it keeps what counting rests on: a conditional write is checked and applied at once.
"""

from __future__ import annotations

import itertools
import json
import random
import socket
from collections.abc import Callable, Iterable
from functools import cache
from io import BytesIO
from typing import Any

from chapterverse.ext.aws import AwsService
from fakes.moto_server import Application, Environ, Fault, MotoServer, Quiet

_NAMES = itertools.count()


class _Open(Quiet):
    # Connections stay open, as DynamoDB's do.
    protocol_version = "HTTP/1.1"


class DynamoServer(MotoServer):
    """A fake DynamoDB; every test creates its own table by `table()`. See `shared`.

    Attributes:
        calls: operation and body of every request.
        faults: faults for the next requests, in order.
        chance: draws a fault, or None, for every other request.
    """

    def __init__(self) -> None:
        super().__init__(_Open)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.chance: Callable[[], Fault | None] = lambda: None

    def reset(self) -> None:
        """Reset the state of the last test."""
        self.calls.clear()
        self.faults.clear()
        self.chance = lambda: None

    def table(self, key: str = "pk", sort: str = "") -> str:
        """Make a new table and return its name; needs the variables."""
        keys = {key: "HASH", **({sort: "RANGE"} if sort else {})}
        name = f"limits-{next(_NAMES)}"
        self.call(
            "CreateTable",
            TableName=name,
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
            BillingMode="PAY_PER_REQUEST",
        )
        return name

    def call(self, operation: str, **body: Any) -> dict[str, Any]:
        """Call the server directly; needs the variables."""
        return patient().call(f"DynamoDB_20120810.{operation}", body)

    def items(self, table: str) -> list[dict[str, Any]]:
        """Return all items of a table; needs the variables."""
        found: list[dict[str, Any]] = self.call("Scan", TableName=table)["Items"]
        return found

    def _answer(self, environ: Environ, start: Any) -> Iterable[bytes]:
        raw = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(raw)
        self.calls.append((environ["HTTP_X_AMZ_TARGET"].partition(".")[2], json.loads(raw)))
        if not self.faults and (fault := self.chance()):
            return fault(environ, start, self._whole)
        return super()._answer(environ, start)


@cache
def shared() -> DynamoServer:
    """Return the one server of a test run, because moto takes a second to start."""
    return DynamoServer()


def patient() -> AwsService:
    """Return a client that tolerates a machine busy with other tests; needs the variables."""
    return AwsService("dynamodb", seconds=120.0)


def sometimes(draw: random.Random, share: float, *faults: Fault) -> Callable[[], Fault | None]:
    """Return a function that draws one of the faults for this share of the requests."""
    return lambda: draw.choice(faults) if draw.random() < share else None


def well(environ: Environ, start: Any, table: Application) -> Iterable[bytes]:
    """No fault: lets one request pass."""
    return table(environ, start)


def refused(code: str, status: str = "400 Bad Request") -> Fault:
    """Answer with a DynamoDB error."""

    def answer(environ: Environ, start: Any, table: Application) -> Iterable[bytes]:
        body = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "secret words"}).encode()
        start(status, [("Content-Type", "application/x-amz-json-1.0"), ("Content-Length", str(len(body)))])
        return [body]

    return answer


def said(body: object, status: str = "200 OK") -> Fault:
    """Answer with this response, without doing anything."""

    def answer(environ: Environ, start: Any, table: Application) -> Iterable[bytes]:
        raw = json.dumps(body).encode()
        start(status, [("Content-Type", "application/x-amz-json-1.0"), ("Content-Length", str(len(raw)))])
        return [raw]

    return answer


def unanswered(environ: Environ, start: Any, table: Application) -> Iterable[bytes]:
    """Execute the request, and lose the answer."""
    b"".join(table(environ, lambda *_: None))
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError


def doubled(environ: Environ, start: Any, table: Application) -> Iterable[bytes]:
    """Execute the request twice, as if a proxy repeated it, and return the second answer."""
    raw = environ["wsgi.input"].read()
    b"".join(table({**environ, "wsgi.input": BytesIO(raw)}, lambda *_: None))
    return table({**environ, "wsgi.input": BytesIO(raw)}, start)
