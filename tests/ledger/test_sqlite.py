"""Behavior of the SQLite ledger alone: a file that is damaged, read-only, newer, or not ours."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from chapterverse.errors import IndexCorrupt, IndexFault, IndexMismatch
from chapterverse.ledger import Ledger, open_ledger
from chapterverse.settings import Settings
from ledger.rows import DOCS, A, B, one_sentence, row


def path_of(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    ledger = Ledger.on_sqlite(tmp_path / "nowhere" / "ledger.sqlite")
    assert ledger.records(DOCS) == {}
    assert ledger.described(DOCS)[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_the_table_is_the_one_of_the_contract(tmp_path: Path) -> None:
    Ledger.on_sqlite(path_of(tmp_path)).save(DOCS, 1, [A], [])
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
    ledger = Ledger.on_sqlite(path_of(tmp_path))
    for use in (lambda: ledger.records(DOCS), lambda: ledger.described(DOCS), lambda: ledger.save(DOCS, 1, [A], [])):
        with pytest.raises(IndexCorrupt, match="remove it") as caught:
            use()
        assert one_sentence(caught.value)
    assert path_of(tmp_path).read_bytes() == content


def test_a_file_cut_short_is_told_in_one_sentence(tmp_path: Path) -> None:
    ledger = Ledger.on_sqlite(path_of(tmp_path))
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
        Ledger.on_sqlite(path_of(tmp_path)).save(DOCS, 1, [A], [])
    with contextlib.closing(sqlite3.connect(path_of(tmp_path))) as db:
        assert [name for (name,) in db.execute("SELECT name FROM sqlite_master")] == ["document_metadata"]


def test_reading_a_file_of_other_tables_adds_nothing(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path_of(tmp_path))) as db:
        db.execute("CREATE TABLE conversations (theirs)")
        db.commit()
    before = path_of(tmp_path).read_bytes()
    ledger = Ledger.on_sqlite(path_of(tmp_path))
    assert (ledger.records(DOCS), ledger.described(DOCS)) == ({}, (0, ""))
    assert path_of(tmp_path).read_bytes() == before


def test_a_newer_ledger_is_not_touched(tmp_path: Path) -> None:
    Ledger.on_sqlite(path_of(tmp_path)).save(DOCS, 1, [A], [])
    with contextlib.closing(sqlite3.connect(path_of(tmp_path))) as db:
        db.execute("PRAGMA user_version = 99")
    before = path_of(tmp_path).read_bytes()
    ledger = Ledger.on_sqlite(path_of(tmp_path))
    for use in (lambda: ledger.records(DOCS), lambda: ledger.save(DOCS, 2, [B], [])):
        with pytest.raises(IndexMismatch, match="upgrade") as caught:
            use()
        assert one_sentence(caught.value)
    assert path_of(tmp_path).read_bytes() == before


def test_a_folder_in_its_place_is_told_in_one_sentence(tmp_path: Path) -> None:
    path_of(tmp_path).mkdir()
    with pytest.raises(IndexFault, match="can't be used") as caught:
        Ledger.on_sqlite(path_of(tmp_path)).records(DOCS)
    assert one_sentence(caught.value)


def test_a_ledger_below_a_file_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ledger = Ledger.on_sqlite(tmp_path / "file" / "ledger.sqlite")
    assert ledger.records(DOCS) == {}
    with pytest.raises(IndexFault, match="can't be used") as caught:
        ledger.save(DOCS, 1, [A], [])
    assert one_sentence(caught.value)


def test_a_read_only_ledger_is_read_and_not_written() -> None:
    folder = Path(tempfile.mkdtemp())
    path = path_of(folder)
    Ledger.on_sqlite(path).save(DOCS, 1, [A], [])
    path.chmod(0o444)
    folder.chmod(0o555)
    root = os.geteuid() == 0
    try:
        # Root is above permissions.
        os.seteuid(65534 if root else os.geteuid())
        assert Ledger.on_sqlite(path).records(DOCS) == {"a.md": A}
        with pytest.raises(IndexFault, match="can't be used") as caught:
            Ledger.on_sqlite(path).save(DOCS, 2, [B], [])
    finally:
        os.seteuid(0 if root else os.geteuid())
        folder.chmod(0o755)
        shutil.rmtree(folder)
    assert not isinstance(caught.value, IndexCorrupt)
    assert one_sentence(caught.value)


def test_an_empty_address_is_a_file_in_the_embedded_store(tmp_path: Path) -> None:
    open_ledger(Settings(store=f"edge:{tmp_path}")).save(DOCS, 1, [A], [])
    assert path_of(tmp_path).exists()


FULL = """
import resource, signal, sys
from pathlib import Path
from chapterverse.errors import IndexFault
from chapterverse.ledger import Ledger
from ledger.rows import DOCS, A, row
# No file may grow further than this, as on a full disk.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
ledger = Ledger.on_sqlite(Path(sys.argv[1]))
try:
    ledger.save(DOCS, 2, [row(f"{i}.md") for i in range(10_000)], ["a.md"])
except IndexFault as error:
    print(type(error).__name__, error)
assert ledger.records(DOCS) == {"a.md": A}
"""


def test_a_full_disk_is_told_in_one_sentence_and_nothing_is_written(tmp_path: Path) -> None:
    ledger = Ledger.on_sqlite(path_of(tmp_path))
    ledger.save(DOCS, 1, [A], [])
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path_of(tmp_path))],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": tests},
    )
    assert (done.returncode, done.stderr) == (0, "")
    kind, _, sentence = done.stdout.strip().partition(" ")
    assert kind == "IndexFault"
    assert one_sentence(IndexFault(sentence))
    assert "can't be used" in sentence
    assert (ledger.described(DOCS)[0], ledger.records(DOCS)) == (1, {"a.md": A})
    ledger.save(DOCS, 2, [B], ["a.md"])
    assert ledger.records(DOCS) == {"b.md": B}
