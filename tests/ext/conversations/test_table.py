"""The contract of every database of conversations; a line in `DATABASES` adds one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chapterverse.database import Database, Statements
from chapterverse.settings import Settings
from chapterverse_api.ext.conversations.records import (
    DEFAULT_TURNS,
    MAX_STORED_TURNS,
    CitedSource,
    Records,
    StoredRating,
    StoredThread,
    StoredTurn,
    open_records,
)
from chapterverse_api.ext.conversations.table import MAX_REMOVED_ROWS, RecordsTable, sqlite_database
from chapterverse_api.ext.dynamodb.records import DynamoRecords
from chapterverse_api.ext.postgres import postgres_database
from fakes import dynamodb_server, postgres

DATABASES: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:{folder / 'deep' / 'records.sqlite'}",
    "postgres": lambda folder: postgres.server().database(),
    "dynamodb": lambda folder: f"dynamodb:{dynamodb_server.shared().table('pk', 'sk')}",
}
#: Where rows are looked at, and removed by whoever writes next; DynamoDB removes its items by itself.
of_sql = pytest.mark.parametrize("address", ["sqlite", "postgres"], indirect=True)
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DAY = timedelta(days=1)
COUNT = "SELECT count(*) FROM {table}"


class UtcClock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(params=DATABASES)
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "dynamodb":
        for name, value in dynamodb_server.shared().environment.items():
            monkeypatch.setenv(name, value)
    yield DATABASES[request.param](tmp_path)
    if request.param == "dynamodb":
        dynamodb_server.shared().reset()


def opened(address: str) -> Records:
    """Return the records at an address, as a process of its own opens them; patient, as this machine is busy."""
    kind, _, place = address.partition(":")
    records = open_records(Settings(records=address))
    assert records is not None
    return DynamoRecords(dynamodb_server.patient(), place, 30) if kind == "dynamodb" else records


@pytest.fixture
def records(address: str) -> Records:
    return opened(address)


@pytest.fixture
def database(address: str) -> Database:
    kind, _, place = address.partition(":")
    return sqlite_database(Path(place)) if kind == "sqlite" else postgres_database(address)


@pytest.fixture
def clock() -> UtcClock:
    return UtcClock()


@pytest.fixture
def table(address: str, clock: UtcClock) -> Records:
    """Records by a clock of the test's."""
    kind, _, place = address.partition(":")
    if kind == "dynamodb":
        return DynamoRecords(dynamodb_server.patient(), place, 30, clock)
    return RecordsTable(sqlite_database(Path(place)) if kind == "sqlite" else postgres_database(address), 30, clock)


def turn(number: int = 1, **changes: object) -> StoredTurn:
    fields = {"turn_id": f"t{number}", "question": f"q{number}?", "answer": f"a{number}.", "status": "answered"}
    return StoredTurn(**{**fields, **changes})  # type: ignore[arg-type]


def questions(thread: StoredThread) -> list[str]:
    return [turn.question for turn in thread.turns]


def count(database: Database, table: str = "conversations") -> int:
    return int(database.run(lambda db: db.rows(COUNT.format(table=table)))[0][0])


def words(rated: Iterable[StoredRating]) -> list[tuple[str, str, str, str]]:
    return [(r.turn_id, r.rating, r.reason, r.comment) for r in rated]


def test_an_unknown_thread_is_empty(records: Records) -> None:
    assert records.thread("nobody") == StoredThread()


def test_a_turn_comes_back_as_it_was(records: Records) -> None:
    odd = "'\"; DROP TABLE conversations; -- %s ? {} ünï 日本語 😀\n"
    kept = turn(
        question=odd, answer=odd, status="partial", cited=(CitedSource("Guide › Install", "https://x.example/#i"),)
    )
    records.append("a", kept)
    (found,) = records.thread("a").turns
    assert found.number > 0
    assert found == StoredTurn(kept.turn_id, odd, odd, "partial", kept.cited, found.number)


def test_what_no_database_holds_is_replaced(records: Records) -> None:
    records.append("a", turn(question="q\0?", answer="a\ud800."))
    (found,) = records.thread("a").turns
    assert (found.question, found.answer) == ("q\ufffd?", "a\ufffd.")


def test_a_turn_is_kept_once(records: Records) -> None:
    for _ in range(3):
        records.append("a", turn(1))
    records.append("b", turn(1))
    assert questions(records.thread("a")) == questions(records.thread("b")) == ["q1?"]


def test_the_latest_turns_come_in_the_order_of_their_arrival(records: Records) -> None:
    for number in range(20):
        records.append("a", turn(number))
        records.append("b", turn(100 + number))
    assert questions(records.thread("a")) == [f"q{n}?" for n in range(20 - DEFAULT_TURNS, 20)]


def test_what_one_process_keeps_another_finds(records: Records, address: str) -> None:
    other = opened(address)
    assert other.thread("a") == StoredThread()
    records.append("a", turn(1))
    other.append("a", turn(2))
    assert questions(records.thread("a")) == questions(other.thread("a")) == ["q1?", "q2?"]


def test_a_summary_takes_the_place_of_the_one_that_was_read(records: Records) -> None:
    records.append("a", turn(1))
    read = records.thread("a")
    assert records.summarize("a", "one", read.turns[-1].number, read=read)
    records.append("a", turn(2))
    read = records.thread("a")
    assert (read.summary, questions(read), read.new_turns) == ("one", ["q1?", "q2?"], read.turns[1:])
    assert records.summarize("a", "two", read.turns[-1].number, read=read)
    assert (records.thread("a").summary, records.thread("a").new_turns) == ("two", ())


def test_a_summary_that_lost_a_race_changes_nothing(records: Records) -> None:
    records.append("a", turn(1))
    read = records.thread("a")
    through = read.turns[-1].number
    assert records.summarize("a", "first", through, read=read)
    assert not records.summarize("a", "late", through, read=read)
    again = records.thread("a")
    records.append("a", turn(2))
    newer = records.thread("a")
    assert records.summarize("a", "second", newer.turns[-1].number, read=newer)
    assert not records.summarize("a", "late", through, read=again)
    assert records.thread("a").summary == "second"


def test_a_summary_does_not_bring_back_what_was_forgotten(records: Records) -> None:
    records.append("a", turn(1))
    read = records.thread("a")
    assert records.forget("a")
    assert not records.summarize("a", "ghost", read.turns[-1].number, read=read)
    assert records.thread("a") == StoredThread()


def test_forgetting_takes_turns_and_summary_of_that_thread_alone(records: Records) -> None:
    for name in ("a", "b"):
        records.append(name, turn(1))
        read = records.thread(name)
        records.summarize(name, name, read.turns[-1].number, read=read)
    assert records.forget("a")
    assert records.thread("a") == StoredThread()
    assert records.thread("b").summary == "b"
    assert not records.forget("a")


def test_names_that_look_alike_are_other_threads(records: Records) -> None:
    for name in ("ab", "AB", "a_", "a%", "a"):
        records.append(name, turn(question=name))
    assert [questions(records.thread(n)) for n in ("ab", "AB", "a_", "a%", "a")] == [
        ["ab"],
        ["AB"],
        ["a_"],
        ["a%"],
        ["a"],
    ]
    assert records.forget("a_")
    assert questions(records.thread("ab")) == ["ab"]


def test_forgetting_and_expiring_where_nothing_was_ever_kept(records: Records) -> None:
    assert (records.forget("a"), records.expire(1)) == (False, 0)


@of_sql
def test_what_is_too_old_is_neither_returned_nor_kept(table: Records, database: Database, clock: UtcClock) -> None:
    table.append("a", turn(1))
    clock.now += 29 * DAY
    table.append("a", turn(2))
    assert questions(table.thread("a")) == ["q1?", "q2?"]
    clock.now = START + 30 * DAY + timedelta(microseconds=1)
    assert questions(table.thread("a")) == ["q2?"]
    assert count(database) == 2
    table.append("b", turn(3))
    assert count(database) == 2


def test_a_summary_is_as_old_as_the_oldest_turn_in_it(table: Records, clock: UtcClock) -> None:
    table.append("a", turn(1))
    clock.now += 20 * DAY
    table.append("a", turn(2))
    read = table.thread("a")
    table.summarize("a", "holds q1", read.turns[-1].number, read=read)
    clock.now += 5 * DAY
    table.append("a", turn(3))
    read = table.thread("a")
    table.summarize("a", "still holds q1", read.turns[-1].number, read=read)
    clock.now += 6 * DAY
    read = table.thread("a")
    assert (read.summary, questions(read), len(read.new_turns)) == ("", ["q2?", "q3?"], 2)
    assert table.summarize("a", "anew", read.turns[-1].number, read=read)
    assert table.thread("a").summary == "anew"


@of_sql
def test_a_write_removes_only_so_many_old_rows(table: Records, database: Database, clock: UtcClock) -> None:
    for number in range(MAX_REMOVED_ROWS + 20):
        table.append(f"thread-{number}", turn(number))
    clock.now += 31 * DAY
    table.append("new", turn(1))
    assert count(database) == 21
    table.append("new", turn(2))
    assert count(database) == 2


@of_sql
def test_what_is_older_is_removed_on_demand(table: Records, database: Database, clock: UtcClock) -> None:
    table.append("a", turn(1))
    clock.now += 10 * DAY
    table.append("b", turn(2))
    assert table.expire(20) == 0
    assert table.expire(5) == 1
    assert (table.thread("a"), questions(table.thread("b"))) == (StoredThread(), ["q2?"])
    clock.now += timedelta(seconds=1)
    assert table.expire(0) == 1
    assert count(database) == 0


@of_sql
def test_a_thread_that_goes_on_for_ever_keeps_its_latest_turns(table: Records, database: Database) -> None:
    for number in range(MAX_STORED_TURNS + 15):
        table.append("a", turn(number))
    table.append("b", turn(1))
    assert count(database) == MAX_STORED_TURNS + 1
    assert questions(table.thread("a"))[-1] == f"q{MAX_STORED_TURNS + 14}?"


@of_sql
def test_a_row_is_in_the_terms_of_a_chunk(table: Records, database: Database) -> None:
    table.append("a", turn(1))
    columns = "type, text, scope, source, chunk_id, created_at, timestamp"
    rows = database.run(lambda db: db.rows(f"SELECT {columns} FROM conversations"))
    assert rows == [("turn", "a1.", "entity:a", "chat", "t1", *["2026-01-02T03:04:05.000000Z"] * 2)]


@of_sql
def test_a_transaction_that_fails_leaves_nothing(database: Database, table: Records) -> None:
    table.append("a", turn(1))

    def fails(db: Statements) -> None:
        db.change("DELETE FROM conversations")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        database.run(fails)
    assert questions(table.thread("a")) == ["q1?"]


def test_many_writers_at_once_lose_nothing(address: str) -> None:
    def write(name: int) -> None:
        mine = opened(address)
        for number in range(10):
            mine.append("shared", turn(name * 100 + number))
            mine.append(f"own-{name}", turn(number))

    writers = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    records = opened(address)
    assert all(questions(records.thread(f"own-{n}")) == [f"q{i}?" for i in range(10)] for n in range(4))
    kept = records.thread("shared").turns
    assert len(kept) == DEFAULT_TURNS
    assert kept[-1].number - kept[0].number >= DEFAULT_TURNS - 1


# FAQ entries


def test_it_is_kept_for_thirty_days_that_an_entry_answered(table: Records, clock: UtcClock) -> None:
    assert table.matched_entries() == frozenset()
    table.match("a" * 64)
    clock.now += 20 * DAY
    table.match("b" * 64)
    table.match("b" * 64)
    assert table.matched_entries() == {"a" * 64, "b" * 64}
    clock.now += 11 * DAY
    assert table.matched_entries() == {"b" * 64}
    # A clock that goes back loses nothing.
    clock.now -= 40 * DAY
    assert table.matched_entries() == {"a" * 64, "b" * 64}
    table.match("c" * 64)
    assert not table.forget("c")
    assert "c" * 64 in table.matched_entries()


# What readers said


def test_the_turns_of_all_threads_are_those_that_are_neither_forgotten_nor_expired(
    table: Records, clock: UtcClock
) -> None:
    place = CitedSource("Guide › Install", "https://x.example/#i")
    table.append("expired", turn(1))
    clock.now += 31 * DAY
    for number, thread in enumerate(("a", "b", "b", "gone"), 2):
        table.append(thread, turn(number, cited=(place,)))
    table.rate(StoredRating("t2", "down"))
    table.summarize("b", "A summary.", 2, read=table.thread("b"))
    table.forget("gone")
    found = sorted(table.turns(), key=lambda row: row[2].turn_id)
    assert [(thread, t.question, t.status, t.cited, rating) for thread, _, t, rating in found] == [
        ("a", "q2?", "answered", (place,), "down"),
        ("b", "q3?", "answered", (place,), ""),
        ("b", "q4?", "answered", (place,), ""),
    ]
    assert {at for _, at, *_ in found} == {"2026-02-02T03:04:05.000000Z"}


def test_a_rating_comes_back_with_what_is_kept_of_its_turn(table: Records, clock: UtcClock) -> None:
    odd = "'\"; DROP TABLE feedback; -- %s ? {} ünï 日本語 😀\n"
    kept = turn(1, cited=(CitedSource("Guide › Install", "https://x.example/#i"),))
    table.append("a", kept)
    clock.now += DAY
    table.rate(StoredRating("t1", "down", "wrong", odd))
    (found,) = table.ratings(9)
    assert (words([found]), found.at) == ([("t1", "down", "wrong", odd)], "2026-01-03T03:04:05.000000Z")
    assert found.turn is not None
    assert (found.turn.question, found.turn.status, found.turn.cited) == ("q1?", "answered", kept.cited)


def test_a_rating_of_a_turn_that_is_not_kept_is_kept(records: Records) -> None:
    records.rate(StoredRating("elsewhere", "up", comment="c\0\ud800"))
    (found,) = records.ratings(9)
    assert (found.rating, found.reason, found.comment, found.turn) == ("up", "", "c\ufffd\ufffd", None)


def test_the_second_rating_of_a_turn_takes_the_place_of_the_first(table: Records, clock: UtcClock) -> None:
    for number, rated in enumerate(
        (StoredRating("t1", "down", "wrong", "No."), StoredRating("t2", "up"), StoredRating("t1", "up"))
    ):
        clock.now = START + number * DAY
        table.rate(rated)
    assert words(table.ratings(9)) == [("t1", "up", "", ""), ("t2", "up", "", "")]
    assert words(table.ratings(1)) == [("t1", "up", "", "")]


def test_nothing_was_said_where_nothing_was_ever_kept(records: Records) -> None:
    assert records.ratings(9) == []


def test_forgetting_a_thread_takes_what_was_said_of_its_turns(table: Records) -> None:
    # A rating may be there before its turn is kept, and may not be of a turn that is kept at all.
    table.rate(StoredRating("t1", "up"))
    for name, number in (("a", 1), ("a", 2), ("b", 3)):
        table.append(name, turn(number))
    for turn_id in ("t2", "t3", "t4"):
        table.rate(StoredRating(turn_id, "down"))
    assert table.forget("a")
    assert {r.turn_id for r in table.ratings(9)} == {"t3", "t4"}


@of_sql
def test_forgetting_takes_what_was_said_of_turns_that_were_too_many(table: Records, database: Database) -> None:
    table.append("a", turn(1))
    table.rate(StoredRating("t1", "down", comment="Wrong."))
    for number in range(2, MAX_STORED_TURNS + 3):
        table.append("a", turn(number))
    assert [r.turn for r in table.ratings(9)] == [None]
    assert table.forget("a")
    assert (table.ratings(9), count(database, "feedback")) == ([], 0)


@of_sql
def test_a_rating_is_as_old_as_its_turn(table: Records, database: Database, clock: UtcClock) -> None:
    table.append("a", turn(1))
    clock.now += 29 * DAY
    for turn_id in ("t1", "alone"):
        table.rate(StoredRating(turn_id, "down"))
    assert {r.turn_id for r in table.ratings(9)} == {"t1", "alone"}
    clock.now += 2 * DAY
    assert {r.turn_id for r in table.ratings(9)} == {"alone"}
    assert count(database, "feedback") == 2
    table.append("b", turn(2))
    assert count(database, "feedback") == 1
    clock.now += 29 * DAY
    assert table.ratings(9) == []


@of_sql
def test_what_was_said_is_removed_on_demand(table: Records, database: Database, clock: UtcClock) -> None:
    table.append("a", turn(1))
    table.rate(StoredRating("t1", "up"))
    clock.now += 10 * DAY
    table.rate(StoredRating("t2", "up"))
    assert (table.expire(20), table.expire(5)) == (0, 2)
    assert {r.turn_id for r in table.ratings(9)} == {"t2"}
    assert count(database, "feedback") == 1


def test_many_who_rate_one_turn_at_once_leave_one_row(address: str) -> None:
    def rate(name: int) -> None:
        mine = opened(address)
        for number in range(10):
            mine.rate(StoredRating("t1", "up", comment=f"{name}-{number}"))

    readers = [threading.Thread(target=rate, args=(name,)) for name in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    records = opened(address)
    (found,) = records.ratings(9)
    assert found.comment.endswith("-9")


# Numbers of turns and of summaries


def test_turns_are_numbered_within_their_thread(records: Records) -> None:
    for number in (1, 2):
        records.append("a", turn(number))
        records.append("b", turn(10 + number))
    found = [(turn.number, turn.question, turn.answer) for turn in records.thread("b").turns]
    assert found == [(1, "q11?", "a11."), (2, "q12?", "a12.")]


def test_a_summary_says_which_one_it_is_and_what_it_covers(records: Records) -> None:
    assert records.thread("a").through == 0
    for index in range(3):
        records.append("a", turn(index))
        read = records.thread("a")
        assert records.summarize("a", f"s{index}", read.turns[-1].number, read=read)
        found = records.thread("a")
        assert (found.summary, found.summary_index, found.through) == (f"s{index}", index, index + 1)


def test_as_many_of_the_latest_turns_are_read_as_are_asked_for(records: Records) -> None:
    for number in range(20):
        records.append("a", turn(number))
    read = records.thread("a")
    records.summarize("a", "s", read.turns[-1].number, read=read)
    for most in (1, 5, 60):
        found = records.thread("a", most)
        assert questions(found) == [f"q{n}?" for n in range(max(0, 20 - most), 20)]
        assert found.summary == "s"


def test_two_tabs_that_write_at_once_lose_nothing(address: str) -> None:
    def write(name: int) -> None:
        mine = opened(address)
        for number in range(6):
            mine.append("shared", turn(name * 100 + number))

    tabs = [threading.Thread(target=write, args=(name,)) for name in range(2)]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    turns = opened(address).thread("shared", 60).turns
    assert [turn.number for turn in turns] == list(range(1, 13))
    assert {turn.turn_id for turn in turns} == {f"t{name * 100 + number}" for name in range(2) for number in range(6)}


def test_what_is_too_old_is_not_returned(table: Records, clock: UtcClock) -> None:
    table.append("a", turn(1))
    table.rate(StoredRating("t1", "up"))
    clock.now += 20 * DAY
    table.append("a", turn(2))
    clock.now = START + 30 * DAY + timedelta(microseconds=1)
    assert (questions(table.thread("a")), table.ratings(9)) == (["q2?"], [])
    table.append("a", turn(3))
    assert questions(table.thread("a")) == ["q2?", "q3?"]


def test_a_clock_that_goes_back_loses_nothing(table: Records, clock: UtcClock) -> None:
    table.append("a", turn(1))
    clock.now -= 40 * DAY
    table.append("a", turn(2))
    assert questions(table.thread("a")) == ["q1?", "q2?"]
    clock.now = START
    assert questions(table.thread("a")) == ["q1?"]
