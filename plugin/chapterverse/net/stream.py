"""Reads a streamed reply: server-sent events as they arrive, a document in their place, or a large object."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any

from chapterverse.net.connections import Connections, Exchange, Request, Response
from chapterverse.net.content_coding import unpack
from chapterverse.net.events import Event, Parser
from chapterverse.net.messages import (
    MAX_REPLY_BYTES,
    content_coding,
    lower_headers,
    parse_reply,
    read_body,
    too_large,
)

#: While the block runs, another thread may call the given function to end the block's waiting.
Closing = Callable[[Callable[[], None]], AbstractContextManager[object]]

#: The most bytes of an event of a model: some words, or a citation with its passage.
_MAX_EVENT_BYTES = 1024 * 1024

_PIECE_BYTES = 64 * 1024

#: Statuses of a stream: the whole object, or the part of it that was requested.
_STREAM_STATUSES = {200, 206}

#: Seconds to wait for the end of a stream after its last event, so that its connection can be used again.
_LINGER_SECONDS = 0.05


class Stream:
    """An open stream, or the server's error in place of one.

    Attributes:
        headers: the headers by their names in lower case.
        raw: the body of a reply that is no stream.
        body: the same, parsed; None if it is no JSON.
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
        if self.status not in _STREAM_STATUSES:
            self.raw = read_body(exchange.response, connections.host)
            self.body = parse_reply(self.raw)
            self.finish()

    def events(self) -> Iterator[Event]:
        """Yield the events as they come; a body that is a document is one event, at its end.

        Raises:
            ProviderError: the stream broke off, took too long, was aborted, or is larger than any answer.
        """
        parser, total = Parser(), 0
        for piece in self.pieces():
            total += len(piece)
            yield from parser.feed(piece)
            if total > MAX_REPLY_BYTES or parser.pending > _MAX_EVENT_BYTES:
                raise too_large(self._connections.host)
        yield from parser.end()

    def limit_remaining_time(self, seconds: float | None) -> None:
        """Limit the time of all further reads to so many seconds; None for the time of the whole request again."""
        if self._is_open:
            self._exchange.response.limit_remaining_time(seconds)

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes as they come, unpacked, without a limit of their number.

        Raises:
            ProviderError: the stream broke off, is damaged, took too long, or was aborted.
        """
        with self._connections.translating_errors(self._request):
            yield from unpack(self._packed_pieces(), content_coding(self._exchange.response))

    def _packed_pieces(self) -> Iterator[bytes]:
        response = self._exchange.response
        while self._is_open and (piece := response.read1(_PIECE_BYTES)):
            yield piece
        # A socket that was shut down looks like the end of the response.
        self._request.abort.check()
        _end(response)

    def finish(self) -> None:
        """Release the connection, which is used again if the stream is at its end."""
        # Only once, because the connection may serve another request by now.
        if not self._is_open:
            return
        response = self._exchange.response
        if not response.isclosed() and not response.will_close:
            response.limit_remaining_time(_LINGER_SECONDS)
            with suppress(OSError, http.client.HTTPException):
                if not response.read1(_PIECE_BYTES):
                    _end(response)
        self._is_open = False
        self._connections.release_connection(self._exchange, self._request)

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
