"""Streams over TLS behave as over plain connections, also while the reader's thread is inside OpenSSL."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.loopback import LONG, Answer, LoopbackServer, Request

PROGRAM = """
import sys, time
from threading import Timer
from chapterverse.errors import ProviderError
from chapterverse.ext.net import JsonClient
from chapterverse_api.deadline import Deadline

rest = JsonClient(sys.argv[1], {})
for _ in range(2):
    with rest.stream("/short", {}, seconds=5, closing=Deadline().closing) as stream:
        assert [event.data for event in stream.events()] == ["one"]
    assert rest.post("/short", {}).status == 200
for _ in range(3):
    deadline, started = Deadline(), time.monotonic()
    Timer(0.2, deadline.abort).start()
    try:
        with rest.stream("/silent", {}, seconds=20, closing=deadline.closing) as stream:
            print(*(event.data for event in stream.events()))
    except ProviderError as error:
        print(error, time.monotonic() - started < 5)
with rest.stream("/short", {}, seconds=5, closing=Deadline().closing) as stream:
    print(*(event.data for event in stream.events()))
"""


class SecureServer(LoopbackServer):
    """Says one thing, and to some nothing more for a while."""

    def __init__(self, certificate: Path) -> None:
        super().__init__()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = self.url.replace("http://", "https://")

    def answer(self, request: Request) -> Answer:
        return Answer(200, _pieces(silent=request.path == "/silent"))


def _pieces(*, silent: bool) -> Iterator[bytes]:
    yield b"data: one\n\n"
    time.sleep(LONG * silent)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that signs itself, with its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - day).not_valid_after(now + day)
    builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    signed = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(
        key, hashes.SHA256()
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + signed.public_bytes(serialization.Encoding.PEM))
    return path


def test_a_stream_over_tls_is_ended_as_one_without(certificate: Path) -> None:
    with SecureServer(certificate) as server:
        environment = {**os.environ, "SSL_CERT_FILE": str(certificate)}
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-c", PROGRAM, server.url],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [*["Nobody waits for 127.0.0.1 any more: ask again. True"] * 3, "one"]
    # One for what went well, one for each that was cut but the first, which had the idle one, and one at the end.
    assert server.connections == 4
    assert server.left.is_set()
