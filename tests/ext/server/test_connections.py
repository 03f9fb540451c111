from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from api.scripted import ANSWER, META, Scripted, serving
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.contract import ChatQuery, Events
from chapterverse_api.ext.server.connections import Bounds

HEAD = b"POST /v1/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = b'{"query": "How?"}'
GET = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
#: Short enough for a test, long enough for a machine that has more to do.
SHORT = Bounds(connections=50, head=0.5, body=0.5, idle=0.5, read=0.5)
#: So long that nothing ends by it.
LONG = Bounds(connections=50, head=60, body=60, idle=60, read=60)
#: Seconds after which a connection that has to end would have ended.
SOON = 8.0


@contextmanager
def connected(address: str, sent: bytes = b"") -> Iterator[socket.socket]:
    url = httpx.URL(address)
    with socket.create_connection((url.host, url.port or 0), timeout=SOON) as connection:
        connection.sendall(sent)
        yield connection


def dripped(connection: socket.socket, drop: bytes = b"a") -> tuple[bytes, float]:
    """Send a byte now and then until the server hangs up; return its answer and the seconds."""
    started, said = time.monotonic(), b""
    connection.settimeout(0.05)
    while time.monotonic() - started < SOON:
        try:
            connection.sendall(drop)
            piece = connection.recv(65_536)
        except TimeoutError:
            continue
        except OSError:
            break
        if not piece:
            break
        said += piece
    return said, time.monotonic() - started


def refusal(said: bytes) -> tuple[int, str]:
    """Return the status and the code of a refusal, after checking that it is in our shape."""
    head, _, body = said.partition(b"\r\n\r\n")
    lines = head.decode().lower().splitlines()
    assert {"connection: close", "content-type: application/json", "cache-control: no-store"} <= set(lines)
    assert f"content-length: {len(body)}" in lines
    return int(lines[0].split()[1]), json.loads(body)["error"]["code"]


@pytest.mark.parametrize("sent", [b"G", GET[:-2], GET[:-2] + b"X-A: ", b"POST "])
def test_headers_that_drip_are_waited_for_a_while(sent: bytes) -> None:
    with serving(create_app(Scripted()), SHORT) as address, connected(address, sent) as connection:
        said, seconds = dripped(connection)
    assert refusal(said) == (408, "too_slow")
    assert SHORT.head * 0.9 < seconds < SOON


@pytest.mark.parametrize("framing", [b"Content-Length: 1000\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n{"])
def test_a_body_that_drips_is_waited_for_a_while_and_never_asked(framing: bytes) -> None:
    service = Scripted()
    with serving(create_app(service), SHORT) as address, connected(address, HEAD + framing) as connection:
        said, seconds = dripped(connection, b" ")
    assert refusal(said) == (408, "too_slow")
    assert SHORT.body * 0.9 < seconds < SOON
    assert service.asked == []


@pytest.mark.parametrize("sent", [b"", GET])
def test_a_client_that_says_nothing_is_left_without_a_word(sent: bytes) -> None:
    with serving(create_app(Scripted()), SHORT) as address, connected(address, sent) as connection:
        started, said = time.monotonic(), b""
        while piece := connection.recv(65_536):
            said += piece
        assert time.monotonic() - started < SOON
    assert said.count(b"HTTP/1.1") == bool(sent)


def test_empty_lines_between_two_requests_win_no_time() -> None:
    with serving(create_app(Scripted()), SHORT) as address, connected(address, GET) as connection:
        said, seconds = dripped(connection, b"\r\n")
    assert said.startswith(b"HTTP/1.1 200")
    assert seconds < SOON


def test_a_refused_body_that_goes_on_is_waited_for_a_while() -> None:
    sent = HEAD + b"Content-Length: 131073\r\n\r\n{"
    with serving(create_app(Scripted()), SHORT) as address, connected(address, sent) as connection:
        said, seconds = dripped(connection, b" ")
    assert said.startswith(b"HTTP/1.1 413")
    assert said.count(b"HTTP/1.1") == 1
    assert seconds < SOON


def test_whoever_reads_nothing_of_an_answer_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(bytes(30_000_000))
    sent = b"GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n"
    one = Bounds(connections=1, head=SOON, body=SOON, idle=SOON, read=0.5)
    with serving(create_app(Scripted(), site_dir=tmp_path), one) as address, connected(address, sent) as connection:
        time.sleep(2)
        taken = 0
        while piece := connection.recv(1_000_000):
            taken += len(piece)
        # What it did not take in time is lost.
        assert taken < 30_000_000


def test_a_slow_reader_gets_all(tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(bytes(8_000_000))
    taken, app = 0, create_app(Scripted(), site_dir=tmp_path)
    with serving(app, SHORT) as address, httpx.stream("GET", f"{address}/large.bin", timeout=60) as response:
        for piece in response.iter_bytes(500_000):
            time.sleep(0.1)
            taken += len(piece)
    assert taken == 8_000_000


class Slow(Scripted):
    """One that takes longer for an answer than clients may take for anything."""

    def __init__(self, seconds: float = 1.2) -> None:
        super().__init__(settings=Settings(rates="off"))
        self.begun = threading.Semaphore(0)
        self._seconds = seconds

    def chat(self, query: ChatQuery, **_: object) -> Events:
        self.asked.append(query)
        self.begun.release()
        yield META
        time.sleep(self._seconds)
        yield ANSWER


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_an_answer_may_take_its_time(accept: str) -> None:
    with serving(create_app(Slow()), SHORT) as address, httpx.Client(timeout=60) as client:
        response = client.post(f"{address}/v1/chat", json={"query": "How?"}, headers={"accept": accept})
    assert response.status_code == 200
    assert ANSWER.response in response.text


def test_requests_of_one_connection_are_answered_one_after_the_other() -> None:
    asking = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
    service = Scripted(settings=Settings(rates="off"))
    with serving(create_app(service), SHORT) as address, connected(address, (GET + asking) * 5) as connection:
        said, _ = dripped(connection, b"")
    assert re.findall(rb"HTTP/1.1 (\d+)", said) == [b"200"] * 10
    assert len(service.asked) == 5


# As many as there is room for


def test_silent_connections_make_room_for_whoever_asks() -> None:
    few = Bounds(connections=8, head=60, body=60, idle=60, read=60)
    with serving(create_app(Scripted()), few) as address, ExitStack() as stack:
        silent = [stack.enter_context(connected(address)) for _ in range(8)]
        silent += [
            stack.enter_context(connected(address, sent)) for sent in (GET, HEAD, HEAD + b"Content-Length: 9\r\n\r\n")
        ]
        for i in range(30):
            assert httpx.get(f"{address}/v1/health", timeout=60).status_code == 200, i
        left = [_is_open(connection) for connection in silent]
    # The first to come is the first to go.
    assert sum(left) < 8
    assert left == sorted(left)


def _is_open(connection: socket.socket) -> bool:
    connection.settimeout(0.2)
    try:
        while piece := connection.recv(65_536):
            pass
    except TimeoutError:
        return True
    except OSError:
        return False
    return bool(piece)


@pytest.mark.slow
def test_nobody_who_is_being_answered_makes_room() -> None:
    few = Bounds(connections=4, head=60, body=60, idle=60, read=60)
    service = Slow(3.0)
    asking = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
    with serving(create_app(service), few) as address, ExitStack() as stack:
        waiting = [stack.enter_context(connected(address, asking)) for _ in range(4)]
        for _ in waiting:
            assert service.begun.acquire(timeout=SOON)
        with connected(address) as connection:
            said = connection.recv(65_536)
        assert refusal(said) == (503, "busy")
        assert b"\r\nretry-after: 1\r\n" in said
        answers = [connection.recv(65_536) for connection in waiting]
        assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)
        # And then there is room again.
        assert httpx.get(f"{address}/v1/health", timeout=60).status_code == 200


def test_as_many_as_the_process_may_open_files() -> None:
    program = """
import resource, sys
from chapterverse_api.ext.server.connections import Bounds
for most in map(int, sys.argv[1:]):
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    print(Bounds.of_process().connections)
"""
    command = [sys.executable, "-c", program, "1024", "256", "200", "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["480", "96", "68", "8"]


# Two lengths


@pytest.mark.parametrize("chunked", [b"chunked", b"Chunked", b"CHUNKED"])
@pytest.mark.parametrize("length", [b"0", b"5", b"19", b"99"])
def test_a_request_of_two_lengths_is_refused_and_the_last_one(length: bytes, chunked: bytes) -> None:
    framings = [b"Content-Length: " + length, b"Transfer-Encoding: " + chunked]
    service = Scripted()
    with serving(create_app(service), LONG) as address:
        for lines in (framings, framings[::-1]):
            sent = HEAD + b"\r\n".join(lines) + b"\r\n\r\n11\r\n" + BODY + b"\r\n0\r\n\r\n" + GET
            with connected(address, sent) as connection:
                said, seconds = dripped(connection, b"")
            assert refusal(said) == (400, "malformed")
            assert said.count(b"HTTP/1.1") == 1
            assert seconds < SOON
    assert service.asked == []


# Large headers

LIMIT = 16 * 1024
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n11\r\n" + BODY + b"\r\n0\r\n"


def filled(head: bytes, size: int, line: bytes = b"x-a: ", end: bytes = b"\r\n") -> bytes:
    """Return a head with one more line, so that all of it has `size` bytes."""
    return head + line + b"a" * (size - len(head + line + end + end)) + end + end


def headings(size: int) -> dict[str, bytes]:
    """Return requests whose headers have `size` bytes, or a little more, in different framings."""
    start = GET[:-2]
    folded = b"x-a: a" + b"\r\n" + b" " * 62 + b"\r\n"
    return {
        "one header": filled(start, size),
        "many headers": filled(start + b"".join(b"x-%d: a\r\n" % n for n in range(1000)), size),
        "one name": filled(start + b"x: a\r\n" * 2000, size),
        "folded": filled(start + folded * 100, size, line=b"x-b: a\r\n\t"),
        "spaces": filled(start + b"x-b:" + b" " * 8000 + b"a\r\n", size),
        "address": b"GET /v1/health?" + b"a" * (size - len(start) - 3) + start[14:] + b"\r\n",
        "bare line feeds": filled(start.replace(b"\r\n", b"\n"), size, end=b"\n"),
        "behind a request": GET + filled(start, size),
        "behind a body": CHUNKED + filled(b"", size),
    }


@pytest.mark.parametrize("piece", [1_000_000, 16_384, 4096, 1000])
@pytest.mark.parametrize("framing", headings(LIMIT))
def test_headers_over_the_limit_are_refused_in_any_framing(framing: str, piece: int) -> None:
    before = int(framing == "behind a request")
    with serving(create_app(Scripted()), LONG) as address:
        for size, refused in ((LIMIT - 10, False), (LIMIT + 1, True), (3 * LIMIT, True), (200_000, True)):
            said = exchanged(address, headings(size)[framing], piece, before + 1)
            statuses = re.findall(rb"HTTP/1.1 (\d+)", said)[before:]
            # What is still sent to a closed connection may cost the client the answer.
            assert statuses in (([b"431"], []) if refused else ([b"200"],)), (size, said)
            if size == LIMIT + 1 and piece > size:
                assert refusal(said[said.rindex(b"HTTP/1.1") :]) == (431, "headers_too_large")


def exchanged(address: str, sent: bytes, piece: int, answers: int) -> bytes:
    """Send bytes in pieces and return what comes, until that is so many answers or the server hangs up."""
    said = b""
    with connected(address) as connection, suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(sent), piece):
            connection.sendall(sent[start : start + piece])
            time.sleep(0.001)
        while (said.count(b"HTTP/1.1 ") < answers or said[-1:] != b"}") and (came := connection.recv(65_536)):
            said += came
    return said


# What it writes

FLOODED = """
import resource, sys, time
from chapterverse.local_server import bind, socket_origin
from chapterverse_api.ext.server.connections import Bounds
from chapterverse_api.ext.server.server import server

async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})
    if scope["path"] == "/late":
        raise ValueError("cAnArY")

resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
sock = bind("127.0.0.1", 0)
print(socket_origin(sock), flush=True)
server(hello, log_to=2, bounds=Bounds(connections=1000, head=2)).run(sockets=[sock])
"""


@contextmanager
def flooded(tmp_path: Path) -> Iterator[tuple[str, Path, subprocess.Popen[str]]]:
    """Run a server that may open few files and knows nothing of it; yield its address and where it writes."""
    log = tmp_path / "log"
    with log.open("w") as errors:
        process = subprocess.Popen([sys.executable, "-c", FLOODED], stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), log, process
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


@pytest.mark.slow
def test_without_a_descriptor_left_it_waits_and_says_so_once(tmp_path: Path) -> None:
    with flooded(tmp_path) as (address, log, process), ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(connected(address))
        time.sleep(1)
        before = _processor_seconds(process)
        time.sleep(1.5)
        # It does not try again and again.
        assert _processor_seconds(process) - before < 0.7
        # Those who say nothing are disconnected, and then there is room.
        assert httpx.get(address, timeout=20).text == "hello"
        written = log.read_text()
    (line,) = [json.loads(line) for line in written.splitlines()]
    assert (line["event"], line["code"]) == ("error", "files_exhausted")


def _processor_seconds(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_what_is_no_http_writes_nothing(tmp_path: Path) -> None:
    with flooded(tmp_path) as (address, log, _):
        for sent in (
            b"\x16\x03\x01\r\n\r\n",
            b"cAnArY\r\n\r\n",
            GET.replace(b"\r\n\r\n", b"\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"),
        ) * 20:
            with connected(address, sent) as connection:
                assert connection.recv(4096).startswith(b"HTTP/1.1 ")
    assert log.read_text() == ""


def test_what_an_application_fails_at_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    with flooded(tmp_path) as (address, log, _):
        for _ in range(20):
            assert httpx.get(f"{address}/late", timeout=60).text == "hello"
    (line,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert (line["event"], line["code"], line["type"], line["message"]) == ("error", "internal", "ValueError", None)
    assert re.fullmatch(r"\w+\.py:\d+", line["where"])
