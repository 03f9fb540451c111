"""Headers and bodies of requests, and of replies from servers that may send anything.

Bodies that a server compressed are unpacked as they come. What is held at once is bounded, whatever they unpack to.
"""

from __future__ import annotations

import codecs
import http.client
import json
import math
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import Any

from chapterverse.errors import ConfigurationError
from chapterverse.text.json_text import parse_json

#: The most bytes that are unpacked at once.
_PIECE_BYTES = 64 * 1024

_GZIP = {"gzip", "x-gzip"}
#: Compressions that are not unpacked here.
_OTHERS = {"br", "zstd", "compress", "x-compress"}
#: What zlib calls the formats. "deflate" is the name of zlib's own; bare data has no mark to be told from text by.
_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_MARK_BYTES, _GZIP_MARK, _ZLIB_METHOD = 2, b"\x1f\x8b", 8


class UnknownCoding(http.client.HTTPException):
    """A body is compressed in a way that was not asked for, and that is none of these."""


class DamagedBody(http.client.HTTPException):
    """A compressed body is damaged, or ends before its end."""


def unpack(pieces: Iterable[bytes], coding: str) -> Iterator[bytes]:
    """Yield a body that comes in pieces, unpacked by its `Content-Encoding`, which may be a list.

    A gateway may unpack a body and leave the header. So a body without the mark of gzip is returned as it is, and text
    under any label. Names that stand for no compression, such as "utf-8", are ignored.

    Raises:
        UnknownCoding: see there.
        DamagedBody: see there.
    """
    codings = [name for part in coding.split(",") if (name := part.strip().lower()) in {*_WBITS, *_OTHERS}]
    if not codings:
        return iter(pieces)
    # Never one in another: what the outer one unpacks to would not be bounded by what is returned.
    is_known = len(codings) == 1 and codings[0] in _WBITS
    return _unpack(pieces, codings[0]) if is_known else _check_text(pieces, coding)


def unpack_body(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Return at most `max_bytes` + 1 bytes of a body. Otherwise as `unpack`."""
    unpacked = bytearray()
    # In slices, because zlib copies what is left of its input behind each member.
    slices = (body[i : i + _PIECE_BYTES] for i in range(0, len(body), _PIECE_BYTES))
    for piece in unpack(slices, coding):
        unpacked += piece
        if len(unpacked) > max_bytes:
            break
    return bytes(unpacked[: max_bytes + 1])


def _unpack(pieces: Iterable[bytes], coding: str) -> Iterator[bytes]:
    rest = iter(pieces)
    start = _fill_mark(b"", rest)
    if not _has_mark(start, coding):
        body = chain([start], rest)
        yield from body if coding in _GZIP else _check_text(body, coding)
        return
    while _has_mark(start, coding):
        start = _fill_mark((yield from _unpack_member(chain([start], rest), coding)), rest)
    # What follows without a mark is padding. It is read, as the connection is used again only at its end.
    room = _PIECE_BYTES
    for padding in rest:
        room -= len(padding)
        if room < 0:
            raise DamagedBody(coding)


def _check_text(pieces: Iterable[bytes], coding: str) -> Iterator[bytes]:
    """Yield a body that can be known as not compressed only by being text."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for data in pieces:
            decoder.decode(data)
            yield data
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise UnknownCoding(coding) from error


def _unpack_member(pieces: Iterable[bytes], coding: str) -> Generator[bytes, None, bytes]:
    """Yield what is in the first member, and return what is left of the piece that it ends in."""
    member = zlib.decompressobj(_WBITS[coding])
    for data in pieces:
        has_more = True
        while has_more:
            piece = _decompress(member, data)
            yield piece
            if member.eof:
                return member.unused_data
            data, has_more = member.unconsumed_tail, len(piece) == _PIECE_BYTES
    raise DamagedBody(coding)


def _decompress(member: zlib._Decompress, data: bytes) -> bytes:
    try:
        return member.decompress(data, _PIECE_BYTES)
    except zlib.error as error:
        raise DamagedBody(str(error)) from error


def _fill_mark(start: bytes, rest: Iterator[bytes]) -> bytes:
    """Return a start with as many pieces of the rest as its mark needs."""
    while len(start) < _MARK_BYTES and (piece := next(rest, None)) is not None:
        start += piece
    return start


def _has_mark(start: bytes, coding: str) -> bool:
    """Return whether data begins as gzip does, or as zlib's format, whose first two bytes are a multiple of 31."""
    mark = start[:_MARK_BYTES]
    if coding in _GZIP:
        return mark == _GZIP_MARK
    return len(mark) == _MARK_BYTES and mark[0] & 15 == _ZLIB_METHOD and not int.from_bytes(mark) % 31


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Return a body as it is sent."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate, which JSON may hold and UTF-8 may not, is sent as "?".
    return text.encode(errors="replace")


def read_body(response: http.client.HTTPResponse, max_bytes: int) -> bytes | None:
    """Return the body of a response, unpacked; None if it is larger than `max_bytes`, as sent or as unpacked.

    Raises:
        HTTPException: it broke off, or is damaged.
    """
    if (response.length or 0) > max_bytes:
        return None
    raw = response.read(max_bytes + 1)
    if len(raw) > max_bytes:
        return None
    # `read` with a number of bytes doesn't fail if the body is shorter than announced.
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    body = unpack_body(raw, content_coding(response), max_bytes)
    return body if len(body) <= max_bytes else None


def content_coding(response: http.client.HTTPResponse) -> str:
    """Return how the body of a response is compressed; empty if it is not."""
    return response.getheader("Content-Encoding") or ""


def parse_reply(raw: bytes) -> Any:
    """Return the document in a body; None if it is no JSON."""
    try:
        return parse_json(raw)
    except ValueError:
        return None


def bearer(key: str, variable: str) -> dict[str, str]:
    """Return the header with a key.

    Args:
        variable: the variable of the environment that holds the key.

    Raises:
        ConfigurationError: the key is malformed. Checked here, because the error of the HTTP layer would quote the key.
    """
    if not is_header_safe(key):
        raise ConfigurationError(f"{variable} holds characters that no key has: copy it again.")
    return {"Authorization": f"Bearer {key}"}


def is_header_safe(value: str) -> bool:
    """Return whether a header, or the path of an address, may hold this value."""
    return value.isascii() and value.isprintable()


def lower_headers(response: http.client.HTTPResponse) -> dict[str, str]:
    """Return a response's headers by their names in lower case."""
    return {name.lower(): value for name, value in response.headers.items()}


def asked_pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a reply asks clients to wait; None if it states none. Header names are in lower case."""
    for name, seconds in _PAUSES.items():
        try:
            pause = seconds(headers[name])
        except (KeyError, ValueError, OverflowError):
            continue
        if not math.isnan(pause):
            return max(0.0, pause)
    return None


def _retry_after(value: str) -> float:
    """Return the seconds of a `Retry-After`, which holds a number or a date."""
    try:
        return float(value)
    except ValueError:
        return parsedate_to_datetime(value).timestamp() - time.time()


_PAUSES: dict[str, Callable[[str], float]] = {
    "retry-after-ms": lambda value: float(value) / 1000,
    "retry-after": _retry_after,
    "x-ratelimit-reset": lambda value: float(value) - time.time(),
}
