"""Unpacks bodies that a server compressed, as they come. What is held at once is bounded, whatever they unpack to."""

from __future__ import annotations

import codecs
import http.client
import zlib
from collections.abc import Generator, Iterable, Iterator
from itertools import chain

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
