"""Strips shared libraries: removes symbols, line tables and section headers, which only debuggers read.

A loader reads nothing after the last segment, so the rest of the file can be removed, like `sstrip` of the ELF kickers
does. binutils' `strip` handles one machine only, and packages are built for another.
"""

from __future__ import annotations

import struct
from pathlib import Path

#: Fields of a 64-bit little-endian ELF header (System V ABI, "ELF Header").
_MAGIC = b"\x7fELF\x02\x01"
_PHOFF, _SHOFF, _PHENTSIZE, _SHNUM = 0x20, 0x28, 0x36, 0x3C
#: Fields of a program header: the segment's offset and size in the file.
_OFFSET, _FILESZ = 8, 32


def strip(path: Path) -> None:
    """Cut a library after its last segment; leave other files as they are."""
    library = bytearray(path.read_bytes())
    if not library.startswith(_MAGIC):
        return
    end = max(start + size for start, size in _segments(library))
    # Section headers come after the sections, so declare that there are none.
    struct.pack_into("<Q", library, _SHOFF, 0)
    struct.pack_into("<HH", library, _SHNUM, 0, 0)
    path.write_bytes(library[:end])


def _segments(library: bytearray) -> list[tuple[int, int]]:
    (table,) = struct.unpack_from("<Q", library, _PHOFF)
    size, count = struct.unpack_from("<HH", library, _PHENTSIZE)
    headers = range(table, table + size * count, size)
    return [
        struct.unpack_from("<Q", library, h + _OFFSET) + struct.unpack_from("<Q", library, h + _FILESZ) for h in headers
    ]
