"""Cuts off the space that the engine allocates in advance when a folder is sealed, and restores it in a copy.

The engine makes files as large as they may become, 160 MB for one chunk, nearly all of it holes. Readers pay for that,
because the engine touches most pages, and a file system in memory (tmpfs) allocates each of them. No public option of
the engine changes the sizes: with each of `memory` of payload, vectors and ids, and with its optimizers, 49 points have
105 to 142 MB, of which 0.2 are allocated. These are the files
(qdrant-edge-py 0.9.0), each with the file that states how much of it is in use:

    page_N.dat      values, in blocks: bitmask.dat has a bit for each block, config.json the sizes of block and page
    tracker.dat     the places of values: a header that counts them, then 16 bytes each
    chunk_N.mmap    dense vectors: status.dat counts them, config.json has their size and how many a file holds
    flags_a.dat     a bit for each point: status.dat counts them. The engine allocates at least 1 MB when it opens it
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from chapterverse.errors import IndexFault
from chapterverse.store import files

#: The bytes that a file system allocates at once. A mapped file has at least these, because it must not be empty.
_PAGE_BYTES = mmap.PAGESIZE
_TRACKER, _MIN_TRACKER_BYTES = "tracker.dat", 1 << 20
_TRACKER_ENTRY_BYTES = 16
_FLAGS = "flags_a.dat"
#: Bytes of one 32-bit component of a vector.
_COMPONENT_BYTES = 4


def trim(shard: Path) -> None:
    """Cut the unused ends off the files of a closed shard. A writer needs `restore` first; readers don't."""
    for folder, config in _storages(shard):
        if "page_size_bytes" in config:
            _trim_values(folder, config["page_size_bytes"], config["block_size_bytes"])
        else:
            _trim_vectors(folder, config["chunk_size_vectors"], config["dim"] * _COMPONENT_BYTES)


def restore(shard: Path) -> None:
    """Give the files of a trimmed shard the sizes with which the engine made them."""
    for folder, config in _storages(shard):
        size = config.get("page_size_bytes") or config["chunk_size_bytes"]
        for path in (*folder.glob("page_*.dat"), *folder.glob("chunk_*.mmap")):
            os.truncate(path, size)
        if "page_size_bytes" in config:
            tracker = folder / _TRACKER
            os.truncate(tracker, max(_MIN_TRACKER_BYTES, 1 << (tracker.stat().st_size - 1).bit_length()))


def allocate(folder: Path) -> None:
    """Fill the holes of all files below a folder in memory: if that is full, reading a hole kills the process.

    Raises:
        IndexFault: there is not enough memory.
    """
    if not files.is_in_memory(folder):
        return
    holes = {path: stat.st_size for path, stat in _stat_files(folder) if stat.st_size > stat.st_blocks * 512}
    try:
        for path, size in holes.items():
            with contextlib.suppress(FileNotFoundError), path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        release(folder, [path.relative_to(folder).as_posix() for path in holes])
        needed = math.ceil(sum(holes.values()) / 1e6)
        raise IndexFault(
            f"The index in {folder} can't be opened ({error.strerror}): {needed} MB must be free in the memory that "
            "holds it; it is not harmed."
        ) from error


def _stat_files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files below a folder. The engine of another reader may write and rename some of its own meanwhile."""
    for place, _, names in os.walk(folder):
        for path in (Path(place, name) for name in names):
            with contextlib.suppress(FileNotFoundError):
                yield path, path.stat()


def release(folder: Path, names: Iterable[str]) -> None:
    """Free the space of flags that don't exist, which is allocated because the engine reads them when it opens.

    Readers see zeros there before and afterwards, even while they have the files open.

    Args:
        names: paths of files below the folder; those of other files than flags are ignored.
    """
    for name in names:
        if name.endswith(_FLAGS):
            # If the system can't free it, it stays allocated.
            with contextlib.suppress(OSError):
                _release(folder / name)


def _release(path: Path) -> None:
    allocated = path.stat().st_blocks * 512
    # To free one or two pages is not worth a call.
    if allocated <= 2 * _PAGE_BYTES:
        return
    flags = _read_number(path.with_name("status.dat"), 8)
    used = _round_to_page((flags + 7) // 8)
    if allocated <= used or not hasattr(mmap, "MADV_REMOVE"):
        return
    with path.open("r+b", buffering=0) as file, mmap.mmap(file.fileno(), 0) as memory_map:
        if used < len(memory_map):
            memory_map.madvise(mmap.MADV_REMOVE, used, len(memory_map) - used)


def _trim_values(folder: Path, page_size: int, block_size: int) -> None:
    bits = (folder / "bitmask.dat").read_bytes()
    bytes_per_page = page_size // block_size // 8
    for number, start in enumerate(range(0, len(bits), bytes_per_page)):
        used = int.from_bytes(bits[start : start + bytes_per_page], "little").bit_length()
        _truncate(folder / f"page_{number}.dat", used * block_size)
    places = _read_number(folder / _TRACKER, 4)
    _truncate(folder / _TRACKER, 4 + places * _TRACKER_ENTRY_BYTES)


def _trim_vectors(folder: Path, per_file: int, size: int) -> None:
    remaining = _read_number(folder / "status.dat", 8)
    for number in range(len(list(folder.glob("chunk_*.mmap")))):
        _truncate(folder / f"chunk_{number}.mmap", max(0, min(per_file, remaining)) * size)
        remaining -= per_file


def _truncate(path: Path, used_bytes: int) -> None:
    # Never make it longer, because the engine would read the new end as data.
    os.truncate(path, min(path.stat().st_size, max(_PAGE_BYTES, _round_to_page(used_bytes))))


def _storages(shard: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the folders of values and of dense vectors, with their configuration."""
    for path in shard.rglob("config.json"):
        config = json.loads(path.read_bytes())
        if config.get("mode") == "mutable" or "chunk_size_vectors" in config:
            yield path.parent, config


def _read_number(path: Path, size: int) -> int:
    """Return the unsigned number at the beginning of a file."""
    with path.open("rb") as file:
        return int.from_bytes(file.read(size), "little")


def _round_to_page(size: int) -> int:
    return -(-size // _PAGE_BYTES) * _PAGE_BYTES
