"""The room that the engine takes in advance: cut off when a folder is sealed, given back to a copy that is written.

The engine makes files as large as they may become, 160 MB for one chunk, nearly all of it holes. A reader
pays for that: the engine touches most pages, and memory that backs a file system (tmpfs) is allocated for each of
them. These are the files (qdrant-edge-py 0.9.0), each beside what says how much of it is in use:

    page_N.dat      values, in blocks: bitmask.dat has a bit for each block, config.json the sizes of block and page
    tracker.dat     where each value is: a header that counts places, then 16 bytes a place
    chunk_N.mmap    dense vectors: status.dat counts them, config.json has their size and how many a file holds
    flags_a.dat     a bit a place: status.dat counts them. The engine gives it at least 1 MB whenever it opens it
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

#: What a file system allocates at once; a file that is mapped must not be empty.
_PAGE = mmap.PAGESIZE
_TRACKER, _MIN_TRACKER_BYTES = "tracker.dat", 1 << 20
_PLACE = 16
_FLAGS = "flags_a.dat"
#: Of a 32-bit number.
_COMPONENT = 4


def trim(shard: Path) -> None:
    """Cut the files of a closed shard behind what they hold. Readers need no more; a writer needs `restore` first."""
    for folder, config in _storages(shard):
        if "page_size_bytes" in config:
            _trim_values(folder, config["page_size_bytes"], config["block_size_bytes"])
        else:
            _trim_vectors(folder, config["chunk_size_vectors"], config["dim"] * _COMPONENT)


def restore(shard: Path) -> None:
    """Give the files of a trimmed shard the sizes with which the engine made them."""
    for folder, config in _storages(shard):
        size = config.get("page_size_bytes") or config["chunk_size_bytes"]
        for path in (*folder.glob("page_*.dat"), *folder.glob("chunk_*.mmap")):
            os.truncate(path, size)
        if "page_size_bytes" in config:
            tracker = folder / _TRACKER
            os.truncate(tracker, max(_MIN_TRACKER_BYTES, 1 << (tracker.stat().st_size - 1).bit_length()))


def release(folder: Path, names: Iterable[str]) -> None:
    """Free what is allocated for flags that don't exist: an opening engine reads them as well.

    A reader sees nothing but zeros there, before and afterwards, also while others have the files open.

    Args:
        names: files below the folder, of which those of flags are looked at.
    """
    for name in names:
        if name.endswith(_FLAGS):
            # Where the system can't, they stay allocated.
            with contextlib.suppress(OSError):
                _release(folder / name)


def _release(path: Path) -> None:
    allocated = path.stat().st_blocks * 512
    # A place in memory of two pages more is not worth a request.
    if allocated <= 2 * _PAGE:
        return
    flags = _number(path.with_name("status.dat"), 8)
    used = _round((flags + 7) // 8)
    if allocated <= used or not hasattr(mmap, "MADV_REMOVE"):
        return
    with path.open("r+b", buffering=0) as file, mmap.mmap(file.fileno(), 0) as mapped:
        if used < len(mapped):
            mapped.madvise(mmap.MADV_REMOVE, used, len(mapped) - used)


def _trim_values(folder: Path, page_size: int, block_size: int) -> None:
    bits = (folder / "bitmask.dat").read_bytes()
    of_page = page_size // block_size // 8
    for number, start in enumerate(range(0, len(bits), of_page)):
        used = int.from_bytes(bits[start : start + of_page], "little").bit_length()
        _truncate(folder / f"page_{number}.dat", used * block_size)
    places = _number(folder / _TRACKER, 4)
    _truncate(folder / _TRACKER, 4 + places * _PLACE)


def _trim_vectors(folder: Path, of_file: int, size: int) -> None:
    remaining = _number(folder / "status.dat", 8)
    for number in range(len(list(folder.glob("chunk_*.mmap")))):
        _truncate(folder / f"chunk_{number}.mmap", max(0, min(of_file, remaining)) * size)
        remaining -= of_file


def _truncate(path: Path, used_bytes: int) -> None:
    # Never longer than it is: what the engine would read there is not ours to make up.
    os.truncate(path, min(path.stat().st_size, max(_PAGE, _round(used_bytes))))


def _storages(shard: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the folders of values and of dense vectors, with their configuration."""
    for path in shard.rglob("config.json"):
        config = json.loads(path.read_bytes())
        if config.get("mode") == "mutable" or "chunk_size_vectors" in config:
            yield path.parent, config


def _number(path: Path, size: int) -> int:
    """Return the unsigned number that a file begins with."""
    with path.open("rb") as file:
        return int.from_bytes(file.read(size), "little")


def _round(size: int) -> int:
    return -(-size // _PAGE) * _PAGE
