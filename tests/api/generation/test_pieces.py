"""Stream events that arrive together are sent together, and none waits for the next."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from chapterverse.net import JsonClient, Stream
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation.pieces import Pieces
from fakes.loopback import Answer, LoopbackServer, Request


class Speaker(LoopbackServer):
    """Sends these bytes, as they come, as one stream."""

    def __init__(self, sent: Iterator[bytes]) -> None:
        super().__init__()
        self.sent = sent

    def answer(self, request: Request) -> Answer:
        return Answer(200, self.sent, {"Content-Type": "text/event-stream"})


def said(words: str) -> bytes:
    """Return an event for each letter; a full stop is an event without a word."""
    return "".join(f"data: {word}\n\n" for word in words).encode()


def passed_on(stream: Stream) -> Iterator[str]:
    pieces = Pieces(stream)
    for event in stream.events():
        if text := pieces.take(event.data.strip(".")):
            yield text
    assert not pieces.rest()


def heard(sent: Iterator[bytes]) -> Iterator[str]:
    with Speaker(sent) as server:
        closing = Deadline().closing
        with JsonClient(server.url, {}).stream("/", {}, seconds=5, closing=closing) as stream:
            yield from passed_on(stream)


def test_words_that_came_at_once_go_on_together() -> None:
    assert list(heard(iter([said("abcdefghij")]))) == ["abcd", "efgh", "ij"]


def test_an_event_without_a_word_holds_none_back() -> None:
    assert list(heard(iter([said("..a.......b.c.")]))) == ["a", "b", "c"]


def test_no_word_waits_while_the_server_is_silent() -> None:
    arrived = Event()

    def one_at_a_time() -> Iterator[bytes]:
        for words in ("ab", "c..", "d", "."):
            yield said(words)
            assert arrived.wait(5), "the words did not go on while the stream was silent"
            arrived.clear()

    texts = []
    for text in heard(one_at_a_time()):
        texts.append(text)
        arrived.set()
        if text == "d":
            break
    assert texts == ["ab", "c", "d"]
