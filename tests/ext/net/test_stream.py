"""Streams over HTTP against a server on loopback: timely, bounded, and ended from another thread."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Timer

import pytest

from chapterverse.errors import ProviderError
from chapterverse.ext.net import JsonClient, Stream
from chapterverse.ext.net.stream import DOCUMENT, Event, Parser
from chapterverse_api.deadline import Deadline
from fakes.loopback import LONG, SOON, Answer, Fault, LoopbackServer, Request, failing, leaving, rate_limited

Make = Callable[[], Iterator[bytes]]


class StreamServer(LoopbackServer):
    """Answers with what `make` makes, as it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.make: Make = lambda: iter([b"data: one\n\n", b"data: two\n\n"])

    def answer(self, request: Request) -> Answer:
        return Answer(200, self.make(), {"Content-Type": "text/event-stream"})


@pytest.fixture
def server() -> Iterator[StreamServer]:
    with StreamServer() as running:
        yield running


@contextmanager
def streaming(rest: JsonClient, seconds: float = 5.0, deadline: Deadline | None = None) -> Iterator[Stream]:
    with rest.stream("/s", {"q": "é"}, seconds=seconds, closing=(deadline or Deadline()).closing) as stream:
        yield stream


def said(rest: JsonClient, seconds: float = 5.0, deadline: Deadline | None = None) -> list[str]:
    with streaming(rest, seconds, deadline) as stream:
        return [event.data for event in stream.events()]


def test_the_events_of_a_stream(server: StreamServer) -> None:
    with streaming(JsonClient(f"{server.url}/prefix", {"X-Key": "k"})) as stream:
        assert (stream.status, stream.body) == (200, None)
        assert stream.headers["content-type"] == "text/event-stream"
        assert list(stream.events()) == [("message", "one"), ("message", "two")]
        assert list(stream.events()) == []
    (request,) = server.history
    assert (request.method, request.path, request.raw) == ("POST", "/prefix/s", '{"q":"é"}'.encode())
    assert request.headers["accept"] == "text/event-stream"
    assert request.headers["x-key"] == "k"


def test_an_event_is_there_before_the_next_is_sent(server: StreamServer) -> None:
    read = threading.Event()

    def one_at_a_time() -> Iterator[bytes]:
        for i in range(5):
            yield f"data: {i}\n\n".encode()
            assert read.wait(5), "the event did not arrive while the stream was silent"
            read.clear()

    server.make = one_at_a_time
    with streaming(JsonClient(server.url, {})) as stream:
        for i, event in enumerate(stream.events()):
            assert event.data == str(i)
            read.set()
    assert not server.left.is_set()


def test_bytes_may_drip(server: StreamServer) -> None:
    server.play(Fault(drip=0.001))
    assert said(JsonClient(server.url, {})) == ["one", "two"]


def test_streams_and_posts_share_a_connection(server: StreamServer) -> None:
    rest = JsonClient(server.url, {})
    for _ in range(3):
        assert said(rest) == ["one", "two"]
        rest.post("/", {})
    server.play(failing(400))
    with streaming(rest) as stream:
        assert stream.status == 400
    assert said(rest) == ["one", "two"]
    assert server.connections == 1


def test_a_stream_is_over_with_its_last_event_for_who_knows_it(server: StreamServer) -> None:
    rest = JsonClient(server.url, {})
    for _ in range(2):
        with streaming(rest) as stream:
            events = stream.events()
            assert [next(events).data, next(events).data] == ["one", "two"]
    assert server.connections == 1
    assert not server.left.is_set()


def test_who_stops_reading_leaves(server: StreamServer) -> None:
    server.make = lambda: iter([b"data: one\n\n"] * 10_000)
    rest = JsonClient(server.url, {})
    started = time.monotonic()
    with streaming(rest) as stream:
        assert next(stream.events()).data == "one"
    assert time.monotonic() - started < SOON
    assert server.left.wait(SOON)
    server.make = lambda: iter([b"data: two\n\n"])
    assert said(rest) == ["two"]
    assert server.connections == 2


def test_who_fails_while_reading_leaves(server: StreamServer) -> None:
    closed = threading.Event()

    def endless() -> Iterator[bytes]:
        try:
            while True:
                yield b"data: one\n\n"
                time.sleep(0.01)
        finally:
            closed.set()

    server.make = endless
    with pytest.raises(ZeroDivisionError), streaming(JsonClient(server.url, {})) as stream:
        assert 1 / (next(stream.events()).data != "one")
    assert server.left.wait(SOON)
    assert closed.wait(SOON)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(server: StreamServer, status: int) -> None:
    rest = JsonClient(server.url, {})
    server.play(failing(status))
    assert said(rest) == ["one", "two"]
    server.play(failing(status), failing(status))
    with streaming(rest) as stream:
        assert (stream.status, stream.body, list(stream.events())) == (status, {"message": "as asked"}, [])
    assert (len(server.history), server.connections) == (4, 1)


@pytest.mark.parametrize("status", [301, 400, 401, 404, 422, 498])
def test_what_will_not_pass_is_not_tried_again(server: StreamServer, status: int) -> None:
    server.play(failing(status))
    with streaming(JsonClient(server.url, {})) as stream:
        assert stream.status == status
    assert len(server.history) == 1


@pytest.mark.parametrize("raising", [False, True])
def test_a_refusal_leaves_one_connection_for_one_request(server: StreamServer, raising: bool) -> None:
    rest = JsonClient(server.url, {})
    for _ in range(3):
        server.play(failing(400))
        with suppress(ZeroDivisionError), streaming(rest) as stream:
            assert 1 / (stream.status - 400 * raising)
    # Two at once: a connection that was kept twice would be shared now.
    with streaming(rest) as one, streaming(rest) as two:
        first, second = one.events(), two.events()
        assert [next(first).data, next(second).data] == ["one", "one"]
        assert [next(second).data, next(first).data] == ["two", "two"]
    assert server.connections == 2


def test_a_reader_does_not_wait_long(server: StreamServer) -> None:
    server.play(rate_limited(30))
    with streaming(JsonClient(server.url, {})) as stream:
        assert (stream.status, stream.headers["retry-after"]) == (429, "30")
    server.play(rate_limited(0.8))
    with streaming(JsonClient(server.url, {}), seconds=0.5) as stream:
        assert stream.status == 429


def test_a_stream_that_breaks_off_is_not_tried_again(server: StreamServer) -> None:
    server.play(Fault(cut=True))
    with streaming(JsonClient(server.url, {})) as stream:
        events = stream.events()
        assert next(events).data == "one"
        with pytest.raises(ProviderError, match=r"^127\.0\.0\.1 could not be reached or broke off\.$") as caught:
            next(events)
    assert caught.value.retryable
    assert len(server.history) == 1


def test_a_length_that_is_not_kept_is_a_stream_that_broke_off(server: StreamServer) -> None:
    server.play(Fault(change=lambda pieces: b"".join(pieces), headers={"Content-Length": "1000"}, close=True))
    with pytest.raises(ProviderError, match="broke off"):
        said(JsonClient(server.url, {}))


def test_a_stream_of_a_known_length(server: StreamServer) -> None:
    rest = JsonClient(server.url, {})
    for _ in range(2):
        server.play(Fault(change=lambda pieces: b"".join(pieces)))
        assert said(rest) == ["one", "two"]
    assert server.connections == 1


@pytest.mark.parametrize(
    "fault",
    [Fault(hang=LONG), Fault(drip=0.2), Fault(change=lambda pieces: _slowly(0.1))],
    ids=["silent", "dripping", "slow"],
)
def test_a_stream_has_a_time_in_all(server: StreamServer, fault: Fault) -> None:
    server.play(fault)
    started = time.monotonic()
    with pytest.raises(ProviderError, match=r"^127\.0\.0\.1 did not answer in time\.$") as caught:
        said(JsonClient(server.url, {}), seconds=0.4)
    assert caught.value.retryable
    assert time.monotonic() - started < SOON
    assert server.left.wait(SOON)


def _slowly(pause: float) -> Iterator[bytes]:
    while True:
        yield b"data: one\n\n"
        time.sleep(pause)


def test_without_time_nothing_is_sent(server: StreamServer) -> None:
    with pytest.raises(ProviderError, match="did not answer in time"):
        said(JsonClient(server.url, {}), seconds=0.0)
    assert server.history == []


def test_no_server_is_one_sentence() -> None:
    with StreamServer() as gone:
        rest = JsonClient(gone.url, {})
    with pytest.raises(ProviderError, match="could not be reached"):
        said(rest)


def test_a_connection_that_was_closed_while_idle_is_replaced(server: StreamServer) -> None:
    rest = JsonClient(server.url, {})
    for _ in range(2):
        server.play(Fault(close=True))
        assert said(rest) == ["one", "two"]
        server.wait_closed()
    assert said(rest) == ["one", "two"]
    assert len(server.history) == 3


@pytest.mark.parametrize(
    "pieces",
    [lambda: iter([b"data: " + b"x" * 70_000] * 400), lambda: iter([b"data: " + b"x" * 1000 + b"\n\n"] * 17_000),
     lambda: iter([b"data: x\n" * 1000] * 200)],
    ids=["a line", "events", "an event"],
)  # fmt: skip
def test_a_stream_without_an_end_is_not_read_to_its_end(server: StreamServer, pieces: Make) -> None:
    server.make = pieces
    with pytest.raises(ProviderError, match="sent more than a reply may hold: check its address"):
        said(JsonClient(server.url, {}), seconds=20)


def test_a_refusal_without_an_end_is_not_read_to_its_end(server: StreamServer) -> None:
    server.play(Fault(400, said="x" * (17 * 1024 * 1024)))
    with pytest.raises(ProviderError, match="sent more than a reply may hold"):
        said(JsonClient(server.url, {}))


def _silence() -> Iterator[bytes]:
    yield b"data: one\n\n"
    time.sleep(LONG)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(hang=LONG),
        Fault(change=lambda pieces: _silence()),
        rate_limited(0.9),
        Fault(drip=1),
        Fault(400, hang=LONG),
    ],
    ids=["before the first byte", "in the middle", "between two tries", "in the headers", "before a refusal"],
)
def test_a_reader_who_left_ends_the_wait(server: StreamServer, fault: Fault) -> None:
    rest = JsonClient(server.url, {}, tries=20)
    # Over a connection that was used before, and over a fresh one.
    said(rest)
    for _ in range(2):
        server.left.clear()
        server.play(*[fault] * 20)
        deadline = Deadline()
        with (
            leaving(server, deadline.abort),
            pytest.raises(ProviderError, match=r"^Nobody waits for 127\.0\.0\.1 any more: ask again\.$"),
        ):
            said(rest, seconds=20, deadline=deadline)
        assert fault.status == 429 or server.left.wait(SOON)
        server.faults.clear()
    assert said(rest) == ["one", "two"]


def test_who_left_before_is_not_asked_for(server: StreamServer) -> None:
    deadline = Deadline()
    deadline.abort()
    with pytest.raises(ProviderError, match="Nobody waits"):
        said(JsonClient(server.url, {}), deadline=deadline)
    assert (server.history, server.connections) == ([], 0)


def test_a_late_abort_harms_nobody(server: StreamServer) -> None:
    aborts: list[Callable[[], None]] = []

    @contextmanager
    def kept(close: Callable[[], None]) -> Iterator[None]:
        aborts.append(close)
        yield

    rest, aborted = JsonClient(server.url, {}), threading.Event()
    with rest.stream("/", {}, seconds=5, closing=kept) as stream:
        list(stream.events())
    rest.post("/", {}, closing=kept)

    def waiting() -> Iterator[bytes]:
        yield b"data: one\n\n"
        aborted.wait(5)
        yield b"data: two\n\n"

    server.make = waiting
    with streaming(rest) as stream:
        events = stream.events()
        assert next(events).data == "one"
        for abort in aborts:
            abort()
        aborted.set()
        assert [event.data for event in events] == ["two"]
    assert (len(aborts), server.connections) == (2, 1)


def _counted() -> Iterator[bytes]:
    for i in range(20):
        time.sleep(0.001)
        yield b"data: %d\n\n" % i


def test_streams_of_many_threads_meet_no_abort_of_another(server: StreamServer) -> None:
    server.make = _counted
    rest = JsonClient(server.url, {})

    def turn(i: int) -> str:
        deadline = Deadline()
        if i % 2:
            Timer(i % 50 / 1000, deadline.abort).start()
        try:
            return "".join(said(rest, deadline=deadline))
        except ProviderError as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(turn, range(200)))
    whole = "".join(map(str, range(20)))
    assert set(ends[::2]) == {whole}
    assert set(ends[1::2]) == {whole, "Nobody waits for 127.0.0.1 any more: ask again."}


def test_a_greeting_without_a_reply_can_be_ended() -> None:
    deadline = Deadline()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        rest = JsonClient(f"https://127.0.0.1:{silent.getsockname()[1]}", {})
        started = time.monotonic()
        Timer(0.2, deadline.abort).start()
        with pytest.raises(ProviderError, match="Nobody waits"):
            said(rest, seconds=20, deadline=deadline)
    assert 0.2 <= time.monotonic() - started < SOON


def parsed(*pieces: bytes) -> list[Event]:
    parser = Parser()
    return [event for piece in pieces for event in parser.feed(piece)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        # The standard's own examples.
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [("message", "YHOO\n+2\n10")]),
        (
            b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            [("message", "first event"), ("message", "second event"), ("message", " third event")],
        ),
        (b"data\n\ndata\ndata\n\ndata:", [("message", ""), ("message", "\n")]),
        (b"data:test\n\ndata: test\n\n", [("message", "test"), ("message", "test")]),
        (b"event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n", [("add", "73857293"), ("remove", "2153")]),
        # Names, and what is no event.
        (b"event: add\n\ndata: x\n\n", [("message", "x")]),
        (b"event: a\nevent: b\ndata: x\n\n", [("b", "x")]),
        (b"event:\ndata: x\n\n", [("message", "x")]),
        (b"\n\n\n: only a comment\n\nretry: 10\n\nDATA: x\n\n data: x\n\n", []),
        (b"data: a: b\n\n", [("message", "a: b")]),
        (b"data: not ended\n", []),
        # Ends of lines, the mark of the byte order, and bytes that are no text.
        (b"data: a\r\ndata: b\rdata: c\n\r\n", [("message", "a\nb\nc")]),
        (b"data: a\r\rdata: b\r\n\r\n", [("message", "a"), ("message", "b")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("message", "a")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [("message", "a")]),
        ("data: Grüße \U0001f30d\u2028\x0b\x85\n\n".encode(), [("message", "Grüße \U0001f30d\u2028\x0b\x85")]),
        (b"data: \xff\xc3\n\n", [("message", "\ufffd\ufffd")]),
        (b"data: a\0b\n\n", [("message", "a\0b")]),
    ],
)
def test_a_stream_is_parsed_as_the_standard_says(stream: bytes, events: list[tuple[str, str]]) -> None:
    assert parsed(stream) == events
    assert parsed(*(stream[i : i + 1] for i in range(len(stream)))) == events
    assert parsed(stream.replace(b"\n", b"\r")) == events if b"\r" not in stream else True


def ended(*pieces: bytes) -> list[Event]:
    parser = Parser()
    return [*(event for piece in pieces for event in parser.feed(piece)), *parser.end()]


@pytest.mark.parametrize("body", ['{"a": "é"}', " \n[1]", "<html>é</html>", "\ufeff{}"])
def test_a_document_is_one_event_at_its_end(body: str) -> None:
    raw = body.encode()
    document = [(DOCUMENT, body.removeprefix("\ufeff").removeprefix(" \n"))]
    assert [(e.name, e.data.strip()) for e in ended(raw)] == document
    assert [(e.name, e.data.strip()) for e in ended(*(raw[i : i + 1] for i in range(len(raw))))] == document


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_the_last_event_may_lack_its_empty_line(end: str) -> None:
    assert ended(f"data: a\n\ndata: é{end}".encode()) == [("message", "a"), ("message", "é")]


def test_pieces_may_begin_and_stop_anywhere() -> None:
    chance = random.Random(7)
    for _ in range(300):
        parts = ["data:", "event: é", " ", "\r", "\n", "\r\n", "\n\n", "x", "\U0001f30d", ":", "\ufeff"]
        stream = "".join(chance.choices(parts, k=40)).encode()
        cuts = sorted(chance.choices(range(len(stream) + 1), k=6))
        pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True) if a < b]
        assert parsed(*pieces) == parsed(stream)


def test_an_event_is_there_with_the_last_byte_of_its_line() -> None:
    parser = Parser()
    assert list(parser.feed(b"data: a\r\n\r")) == [("message", "a")]
    assert list(parser.feed(b"\ndata: b\n")) == []
    assert parser.pending == len(b"data: b")
    assert list(parser.feed(b"\n")) == [("message", "b")]
    assert parser.pending == 0
