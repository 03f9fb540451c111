"""Unpacks bodies that a server compressed, as they come. What is held at once is bounded, whatever they unpack to."""

from __future__ import annotations

import http.client
import zlib
from collections.abc import Iterable, Iterator

#: The most bytes that are unpacked at once.
_PIECE_BYTES = 64 * 1024

_GZIP, _DEFLATE = {"gzip", "x-gzip"}, "deflate"
#: The first byte of a gzip file, and the low bits of that of zlib's format, for which "deflate" is the name.
_GZIP_MAGIC, _ZLIB_METHOD = 0x1F, 8


class UnknownCoding(http.client.HTTPException):
    """A body is in an encoding that was not asked for, and that is none of these."""


class DamagedBody(http.client.HTTPException):
    """A compressed body is damaged, or ends before its end."""


def unpack(pieces: Iterable[bytes], coding: str) -> Iterator[bytes]:
    """Yield a body that comes in pieces, unpacked by its `Content-Encoding`.

    A gateway may unpack a body and leave the header, so what is not compressed is returned as it is.

    Raises:
        UnknownCoding: see there.
        DamagedBody: see there.
    """
    coding = coding.strip().lower()
    if coding not in {"", "identity", _DEFLATE, *_GZIP}:
        raise UnknownCoding(coding)
    return _unpack(pieces, coding)


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
    member: zlib._Decompress | None = None
    wbits: int | None = None
    for data in pieces:
        if wbits is None and data:
            wbits = _format(data[0], coding)
        if not wbits:
            yield data
            continue
        has_more = True
        while data or (member and has_more):
            member = member or zlib.decompressobj(wbits)
            piece, data = _decompress(member, data)
            has_more = len(piece) == _PIECE_BYTES
            if member.eof:
                member = None
            yield piece
    if member:
        raise DamagedBody(coding)


def _decompress(member: zlib._Decompress, data: bytes) -> tuple[bytes, bytes]:
    """Return what was unpacked, and what is left of the data."""
    try:
        piece = member.decompress(data, _PIECE_BYTES)
    except zlib.error as error:
        raise DamagedBody(str(error)) from error
    return piece, member.unused_data if member.eof else member.unconsumed_tail


def _format(first: int, coding: str) -> int:
    """Return zlib's `wbits` for a body by its first byte; 0 if it is not compressed."""
    if coding in _GZIP:
        return 31 if first == _GZIP_MAGIC else 0
    if coding == _DEFLATE:
        # Some servers send the bare data instead, which has no mark to be known by.
        return 15 if first & 15 == _ZLIB_METHOD else -15
    return 0
