"""A sealed folder as one file that keeps its holes: how a generation travels.

The files of a shard have holes: the archives that Python reads would store them or write them out.
Ours is the line `CVPACK1`, then entries of one letter each with its fields; integers are little-endian.

    D  path length u16, path                          a folder, before what is in it
    F  path length u16, path, size u64                a file, nothing but a hole as yet
    B  offset u64, length u32, stored u32, bytes      data of the file before; deflated where `stored` is below `length`
    E  the end

What is unpacked is hostile until its hash is found to be right: a path can't leave the folder, a block can't leave its
file, and no entry makes anything but new folders and new plain files.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

from chapterverse.errors import IndexCorrupt
from chapterverse.store import files

_MAGIC = b"CVPACK1\n"
_PATH, _SIZE, _BLOCK = struct.Struct("<H"), struct.Struct("<Q"), struct.Struct("<QII")
#: Bytes of a block: holes within the data are left out in these steps, and it bounds the memory that either side needs.
_STEP = 1 << 16
_HOLE = bytes(_STEP)
#: Deflating must save a quarter, or the block is faster as it is: text does, vectors don't.
_WORTH = 0.75
_MAX_FILE_BYTES = 1 << 40
#: Folders in each other; the engine makes six. Removing a tree goes down into it, and Python only so far.
_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class PackedSize:
    """What is known of a packed folder: its size in bytes, and their SHA-256 in hex."""

    size: int
    sha256: str


def pack_folder(folder: Path, target: BinaryIO) -> PackedSize:
    """Write a sealed folder to an open file; return what was written."""
    sink = _Sink(target)
    sink.write(_MAGIC)
    for below, names in files.folders(folder):
        if below != Path():
            sink.entry(b"D", below)
        for name in names:
            with (folder / below / name).open("rb", buffering=0) as file:
                _pack_file(file, below / name, sink)
    sink.write(b"E")
    return PackedSize(sink.size, sink.digest.hexdigest())


def unpack(chunks: Iterable[bytes], folder: Path, packed_size: PackedSize) -> None:
    """Make `folder` of a pack that comes in chunks of any size.

    Raises:
        IndexCorrupt: it is not the pack that was promised; the folder holds a part of it then.
        OSError: the disk refused.
    """
    folder.mkdir()
    source = _Source(chunks, packed_size)
    if source.take(len(_MAGIC)) != _MAGIC:
        _raise_damage()
    with contextlib.ExitStack() as opened:
        file: BinaryIO | None = None
        while (kind := source.take(1)) != b"E":
            if kind == b"D":
                with _as_damage():
                    (folder / _path(source)).mkdir()
            elif kind == b"F":
                opened.close()
                file = opened.enter_context(_new_file(folder, source))
            elif kind == b"B" and file is not None:
                _unpack_block(source, file)
            else:
                _raise_damage()
    source.check_end()


class _Sink:
    """An open file that is hashed as it is written."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        self._target.write(data)
        self.digest.update(data)
        self.size += len(data)

    def entry(self, kind: bytes, path: Path) -> None:
        name = path.as_posix().encode()
        self.write(kind + _PATH.pack(len(name)) + name)


def _pack_file(file: BinaryIO, path: Path, sink: _Sink) -> None:
    size = os.fstat(file.fileno()).st_size
    sink.entry(b"F", path)
    sink.write(_SIZE.pack(size))
    for start, end in files.extents(file.fileno(), size):
        file.seek(start)
        while start < end:
            data = file.read(min(_STEP, end - start))
            if data != _HOLE[: len(data)]:
                deflated = zlib.compress(data, 1)
                stored = deflated if len(deflated) < _WORTH * len(data) else data
                sink.write(b"B" + _BLOCK.pack(start, len(data), len(stored)) + stored)
            start += len(data)


class _Source:
    """The bytes of a pack in order, hashed as they come."""

    def __init__(self, chunks: Iterable[bytes], packed_size: PackedSize) -> None:
        self._chunks = iter(chunks)
        self._packed = packed_size
        self._digest = hashlib.sha256()
        self._size = 0
        self._buffer = bytearray()

    def take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if not self._more():
                _raise_damage()
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def check_end(self) -> None:
        if self._buffer or self._more() or PackedSize(self._size, self._digest.hexdigest()) != self._packed:
            _raise_damage()

    def _more(self) -> bool:
        chunk = next(self._chunks, b"")
        self._size += len(chunk)
        # A sender of more than was promised must not fill the disk.
        if self._size > self._packed.size:
            _raise_damage()
        self._digest.update(chunk)
        self._buffer += chunk
        return bool(chunk)


def _path(source: _Source) -> str:
    """Return a path that stays in its folder."""
    raw = source.take(*_PATH.unpack(source.take(_PATH.size)))
    try:
        path = raw.decode()
    except UnicodeDecodeError:
        _raise_damage()
    parts = path.split("/")
    if "\0" in path or "\\" in path or len(parts) > _MAX_DEPTH or not {"", ".", ".."}.isdisjoint(parts):
        _raise_damage()
    return path


def _new_file(folder: Path, source: _Source) -> BinaryIO:
    path = _path(source)
    (size,) = _SIZE.unpack(source.take(_SIZE.size))
    if size > _MAX_FILE_BYTES:
        _raise_damage()
    with _as_damage():
        file = (folder / path).open("xb", buffering=0)
    try:
        file.truncate(size)
    except BaseException:
        file.close()
        raise
    return file


def _unpack_block(source: _Source, file: BinaryIO) -> None:
    offset, length, stored = _BLOCK.unpack(source.take(_BLOCK.size))
    end = os.fstat(file.fileno()).st_size
    if not (0 < stored <= length <= _STEP and offset + length <= end and offset >= file.tell()):
        _raise_damage()
    data = source.take(stored)
    if stored < length:
        data = _inflate(data, length)
    file.seek(offset)
    # An unbuffered file may write less than it was given.
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _inflate(data: bytes, length: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(data, length + 1)
    except zlib.error:
        _raise_damage()
    if len(inflated) != length or not inflater.eof:
        _raise_damage()
    return inflated


@contextlib.contextmanager
def _as_damage() -> Iterator[None]:
    """Paths that collide, lie in no folder or are too long are the pack's fault and not the disk's."""
    try:
        yield
    except (FileExistsError, FileNotFoundError, NotADirectoryError):
        _raise_damage()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            _raise_damage()
        raise


def _raise_damage() -> NoReturn:
    raise IndexCorrupt("The packed index is damaged: build it again.")
