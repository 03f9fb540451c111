"""`chapterverse forget`, over a real database and the installed service."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chapterverse.cli import main
from chapterverse_api.ext.conversations.records import StoredTurn
from chapterverse_api.ext.conversations.table import RecordsTable, sqlite_database


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHAPTERVERSE_RECORDS", f"sqlite:{tmp_path / 'records.sqlite'}")


def keep(folder: Path, thread: str, days_ago: int = 0) -> RecordsTable:
    then = datetime.now(UTC) - timedelta(days=days_ago)
    table = RecordsTable(sqlite_database(folder / "records.sqlite"), 30, lambda: then)
    table.append(thread, StoredTurn("t1", "q?", "a.", "answered"))
    return table


def run(*arguments: str) -> tuple[object, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main(arguments)
    return left.value.code, out.getvalue(), err.getvalue()


def test_a_conversation_is_forgotten(tmp_path: Path) -> None:
    kept, other = keep(tmp_path, "abc-1"), keep(tmp_path, "abc-2")
    assert run("forget", "abc-1") == (0, "The conversation was forgotten.\n", "")
    assert not kept.thread("abc-1").turns
    assert other.thread("abc-2").turns
    assert run("forget", "abc-1") == (0, "Nothing is kept of such a conversation.\n", "")


def test_old_ones_are_forgotten(tmp_path: Path) -> None:
    keep(tmp_path, "old", days_ago=9)
    keep(tmp_path, "new")
    assert run("forget", "--older-than", "8") == (0, "1 turns, summaries and ratings were forgotten.\n", "")
    code, out, _ = run("forget", "--older-than", "0", "--json")
    assert (code, json.loads(out)) == (0, {"removed": 1})


def test_a_flag_names_another_database(tmp_path: Path) -> None:
    kept = keep(tmp_path, "abc")
    code, out, _ = run("forget", "abc", "--records", f"sqlite:{tmp_path / 'other.sqlite'}", "--json")
    assert (code, json.loads(out)) == (0, {"removed": 0})
    assert kept.thread("abc").turns


@pytest.mark.parametrize("arguments", [(), ("abc", "--older-than", "3"), ("--older-than", "-1"), ("--older-than", "x")])
def test_a_mistake_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    assert run("forget", *arguments)[0] == 2


def test_where_nothing_is_kept_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAPTERVERSE_RECORDS")
    assert run("forget", "abc") == (
        1, "", "Error: No conversations are kept: CHAPTERVERSE_RECORDS names no database.\n",
    )  # fmt: skip


def test_a_database_that_fails_is_told(tmp_path: Path) -> None:
    (tmp_path / "records.sqlite").write_bytes(b"no database" * 100)
    code, out, err = run("forget", "abc")
    assert (code, out) == (1, "")
    assert err.startswith("Error: The file ")
    assert err.endswith(" is no database of conversations: remove it, or name another.\n")
