"""An index takes only the space of its content, on disk and in memory, and loses nothing."""

from __future__ import annotations

import base64
import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import qdrant_edge as edge

from chapterverse.model import EmbedderCard, Point
from chapterverse.store import files
from chapterverse.store.edge import EdgeStore
from chapterverse.store.shard import SHARD, Shard
from chapterverse.store.shard_draft import ShardDraft
from chapterverse.text.lexical import query_vector
from cli.shell import Shell, clean, command
from fakes.docs import SCOPE, point, prose
from fakes.narrowing import corpus

CARDS = {0: EmbedderCard(), 8: EmbedderCard("test", 8, 512, "test")}
MEMORY, DISK = Path("/dev/shm"), Path(tempfile.gettempdir())


@pytest.fixture(params=[MEMORY, DISK], ids=["memory", "disk"])
def folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder in memory and one where temporary files are, which most often is a disk."""
    if not os.access(request.param, os.W_OK):
        pytest.skip(f"There is no {request.param} here.")
    with tempfile.TemporaryDirectory(prefix="test-", dir=request.param) as made:
        yield Path(made)


def publish(store: EdgeStore, points: list[Point], gone: list[str] | None = None, size: int = 0) -> None:
    with store.publish(SCOPE, CARDS[size]) as publication:
        publication.write(points)
        publication.delete(gone or [])
        found = publication.preview().head
        live = publication.previous.head.generation if publication.previous else 0
        publication.commit(replace(found, site="docs", generation=live + 1, embedder=CARDS[size]))


def taken(folder: Path) -> tuple[int, int]:
    """Return how many bytes the files of a folder are long, and how many the file system has allocated for them."""
    found = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum(s.st_size for s in found), sum(s.st_blocks * 512 for s in found)


def asked(store: EdgeStore) -> Shard:
    snapshot = store.snapshot(SCOPE)
    assert snapshot.search_lexical(query_vector("cache cursor cluster", ("en",)), 5)
    return snapshot


@pytest.mark.parametrize(("pages", "size", "most"), [(1, 0, 1), (1, 8, 1), (45, 0, 1), (1000, 8, 4)])
def test_an_index_takes_the_room_of_what_it_holds(folder: Path, pages: int, size: int, most: int) -> None:
    store = EdgeStore(folder)
    dense = [0.5] * size if size else None
    publish(store, [point(f"p{i}", prose(i), dense=dense) for i in range(pages)], size=size)
    length, allocated = taken(folder)
    assert allocated < most << 20
    # What is left over is of flags, of which each file has a megabyte as soon as it is opened.
    assert length < (28 + most) << 20
    for _ in range(2):
        asked(store)
    assert taken(folder)[1] < most << 20


def test_a_next_generation_takes_no_more(folder: Path) -> None:
    store = EdgeStore(folder)
    for generation in range(3):
        publish(store, [point(f"g{generation}", prose(generation))])
        asked(store)
    # Two generations are kept.
    assert taken(folder)[1] < 2 << 20


@pytest.mark.parametrize("size", [0, pytest.param(8, marks=pytest.mark.slow)])
def test_whatever_was_published_before_an_index_holds_what_a_new_one_would(tmp_path: Path, size: int) -> None:
    chance = random.Random(size)
    store, here = EdgeStore(tmp_path / "grown"), dict[str, Point]()
    for generation in range(6):
        made = [_some(chance, f"{generation}-{i}", size) for i in range(chance.choice([1, 7, 300]))]
        # Some are replaced: the same chunk with other payload and vectors.
        made += [_again(chance, here[i], size) for i in chance.sample(sorted(here), len(here) // 3)]
        gone = chance.sample(sorted(here), len(here) // 4)
        here |= {p.chunk.chunk_id: p for p in made}
        here = {i: p for i, p in here.items() if i not in gone}
        publish(store, made, gone, size)
        clean = EdgeStore(tmp_path / f"clean-{generation}")
        publish(clean, [*here.values()], size=size)
        one, other = store.snapshot(SCOPE), clean.snapshot(SCOPE)
        assert list(one.points()) == list(other.points())
        assert len(list(one.points())) == len(here)
        for field in ("source_file_path", "tags", "chunk_index", "language"):
            assert one.values(field) == other.values(field)


def _some(chance: random.Random, name: str, size: int) -> Point:
    dense = [chance.random() + 0.1 for _ in range(size)] or None
    tags = tuple(chance.sample(("a", "b", "c"), chance.randrange(3)))
    # The number 0 is stored as zeros, at the end of a file as well.
    text = prose(name, chance.choice([1, 40, 400]))
    return point(name, text, dense=dense, chunk_index=chance.choice([0, 0, 5]), tags=tags)


def _again(chance: random.Random, old: Point, size: int) -> Point:
    new = _some(chance, "again", size)
    return Point(replace(old.chunk, tags=new.chunk.tags, chunk_index=new.chunk.chunk_index), old.lexical, new.dense)


@pytest.mark.slow
def test_values_that_fill_several_files_are_all_there(tmp_path: Path) -> None:
    # A file holds 32 MB of texts, if they don't compress, or of vectors.
    first, second = range(2500), range(2500, 4000, 3)
    draft = ShardDraft.create(tmp_path / "first", EmbedderCard(size=4096))
    draft.write([_large(i) for i in first])
    draft.seal()
    draft.close()
    pages = (tmp_path / "first").glob("shard/segments/*/payload_storage/page_*.dat")
    assert sorted(path.name for path in pages) == ["page_0.dat", "page_1.dat"]
    assert len([*(tmp_path / "first").rglob("chunk_*.mmap")]) == 2
    more = ShardDraft.copy(tmp_path / "first", tmp_path / "second", EmbedderCard(size=4096))
    more.write([_large(i) for i in second])
    more.seal()
    more.close()
    found = sorted(Shard.load(tmp_path / "second", more.head).points(), key=lambda p: p.chunk.chunk_index)
    for i, one in zip([*first, *second], found, strict=True):
        assert one.chunk == _large(i).chunk
        assert one.dense is not None
        assert one.dense.index(max(one.dense)) == i


def _large(number: int) -> Point:
    text = base64.b64encode(random.Random(number).randbytes(12_000)).decode()
    one = point("large", "words", dense=[float(n == number) for n in range(4096)])
    chunk_id = f"00000000-0000-0000-0000-{number:012}"
    return replace(one, chunk=replace(one.chunk, chunk_id=chunk_id, text=text, chunk_index=number))


def test_what_is_restored_is_as_the_engine_made_it(tmp_path: Path) -> None:
    draft = ShardDraft.create(tmp_path / "one", EmbedderCard(size=8))
    draft.write([replace(p, dense=(1.0,) * 8) for p in corpus(20)])
    draft.settle()
    draft.close()
    shard = tmp_path / "one" / SHARD
    before = files.sizes(shard)
    files.trim(shard)
    assert sum(files.sizes(shard).values()) < 28 << 20 < 170 << 20 < sum(before.values())
    files.restore(shard)
    assert files.sizes(shard) == before


def test_flags_are_released_under_whoever_has_them_open(tmp_path: Path) -> None:
    store = EdgeStore(tmp_path)
    publish(store, corpus(100))
    (live,) = (tmp_path / "docs" / "@").glob("0*")
    flags = [path.relative_to(live).as_posix() for path in live.rglob("flags_a.dat")]
    contents = {name: (live / name).read_bytes() for name in flags}
    first = asked(store)
    # As another process opens it, which has not come to the end yet.
    second = edge.EdgeShard.load(str(live / SHARD))
    files.release(live, flags)
    assert len(second.scroll(edge.ScrollRequest(limit=200))[0]) == 100
    assert len(list(first.points())) == 100
    second.flush()
    second.close()
    assert {name: (live / name).read_bytes() for name in flags} == contents
    assert sum(any(content) for content in contents.values()) >= 10
    asked(store)


@pytest.fixture
def small_memory(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory of 200 MB, which only the superuser of Linux can make."""
    place = tmp_path / "memory"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(place)]
    if sys.platform != "linux" or os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only the superuser of Linux can make a file system in memory")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(folder: Path) -> None:
    """Leave no byte of a file system free."""
    file = os.open(folder / "filler", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(file, bytes(1 << 16))
    os.close(file)


def test_a_full_memory_is_one_sentence_and_kills_nobody(small_memory: Path, tmp_path: Path) -> None:
    shell, store = Shell.with_site(tmp_path), f"edge:{small_memory / 'index'}"
    shell.run("index", "site", "--store", store)
    fill(small_memory)
    shell.write("new/index.html", "New", "<p>New words.</p>")
    for arguments in (["search", "tea"], ["ask", "tea?"], ["index", "site"], ["export", "e.jsonl"]):
        # In a process of its own: a signal would kill this one.
        done = subprocess.run(
            command(*arguments, "--store", store), cwd=tmp_path, env=clean(), capture_output=True, text=True
        )
        assert done.returncode == 1, done
        assert re.fullmatch(
            rf"Error: The index in {small_memory}/index/\S+ can't be opened \(No space left on device\): \d+ MB must "
            r"be free in the memory that holds it; it is not harmed\.\n",
            done.stderr,
        )
    other = f"edge:{small_memory / 'other'}"
    sentence = shell.refused("index", "site", "--store", other)
    assert "No space left on device, 68 MB must be free): nothing was published" in sentence
    (small_memory / "filler").unlink()
    assert shell.json("search", "tea", "--store", store)[0]["results"]
    assert shell.json("index", "site", "--store", store)["pages"]["new"] == 1


@pytest.mark.skipif(not MEMORY.is_dir(), reason="no file system in memory")
def test_files_that_another_reader_makes_and_removes_meanwhile_harm_nobody() -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        done = threading.Event()

        def rewrite() -> None:
            while not done.is_set():
                made = Path(tempfile.mkdtemp(prefix=".atomicwrite", dir=folder))
                (made / "status.dat").write_bytes(b"0")
                os.truncate(made / "status.dat", 1 << 16)
                shutil.rmtree(made)

        writers = [threading.Thread(target=rewrite) for _ in range(4)]
        for writer in writers:
            writer.start()
        try:
            for _ in range(1000):
                files.allocate(Path(folder))
        finally:
            done.set()
            for writer in writers:
                writer.join()
