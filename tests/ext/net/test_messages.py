"""Bodies that a server compressed: read as they come, whatever the pieces, and bounded."""

from __future__ import annotations

import gzip
import time
import tracemalloc
import zlib
from itertools import chain

import pytest

from chapterverse.ext.net.messages import DamagedBody, UnknownCoding, unpack, unpack_body

TEXT = b"".join(b"data: event %d of a stream\n\n" % n for n in range(9000))
MB = 1024 * 1024


PACKED = {"gzip": gzip.compress(TEXT), "x-gzip": gzip.compress(TEXT), "deflate": zlib.compress(TEXT)}


@pytest.mark.parametrize("size", [1, 2, 1000, 10 * MB])
@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        *PACKED.items(),
        ("GZIP ", gzip.compress(TEXT[:50]) + gzip.compress(TEXT[50:])),
        *((coding, packed + padding) for coding, packed in PACKED.items() for padding in (bytes(700), b"\x1f", b"\n")),
    ],
)
def test_pieces_of_any_size_are_unpacked(coding: str, packed: bytes, size: int) -> None:
    pieces = (packed[i : i + size] for i in range(0, len(packed), size))
    assert b"".join(unpack(pieces, coding)) == TEXT


@pytest.mark.parametrize("coding", ["", "identity", "utf-8", "none", "aws-chunked", "br", "gzip, br", *PACKED])
@pytest.mark.parametrize(
    "text", [TEXT, "Grüße".encode(), b'{"a":1}', b"data: x", b"hello", b"x", b"", b"\x1f is no mark"]
)
def test_what_is_not_compressed_is_left_alone(coding: str, text: bytes) -> None:
    assert b"".join(unpack([b"", text[:1], text[1:]], coding)) == text
    assert unpack_body(text, coding, len(text)) == text


@pytest.mark.parametrize("coding", PACKED)
def test_a_body_that_is_cut_or_damaged_is_an_error(coding: str) -> None:
    packed = PACKED[coding]
    for damaged in (packed[:-3], packed[:2], packed[:50] + b"\xff\xfe" + packed[52:]):
        with pytest.raises(DamagedBody):
            b"".join(unpack([damaged], coding))


@pytest.mark.parametrize("coding", ["gzip, identity", "None,GZIP,", "aws-chunked, gzip"])
def test_a_list_may_hold_one_compression(coding: str) -> None:
    assert unpack_body(gzip.compress(TEXT), coding, MB) == TEXT
    with pytest.raises(UnknownCoding):
        unpack_body(gzip.compress(gzip.compress(TEXT)), f"{coding}, gzip", MB)


def test_what_has_no_text_is_no_left_over_label() -> None:
    image = b"\x89PNG"
    for coding in ("", "gzip", "aws-chunked"):
        assert unpack_body(image, coding, 9) == image
    bare = zlib.compress(TEXT, wbits=-15)
    for body, coding in (
        (b"\x8b\x00\x80", "br"),
        (b"caf\xe9", "br"),
        (bare, "deflate"),
        (gzip.compress(image), "br, gzip"),
    ):
        with pytest.raises(UnknownCoding):
            unpack_body(body, coding, MB)


def test_padding_is_bounded() -> None:
    padding = (bytes(1000) for _ in range(1_000_000))
    with pytest.raises(DamagedBody):
        b"".join(unpack(chain([gzip.compress(TEXT)], padding), "gzip"))
    assert next(padding)


def test_an_event_is_there_before_the_next_is_packed() -> None:
    packer = zlib.compressobj(wbits=31)
    events = unpack((packer.compress(e) + packer.flush(zlib.Z_SYNC_FLUSH) for e in (b"one", b"two")), "gzip")
    assert [next(events), next(events)] == [b"one", b"two"]


def test_a_bomb_is_never_held_whole() -> None:
    bomb = gzip.compress(bytes(64 * MB))
    tracemalloc.start()
    assert unpack_body(bomb, "gzip", 1000) == bytes(1001)
    assert sum(map(len, unpack([bomb], "gzip"))) == 64 * MB
    assert tracemalloc.get_traced_memory()[1] < MB
    tracemalloc.stop()


def test_many_members_take_time_in_proportion() -> None:
    def seconds(members: int) -> float:
        body = gzip.compress(b"", mtime=0) * members
        start = time.process_time()
        assert unpack_body(body, "gzip", MB) == b""
        return time.process_time() - start

    few = min(seconds(20_000) for _ in range(3))
    assert seconds(160_000) < 24 * few
