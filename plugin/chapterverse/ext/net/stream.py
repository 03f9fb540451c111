"""Reads a streamed reply: server-sent events as they arrive, a document in their place, or a large object.

Events are those of the HTML standard, section 9.2.6. A body that begins as JSON or HTML does is no stream, whatever its
label says: it is one event, `DOCUMENT`, at its end.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple

from chapterverse.errors import ProviderError
from chapterverse.ext.net.connections import Exchange, Response, translating_errors
from chapterverse.ext.net.messages import content_coding, lower_headers, parse_reply, read_body, unpack

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")
#: The first character of a document; no line of a stream begins so.
_DOCUMENT_START = (b"{", b"[", b"<")

#: The name of the one event of a body that is a document.
DOCUMENT = "document"
#: While the block runs, another thread may call the given function to end the block's waiting.
Closing = Callable[[Callable[[], None]], AbstractContextManager[object]]
#: The most bytes of a reply of a model or a store. 96 vectors of 3,072 numbers take 8 MB.
_MAX_REPLY_BYTES = 16 * 1024 * 1024
#: The most bytes of an event of a model: some words, or a citation with its passage.
_MAX_EVENT_BYTES = 1024 * 1024
_PIECE_BYTES = 64 * 1024
#: Statuses of a stream: the whole object, or the part of it that was requested.
_STREAM_STATUSES = {200, 206}
#: Seconds to wait for the end of a stream after its last event, so that its connection can be used again.
_LINGER_SECONDS = 0.05


class Event(NamedTuple):
    """One event; `name` is "message" if the server gives none."""

    name: str
    data: str


class Parser:
    """Parses bytes to events; an event without the empty line that ends it is ignored, unless the stream ends there."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._after_return = False
        self._is_first = True
        self._name = ""
        self._data: list[str] = []
        self._pending = 0
        # Unknown until the first character that is no blank.
        self._is_document: bool | None = None

    @property
    def pending(self) -> int:
        """The number of bytes that wait for the end of their event."""
        return self._pending + len(self._line)

    def feed(self, piece: bytes) -> Iterator[Event]:
        """Yield the events that these bytes end. They may begin and stop anywhere, even within a character."""
        start = (self._line + piece).lstrip() if self._is_document is None else b""
        if start and not _BOM.startswith(start):
            self._is_document = start.removeprefix(_BOM).lstrip().startswith(_DOCUMENT_START)
        if self._is_document:
            self._line += piece
            return
        for line in self._lines(piece):
            self._pending += len(line)
            if line:
                self._take(line)
                continue
            if self._data:
                yield Event(self._name or "message", "\n".join(self._data))
            self._name, self._data, self._pending = "", [], 0

    def end(self) -> Iterator[Event]:
        """Yield the event that the end of the body ends: servers leave out the empty line behind the last one."""
        if self._is_document:
            yield Event(DOCUMENT, self._line.decode(errors="replace").removeprefix("\ufeff"))
            return
        yield from self.feed(b"\n\n")

    def _lines(self, piece: bytes) -> Iterator[bytes]:
        # A carriage return ends its line at once, and the line feed that may follow belongs to it.
        if self._after_return and piece.startswith(b"\n"):
            piece = piece[1:]
        self._after_return = piece.endswith(b"\r")
        *ends, rest = _LINE_END.split(piece)
        for end in ends:
            line = bytes(self._line + end)
            self._line.clear()
            yield line.removeprefix(_BOM) if self._is_first else line
            self._is_first = False
        self._line += rest

    def _take(self, line: bytes) -> None:
        # A line without a name before its colon is a comment; "id" and "retry" are for browsers that connect again.
        field, _, value = line.decode(errors="replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value


class Stream:
    """An open stream, or the server's error in place of one.

    Attributes:
        headers: the headers by their names in lower case.
        raw: the body of a reply that is no stream.
        body: the same, parsed; None if it is no JSON.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.status = exchange.response.status
        self.headers: Mapping[str, str] = lower_headers(exchange.response)
        self.raw = b""
        self.body: Any = None
        self._exchange = exchange
        self._is_open = True
        if self.status not in _STREAM_STATUSES:
            self.raw = read_reply(exchange)
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
            if total > _MAX_REPLY_BYTES or parser.pending > _MAX_EVENT_BYTES:
                raise _too_large(self._exchange.host)
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
        with translating_errors(self._exchange.host, self._exchange.request):
            yield from unpack(self._packed_pieces(), content_coding(self._exchange.response))

    def _packed_pieces(self) -> Iterator[bytes]:
        response = self._exchange.response
        while self._is_open and (piece := response.read1(_PIECE_BYTES)):
            yield piece
        # A socket that was shut down looks like the end of the response.
        self._exchange.request.abort.check()
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
        self._exchange.release()

    def abandon(self) -> None:
        """Close the connection, which tells the server that its client has left."""
        if self._is_open:
            self._is_open = False
            self._exchange.request.abort.release()
            self._exchange.connection.close()


def read_reply(exchange: Exchange) -> bytes:
    """Return the body of a reply, unpacked.

    Raises:
        ProviderError: it is too large.
        HTTPException: it broke off, or is damaged.
    """
    raw = read_body(exchange.response, _MAX_REPLY_BYTES)
    if raw is None:
        raise _too_large(exchange.host)
    return raw


def _too_large(host: str) -> ProviderError:
    return ProviderError(f"{host} sent more than a reply may hold: check its address.")


def _end(response: Response) -> None:
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    response.close()
