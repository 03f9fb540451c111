"""Reads a streamed reply: server-sent events as they arrive, or a large object."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any

from chapterverse.net.connections import Connections, Exchange, Request, Response
from chapterverse.net.events import Event, Parser
from chapterverse.net.messages import MAX_BYTES, lower_headers, parse_reply, read_body, too_large

#: While the block runs, another thread may call the given function to end the block's waiting.
Closing = Callable[[Callable[[], None]], AbstractContextManager[object]]

#: No event of a model is larger: it has a few words, or a citation with the passage that it cites.
_MAX_EVENT_BYTES = 1024 * 1024

_PIECE = 64 * 1024

#: The whole object, or the part of it that was requested.
_STREAMED = {200, 206}

#: Seconds for the end of a stream to follow its last event, so that its connection can be used again.
_LINGER = 0.05


class Stream:
    """An open stream, or the server's error in place of one.

    Attributes:
        headers: by their names in lower case.
        raw: the body of a reply that is no stream.
        body: the same, parsed as JSON; None where it was none.
    """

    def __init__(self, exchange: Exchange, connections: Connections, request: Request) -> None:
        self.status = exchange.response.status
        self.headers: Mapping[str, str] = lower_headers(exchange.response)
        self.raw = b""
        self.body: Any = None
        self._exchange = exchange
        self._connections = connections
        self._request = request
        self._is_open = True
        if self.status not in _STREAMED:
            self.raw = read_body(exchange.response, connections.host)
            self.body = parse_reply(self.raw)
            self.finish()

    def events(self) -> Iterator[Event]:
        """Yield the events as they come; an event that the server did not end is dropped.

        Raises:
            ProviderError: the stream broke off, took too long, was aborted, or is larger than any answer.
        """
        parser, total = Parser(), 0
        for piece in self.pieces():
            total += len(piece)
            yield from parser.feed(piece)
            if total > MAX_BYTES or parser.pending > _MAX_EVENT_BYTES:
                raise too_large(self._connections.host)

    def whole(self) -> bytes:
        """Return all of it, from a server that sends no events.

        Raises:
            ProviderError: as `events`.
        """
        raw = bytearray()
        for piece in self.pieces():
            raw += piece
            if len(raw) > MAX_BYTES:
                raise too_large(self._connections.host)
        return bytes(raw)

    def hurry(self, seconds: float) -> None:
        """Give the reads that are still to come no more than this."""
        if self._is_open:
            self._exchange.response.hurry(seconds)

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes as they come, however many they are.

        Raises:
            ProviderError: the stream broke off, took too long, or was aborted.
        """
        response = self._exchange.response
        with self._connections.translating_errors(self._request):
            while self._is_open and (piece := response.read1(_PIECE)):
                yield piece
            # A socket that was shut down looks like one whose server has sent everything.
            self._request.abort.check()
            _end(response)

    def finish(self) -> None:
        """Let go of the connection; it is used again if the stream is at its end."""
        # Once alone: it may be another's by now.
        if not self._is_open:
            return
        response = self._exchange.response
        if not response.isclosed() and not response.will_close:
            response.hurry(_LINGER)
            with suppress(OSError, http.client.HTTPException):
                if not response.read1(_PIECE):
                    _end(response)
        self._is_open = False
        self._connections.give_back(self._exchange, self._request)

    def abandon(self) -> None:
        """Close the connection, which tells the server that its client has left."""
        if self._is_open:
            self._is_open = False
            self._request.abort.release()
            self._exchange.connection.close()


def _end(response: Response) -> None:
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    response.close()
