"""A generation's folder as files: cut to what is used, copied, listed in its manifest, made to survive a power cut.

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
import errno
import json
import math
import mmap
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from chapterverse.errors import IndexCorrupt, IndexFault
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

#: The bytes that a file system allocates at once. A mapped file has at least these, because it must not be empty.
_PAGE_BYTES = mmap.PAGESIZE
_TRACKER, _MIN_TRACKER_BYTES = "tracker.dat", 1 << 20
_TRACKER_ENTRY_BYTES = 16
_FLAGS = "flags_a.dat"
#: Bytes of one 32-bit component of a vector.
_COMPONENT_BYTES = 4

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


def _is_in_memory(folder: Path) -> bool:
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
    if not _is_in_memory(folder):
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
