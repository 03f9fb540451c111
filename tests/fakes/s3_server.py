"""moto's S3 on loopback, with a proxy that counts requests and misbehaves on demand.

moto is not S3, but here it keeps what the store's safety rests on: conditional writes are checked and applied at once.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import boto3

from fakes.moto_server import Application, Environ, Fault, MotoServer

_NAMES = itertools.count()


class S3Server(MotoServer):
    """A fake S3; every test creates its own bucket by `bucket()`. See `shared`.

    Attributes:
        requests: method and path with query of every request.
        faults: faults for the next requests, in order.
        unconditional: ignore conditions of writes, like services that don't know them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[str] = []
        self.unconditional = False

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which boto3 finds the server."""
        return {**super().environment, "AWS_DEFAULT_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "2"}

    @contextlib.contextmanager
    def entered(self, temporary: Path) -> Iterator[S3Server]:
        """Set the variables, and TMPDIR, for this process; reset the state of the last test."""
        wanted = {**self.environment, "TMPDIR": str(temporary)}
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        tempfile.tempdir = None
        self.requests.clear()
        self.faults.clear()
        self.unconditional = False
        try:
            yield self
        finally:
            for name, value in before.items():
                os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
            tempfile.tempdir = None

    def client(self) -> Any:
        """Return one shared boto3 client, because creating one takes longer than most tests."""
        return self._client

    @cached_property
    def _client(self) -> Any:
        where = self.environment
        return boto3.session.Session().client(
            "s3",
            endpoint_url=where["AWS_ENDPOINT_URL"],
            aws_access_key_id="testing",
            aws_secret_access_key="testing-secret",
            region_name="us-east-1",
        )

    def bucket(self) -> str:
        """Make a new bucket and return its name."""
        name = f"docs-{next(_NAMES)}"
        self.client().create_bucket(Bucket=name)
        return name

    def _answer(self, environ: Environ, start: Any) -> Iterable[bytes]:
        self.requests.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}")
        if self.unconditional:
            environ.pop("HTTP_IF_MATCH", None)
            environ.pop("HTTP_IF_NONE_MATCH", None)
        return super()._answer(environ, start)


@cache
def shared() -> S3Server:
    """Return the one server of a test run, because moto takes a second to start."""
    return S3Server()


def well(environ: Environ, start: Any, bucket: Application) -> Iterable[bytes]:
    """No fault: lets one request pass."""
    return bucket(environ, start)


def refused(status: str, code: str) -> Fault:
    """Answer with S3's XML for an error."""

    def answer(environ: Environ, start: Any, bucket: Application) -> Iterable[bytes]:
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        body = f"<Error><Code>{code}</Code><Message>testing-secret</Message></Error>".encode()
        start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [body]

    return answer


def torn(environ: Environ, start: Any, bucket: Application) -> Iterable[bytes]:
    """Send half of an answer and close the connection."""
    whole = b"".join(bucket(environ, start))
    yield whole[: len(whole) // 2]
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)


def unanswered(environ: Environ, start: Any, bucket: Application) -> Iterable[bytes]:
    """Execute the request, and lose the answer."""
    b"".join(bucket(environ, lambda *_: None))
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError
