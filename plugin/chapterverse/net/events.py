"""Parses server-sent events from bytes (HTML standard, section 9.2.6).

A body that begins as JSON or HTML does is no stream, whatever its label says: it is one event, `DOCUMENT`, at its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")
#: The first character of a document; no line of a stream begins so.
_DOCUMENT_START = (b"{", b"[", b"<")

#: The name of the one event of a body that is a document.
DOCUMENT = "document"


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
