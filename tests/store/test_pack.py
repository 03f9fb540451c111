"""A packed folder: a lossless round trip with holes in files, and nothing hostile outside of the folder."""

from __future__ import annotations

import hashlib
import io
import random
import struct
import tempfile
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chapterverse.errors import IndexCorrupt
from chapterverse.ext.s3.pack import PackedSize, pack_folder, unpack
from chapterverse.store import files

KB = 1 << 10


def packed(folder: Path) -> bytes:
    target = io.BytesIO()
    made = pack_folder(folder, target)
    assert made == known(target.getvalue())
    return target.getvalue()


def known(raw: bytes) -> PackedSize:
    return PackedSize(len(raw), hashlib.sha256(raw).hexdigest())


def pieces(raw: bytes, size: int) -> Iterator[bytes]:
    return (raw[at : at + size] for at in range(0, len(raw), size))


def content(root: Path) -> dict[str, bytes | None]:
    """Return what every file holds by its path, None for a folder."""
    return {p.relative_to(root).as_posix(): p.read_bytes() if p.is_file() else None for p in sorted(root.rglob("*"))}


def write(root: Path, path: str, size: int, *runs: tuple[int, bytes]) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    with (root / path).open("wb") as file:
        file.truncate(size)
        for offset, data in runs:
            file.seek(offset)
            file.write(data)


def keeps_holes(folder: Path) -> bool:
    write(folder, "probe", 1 << 20)
    return (folder / "probe").stat().st_blocks == 0


def run(size: int, seed: int, noise: bool) -> bytes:
    """Return noise, which can't be deflated, or one byte again and again, which can; of NULs nothing is stored."""
    return random.Random(seed).randbytes(size) if noise else bytes([seed % 3]) * size


# There and back

Runs = list[tuple[int, int, bool, int]]

RUNS = st.lists(st.tuples(st.integers(0, 600 * KB), st.integers(1, 90 * KB), st.booleans(), st.integers()), max_size=5)
TREES = st.dictionaries(
    st.sampled_from(["a", "b/c", "b/d", "b/e/f", "ü/日本", "empty", "g" * 200]),
    st.tuples(st.integers(0, 400 * KB), RUNS),
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(tree=TREES, piece=st.integers(1, 300 * KB))
def test_any_folder_comes_back_as_it_was(
    tree: dict[str, tuple[int, list[tuple[int, int, bool, int]]]], piece: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root, twin = Path(name) / "root", Path(name) / "twin"
        (root / "folder" / "deep").mkdir(parents=True)
        for path, (size, runs) in tree.items():
            # Noise can't be deflated, a repeated letter can, and of NULs nothing is stored.
            made = [
                (at, random.Random(seed).randbytes(n) if noise else bytes([seed % 3]) * n)
                for at, n, noise, seed in runs
            ]
            write(root, path, size, *made)
        raw = packed(root)
        unpack(pieces(raw, piece), twin, known(raw))
        assert content(twin) == content(root)
        if keeps_holes(Path(name)):
            assert files.allocated_bytes(twin) <= files.allocated_bytes(root)


def test_holes_are_neither_stored_nor_filled(tmp_path: Path) -> None:
    write(tmp_path / "root", "holes", 300 << 20, (0, b"x" * 5000), (200 << 20, b"y" * 5000))
    write(tmp_path / "root", "nothing", 300 << 20)
    raw = packed(tmp_path / "root")
    assert len(raw) < 1000
    unpack([raw], tmp_path / "twin", known(raw))
    assert [(tmp_path / "twin" / n).stat().st_size for n in ("holes", "nothing")] == [300 << 20] * 2
    assert (tmp_path / "twin" / "holes").read_bytes()[200 << 20 :][:5001] == b"y" * 5000 + b"\0"
    if keeps_holes(tmp_path):
        assert files.allocated_bytes(tmp_path / "twin") < 100 * KB


def test_one_folder_is_always_the_same_pack(tmp_path: Path) -> None:
    for name in "ba":
        write(tmp_path, f"root/{name}/{name}", 5, (0, name.encode()))
    raw = packed(tmp_path / "root")
    unpack([raw], tmp_path / "twin", known(raw))
    assert packed(tmp_path / "twin") == raw


def test_neither_side_holds_more_than_a_little_in_memory(tmp_path: Path) -> None:
    size = 24 << 20
    write(tmp_path / "root", "noise", size, (0, random.Random(1).randbytes(size)))
    tracemalloc.start()
    with (tmp_path / "pack").open("wb") as file:
        made = pack_folder(tmp_path / "root", file)
    with (tmp_path / "pack").open("rb") as file:
        unpack(iter(lambda: file.read(1 << 20), b""), tmp_path / "twin", made)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made.size > size
    assert most < size / 4


# Damage


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    root = tmp_path_factory.mktemp("small")
    write(root, "a/b", 100, (0, b"some text some text some text some text"), (90, b"end"))
    write(root, "c", 3, (0, b"\x01\x02\x03"))
    return packed(root)


def refuses(raw: bytes, promised: PackedSize, folder: Path) -> None:
    with pytest.raises(IndexCorrupt) as caught:
        unpack(pieces(raw, 50), folder / "twin", promised)
    assert str(caught.value) == "The packed index is damaged: build it again."
    assert [p.name for p in folder.iterdir()] == ["twin"]


def test_every_flipped_bit_is_found(small: bytes) -> None:
    for at in range(len(small)):
        for bit in (0, 4, 7):
            flipped = bytearray(small)
            flipped[at] ^= 1 << bit
            with tempfile.TemporaryDirectory() as name:
                refuses(bytes(flipped), known(small), Path(name))


def test_every_cut_and_every_addition_is_found(small: bytes) -> None:
    for raw in (*(small[:at] for at in range(len(small))), small + b"\0", small + small, small + b"E"):
        # Also where whoever cut it could say so in the head.
        for promised in (known(small), known(raw)):
            with tempfile.TemporaryDirectory() as name:
                refuses(raw, promised, Path(name))


def test_whoever_sends_too_much_is_cut_off(tmp_path: Path, small: bytes) -> None:
    def endless() -> Iterator[bytes]:
        yield small[:-1]
        for sent in range(10):
            assert sent < 2, "nobody should listen any more"
            yield b"\0" * 1000

    with pytest.raises(IndexCorrupt):
        unpack(endless(), tmp_path / "twin", known(small))


# Packs made by somebody who knows the format


def folder(path: str | bytes) -> bytes:
    raw = path.encode() if isinstance(path, str) else path
    return b"D" + struct.pack("<H", len(raw)) + raw


def file(path: str | bytes, size: int = 10) -> bytes:
    return b"F" + folder(path)[1:] + struct.pack("<Q", size)


def block(offset: int = 0, data: bytes = b"data", length: int | None = None, stored: int | None = None) -> bytes:
    sizes = struct.pack(
        "<QII", offset, len(data) if length is None else length, len(data) if stored is None else stored
    )
    return b"B" + sizes + data


HOSTILE = {
    "up": file("../escaped"),
    "up and down": folder("a") + file("a/../../escaped"),
    "absolute": file("/escaped"),
    "here": file("./x"),
    "nothing": file(""),
    "empty part": folder("a") + file("a//x"),
    "slash at the end": folder("a/"),
    "backslash": file("..\\escaped"),
    "NUL": file("a\0b"),
    "not UTF-8": file(b"\xff\xfe"),
    "a lone surrogate": file(b"\xed\xa0\x80"),
    "folder up": folder(".."),
    "too deep a folder": b"".join(folder("/".join("d" * depth)) for depth in range(1, 18)),
    "too long a name": file("a" * 5000),
    "file twice": file("a") + file("a"),
    "folder twice": folder("a") + folder("a"),
    "file in a file": file("a") + file("a/b"),
    "file in no folder": file("a/b"),
    "folder over a file": file("a") + folder("a"),
    "block of no file": block(),
    "block past the end": file("a", 10) + block(8, b"data"),
    "block far past the end": file("a", 10) + block(2**64 - 1, b"data"),
    "block before the last": file("a", 99) + block(50) + block(10),
    "block over the last": file("a", 99) + block(50) + block(52),
    "empty block": file("a") + block(0, b""),
    "stored is larger": file("a") + block(0, b"data", 3),
    "too large a block": file("a", 1 << 20) + block(0, bytes(70_000)),
    "no deflate": file("a", 99) + block(0, b"data", 50),
    "deflate of less": file("a", 99) + block(0, zlib.compress(b"x" * 40), 50),
    "deflate of more": file("a", 1 << 16) + block(0, zlib.compress(b"x" * (1 << 24))[:60], 64),
    "too large a file": file("a", 1 << 50),
    "unknown entry": b"X",
    "no end": file("a"),
    "another format": b"",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pack_with_the_right_hash_writes_nothing_outside(tmp_path: Path, name: str) -> None:
    magic = b"CVPACK2\n" if name == "another format" else b"CVPACK1\n"
    raw = magic + HOSTILE[name] + (b"" if name == "no end" else b"E")
    (tmp_path / "inside").mkdir()
    refuses(raw, known(raw), tmp_path / "inside")
    assert [p.name for p in tmp_path.iterdir()] == ["inside"]
    assert not Path("/escaped").exists()


def test_the_same_entries_well_formed_are_taken(tmp_path: Path) -> None:
    raw = b"CVPACK1\n" + folder("a") + file("a/b", 60) + block(0) + block(50, b"more") + file("c", 0) + b"E"
    unpack([raw], tmp_path / "twin", known(raw))
    assert content(tmp_path / "twin") == {
        "a": None,
        "a/b": b"data".ljust(50, b"\0") + b"more".ljust(10, b"\0"),
        "c": b"",
    }
