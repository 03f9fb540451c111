"""Reads HTTP/1.1 requests more strictly than h11: heads have one size at most, and bodies one length.

h11 bounds only what is incomplete. Headers that came in one piece, or behind a request that is still being answered,
could be as large as the piece.
"""

from __future__ import annotations

from typing import Any

import h11

from chapterverse_api.rejections import MAX_HEAD_BYTES

#: Bytes that are parsed at once.
_PIECE_BYTES = 16 * 1024


class RequestParser(h11.Connection):
    """A connection's parser, which gives h11 a next piece only if that needs one, so the bound holds for each event.

    It holds for a request's line and headers together, as sent, and for those behind a chunked body.

    Attributes:
        refusal_status: the status for a request that could not be read.
    """

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)
        self.refusal_status = 400
        self._unread = bytearray()

    @property
    def trailing_data(self) -> tuple[bytes, bool]:
        parsing, closed = super().trailing_data
        return parsing + self._unread, closed

    def receive_data(self, data: bytes) -> None:
        self._unread += data

    def next_event(self) -> Any:
        try:
            while True:
                event = self._parse()
                if event is not h11.NEED_DATA or not self._unread:
                    return event
                super().receive_data(bytes(self._unread[:_PIECE_BYTES]))
                del self._unread[:_PIECE_BYTES]
        except h11.RemoteProtocolError as error:
            self.refusal_status = error.error_status_hint
            raise

    def _parse(self) -> Any:
        before = self._parsing_bytes()
        event = super().next_event()
        if isinstance(event, h11.Request | h11.EndOfMessage) and before - self._parsing_bytes() > MAX_HEAD_BYTES:
            raise h11.RemoteProtocolError("Headers too large", error_status_hint=431)
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                # RFC 9112, section 6.3: a server may reject it, because a proxy before us may believe the other length,
                # and must close the connection.
                raise h11.RemoteProtocolError("Content-Length beside Transfer-Encoding")
        return event

    def _parsing_bytes(self) -> int:
        return len(super().trailing_data[0])
