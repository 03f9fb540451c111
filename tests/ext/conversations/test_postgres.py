"""Behavior of Postgres alone: idle and dropped connections, missing servers, missing rights."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from chapterverse.database import Statements
from chapterverse_api.answer.event import RecordsFault
from chapterverse_api.ext.conversations.records import StoredRating, StoredTurn
from chapterverse_api.ext.conversations.table import RecordsTable
from chapterverse_api.ext.postgres import postgres_database
from fakes.loopback import SOON
from fakes.postgres import USER, PostgresServer, server
from fakes.relay import Relay

TURN = StoredTurn("t1", "q?", "a.", "answered")
GONE = "The database of the conversations can't be reached: see that its server runs, and correct CHAPTERVERSE_RECORDS."


@pytest.fixture
def address() -> str:
    return server().database()


@pytest.fixture
def records(address: str) -> RecordsTable:
    return RecordsTable(postgres_database(address), 30)


def name_of(address: str) -> str:
    return urlsplit(address).path.lstrip("/")


def drop_all(address: str) -> None:
    with server().superuser() as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s AND datname = %s",
            (USER, name_of(address)),
        )


def sessions(address: str) -> int:
    with server().superuser() as db:
        found = db.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", (name_of(address),)).fetchone()
        return int(found[0]) if found else 0


def test_a_connection_is_used_again(address: str, records: RecordsTable) -> None:
    for _ in range(5):
        records.append("a", TURN)
        records.thread("a")
    assert sessions(address) == 1


def test_a_connection_that_was_dropped_at_rest_is_made_anew(address: str, records: RecordsTable) -> None:
    records.append("a", TURN)
    for _ in range(3):
        drop_all(address)
        records.append("a", TURN)
        drop_all(address)
        assert len(records.thread("a").turns) == 1
        drop_all(address)
        assert not records.forget("b")


def test_a_connection_that_breaks_while_it_is_used_is_told_and_nothing_is_kept(
    address: str, records: RecordsTable
) -> None:
    database = postgres_database(address)
    tries = []

    def ended(db: Statements) -> None:
        db.change("DELETE FROM conversations")
        tries.append(1)
        drop_all(address)
        db.rows("SELECT 1")

    records.append("a", TURN)
    with pytest.raises(RecordsFault) as caught:
        database.run(ended)
    assert str(caught.value) == "The connection to the database of the conversations broke off, or took too long."
    assert len(tries) == 1
    assert len(records.thread("a").turns) == 1


def test_a_server_that_is_killed_and_comes_back() -> None:
    mortal = PostgresServer()
    try:
        records = RecordsTable(postgres_database(mortal.database()), 30)
        records.append("a", TURN)
        mortal.kill()
        with pytest.raises(RecordsFault) as caught:
            records.thread("a")
        assert str(caught.value) == GONE
        mortal.start()
        assert len(records.thread("a").turns) == 1
    finally:
        mortal.close()


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("postgresql://u:hunter2@127.0.0.1:1/db", GONE),
        (
            "postgresql://u:p@hunter2.invalid/db",
            "The host of the database of the conversations can't be found: correct CHAPTERVERSE_RECORDS.",
        ),
        ("postgresql://u:p@127.0.0.1:99999/hunter2", GONE),
    ],
)
def test_a_server_that_is_not_there_is_told_without_its_address(uri: str, sentence: str) -> None:
    with pytest.raises(RecordsFault) as caught:
        RecordsTable(postgres_database(uri), 30).thread("a")
    assert str(caught.value) == sentence
    assert caught.value.__suppress_context__


def test_a_lock_is_waited_for_no_longer_than_a_reader_would(address: str, records: RecordsTable) -> None:
    records.append("a", TURN)
    with psycopg.connect(address) as other:
        other.execute("LOCK TABLE conversations")
        started = time.monotonic()
        with pytest.raises(RecordsFault, match="took too long"):
            records.thread("a")
        assert time.monotonic() - started < 2 + SOON


@pytest.mark.parametrize("right", ["SELECT", "INSERT", "DELETE"])
def test_a_right_that_is_missing_is_told_by_its_code(address: str, records: RecordsTable, right: str) -> None:
    records.append("a", TURN)
    with psycopg.connect(address) as db:
        db.execute(f"REVOKE {right} ON conversations FROM {USER}".encode())
    with pytest.raises(RecordsFault) as caught:
        records.append("a", TURN) if right != "SELECT" else records.thread("a")
    assert str(caught.value) == (
        "The database of the conversations refuses (SQLSTATE 42501): see that its user may write and that the table"
        " named conversations is ours."
    )


def test_a_table_that_is_dropped_is_made_anew(address: str, records: RecordsTable) -> None:
    records.append("a", TURN)
    with psycopg.connect(address) as db:
        db.execute("DROP TABLE conversations")
    with pytest.raises(RecordsFault, match="42P01"):
        records.append("a", TURN)
    records.append("a", TURN)
    assert len(records.thread("a").turns) == 1


@pytest.mark.parametrize("use", [lambda r: r.thread("a"), lambda r: r.ratings(9), lambda r: r.forget("b")])
def test_a_table_that_is_missing_is_made(
    address: str, records: RecordsTable, use: Callable[[RecordsTable], object]
) -> None:
    records.append("a", TURN)
    with psycopg.connect(address) as db:
        db.execute("DROP TABLE feedback")
    reopened = RecordsTable(postgres_database(address), 30)
    use(reopened)
    assert len(reopened.thread("a").turns) == 1
    reopened.rate(StoredRating("t1", "up"))
    assert len(reopened.ratings(9)) == 1


def test_many_that_come_first_make_one_table(address: str) -> None:
    failures: list[Exception] = []

    def first(number: int) -> None:
        try:
            RecordsTable(postgres_database(address), 30).append("a", StoredTurn(f"t{number}", "q", "a", "answered"))
        except RecordsFault as error:
            failures.append(error)

    writers = [threading.Thread(target=first, args=(number,)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert len(RecordsTable(postgres_database(address), 30).thread("a").turns) == 6


def test_one_database_serves_many_threads(address: str) -> None:
    records = RecordsTable(postgres_database(address), 30)
    records.append("a", TURN)
    readers = [threading.Thread(target=lambda: [records.thread("a") for _ in range(20)]) for _ in range(8)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    deadline = time.monotonic() + 5
    while sessions(address) > 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert 1 <= sessions(address) <= 4


def messages(sent: bytes) -> Iterator[bytes]:
    """Yield a client's messages after its start-up message; format: PostgreSQL's protocol 3."""
    at = int.from_bytes(sent[:4], "big")
    while at < len(sent):
        end = at + 1 + int.from_bytes(sent[at + 1 : at + 5], "big")
        if sent[at : at + 1] in b"QP":
            yield sent[at + 5 : end].strip(b"\0").upper()
        at = end


def test_nothing_outlives_a_transaction(address: str) -> None:
    with Relay(server().port) as relay:
        uri = address.replace(f":{server().port}/", f":{relay.port}/") + "?sslmode=disable&gssencmode=disable"
        records = RecordsTable(postgres_database(uri), 30)
        for number in range(8):
            records.append("a", StoredTurn(f"t{number}", "q", "a", "answered"))
            records.thread("a")
        del records
    said = [message for stream in relay.heard for message in messages(stream)]
    assert len(said) > 30
    assert not [s for s in said if s.startswith((b"SET ", b"LISTEN", b"PREPARE")) or b"ADVISORY_LOCK(" in s]
