"""A generation's folder as files: copied with its holes, listed in its manifest, made to survive a power cut."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from chapterverse.errors import IndexCorrupt
from chapterverse.text.json_text import parse_json

#: Bytes that are copied at once, or left out where they are zeros: a file system in memory (tmpfs) makes data of every
#: hole that somebody has read through a map.
_BLOCK = 1 << 16
_ZEROS = bytes(_BLOCK)
#: What is left to others, and what holes take on a disk that doesn't keep them.
_RESERVE = 64 << 20
#: A folder in which an engine that opens the shard just now prepares a file.
_SCRATCH = ".atomicwrite"
#: What every engine that opens the shard writes anew, with the same meaning.
_REWRITTEN = {"edge_config.json", "segment.json"}

_MANIFEST = "manifest.json"
#: Places of replaced points that a shard may hold beside those of its own number of chunks.
_SPARE = 1000


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of one folder.

    Attributes:
        files: the size of every file that readers don't rewrite, by its path in the folder.
        slots: places of points, those of replaced and deleted ones included: the engine never uses one twice.
        constants: the fields without an index, in which all points have the same, with their value if they have one.
    """

    files: Mapping[str, int]
    slots: int
    constants: Mapping[str, Sequence[str | int]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, slots: int, constants: Mapping[str, Sequence[str | int]]) -> Manifest:
        """Return the description of a folder as it is now."""
        return cls(sizes(folder), slots, constants)

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        return cls(**parse_json((folder / _MANIFEST).read_bytes()))

    def save(self, folder: Path) -> None:
        (folder / _MANIFEST).write_text(json.dumps(asdict(self), indent=1, sort_keys=True), encoding="utf-8")

    def check(self, folder: Path) -> None:
        """Raises `IndexCorrupt` if a file is missing, cut short or strange."""
        if sizes(folder) != self.files:
            raise IndexCorrupt(f"Files in {folder} are missing or cut short: build it again.")

    def is_worn(self, chunks: int) -> bool:
        """Return whether most of a shard with so many chunks is places of points that are gone."""
        return self.slots > 2 * chunks + _SPARE


def copy(source: Path, target: Path) -> None:
    """Copy a sealed folder; what is a hole in its files stays one."""
    target.mkdir()
    for folder, names in folders(source):
        for name in names:
            _copy_file(source / folder / name, target / folder / name)
        for child in _children(source / folder):
            (target / folder / child).mkdir()


def allocated_bytes(root: Path) -> int:
    """Return how many bytes the files below `root` take on the disk, without their holes."""
    return sum((root / folder / name).stat().st_blocks * 512 for folder, names in folders(root) for name in names)


def need(folder: Path, size: int) -> None:
    """Raise the error of a full disk while it is still only an error.

    The engine writes through memory maps, where a full disk kills the process.
    """
    if shutil.disk_usage(folder).free < size + _RESERVE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def sizes(root: Path) -> dict[str, int]:
    """Return the size of every file by its path below `root`, but for the manifest and those that readers rewrite."""
    by_path: dict[str, int] = {}
    for folder, names in folders(root):
        for name in names:
            if name not in _REWRITTEN:
                by_path[(folder / name).as_posix()] = (root / folder / name).stat().st_size
    by_path.pop(_MANIFEST, None)
    return by_path


def sync(root: Path) -> None:
    """Return when a power cut can't take anything below `root` any more."""
    for folder, names in folders(root):
        for name in names:
            _sync(root / folder / name)
        _sync(root / folder)


def sync_folder(folder: Path) -> None:
    """Make a rename in the folder survive a power cut."""
    _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def folders(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield each folder from `root` down, relative to it, parents first, with the names of its files."""
    waiting = [Path()]
    while waiting:
        folder = waiting.pop()
        yield folder, sorted(entry.name for entry in os.scandir(root / folder) if entry.is_file())
        waiting.extend(folder / child for child in _children(root / folder))


def _children(folder: Path) -> list[str]:
    return sorted(e.name for e in os.scandir(folder) if e.is_dir() and not e.name.startswith(_SCRATCH))


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb", buffering=0) as original, target.open("xb", buffering=0) as twin:
        size = os.fstat(original.fileno()).st_size
        twin.truncate(size)
        for start, end in extents(original.fileno(), size):
            while start < end:
                data = os.pread(original.fileno(), min(_BLOCK, end - start), start)
                if data == _ZEROS[: len(data)]:
                    start += len(data)
                else:
                    # An unbuffered file may write less than it was given.
                    twin.seek(start)
                    start += twin.write(data)


def extents(handle: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield where a file of this size holds data between its holes."""
    end = 0
    while end < size:
        try:
            start = os.lseek(handle, end, os.SEEK_DATA)
            end = os.lseek(handle, start, os.SEEK_HOLE)
        except OSError as error:
            # "No such address" means that the rest of the file is a hole; any other error, that the file system doesn't
            # report holes.
            if error.errno != errno.ENXIO:
                yield end, size
            return
        yield start, end
