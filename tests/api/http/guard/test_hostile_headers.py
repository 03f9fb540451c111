"""Every hostile header on every kind of request: an answer or a rejection, never a 5xx, never an echo."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from api import quill
from api.scripted import Client, Scripted, error_of, serving
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.service import Service

CANARY = "cAnArY"
Headers = list[tuple[bytes, bytes]]

_NAMES = ["host", "origin", "accept", "content-length", "content-encoding", "transfer-encoding", "expect", "cookie"]
_NAMES += ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded", "x-real-ip", "x-request-id", "te"]
_NAMES += ["authorization", "if-none-match", "range", "accept-language", "user-agent", "referer", "upgrade", "via"]
_NAMES += ["x-http-method-override", "sec-fetch-site", "access-control-request-method", "connection", "x-original-url"]

_VALUES = [b"", b" ", b",", b";", b"*", b"*/*", b"null", b"-1", b"0", b"\xff\xfe", b"\x00", b"\x7f", b"a" * 70_000]
_VALUES += [
    b"cAnArY",
    b"cAnArY\r\nSet-Cookie: a=b",
    "cAnArY\u202eé".encode(),
    b'"cAnArY',
    b"<cAnArY>",
    b"${jndi:cAnArY}",
]
_VALUES += [b"a;q=cAnArY", b"text/event-stream;q=nan", b"text/event-stream, " * 5000, b"9" * 400, b"\xd9\xa1\xd9\xa9"]

_HOSTS = [
    b"[::1",
    b"[::1]:x",
    b"]",
    b":",
    b"a:99999999",
    b"a:-1",
    b"@",
    b"user@cAnArY",
    b"cAnArY/..",
    b"a b",
    b"a\\b",
    b"a#b",
]
_HOSTS += [
    b"127.0.0.1:80:80",
    b"xn--" + b"a" * 300,
    b"a" * 10_000,
    b"cAnArY?x",
    "cAnArYé".encode(),
    b".",
    b"a..b",
    b"%00",
]
_ORIGINS = [b"https://", b"https://[::1", b"https://a:b:c", b"https://api.example.com:x", b"file://", b"https://cAnArY"]
_ORIGINS += [
    b"https://api.example.com.cAnArY",
    b"https://api.example.com@cAnArY",
    b"HTTPS://API.EXAMPLE.COM:443",
    b"https:",
]

# Hundreds of requests of one client are what the limits are there to stop, and without a list no strange host gets in.
OPEN = Settings(rates="off", allowed_origins="https://api.example.com")
#: A page's address makes the service compare hosts, its own among them.
QUESTION = {"query": "cache", "page_url": f"{quill.BASE}cache/"}


def families() -> Iterator[Headers]:
    for name in _NAMES:
        for value in _VALUES:
            yield [(name.encode(), value)]
        yield [(name.encode(), b"cAnArY")] * 2
        yield [(name.encode(), b"https://cAnArY"), (name.encode(), b"text/event-stream")] * 300
    yield from addresses()
    yield [(b"x-%d" % i, b"cAnArY") for i in range(2000)]
    yield [(b"cAnArY" * 500, b"a"), (b"", b"cAnArY"), (b"\xff", b"cAnArY"), (b"a b", b"cAnArY")]
    yield [(b"origin", b"https://api.example.com"), (b"access-control-request-method", b"cAnArY")]


def addresses() -> Iterator[Headers]:
    """Yield what says where a request comes from and where it goes."""
    yield from ([(b"host", host)] for host in _HOSTS)
    yield from ([(b"host", host), (b"origin", b"https://" + host)] for host in _HOSTS)
    yield from ([(b"origin", origin)] for origin in _ORIGINS)


def _as_sent(app: Any) -> Any:
    """Put headers before an application as a server could: a client library would mend or refuse them."""

    async def asked(scope: Any, receive: Any, send: Any) -> None:
        # Smuggled in latin-1, which keeps every byte.
        hostile = json.loads(dict(scope["headers"])[b"x-hostile"])
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in hostile]
        replaced = {b"x-hostile", *(name for name, _ in pairs)}
        headers = [(name, value) for name, value in scope["headers"] if name not in replaced]
        await app({**scope, "headers": headers + pairs}, receive, send)

    return asked


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/v1/health", {200, 403}),
        ("POST", "/v1/chat", {200, 403, 413, 415}),
        ("OPTIONS", "/v1/chat", {204, 403, 405}),
    ],
)
def test_no_header_is_our_fault_or_said_back(method: str, path: str, expected: set[int]) -> None:
    cases = list(families())
    assert len(cases) > 700
    assert _statuses(Scripted(settings=OPEN), method, path, cases) == expected


def test_no_address_confuses_where_the_readers_page_may_be(tmp_path: Path) -> None:
    service = quill.service(quill.publish(tmp_path).override(rates=OPEN.rates, allowed_origins=OPEN.allowed_origins))
    assert _statuses(service, "POST", "/v1/chat", list(addresses())) == {200, 403}


def _statuses(service: Service, method: str, path: str, cases: list[Headers]) -> set[int]:
    """Return the statuses of the responses, after checking each."""
    client = Client(_as_sent(create_app(service)))
    body = {"json": QUESTION} if method == "POST" else {}
    responses = client.many((method, path, {"headers": _smuggled(headers), **body}) for headers in cases)
    for headers, response in zip(cases, responses, strict=True):
        assert response.status_code < 500, (headers[:2], response.text)
        assert CANARY not in str(response.headers), headers[:2]
        if response.status_code >= 400:
            assert CANARY not in response.text, headers[:2]
            error_of(response)
    return {response.status_code for response in responses}


def _smuggled(headers: Headers) -> dict[str, str]:
    return {"x-hostile": json.dumps([(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers])}


def test_what_is_no_http_is_refused_by_the_server() -> None:
    line, host = b"GET /v1/health HTTP/1.1\r\n", b"Host: localhost\r\n"
    sent = [line + b"\r\n", line + host * 2 + b"\r\n", line + b"Host: a\r\n b\r\n\r\n", line + host + b"A\r\n\r\n"]
    sent += [
        line + host + b"A : cAnArY\r\n\r\n",
        line + host + b"A: " + b"a" * 100_000 + b"\r\n\r\n",
        b"cAnArY\r\n\r\n",
    ]
    sent += [
        line + host + b"B: c\x00d\r\n\r\n",
        b"GET /v1/health HTTP/9.9\r\n" + host + b"\r\n",
        b"\x16\x03\x01\x02\x00",
    ]
    sent += [b"GET http://cAnArY/v1/health HTTP/1.1\r\n" + host + b"\r\n", b"GET * HTTP/1.1\r\n" + host + b"\r\n"]
    sent += [b"CONNECT cAnArY:443 HTTP/1.1\r\n" + host + b"\r\n", b"TRACE /v1/health HTTP/1.1\r\n" + host + b"\r\n"]
    sent += [line + host + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"]
    with serving(create_app(Scripted(settings=OPEN))) as address:
        for raw in sent:
            answer = _exchange(address, raw)
            assert not answer.startswith(b"HTTP/1.1 5"), (raw[:80], answer)
            assert CANARY.encode() not in answer, raw[:80]
        assert _exchange(address, line + host + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 200")


def _exchange(address: str, raw: bytes) -> bytes:
    """Return the server's answer to these bytes, before or after it hangs up."""
    host = urlsplit(address)
    with socket.create_connection((host.hostname, host.port), timeout=5) as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while piece := connection.recv(65_536):
                answer += piece
        except ConnectionResetError:
            pass
        return answer
