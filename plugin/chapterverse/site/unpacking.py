"""What is packed in a file, by its first bytes and whatever it is called."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import IO, cast

#: Bytes that are searched for packed streams at once, and the most that one of them is unpacked to.
_WINDOW, _LARGEST = 64_000_000, 64_000_000

_ZLIB = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
#: PDF, PNG, web font, Git's objects, our own pack of an index: streams of zlib with something else between them.
_STREAMS = (b"%PDF", b"\x89PNG", b"wOFF", b"PACK", b"CVPACK")

#: What a damaged part raises where it is read.
DAMAGES = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError)
#: What an archive raises besides: it is locked by a password, or compressed in a way that is not known here.
_LOCKED = (*DAMAGES, NotImplementedError, RuntimeError, ValueError)


def unpacked(file: IO[bytes]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the parts of an archive, a compressed file or a document, each with its name, "" where it has none.

    What is damaged or locked by a password yields nothing from there on. A part must be read before the next one.
    """
    file.seek(0)
    head = file.read(264)
    file.seek(0)
    with contextlib.suppress(*_LOCKED):
        if head.startswith(b"\x1f\x8b"):
            yield "", cast(IO[bytes], gzip.GzipFile(fileobj=file))
        elif head.startswith(b"BZh"):
            yield "", bz2.BZ2File(file)
        elif head.startswith(b"\xfd7zXZ\0"):
            yield "", lzma.LZMAFile(file)  # noqa: SIM115 # it has nothing of its own to close
        elif head.startswith(b"PK\x03\x04"):
            yield from _of_zip(file)
        elif head[257:262] == b"ustar":
            yield from _of_tar(file)
        elif head.startswith(_STREAMS) or _ZLIB.match(head):
            yield from (("", BytesIO(data)) for data in _inflated(file))


def _of_zip(file: IO[bytes]) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            with contextlib.suppress(*_LOCKED), archive.open(member) as part:
                yield member.filename, part


def _of_tar(file: IO[bytes]) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(fileobj=file) as archive:
        for member in archive:
            part = archive.extractfile(member) if member.isfile() else None
            yield member.name, part or BytesIO()


def _inflated(file: IO[bytes]) -> Iterator[bytes]:
    while content := file.read(_WINDOW):
        view, end = memoryview(content), 0
        for match in _ZLIB.finditer(content):
            if match.start() < end:
                continue
            stream = zlib.decompressobj()
            with contextlib.suppress(zlib.error):
                yield stream.decompress(view[match.start() :], _LARGEST)
                end = len(content) - len(stream.unused_data) - len(stream.unconsumed_tail)
