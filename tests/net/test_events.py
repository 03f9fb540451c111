"""Server-sent events against the examples and rules of the HTML standard."""

from __future__ import annotations

import random

import pytest

from chapterverse.net.stream import DOCUMENT, Event, Parser


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
