"""`chapterverse feedback`, over a real database and the installed service."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chapterverse_api.ext.conversations.records import CitedSource, StoredRating, StoredTurn
from chapterverse_api.ext.conversations.table import RecordsTable, sqlite_database
from ext.conversations.test_forget_command import run

PLACE = CitedSource("Guide › Keep a page out", "https://docs.example/guide/#out")
#: What clears a screen, turns text around, sets a title, moves the cursor, and shows as nothing.
HOSTILE = "\x1b[2J\u202ereversed\x9d0;title\x9c\r\n\x08\u2028over\u200b\x7f"


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHAPTERVERSE_RECORDS", f"sqlite:{tmp_path / 'records.sqlite'}")


def keep(folder: Path, *said: StoredRating, turns: tuple[StoredTurn, ...] = ()) -> None:
    """Store turns with ratings, a minute apart."""
    now = datetime.now(UTC).replace(hour=12, minute=0) - timedelta(days=1)
    table = RecordsTable(sqlite_database(folder / "records.sqlite"), 30, lambda: now)
    for turn in turns:
        table.append("abc", turn)
    for rated in said:
        now += timedelta(minutes=1)
        table.rate(rated)


def asked(turn_id: str, question: str = "How do I keep a page out?") -> StoredTurn:
    return StoredTurn(turn_id, question, "So.", "partial", (PLACE,))


def test_what_was_said_is_printed_newest_first_with_what_it_was_about(tmp_path: Path) -> None:
    keep(
        tmp_path,
        StoredRating("t1", "down", "outdated", "The option\nwas renamed."),
        StoredRating("t2", "up"),
        turns=(asked("t1"),),
    )
    code, out, err = run("feedback")
    assert (code, err) == (0, "")
    newest, *older = out.splitlines()
    assert newest.endswith(" 12:02  up")
    assert [line.partition("12:01")[2] or line for line in older] == [
        "  down  outdated  The option was renamed.",
        "    How do I keep a page out? (partial)",
        "    Guide › Keep a page out  https://docs.example/guide/#out",
    ]


def test_as_json(tmp_path: Path) -> None:
    keep(
        tmp_path,
        StoredRating("t1", "down", "wrong", "Nein – «falsch»."),
        StoredRating("t2", "up"),
        turns=(asked("t1"),),
    )
    code, out, _ = run("feedback", "--json")
    newest, oldest = json.loads(out)
    assert (code, newest.pop("timestamp")[-11:]) == (0, oldest.pop("timestamp")[-11:])
    assert newest == {
        "turn_id": "t2", "rating": "up", "reason": None, "comment": None, "question": None, "status": None, "cited": [],
    }  # fmt: skip
    assert oldest == {
        "turn_id": "t1",
        "rating": "down",
        "reason": "wrong",
        "comment": "Nein – «falsch».",
        "question": "How do I keep a page out?",
        "status": "partial",
        "cited": [{"title": PLACE.title, "url": PLACE.url}],
    }
    assert "«falsch»" in out


@pytest.mark.parametrize("arguments", [("feedback",), ("feedback", "--json")])
def test_no_reader_steers_the_owners_terminal(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    keep(tmp_path, StoredRating("t1", "down", "other", HOSTILE), turns=(asked("t1", f"Why?{HOSTILE}"),))
    code, out, _ = run(*arguments)
    assert code == 0
    assert "reversed" in out
    assert [c for c in out if not (c.isprintable() or c == "\n")] == []
    if arguments[-1] == "--json":
        assert json.loads(out)[0]["comment"] == HOSTILE


def test_a_line_can_not_be_forged(tmp_path: Path) -> None:
    keep(tmp_path, StoredRating("t1", "up", "", "fine\n2026-01-01 00:00  down  wrong  All of it is wrong."))
    _, out, _ = run("feedback")
    assert len(out.splitlines()) == 1


def test_so_many_are_printed_as_are_asked_for(tmp_path: Path) -> None:
    keep(tmp_path, *(StoredRating(f"t{number}", "up") for number in range(5)))
    assert [row["turn_id"] for row in json.loads(run("feedback", "--limit", "2", "--json")[1])] == ["t4", "t3"]
    assert run("feedback", "--limit", "0")[0] == 2


def test_where_nothing_was_said_it_says_so(tmp_path: Path) -> None:
    assert run("feedback") == (0, "No reader has said anything of an answer yet.\n", "")
    assert json.loads(run("feedback", "--json")[1]) == []
    assert list(tmp_path.iterdir()) == []


def test_a_flag_names_another_database(tmp_path: Path) -> None:
    keep(tmp_path, StoredRating("t1", "up"))
    assert json.loads(run("feedback", "--records", f"sqlite:{tmp_path / 'other.sqlite'}", "--json")[1]) == []


def test_where_nothing_is_kept_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAPTERVERSE_RECORDS")
    assert run("feedback") == (
        1, "", "Error: No conversations are kept: CHAPTERVERSE_RECORDS names no database.\n",
    )  # fmt: skip
