"""The embedded store under kills, races and damage."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import qdrant_edge as edge

from chapterverse.errors import ChapterVerseError, IndexCorrupt, IndexFault, IndexLocked, IndexMismatch, IndexMissing
from chapterverse.model import FORMAT, Head, Scope
from chapterverse.store import files, folder_name
from chapterverse.store.edge import EdgeStore, is_folder_name
from chapterverse.store.shard import TermCounts, translating_read_errors
from chapterverse.text.lexical import query_vector
from fakes.docs import SCOPE, point, prose
from store.publishing import NONE, names_in, publish

TESTS = Path(__file__).parents[1]


def folder_of(store: EdgeStore) -> Path:
    return store.root / "docs" / "@"


def entries(store: EdgeStore) -> list[str]:
    return sorted(path.name for path in folder_of(store).iterdir())


@pytest.fixture
def store(tmp_path: Path) -> EdgeStore:
    return EdgeStore(tmp_path)


def python(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Run a program that can import what this test imports."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


# Folders


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
@pytest.mark.parametrize("denied", [".", "docs", "docs/@", "docs/@/head.json"])
@pytest.mark.parametrize("mode", [0, 0o600])
def test_an_index_that_may_not_be_read(store: EdgeStore, denied: str, mode: int) -> None:
    publish(store, "a")
    place = store.root / denied
    before = place.stat().st_mode
    place.chmod(mode if place.is_dir() else 0)
    try:
        with pytest.raises(IndexFault, match=r"can't be read \(Permission denied\): see that this user may") as caught:
            store.heads()
    finally:
        place.chmod(before)
    assert not isinstance(caught.value, IndexMissing)
    assert [head.scope for head in store.heads()] == [SCOPE]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_folder_that_is_none_of_the_store_may_be_unreadable(store: EdgeStore) -> None:
    publish(store, "a")
    (store.root / "lost+found").mkdir(mode=0)
    assert [head.scope for head in store.heads()] == [SCOPE]


@pytest.mark.parametrize("name", ["docs", "", "..", "lost+found", "a/b", "büro docs", "@", "v1.2", "x" * 300])
def test_a_folder_of_the_store_is_known_by_its_name(name: str) -> None:
    assert is_folder_name(folder_name(name))


def test_only_the_live_generation_and_the_one_before_it_are_kept(store: EdgeStore) -> None:
    kept = []
    for i in range(4):
        publish(store, f"p{i}")
        kept.append([int(name[:6]) for name in entries(store) if name[0] == "0"])
    assert kept == [[1], [1, 2], [2, 3], [3, 4]]
    assert entries(store)[2:] == ["head.json", "publish.lock"]


def test_an_abandoned_publication_leaves_no_file(store: EdgeStore) -> None:
    publish(store, "a")
    before = entries(store)
    with store.publish(SCOPE, NONE) as publication:
        publication.write([point("b", "text")])
        publication.preview()
    assert entries(store) == before


def test_what_a_killed_publisher_left_is_swept_away(store: EdgeStore) -> None:
    publish(store, "a")
    publish(store, "b")
    folder = folder_of(store)
    (live,) = (p for p in folder.glob("000002-*"))
    for leftover in ("0123.new", "000002-ffffff", "000003-000000"):
        shutil.copytree(live, folder / leftover)
    (folder / "head.new").write_text("{")
    publish(store, "c")
    assert names_in(store) == ["a", "b", "c"]
    assert [name[:7] for name in entries(store)] == ["000002-", "000003-", "head.js", "publish"]


def test_a_first_publication_sweeps_too(store: EdgeStore) -> None:
    folder = folder_of(store)
    for leftover in ("0123.new", "000001-ffffff"):
        (folder / leftover / "shard").mkdir(parents=True)
    publish(store, "a")
    assert [name[:7] for name in entries(store)] == ["000001-", "head.js", "publish"]


def test_folders_that_are_not_ours_stay(store: EdgeStore) -> None:
    # A preview's store may stand inside the published one's folder.
    other = folder_of(store) / "@" / "head.json"
    other.parent.mkdir(parents=True)
    other.write_text("{}")
    for name in "abc":
        publish(store, name)
    assert other.exists()


def test_names_of_folders_are_safe_short_and_different() -> None:
    names = ["", ".", "..", "../x", "a/b", "a\\b", "ünï", "日本語" * 40, "日本語" * 41, "x" * 300, "@", "%40", " ", "A",
             "a", "nul\n\x00", "=", "~", "\ud800", "x" * 64 + "=" + "0" * 32]  # fmt: skip
    made = [folder_name(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(0 < len(name) <= 100 and name.isascii() and not set(name) & set("/\\\n\0") for name in made)
    assert not {".", ".."} & set(made)


def test_a_worn_shard_is_written_anew(store: EdgeStore) -> None:
    def slots() -> int:
        live = json.loads((folder_of(store) / "head.json").read_text())["folder"]
        return int(json.loads((folder_of(store) / live / "manifest.json").read_text())["slots"])

    gone = [f"gone-{i}" for i in range(1100)]
    publish(store, "a", "b", *gone)
    publish(store, "c", delete=tuple(gone))
    assert slots() == 1103
    publish(store, "d")
    assert slots() == 4
    assert names_in(store) == ["a", "b", "c", "d"]
    assert store.snapshot(SCOPE).document_frequencies([point("gone-1", prose("gone-1")).lexical.indices[0]]) < [1000]


# Holes


def test_a_copy_keeps_holes_and_content(tmp_path: Path) -> None:
    source = tmp_path / "source" / "deep"
    source.mkdir(parents=True)
    with (source / "holes").open("wb") as file:
        for at in (0, 1 << 20, 5 << 20):
            file.seek(at)
            file.write(b"data" * 3000)
        file.truncate(50 << 20)
    (source / "empty").touch()
    (source / "only-a-hole").touch()
    os.truncate(source / "only-a-hole", 1 << 20)
    (tmp_path / "source" / ".atomicwriteXYZ").mkdir()
    files.copy_folder(tmp_path / "source", tmp_path / "twin")
    twin = tmp_path / "twin" / "deep"
    assert all((twin / n).read_bytes() == (source / n).read_bytes() for n in ("holes", "empty", "only-a-hole"))
    assert (twin / "holes").stat().st_blocks * 512 < 1 << 20
    assert not list((tmp_path / "twin").glob(".atomic*"))


def test_terms_are_counted_up_and_down(tmp_path: Path) -> None:
    from collections import Counter

    terms = TermCounts.empty().add(Counter({7: 2, 2**32 - 1: 1, 3: 1})).add(Counter({7: -1, 3: -1, 9: 4}))
    terms.save(tmp_path / "terms.bin")
    assert TermCounts.load(tmp_path / "terms.bin").counts([3, 7, 9, 2**32 - 1, 8, -1]) == [0, 1, 4, 1, 0, 0]


def test_a_preview_counts_what_was_opened_again(store: EdgeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that the engine loses when it closes must show, because nothing else compares."""
    lost, load = point("b", prose("b")), edge.EdgeShard.load

    class Forgetful:
        @staticmethod
        def load(place: str) -> Any:
            engine = load(place)
            engine.update(edge.UpdateOperation.delete_points([lost.chunk.chunk_id]))
            return engine

        create = staticmethod(edge.EdgeShard.create)

    monkeypatch.setattr("qdrant_edge.EdgeShard", Forgetful)
    with store.publish(SCOPE, NONE) as publication:
        publication.write([point("a", prose("a")), lost])
        assert publication.preview().head.chunks == 1


def test_a_leftover_that_stays_fails_no_publication(store: EdgeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(store, "a")
    with store.publish(SCOPE, NONE) as publication:
        publication.write([point("b", prose("b"))])
        found = publication.preview().head
        (folder_of(store) / "other.new").write_text("{")
        unlink = Path.unlink

        def refusing(path: Path, missing_ok: bool = False) -> None:
            if path.suffix == ".new":
                raise PermissionError(1, "Operation not permitted")
            unlink(path, missing_ok)

        monkeypatch.setattr(Path, "unlink", refusing)
        publication.commit(Head("docs", "", 2, found.pages, found.chunks, "test", languages=found.languages))
    assert names_in(store) == ["a", "b"]


# Power cuts


@pytest.mark.skipif(sys.platform != "linux", reason="asks the system for the name behind a file descriptor")
def test_everything_is_durable_before_the_head_names_it(store: EdgeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of system calls: all of the generation, its rename, the new head, and only then the head's rename."""
    publish(store, "a")
    events: list[tuple[str, Path]] = []

    def record(call: str, where: Callable[..., Path]) -> None:
        real = getattr(os, call)

        def recording(*arguments: object) -> None:
            events.append((call, where(*arguments)))
            real(*arguments)

        monkeypatch.setattr(os, call, recording)

    record("fsync", lambda handle: Path(f"/proc/self/fd/{handle}").readlink())
    record("rename", lambda _source, target: Path(target))
    record("replace", lambda _source, target: Path(target))
    publish(store, "b")

    folder = folder_of(store)
    (renamed, generation), (replaced, head) = [
        (i, path) for i, (call, path) in enumerate(events) if call in ("rename", "replace")
    ]
    assert (generation.name[:7], head) == ("000002-", folder / "head.json")
    synced = {path for _, path in events[:renamed]}
    draft = folder / f"{generation.name[7:]}.new"
    assert {draft / path.relative_to(generation) for path in (generation, *generation.rglob("*"))} <= synced
    assert {folder, folder / "head.new"} <= {path for _, path in events[renamed:replaced]}
    assert events[-1] == ("fsync", folder)


# Locks

HOLD = """
import sys
from chapterverse.model import EmbedderCard
from chapterverse.store.edge import EdgeStore
from fakes.docs import SCOPE
from pathlib import Path
with EdgeStore(Path(sys.argv[1])).publish(SCOPE, EmbedderCard()):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_of_another_process_is_told_in_one_sentence(store: EdgeStore) -> None:
    publish(store, "a")
    with python(HOLD, store.root) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        assert store.is_publishing(SCOPE)
        with pytest.raises(IndexLocked) as caught:
            publish(store, "b")
        assert one_sentence(caught.value)
        assert names_in(store) == ["a"]
        other.kill()
        other.wait()
    # The system frees the lock of whoever is killed.
    assert not store.is_publishing(SCOPE)
    assert publish(store, "b").generation == 2


# Readers (killed publishers: tests/faults)


def whole(store: EdgeStore) -> Head:
    """Assert that what readers see is one generation, whole; return its head."""
    snapshot = store.snapshot(SCOPE)
    found = sorted(p.chunk.source_file_path for p in snapshot.points())
    assert len(found) == snapshot.head.chunks
    assert {name[1:] for name in found if name[0] == "p"} == {name[1:] for name in found if name[0] == "q"}
    terms = [t for p in snapshot.points() for t in p.lexical.indices]
    assert snapshot.document_frequencies(sorted(set(terms))) == [terms.count(t) for t in sorted(set(terms))]
    return snapshot.head


READ = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from chapterverse.text.lexical import query_vector
from chapterverse.store.edge import EdgeStore
from fakes.docs import SCOPE
from store.test_edge import whole
store = EdgeStore(Path(sys.argv[1]))
seen, reads, is_over = 0, 0, False
print("ready", flush=True)
while not is_over:
    # What is published before the stop is seen by the last read.
    is_over = (Path(sys.argv[1]) / "stop").exists()
    head = whole(store)
    assert head.generation >= seen, "time went backwards"
    seen, reads = head.generation, reads + 1
    assert store.snapshot(SCOPE).search_lexical(query_vector("chunk index publish anchor build cache"), 5)
print(reads, seen)
"""


def test_readers_in_other_processes_see_whole_generations(store: EdgeStore) -> None:
    publish(store, "p0", "q0")
    readers = [python(READ, store.root, TESTS) for _ in range(3)]
    for reader in readers:
        assert reader.stdout
        assert reader.stdout.readline() == "ready\n"
    for i in range(1, 10):
        head = publish(store, f"p{i}", f"q{i}", delete=(f"p{i - 1}", f"q{i - 1}") if i % 3 else ())
    (store.root / "stop").touch()
    for reader in readers:
        output, _ = reader.communicate(timeout=60)
        assert reader.returncode == 0
        reads, seen = map(int, output.split())
        assert reads > 1
        assert seen == head.generation


def test_a_snapshot_may_outlive_its_folder(store: EdgeStore) -> None:
    publish(store, "a")
    snapshot = store.snapshot(SCOPE)
    shutil.rmtree(store.root)
    assert [p.chunk.source_file_path for p in snapshot.points()] == ["a.md"]
    del snapshot


# Damage


def one_sentence(error: BaseException) -> bool:
    text = str(error)
    return isinstance(error, ChapterVerseError) and "\n" not in text and text.endswith(".") and 20 < len(text) < 400


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"null", b"[]", b"42", b'"text"', b"{}", b'{"head": null}', b'{"head": {}, "folder": "x"}',
        b'{"head": {"format": "one"}, "folder": "x"}', b"\xff\xfe", b"[" * 100_000, b'{"head": {"format": 1}}',
    ],
)  # fmt: skip
def test_a_damaged_head_is_told_in_one_sentence_and_replaced(store: EdgeStore, content: bytes) -> None:
    publish(store, "a")
    (folder_of(store) / "head.json").write_bytes(content)
    assert not store.is_complete(SCOPE)
    for read in (store.heads, lambda: store.snapshot(SCOPE)):
        with pytest.raises(IndexCorrupt) as caught:
            read()
        assert one_sentence(caught.value)
    publish(store, "b")
    assert store.is_complete(SCOPE)
    assert store.snapshot(SCOPE).head.chunks == 1


def test_a_newer_format_is_not_read_and_not_written(store: EdgeStore) -> None:
    publish(store, "a")
    file = folder_of(store) / "head.json"
    raw = json.loads(file.read_text())
    raw["head"] |= {"format": FORMAT + 1, "invented": True}
    file.write_text(json.dumps(raw))
    before = file.read_bytes(), entries(store)
    for read in (store.heads, lambda: store.snapshot(SCOPE), lambda: publish(store, "b")):
        with pytest.raises(IndexMismatch, match="upgrade") as caught:
            read()
        assert one_sentence(caught.value)
    assert (file.read_bytes(), entries(store)) == before


# Whatever the engine does with a damaged file, it does to a process of its own.
OPEN = """
import sys
from pathlib import Path
from chapterverse.errors import IndexCorrupt
from chapterverse.text.lexical import query_vector
from chapterverse.store.edge import EdgeStore
from fakes.docs import SCOPE
store = EdgeStore(Path(sys.argv[1]))
try:
    snapshot = store.snapshot(SCOPE)
    snapshot.search_lexical(query_vector("chunk"), 5)
    list(snapshot.points())
except IndexCorrupt as error:
    print(error)
else:
    print("read")
"""


def damage(store: EdgeStore, chance: random.Random, how: str) -> str:
    """Damage one file of the live generation; return its name."""
    (live,) = folder_of(store).glob("000001-*")
    candidates = sorted(p for p in live.rglob("*") if p.is_file() and (how == "remove" or p.stat().st_size))
    file = chance.choice(candidates)
    if how == "remove":
        file.unlink()
    elif how == "truncate":
        os.truncate(file, chance.randrange(file.stat().st_size))
    else:
        file.write_bytes(file.read_bytes() + b"\0")
    return file.name


@pytest.mark.parametrize("how", ["remove", "truncate", "extend"])
def test_a_damaged_shard_never_takes_the_interpreter_along(store: EdgeStore, tmp_path: Path, how: str) -> None:
    publish(store, *(f"p{i}" for i in range(30)))
    pristine = tmp_path / "pristine"
    files.copy_folder(folder_of(store), pristine)
    chance = random.Random(how)
    told = 0
    for _ in range(6):
        shutil.rmtree(folder_of(store))
        files.copy_folder(pristine, folder_of(store))
        name = damage(store, chance, how)
        with python(OPEN, store.root) as reader:
            output, _ = reader.communicate(timeout=60)
        assert reader.returncode == 0, name
        assert output == "read\n" or output.endswith(("build it again.\n", "build the index again.\n")), name
        told += output != "read\n"
    assert told >= 5


def test_counts_of_terms_cut_short_are_told(store: EdgeStore) -> None:
    publish(store, "a")
    (live,) = folder_of(store).glob("000001-*")
    os.truncate(live / "terms.bin", (live / "terms.bin").stat().st_size - 8)
    with pytest.raises(IndexCorrupt) as caught:
        store.snapshot(SCOPE)
    assert one_sentence(caught.value)


def test_a_missing_generation_is_told_in_one_sentence_and_replaced(store: EdgeStore) -> None:
    publish(store, "a")
    (live,) = folder_of(store).glob("000001-*")
    shutil.rmtree(live)
    assert not store.is_complete(SCOPE)
    with pytest.raises(IndexCorrupt) as caught:
        store.snapshot(SCOPE)
    assert one_sentence(caught.value)
    publish(store, "b")
    assert store.snapshot(SCOPE).head.chunks == 1


def test_a_refusal_of_the_system_is_not_called_damage(store: EdgeStore) -> None:
    folder = store.root / "x"
    with (
        pytest.raises(IndexFault, match=r"No space left on device.*not harmed") as caught,
        translating_read_errors(folder),
    ):
        raise RuntimeError("Service runtime error: IO Error: No space left on device (os error 28)")
    assert not isinstance(caught.value, IndexCorrupt)


# Disks that refuse


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Run as a user whom the file system's permissions bind; root is above them."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user may enter; pytest's own ones are private."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(folder)


def set_modes(folder: Path, folders: int, others: int) -> None:
    for path in [*folder.rglob("*"), folder]:
        path.chmod(folders if path.is_dir() else others)


def test_a_read_only_index_can_be_read_and_not_published(public: Path) -> None:
    store = EdgeStore(public / "index")
    publish(store, "a")
    set_modes(store.root, 0o555, 0o444)
    with unprivileged():
        snapshot = store.snapshot(SCOPE)
        assert [h.chunk.source_file_path for h in snapshot.search_lexical(query_vector(prose("a")), 5)] == ["a.md"]
        assert [head.generation for head in store.heads()] == [1]
        with pytest.raises(IndexFault, match="can't be written") as caught:
            publish(store, "b")
    assert one_sentence(caught.value)
    del snapshot
    set_modes(store.root, 0o755, 0o644)
    assert publish(store, "b").generation == 2


def test_a_store_in_a_read_only_folder_is_told_in_one_sentence(public: Path) -> None:
    with unprivileged(), pytest.raises(IndexFault, match="can't be written") as caught:
        publish(EdgeStore(public / "index"), "a")
    assert one_sentence(caught.value)


def test_a_full_disk_is_told_before_the_engine_meets_it(store: EdgeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(store, "a")
    usage = shutil.disk_usage(store.root)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=1 << 20))
    for place in (store, EdgeStore(store.root / "new")):
        with pytest.raises(IndexFault, match="No space left on device") as caught:
            publish(place, "b")
        assert one_sentence(caught.value)
    assert names_in(store) == ["a"]
    assert len(entries(store)) == 3


def test_a_store_below_a_file_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = EdgeStore(tmp_path / "file" / "index")
    assert store.heads() == []
    with pytest.raises(IndexFault, match="can't be written") as caught:
        publish(store, "a")
    assert one_sentence(caught.value)


def test_another_scope_is_not_touched_by_damage(store: EdgeStore) -> None:
    publish(store, "a")
    with store.publish(Scope("other"), NONE) as publication:
        publication.write([point("b", "text")])
        publication.commit(Head("other", "", 1, 1, 1, "test"))
    (folder_of(store) / "head.json").write_text("{")
    assert [p.chunk.source_file_path for p in store.snapshot(Scope("other")).points()] == ["b.md"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("site", 5), ("version", None), ("generation", "x"), ("generation", None), ("generation", True),
        ("chunks", -5), ("pages", 1.5), ("calibration", [1]), ("calibration", {"bias": "x"}), ("languages", [5]),
        ("embedder", {"name": "none", "size": "x", "limit": 0, "space": "none"}), ("embedder", 5),
        ("fusion_weight", "x"), ("base_url", 5), ("token", None), ("format", "x"), ("surprise", 1),
    ],
)  # fmt: skip
def test_a_head_with_a_value_of_another_type_is_damaged(store: EdgeStore, name: str, value: object) -> None:
    publish(store, "a")
    file = folder_of(store) / "head.json"
    document = json.loads(file.read_text())
    document["head"][name] = value
    file.write_text(json.dumps(document))
    with pytest.raises(IndexCorrupt, match="is damaged: build the index again"):
        store.heads()
    assert not store.is_complete(SCOPE)
    publish(store, "b")
    assert names_in(store) == ["b"]
