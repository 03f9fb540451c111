from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from chapterverse.ledger import Ledger
from chapterverse.model import Scope
from chapterverse_api.answer.event import RecordsFault
from chapterverse_api.ext.conversations.records import StoredRating, StoredThread, StoredTurn
from chapterverse_api.ext.conversations.table import RecordsTable, sqlite_database

TURN = StoredTurn("t1", "What of Bananarama?", "Nothing of Bananarama.", "answered")


def table(path: Path, lock_timeout: float = 2.0) -> RecordsTable:
    return RecordsTable(sqlite_database(path, lock_timeout), 30)


def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    records = table(tmp_path / "a" / "b.sqlite")
    assert (records.thread("a"), records.forget("a"), records.expire(1)) == (StoredThread(), False, 0)
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    table(tmp_path / "records.sqlite").append("a", TURN)
    assert stat.S_IMODE((tmp_path / "records.sqlite").stat().st_mode) == 0o600


def test_what_is_forgotten_is_gone_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    table(path).append("a", TURN)
    assert b"Bananarama" in path.read_bytes()
    assert table(path).forget("a")
    assert b"Bananarama" not in path.read_bytes()


def test_what_was_said_of_an_answer_is_gone_from_the_file_too(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    table(path).append("a", TURN)
    table(path).rate(StoredRating("t1", "down", "wrong", "Chicory of the worst kind."))
    assert b"Chicory" in path.read_bytes()
    assert table(path).forget("a")
    assert b"Chicory" not in path.read_bytes()


def test_a_file_that_is_removed_meanwhile_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    records = table(path)
    records.append("a", TURN)
    path.unlink()
    assert records.thread("a") == StoredThread()
    records.append("a", TURN)
    assert len(records.thread("a").turns) == 1


def test_it_may_share_a_file_with_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "both.sqlite"
    Ledger.on_sqlite(path).save(Scope("docs"), 1, [], [])
    table(path).append("a", TURN)
    assert Ledger.on_sqlite(path).described(Scope("docs"))[0] == 1
    assert len(table(path).thread("a").turns) == 1


def test_a_file_that_is_written_to_is_waited_for_and_then_told(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    table(path).append("a", TURN)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(RecordsFault) as caught:
        table(path, lock_timeout=0.05).append("b", TURN)
    assert str(caught.value) == f"Another process is writing to the conversations in {path}: wait for it."
    other.execute("ROLLBACK")
    other.close()
    table(path).append("b", TURN)


@pytest.mark.parametrize("content", [b"no database " * 100, b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_file_that_is_no_database_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "records.sqlite"
    path.write_bytes(content)
    for use in (lambda: table(path).thread("a"), lambda: table(path).append("a", TURN)):
        with pytest.raises(RecordsFault) as caught:
            use()
        assert str(caught.value) == f"The file {path} is no database of conversations: remove it, or name another."


def test_a_table_of_another_kind_is_told(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE conversations (a TEXT)")
    db.close()
    with pytest.raises(RecordsFault, match="is no database of conversations"):
        table(path).thread("a")


@pytest.mark.parametrize("name", ["", "file/records.sqlite"])
def test_a_place_where_no_file_can_be_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecordsFault, match="can't be used"):
        table(tmp_path / name).append("a", TURN)


def test_a_row_that_somebody_else_wrote_is_told(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    table(path).append("a", TURN)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE conversations SET cited = '{'")
    db.close()
    table(path).rate(StoredRating("t1", "up"))
    for read in (lambda: table(path).thread("a"), lambda: table(path).ratings(9)):
        with pytest.raises(RecordsFault) as caught:
            read()
        assert str(caught.value) == "A row of the conversations was not written by this release: remove it."
