"""The proxy misbehaves as the network tests expect."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from faults.proxy import Proxy, Trouble

ANSWER = b"0123456789"


class Echo(BaseHTTPRequestHandler):
    """Answers every request with the same, and remembers its body."""

    protocol_version = "HTTP/1.1"
    bodies: list[bytes]

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def echo() -> Iterator[tuple[int, list[bytes]]]:
    bodies: list[bytes] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Remembering", (Echo,), {"bodies": bodies})) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port, bodies
        server.shutdown()
        thread.join()


def post(url: str, body: bytes | Iterator[bytes] = b"asked") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    try:
        connection.request("POST", "/", body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("trouble", [Trouble.SLOW, Trouble.DUPLICATED])
def test_the_answer_arrives(trouble: Trouble, echo: tuple[int, list[bytes]]) -> None:
    with Proxy(echo[0], trouble, 0, share=1) as proxy:
        assert post(proxy.url) == (200, ANSWER)
    assert echo[1] == [b"asked"] * (2 if trouble is Trouble.DUPLICATED else 1)


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        (Trouble.REFUSED, ConnectionError),
        (Trouble.RESET, ConnectionResetError),
        (Trouble.TRUNCATED, http.client.IncompleteRead),
    ],
)
def test_the_answer_is_lost(trouble: Trouble, error: type[Exception], echo: tuple[int, list[bytes]]) -> None:
    with Proxy(echo[0], trouble, 0, share=1) as proxy, pytest.raises(error):
        post(proxy.url)
    assert echo[1] == ([] if trouble is Trouble.REFUSED else [b"asked"])


@pytest.mark.parametrize(("trouble", "statuses"), [(Trouble.THROTTLED, {429}), (Trouble.BROKEN, {500, 502, 503})])
def test_a_gateway_answers_instead(trouble: Trouble, statuses: set[int], echo: tuple[int, list[bytes]]) -> None:
    with Proxy(echo[0], trouble, 0, share=1) as proxy:
        assert {post(proxy.url)[0] for _ in range(20)} == statuses
    assert echo[1] == []


def test_a_body_in_pieces_arrives_whole(echo: tuple[int, list[bytes]]) -> None:
    with Proxy(echo[0], Trouble.SLOW, 0, share=0) as proxy:
        assert post(proxy.url, iter([b"one ", b"two"])) == (200, ANSWER)
    assert echo[1] == [b"one two"]


def test_trouble_follows_from_the_seed() -> None:
    def met(seed: int) -> list[bool]:
        with Proxy(1, Trouble.BROKEN, seed) as proxy:
            return [proxy.next_trouble() is not None for _ in range(200)]

    assert met(1) == met(1)
    assert met(1) != met(2)
    assert 40 < sum(met(1)) < 160
