"""Shared libraries without what only a debugger reads: symbols, line tables, and the headers of sections.

A loader maps segments and looks at nothing behind the last of them, so the rest of the file may go. That is what
`sstrip` of the ELF kickers does; `strip` of binutils knows one machine only, and this one packs for another.
"""

from __future__ import annotations

import struct
from pathlib import Path

#: Of a 64-bit little-endian ELF header (System V ABI, "ELF Header"): where its fields are.
_MAGIC = b"\x7fELF\x02\x01"
_PHOFF, _SHOFF, _PHENTSIZE, _SHNUM = 0x20, 0x28, 0x36, 0x3C
#: Of a program header: the segment's offset and size in the file.
_OFFSET, _FILESZ = 8, 32


def strip(path: Path) -> None:
    """Cut a library behind its last segment; any other file is left as it is."""
    library = bytearray(path.read_bytes())
    if not library.startswith(_MAGIC):
        return
    end = max(start + size for start, size in _segments(library))
    # Section headers stand behind the sections: say that there are none.
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
