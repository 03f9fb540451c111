"""What every ledger must keep; a new one joins by a line in `LEDGERS`."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chapterverse.errors import (
    ChapterVerseError,
    ConfigurationError,
    IndexCorrupt,
    IndexFault,
    IndexLocked,
    IndexMismatch,
)
from chapterverse.ledger import Ledger, Record, open_ledger
from chapterverse.ledger.sqlite import SqliteLedger
from chapterverse.model import Scope
from chapterverse.settings import Settings

#: Makes the address of a ledger in a folder of the test's own.
LEDGERS: dict[str, Callable[[Path], str]] = {"sqlite": lambda folder: f"sqlite:{folder / 'deep' / 'ledger.sqlite'}"}

DOCS = Scope("docs")
NEXT = Scope("docs", "2.0")


def row(path: str, **fields: object) -> Record:
    made = Record(path, "a" * 64, 3, "b" * 64, 1, "2026-01-02T03:04:05Z")
    return replace(made, **fields)  # type: ignore[arg-type]


A, B, C = (row(f"{name}.md") for name in "abc")


@pytest.fixture(params=LEDGERS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return LEDGERS[request.param](tmp_path)


@pytest.fixture
def ledger(address: str) -> Ledger:
    return open_ledger(Settings(ledger=address))


def test_a_new_ledger_is_empty(ledger: Ledger) -> None:
    assert ledger.records(DOCS) == {}
    assert ledger.generation(DOCS) == 0


def test_rows_come_back_as_they_were_and_by_path(ledger: Ledger) -> None:
    odd = row("ünï/日本語 '\"; DROP TABLE--/x.md", chunk_count=0, generation=2**40)
    ledger.save(DOCS, 4, [C, odd, A], [])
    assert ledger.records(DOCS) == {"a.md": A, "c.md": C, odd.file_path: odd}
    assert list(ledger.records(DOCS)) == sorted(["a.md", "c.md", odd.file_path])
    assert ledger.generation(DOCS) == 4


def test_a_row_is_replaced(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [A, B], [])
    newer = row("a.md", content_hash="c" * 64, chunk_count=9, generation=2, pipeline="d" * 64, last_indexed_at="2027")
    ledger.save(DOCS, 2, [newer], [])
    assert ledger.records(DOCS) == {"a.md": newer, "b.md": B}


def test_a_row_is_removed(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [A, B], [])
    ledger.save(DOCS, 2, [], ["a.md", "never-there.md"])
    assert ledger.records(DOCS) == {"b.md": B}
    assert ledger.generation(DOCS) == 2


def test_a_path_that_is_removed_and_saved_at_once_is_there(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [A], [])
    ledger.save(DOCS, 2, [replace(A, chunk_count=5)], ["a.md"])
    assert ledger.records(DOCS)["a.md"].chunk_count == 5


def test_scopes_know_nothing_of_each_other(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [A], [])
    ledger.save(NEXT, 7, [replace(A, chunk_count=8), B], [])
    ledger.save(DOCS, 2, [], ["b.md"])
    assert ledger.records(DOCS) == {"a.md": A}
    assert ledger.records(NEXT)["a.md"].chunk_count == 8
    assert (ledger.generation(DOCS), ledger.generation(NEXT), ledger.generation(Scope("other"))) == (2, 7, 0)


def test_the_generation_can_be_saved_alone(ledger: Ledger) -> None:
    ledger.save(DOCS, 3, [], [])
    assert (ledger.generation(DOCS), ledger.records(DOCS)) == (3, {})


def test_what_one_connection_saves_the_other_sees(ledger: Ledger, address: str) -> None:
    other = open_ledger(Settings(ledger=address))
    ledger.save(DOCS, 1, [A], [])
    assert other.records(DOCS) == {"a.md": A}
    other.save(DOCS, 2, [B], ["a.md"])
    assert ledger.records(DOCS) == {"b.md": B}


@pytest.mark.parametrize(
    "bad",
    [
        row("x.md", chunk_count=-1),
        row("x.md", content_hash="short"),
        row("x.md", content_hash=None),
        row("x" * 513),
        row(""),
    ],
    ids=["negative count", "short hash", "no hash", "long path", "no path"],
)
def test_a_row_out_of_contract_is_refused_and_nothing_of_the_call_is_kept(ledger: Ledger, bad: Record) -> None:
    ledger.save(DOCS, 1, [A, B], [])
    with pytest.raises(IndexFault):
        ledger.save(DOCS, 2, [replace(A, chunk_count=99), C, bad], ["b.md"])
    assert ledger.records(DOCS) == {"a.md": A, "b.md": B}
    assert ledger.generation(DOCS) == 1


def test_an_interrupted_save_keeps_nothing(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [A], [])

    def interrupted() -> Iterator[Record]:
        yield replace(A, chunk_count=99)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.save(DOCS, 2, interrupted(), [])
    assert ledger.records(DOCS) == {"a.md": A}
    ledger.save(DOCS, 2, [B], [])
    assert ledger.generation(DOCS) == 2


def test_a_path_of_512_characters_fits(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [row("ü" * 512)], [])
    assert list(ledger.records(DOCS)) == ["ü" * 512]


PATHS = st.sampled_from([f"{i}.md" for i in range(8)])


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.dictionaries(PATHS, st.integers(0, 99)), st.sets(PATHS)), max_size=6))
def test_any_history_is_what_a_dictionary_would_hold(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[dict[str, int], set[str]]]
) -> None:
    for make in LEDGERS.values():
        ledger = open_ledger(Settings(ledger=make(tmp_path_factory.mktemp("history"))))
        model: dict[str, Record] = {}
        for generation, (changed, removed) in enumerate(steps, 1):
            rows = {p: row(p, chunk_count=n, generation=generation) for p, n in changed.items()}
            ledger.save(DOCS, generation, rows.values(), removed)
            model = {p: r for p, r in model.items() if p not in removed} | rows
            assert ledger.records(DOCS) == model
            assert ledger.generation(DOCS) == generation


# SQLite


def path_of(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def one_sentence(error: BaseException) -> bool:
    text = str(error)
    return isinstance(error, ChapterVerseError) and "\n" not in text and text.endswith((".", ").")) and len(text) < 400


def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "nowhere" / "ledger.sqlite")
    assert ledger.records(DOCS) == {}
    assert ledger.generation(DOCS) == 0
    assert list(tmp_path.iterdir()) == []


def test_the_table_is_the_one_of_the_contract(tmp_path: Path) -> None:
    SqliteLedger(path_of(tmp_path)).save(DOCS, 1, [A], [])
    with contextlib.closing(sqlite3.connect(path_of(tmp_path))) as db:
        columns = {
            name: (kind, notnull) for _, name, kind, notnull, _, _ in db.execute("PRAGMA table_info(document_metadata)")
        }
        indexes = {
            tuple((name, bool(desc)) for _, _, name, desc, _, key in db.execute(f"PRAGMA index_xinfo({index})") if key)
            for _, index, *_ in db.execute("PRAGMA index_list(document_metadata)").fetchall()
        }
        (version,) = db.execute("PRAGMA user_version").fetchone()
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            db.execute(
                "INSERT INTO document_metadata (site, version, file_path, content_hash, last_indexed_at, chunk_count,"
                " pipeline, generation) SELECT site, version, file_path, content_hash, last_indexed_at, chunk_count,"
                " pipeline, generation FROM document_metadata"
            )
    assert columns["file_path"] == ("VARCHAR(512)", 1)
    assert columns["content_hash"] == ("CHAR(64)", 1)
    assert columns["chunk_count"] == ("INTEGER", 1)
    assert columns.keys() == {
        "id", "site", "version", "file_path", "content_hash", "last_indexed_at", "chunk_count", "pipeline",
        "generation",
    }  # fmt: skip
    assert (("file_path", False),) in indexes
    assert (("last_indexed_at", True),) in indexes
    assert (("site", False), ("version", False), ("file_path", False)) in indexes
    assert version == 1


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_corrupt_file_is_told_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    path_of(tmp_path).write_bytes(content)
    ledger = SqliteLedger(path_of(tmp_path))
    for use in (lambda: ledger.records(DOCS), lambda: ledger.generation(DOCS), lambda: ledger.save(DOCS, 1, [A], [])):
        with pytest.raises(IndexCorrupt, match="remove it") as caught:
            use()
        assert one_sentence(caught.value)
    assert path_of(tmp_path).read_bytes() == content


def test_a_file_cut_short_is_told_in_one_sentence(tmp_path: Path) -> None:
    ledger = SqliteLedger(path_of(tmp_path))
    ledger.save(DOCS, 1, [row(f"{i}.md") for i in range(500)], [])
    os.truncate(path_of(tmp_path), 20_000)
    with pytest.raises(IndexCorrupt) as caught:
        ledger.records(DOCS)
    assert one_sentence(caught.value)


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path_of(tmp_path))) as db:
        db.execute("CREATE TABLE document_metadata (mine)")
        db.commit()
    with pytest.raises(IndexCorrupt):
        SqliteLedger(path_of(tmp_path)).save(DOCS, 1, [A], [])
    with contextlib.closing(sqlite3.connect(path_of(tmp_path))) as db:
        assert [name for (name,) in db.execute("SELECT name FROM sqlite_master")] == ["document_metadata"]


def test_a_newer_ledger_is_not_touched(tmp_path: Path) -> None:
    SqliteLedger(path_of(tmp_path)).save(DOCS, 1, [A], [])
    with contextlib.closing(sqlite3.connect(path_of(tmp_path))) as db:
        db.execute("PRAGMA user_version = 99")
    before = path_of(tmp_path).read_bytes()
    ledger = SqliteLedger(path_of(tmp_path))
    for use in (lambda: ledger.records(DOCS), lambda: ledger.save(DOCS, 2, [B], [])):
        with pytest.raises(IndexMismatch, match="upgrade") as caught:
            use()
        assert one_sentence(caught.value)
    assert path_of(tmp_path).read_bytes() == before


def test_a_writer_that_does_not_finish_is_told_as_a_lock(tmp_path: Path) -> None:
    ledger = SqliteLedger(path_of(tmp_path), patience=0.05)
    ledger.save(DOCS, 1, [A], [])
    with contextlib.closing(sqlite3.connect(path_of(tmp_path), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(IndexLocked, match="Another process") as caught:
            ledger.save(DOCS, 2, [B], [])
        assert one_sentence(caught.value)
        assert ledger.records(DOCS) == {"a.md": A}
    ledger.save(DOCS, 2, [B], [])


def test_a_folder_in_its_place_is_told_in_one_sentence(tmp_path: Path) -> None:
    path_of(tmp_path).mkdir()
    with pytest.raises(IndexFault, match="can't be used") as caught:
        SqliteLedger(path_of(tmp_path)).records(DOCS)
    assert one_sentence(caught.value)


def test_a_ledger_below_a_file_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ledger = SqliteLedger(tmp_path / "file" / "ledger.sqlite")
    assert ledger.records(DOCS) == {}
    with pytest.raises(IndexFault, match="can't be used") as caught:
        ledger.save(DOCS, 1, [A], [])
    assert one_sentence(caught.value)


def test_a_read_only_ledger_is_read_and_not_written() -> None:
    folder = Path(tempfile.mkdtemp())
    path = path_of(folder)
    SqliteLedger(path).save(DOCS, 1, [A], [])
    path.chmod(0o444)
    folder.chmod(0o555)
    root = os.geteuid() == 0
    try:
        # Root is above permissions.
        os.seteuid(65534 if root else os.geteuid())
        assert SqliteLedger(path).records(DOCS) == {"a.md": A}
        with pytest.raises(IndexFault, match="can't be used") as caught:
            SqliteLedger(path).save(DOCS, 2, [B], [])
    finally:
        os.seteuid(0 if root else os.geteuid())
        folder.chmod(0o755)
        shutil.rmtree(folder)
    assert not isinstance(caught.value, IndexCorrupt)
    assert one_sentence(caught.value)


def test_processes_that_make_the_same_ledger_at_once_agree(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from chapterverse.ledger import Record
from chapterverse.ledger.sqlite import SqliteLedger
from chapterverse.model import Scope
ledger = SqliteLedger(Path(sys.argv[1]))
sys.stdin.readline()
for i in range(20):
    ledger.save(Scope("docs"), i, [Record(f"{sys.argv[2]}-{i}.md", "a" * 64, 1, "p", 1, "now")], [])
"""
    command = [sys.executable, "-c", program, str(path_of(tmp_path))]
    workers = [subprocess.Popen([*command, str(i)], stdin=subprocess.PIPE, text=True) for i in range(4)]
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate(timeout=60)
    assert [w.returncode for w in workers] == [0] * 4
    assert len(SqliteLedger(path_of(tmp_path)).records(DOCS)) == 80


def test_an_empty_address_is_a_file_in_the_embedded_store(tmp_path: Path) -> None:
    open_ledger(Settings(store=f"edge:{tmp_path}")).save(DOCS, 1, [A], [])
    assert path_of(tmp_path).exists()


@pytest.mark.parametrize(
    ("uri", "store"), [("", "qdrant:http://x"), ("sqlite:", "edge:x"), ("postgresql://x", "edge:x"), ("x", "edge:x")]
)
def test_an_address_that_no_ledger_has(uri: str, store: str) -> None:
    with pytest.raises(ConfigurationError, match="There is no ledger"):
        open_ledger(Settings(ledger=uri, store=store))
