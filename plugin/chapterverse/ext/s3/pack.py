"""Packs a sealed folder into one file that keeps its holes, to upload a generation, and unpacks it.

The archives that Python can read would store the holes of a shard's files, or write them out. A pack is the line
`CVPACK1`, then entries of one letter each with its fields. Integers are little-endian.

    D  path length u16, path                          a folder, before its content
    F  path length u16, path, size u64                a file, a single hole at first
    B  offset u64, length u32, stored u32, bytes      data of the last file; deflated if `stored` is below `length`
    E  the end

The content is not trusted until its hash is checked at the end. So a path can't leave the folder, a block can't leave
its file, and entries make only new folders and new plain files.
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
_PATH_LENGTH, _FILE_SIZE, _BLOCK_HEADER = struct.Struct("<H"), struct.Struct("<Q"), struct.Struct("<QII")
#: Bytes of a block. Zeros within the data are skipped by blocks, and a block bounds the memory that either side needs.
_BLOCK_BYTES = 1 << 16
_HOLE = bytes(_BLOCK_BYTES)
#: A block is deflated if that saves a quarter, as it does for text. Vectors are faster as they are.
_MAX_DEFLATED_SHARE = 0.75
_MAX_FILE_BYTES = 1 << 40
#: Folders in each other. The engine makes six. Python removes a tree by recursion, whose depth is limited.
_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class PackedSize:
    """The size of a pack in bytes, and its SHA-256 in hex."""

    size: int
    sha256: str


def pack_folder(folder: Path, target: BinaryIO) -> PackedSize:
    """Write a sealed folder to an open file; return the size and the hash of the pack."""
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
    """Make `folder` from a pack that comes in chunks of any size.

    Raises:
        IndexCorrupt: it is not the pack that `packed_size` describes. The folder holds a part of it then.
        OSError: the folder can't be written.
    """
    folder.mkdir()
    source = _Source(chunks, packed_size)
    if source.take(len(_MAGIC)) != _MAGIC:
        _raise_damage()
    with contextlib.ExitStack() as open_files:
        file: BinaryIO | None = None
        while (kind := source.take(1)) != b"E":
            if kind == b"D":
                with _translating_damage():
                    (folder / _path(source)).mkdir()
            elif kind == b"F":
                open_files.close()
                file = open_files.enter_context(_new_file(folder, source))
            elif kind == b"B" and file is not None:
                _unpack_block(source, file)
            else:
                _raise_damage()
    source.check_end()


class _Sink:
    """Hashes an open file while it is written."""

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
        self.write(kind + _PATH_LENGTH.pack(len(name)) + name)


def _pack_file(file: BinaryIO, path: Path, sink: _Sink) -> None:
    size = os.fstat(file.fileno()).st_size
    sink.entry(b"F", path)
    sink.write(_FILE_SIZE.pack(size))
    for start, end in files.extents(file.fileno(), size):
        file.seek(start)
        while start < end:
            data = file.read(min(_BLOCK_BYTES, end - start))
            if data != _HOLE[: len(data)]:
                deflated = zlib.compress(data, 1)
                stored = deflated if len(deflated) < _MAX_DEFLATED_SHARE * len(data) else data
                sink.write(b"B" + _BLOCK_HEADER.pack(start, len(data), len(stored)) + stored)
            start += len(data)


class _Source:
    """The bytes of a pack in order, hashed while they are read."""

    def __init__(self, chunks: Iterable[bytes], packed_size: PackedSize) -> None:
        self._chunks = iter(chunks)
        self._packed_size = packed_size
        self._digest = hashlib.sha256()
        self._size = 0
        self._buffer = bytearray()

    def take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if not self._more():
                _raise_damage()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def check_end(self) -> None:
        if self._buffer or self._more() or PackedSize(self._size, self._digest.hexdigest()) != self._packed_size:
            _raise_damage()

    def _more(self) -> bool:
        chunk = next(self._chunks, b"")
        self._size += len(chunk)
        # A sender of more than was promised must not fill the disk.
        if self._size > self._packed_size.size:
            _raise_damage()
        self._digest.update(chunk)
        self._buffer += chunk
        return bool(chunk)


def _path(source: _Source) -> str:
    """Return a path that can't leave its folder."""
    raw = source.take(*_PATH_LENGTH.unpack(source.take(_PATH_LENGTH.size)))
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
    (size,) = _FILE_SIZE.unpack(source.take(_FILE_SIZE.size))
    if size > _MAX_FILE_BYTES:
        _raise_damage()
    with _translating_damage():
        file = (folder / path).open("xb", buffering=0)
    try:
        file.truncate(size)
    except BaseException:
        file.close()
        raise
    return file


def _unpack_block(source: _Source, file: BinaryIO) -> None:
    offset, length, stored = _BLOCK_HEADER.unpack(source.take(_BLOCK_HEADER.size))
    end = os.fstat(file.fileno()).st_size
    if not (0 < stored <= length <= _BLOCK_BYTES and offset + length <= end and offset >= file.tell()):
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
def _translating_damage() -> Iterator[None]:
    """Report paths that collide, lie in no folder or are too long as damage of the pack, because the disk is sound."""
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
