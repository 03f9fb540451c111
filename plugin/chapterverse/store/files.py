"""A generation's folder as files: copied with its holes, listed in its manifest, made to survive a power cut."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from chapterverse.errors import IndexCorrupt
from chapterverse.text.json_text import parse_json

#: Bytes that are copied at once. A block of zeros is skipped, because a file system in memory (tmpfs) makes data of
#: every hole that is read through a map.
_BLOCK_BYTES = 1 << 16
_ZEROS = bytes(_BLOCK_BYTES)
#: Bytes that must stay free, for other programs, and for holes on a disk that doesn't keep them.
_RESERVE_BYTES = 64 << 20
#: Prefix of the folder in which an engine prepares a file while it opens the shard.
_SCRATCH_PREFIX = ".atomicwrite"
#: Files that every engine writes again when it opens the shard, with the same meaning.
_REWRITTEN_FILES = {"edge_config.json", "segment.json"}

_MANIFEST = "manifest.json"
#: Slots of replaced points that any shard may have. A shard may have one more for each of its chunks.
_SPARE_SLOTS = 1000


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of one folder.

    Attributes:
        files: the size of every file that readers don't rewrite, by its path in the folder.
        slots: the number of points that were ever written. The engine never uses the slot of a replaced or deleted one
            again.
        constants: the fields without an index, in which all points have the same value, with that value if any.
    """

    files: Mapping[str, int]
    slots: int
    constants: Mapping[str, Sequence[str | int]] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        return cls(**parse_json((folder / _MANIFEST).read_bytes()))

    def save(self, folder: Path) -> None:
        (folder / _MANIFEST).write_text(json.dumps(asdict(self), indent=1, sort_keys=True), encoding="utf-8")

    def check(self, folder: Path) -> None:
        """Raise `IndexCorrupt` if a file is missing, cut short or unknown."""
        if sizes(folder) != self.files:
            raise IndexCorrupt(f"Files in {folder} are missing or cut short: build it again.")

    def is_worn(self, chunks: int) -> bool:
        """Return whether most slots of a shard with so many chunks are those of deleted points."""
        return self.slots > 2 * chunks + _SPARE_SLOTS


def copy_folder(source: Path, target: Path) -> None:
    """Copy a sealed folder with the holes of its files."""
    for folder, names in folders(source):
        (target / folder).mkdir()
        for name in names:
            _copy_file(source / folder / name, target / folder / name)


def allocated_bytes(root: Path) -> int:
    """Return how many bytes the files below `root` take on the disk, without their holes."""
    return sum((root / folder / name).stat().st_blocks * 512 for folder, names in folders(root) for name in names)


def require_space(folder: Path, size: int) -> None:
    """Raise the error of a full disk unless `size` bytes are free, and a reserve.

    The engine writes through memory maps, where a full disk would kill the process.
    """
    needed = size + _RESERVE_BYTES
    if shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}, {math.ceil(needed / 1e6)} MB must be free")


def is_in_memory(folder: Path) -> bool:
    """Return whether a folder is in a file system that takes memory for each page that is read (tmpfs)."""
    return _is_memory_device(folder.stat().st_dev)


@cache
def _is_memory_device(device: int) -> bool:
    place = f"{os.major(device)}:{os.minor(device)}"
    # Other systems than Linux have no such file.
    with contextlib.suppress(OSError):
        mounts = (line.partition(" - ") for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines())
        return any(about.split()[2] == place and kind.startswith(("tmpfs ", "ramfs ")) for about, _, kind in mounts)
    return False


def sizes(root: Path) -> dict[str, int]:
    """Return the size of every file by its path below `root`, without the manifest and files that readers rewrite."""
    by_path: dict[str, int] = {}
    for folder, names in folders(root):
        for name in names:
            if name not in _REWRITTEN_FILES:
                by_path[(folder / name).as_posix()] = (root / folder / name).stat().st_size
    by_path.pop(_MANIFEST, None)
    return by_path


def sync(root: Path) -> None:
    """Make everything below `root` survive a power cut."""
    for folder, names in folders(root):
        for name in names:
            sync_path(root / folder / name)
        sync_path(root / folder)


def sync_path(path: Path) -> None:
    """Make a file, or the names in a folder, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def folders(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield each folder from `root` down, relative to it, parents first, with the names of its files."""

    def fail(error: OSError) -> None:
        raise error

    for place, children, names in os.walk(root, onerror=fail):
        children[:] = sorted((name for name in children if not name.startswith(_SCRATCH_PREFIX)), reverse=True)
        yield Path(place).relative_to(root), sorted(names)


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb", buffering=0) as original, target.open("xb", buffering=0) as twin:
        size = os.fstat(original.fileno()).st_size
        twin.truncate(size)
        for start, end in extents(original.fileno(), size):
            while start < end:
                data = os.pread(original.fileno(), min(_BLOCK_BYTES, end - start), start)
                if data == _ZEROS[: len(data)]:
                    start += len(data)
                else:
                    # An unbuffered file may write less than it was given.
                    twin.seek(start)
                    start += twin.write(data)


def extents(handle: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each stretch of data between the holes of a file of this size."""
    end = 0
    while end < size:
        try:
            start = os.lseek(handle, end, os.SEEK_DATA)
            end = os.lseek(handle, start, os.SEEK_HOLE)
        except OSError as error:
            # "No such address" means that the rest of the file is a hole. Any other error means that the file system
            # doesn't report holes.
            if error.errno != errno.ENXIO:
                yield end, size
            return
        yield start, end
