"""Behavior of the Postgres ledger alone: a server that is remote, closed, asleep, shared, or lost midway."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from chapterverse.errors import (
    ChapterVerseError,
    ConfigurationError,
    IndexCorrupt,
    IndexFault,
    IndexLocked,
    IndexMismatch,
)
from chapterverse.ext.postgres.ledger import postgres_ledger
from chapterverse.ledger import Ledger, LedgerRow, open_ledger
from chapterverse.settings import Settings
from fakes.postgres import PASSWORD, USER, PostgresServer, server
from fakes.relay import Relay
from ledger.rows import DOCS, NEXT, A, B, C, one_sentence, row

#: What no message may hold.
SECRETS = ("s3cret", "hunter2", "127.0.0.1", "invalid/")


@pytest.fixture
def address() -> str:
    return server().database()


@pytest.fixture
def ledger(address: str) -> Ledger:
    return postgres_ledger(address, lock_timeout=0.05, pauses=())


def told(error: ChapterVerseError) -> bool:
    return one_sentence(error) and not any(secret in str(error) for secret in SECRETS)


def ask(address: str, query: str) -> list[Any]:
    with psycopg.connect(address) as db:
        return db.execute(query.encode()).fetchall()


def do(address: str, *statements: str, user: str = "") -> None:
    with server().superuser(name_of(address)) if user else psycopg.connect(address, autocommit=True) as db:
        for statement in statements:
            db.execute(statement.encode())


def name_of(address: str) -> str:
    return address.rpartition("/")[2]


# Tables


def test_reading_leaves_no_trace(ledger: Ledger, address: str) -> None:
    assert (ledger.records(DOCS), ledger.described(DOCS)) == ({}, (0, ""))
    assert ask(address, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace") == []


def test_the_table_is_the_one_of_the_contract(ledger: Ledger, address: str) -> None:
    ledger.save(DOCS, 1, [A], [])
    columns = ask(
        address,
        "SELECT attname::text, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute"
        " WHERE attrelid = 'document_metadata'::regclass AND attnum > 0 ORDER BY attnum",
    )
    assert columns == [
        ("id", "bigint", True),
        ("site", "text", True),
        ("version", "text", True),
        ("file_path", "character varying(512)", True),
        ("content_hash", "character(64)", True),
        ("last_indexed_at", "timestamp(0) with time zone", True),
        ("chunk_count", "integer", True),
        ("pipeline", "character varying(64)", True),
        ("generation", "bigint", True),
    ]
    indexes = {d.partition(" USING btree ")[2] for (d,) in ask(address, "SELECT indexdef FROM pg_indexes")}
    assert {"(file_path)", "(last_indexed_at DESC)", "(site, version, file_path)"} <= indexes
    assert ask(address, "SELECT version FROM ledger_migrations") == [(1,)]
    assert ask(address, "SELECT extract(epoch FROM last_indexed_at)::int FROM document_metadata") == [(1767323045,)]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("chunk_count", "-1"),
        ("content_hash", "'short'"),
        ("content_hash", "repeat('g', 64)"),
        ("file_path", "''"),
        ("id", "2"),
    ],
)
def test_nobody_else_can_break_the_contract_either(ledger: Ledger, address: str, column: str, value: str) -> None:
    ledger.save(DOCS, 1, [A, B], [])
    with pytest.raises(psycopg.Error):
        do(address, f"UPDATE document_metadata SET {column} = {value}")
    with pytest.raises(psycopg.errors.UniqueViolation):
        do(address, "UPDATE document_metadata SET file_path = 'same.md'")


def test_tables_live_in_the_search_path(address: str) -> None:
    do(address, "CREATE SCHEMA one", "CREATE SCHEMA two")
    one, two = (postgres_ledger(f"{address}?options=-csearch_path%3D{name}") for name in ("one", "two"))
    one.save(DOCS, 1, [A], [])
    assert two.records(DOCS) == {}
    two.save(DOCS, 2, [B], [])
    assert (one.records(DOCS), two.records(DOCS)) == ({"a.md": A}, {"b.md": B})
    assert ask(address, "SELECT to_regclass('public.document_metadata')") == [(None,)]


def test_a_table_of_somebody_else_is_left_alone(ledger: Ledger, address: str) -> None:
    do(address, "CREATE TABLE document_metadata (mine TEXT)")
    assert ledger.records(DOCS) == {}
    with pytest.raises(IndexCorrupt, match=r"are not ours .*give it a schema of its own") as caught:
        ledger.save(DOCS, 1, [A], [])
    assert told(caught.value)
    tables = ask(address, "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
    assert tables == [("document_metadata",)]


def test_a_newer_ledger_is_not_touched(ledger: Ledger, address: str) -> None:
    ledger.save(DOCS, 1, [A], [])
    do(address, "INSERT INTO ledger_migrations (version) VALUES (99)")
    for use in (lambda: ledger.records(DOCS), lambda: ledger.described(DOCS), lambda: ledger.save(DOCS, 2, [B], [])):
        with pytest.raises(IndexMismatch, match="upgrade") as caught:
            use()
        assert told(caught.value)
    assert ask(address, "SELECT file_path FROM document_metadata") == [("a.md",)]


def test_two_that_migrate_at_once_wait_for_each_other(ledger: Ledger, address: str) -> None:
    def while_tables_are_made() -> Iterator[LedgerRow]:
        with pytest.raises(IndexLocked) as caught:
            ledger.save(DOCS, 9, [B], [])
        assert told(caught.value)
        yield A

    postgres_ledger(address).save(DOCS, 1, while_tables_are_made(), [])
    assert (ledger.described(DOCS)[0], ledger.records(DOCS)) == (1, {"a.md": A})


def test_who_waited_for_the_tables_finds_them(address: str) -> None:
    waiting = threading.Thread(target=postgres_ledger(address).save, args=(NEXT, 1, [B], []))

    def until_the_other_waits() -> Iterator[LedgerRow]:
        waiting.start()
        with server().superuser(name_of(address)) as db:
            while db.execute("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").rowcount == 0:
                assert waiting.is_alive()
        yield A

    ledger = postgres_ledger(address)
    ledger.save(DOCS, 1, until_the_other_waits(), [])
    waiting.join()
    assert (ledger.records(DOCS), ledger.records(NEXT)) == ({"a.md": A}, {"b.md": B})
    assert ask(address, "SELECT version FROM ledger_migrations") == [(1,)]


def test_writers_of_two_sites_do_not_wait_for_each_other(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [A], [])

    def while_another_writes() -> Iterator[LedgerRow]:
        ledger.save(NEXT, 5, [B], [])
        yield C

    ledger.save(DOCS, 2, while_another_writes(), [])
    assert (ledger.described(DOCS)[0], ledger.described(NEXT)[0]) == (2, 5)


# Addresses


def test_opening_connects_to_nothing() -> None:
    for scheme in ("postgres", "postgresql"):
        assert isinstance(open_ledger(Settings(ledger=f"{scheme}://u:hunter2@nowhere.invalid/db")), Ledger)


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql:hunter2", "postgresql://u:hunter2@[::1/db", "postgres://u:hunter2%zz@host/db",
        "postgresql://u:hunter2%00@host/db", "postgresql://u:p@host/db?hunter2=1", "postgresql://u:hunter2\udcff@host/db",
        "postgresql:host=x password=hunter2",
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_read_is_told_and_not_quoted(uri: str) -> None:
    with pytest.raises(ConfigurationError, match="can't be read") as caught:
        open_ledger(Settings(ledger=uri))
    assert told(caught.value)
    assert caught.value.__suppress_context__


def other(**changes: str) -> Callable[[str], str]:
    return lambda address: server().uri(**{"database": name_of(address), **changes})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (other(password="hunter2"), "refuses the user or the password"),
        (other(user="hunter2"), "refuses the user or the password"),
        (other(database="hunter2"), "has no such database"),
        (other(sslmode="require"), "TLS"),
        (other(sslmode="hunter2"), "an option that is not accepted"),
        (other(options="-c hunter2=1"), "an option that is not accepted"),
        (lambda address: "postgresql://u:p@hunter2.invalid/db", "host of the Postgres ledger can't be found"),
        (lambda address: "postgresql://u:p@hunter2@127.0.0.1/db", "can't be found"),
        (lambda address: "postgresql://u:hunter2/p@127.0.0.1/db", "can't be found"),
        (lambda address: "postgresql://u:hunter2@127.0.0.1:1/db", "can't be reached: see that its server runs"),
        (lambda address: "postgresql://u:p@127.0.0.1:99999/hunter2", "can't be reached|not accepted"),
    ],
)
def test_a_connection_that_is_refused_is_told_in_one_sentence(
    address: str, change: Callable[[str], str], says: str
) -> None:
    ledger = postgres_ledger(change(address), pauses=())
    for use in (lambda: ledger.records(DOCS), lambda: ledger.described(DOCS), lambda: ledger.save(DOCS, 1, [A], [])):
        with pytest.raises(ChapterVerseError, match=says) as caught:
            use()
        assert told(caught.value)
        assert isinstance(caught.value, IndexFault | ConfigurationError)
    assert "hunter2" not in repr(ledger) + repr(ledger._database)


def test_a_wrong_password_is_not_tried_again(address: str) -> None:
    with Relay(server().port) as relay:
        uri = f"postgresql://{USER}:wrong@127.0.0.1:{relay.port}/{name_of(address)}?sslmode=disable"
        with pytest.raises(IndexFault, match="password"):
            postgres_ledger(uri, pauses=(0.01, 0.01)).records(DOCS)
        assert len(relay.heard) == 1


def test_a_server_that_sleeps_is_waited_for(address: str) -> None:
    with Relay(server().port) as relay:
        port = relay.port
    late: list[Relay] = []

    def wake() -> None:
        time.sleep(0.3)
        late.append(Relay(server().port, listen=port).__enter__())

    waking = threading.Thread(target=wake)
    waking.start()
    uri = address.replace(f":{server().port}/", f":{port}/")
    try:
        assert postgres_ledger(uri, pauses=(0.2,) * 50).records(DOCS) == {}
    finally:
        waking.join()
        late[0].__exit__(None, None, None)


def test_without_psycopg_it_says_what_to_install() -> None:
    program = """
import sys
sys.modules["psycopg"] = None
from chapterverse.errors import ConfigurationError
from chapterverse.ledger import open_ledger
from chapterverse.settings import Settings
try:
    open_ledger(Settings(ledger="postgresql://u:hunter2@host/db"))
except ConfigurationError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == 'A Postgres ledger needs psycopg: pip install "chapterverse[postgres]".\n', done.stderr


# A pooler in transaction mode


def messages(sent: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield type and body of a client's messages after its start-up message; format: PostgreSQL's protocol 3."""
    at = int.from_bytes(sent[:4], "big")
    while at < len(sent):
        end = at + 1 + int.from_bytes(sent[at + 1 : at + 5], "big")
        yield chr(sent[at]), sent[at + 5 : end]
        at = end


def test_nothing_outlives_a_transaction(address: str) -> None:
    with Relay(server().port) as relay:
        uri = address.replace(f":{server().port}/", f":{relay.port}/") + "?sslmode=disable&gssencmode=disable"
        ledger = postgres_ledger(uri)
        ledger.save(DOCS, 1, [row(f"{i}.md") for i in range(30)], ["x.md"])
        for _ in range(12):
            ledger.records(DOCS)
        ledger.described(DOCS)
    starts = [sent[8 : int.from_bytes(sent[:4], "big")].split(b"\0") for sent in relay.heard]
    # What PgBouncer lets through without being told to.
    assert {name for start in starts for name in start[::2] if name} == {
        b"user", b"database", b"application_name", b"client_encoding",
    }  # fmt: skip
    sent = [message for stream in relay.heard for message in messages(stream)]
    assert {body.partition(b"\0")[0] for kind, body in sent if kind == "P"} == {b""}
    said = [body.rstrip(b"\0").upper() for kind, body in sent if kind in "QP"]
    assert len(said) > 50
    assert not [s for s in said if s.startswith((b"SET ", b"LISTEN", b"PREPARE")) or b"ADVISORY_LOCK(" in s]
    assert [s for s in said if s.startswith(b"BEGIN")] != []


# Faults


def test_a_connection_that_is_ended_in_the_middle_leaves_nothing(ledger: Ledger, address: str) -> None:
    ledger.save(DOCS, 1, [A, B], [])

    def ended() -> Iterator[LedgerRow]:
        yield C
        with server().superuser() as db:
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (USER,))

    with pytest.raises(IndexFault, match="broke off: nothing was written") as caught:
        ledger.save(DOCS, 2, ended(), ["b.md"])
    assert told(caught.value)
    assert (ledger.described(DOCS)[0], ledger.records(DOCS)) == (1, {"a.md": A, "b.md": B})
    ledger.save(DOCS, 2, [C], ["b.md"])
    assert ledger.records(DOCS) == {"a.md": A, "c.md": C}


def test_a_server_that_is_killed_in_the_middle_leaves_nothing() -> None:
    mortal = PostgresServer()
    try:
        ledger = postgres_ledger(mortal.database(), pauses=())
        ledger.save(DOCS, 1, [A, B], [])

        def killed() -> Iterator[LedgerRow]:
            yield C
            mortal.kill()

        with pytest.raises(IndexFault, match="broke off: nothing was written") as caught:
            ledger.save(DOCS, 2, killed(), ["b.md"])
        assert told(caught.value)
        with pytest.raises(IndexFault, match="can't be reached") as caught:
            ledger.records(DOCS)
        assert told(caught.value)
        mortal.start()
        assert (ledger.described(DOCS)[0], ledger.records(DOCS)) == (1, {"a.md": A, "b.md": B})
        ledger.save(DOCS, 2, [C], ["b.md"])
        assert ledger.records(DOCS) == {"a.md": A, "c.md": C}
    finally:
        mortal.close()


def test_a_wire_that_breaks_at_the_last_moment_says_that_nobody_knows(ledger: Ledger, address: str) -> None:
    ledger.save(DOCS, 1, [A], [])
    with Relay(server().port, cut_at=b"COMMIT\0") as relay:
        uri = address.replace(f":{server().port}/", f":{relay.port}/") + "?sslmode=disable"
        with pytest.raises(IndexFault, match="at the last moment: run again") as caught:
            postgres_ledger(uri, pauses=()).save(DOCS, 2, [B], [])
    assert told(caught.value)
    postgres_ledger(address).save(DOCS, 2, [B], [])
    assert ledger.records(DOCS) == {"a.md": A, "b.md": B}


def test_a_full_disk_is_told_in_one_sentence_and_nothing_is_written() -> None:
    small = PostgresServer()
    try:
        ledger = postgres_ledger(small.database())
        ledger.save(DOCS, 1, [A], [])
        small.kill()
        small.largest_file = 2_000_000
        small.start()
        with pytest.raises(IndexFault, match=r"can't be used \(could not .*\): nothing was written") as caught:
            ledger.save(DOCS, 2, [row(f"{i}.md") for i in range(20_000)], ["a.md"])
        assert told(caught.value)
        assert (ledger.described(DOCS)[0], ledger.records(DOCS)) == (1, {"a.md": A})
        small.kill()
        small.largest_file = 0
        small.start()
        ledger.save(DOCS, 2, [B], ["a.md"])
        assert ledger.records(DOCS) == {"b.md": B}
    finally:
        small.close()


def test_a_read_only_database_is_read_and_not_written(ledger: Ledger, address: str) -> None:
    ledger.save(DOCS, 1, [A], [])
    reading = postgres_ledger(f"{address}?options=-cdefault_transaction_read_only%3Don")
    assert reading.records(DOCS) == {"a.md": A}
    with pytest.raises(IndexFault, match=r"can't be used \(cannot execute .* read-only") as caught:
        reading.save(DOCS, 2, [B], [])
    assert told(caught.value)


@pytest.mark.parametrize("right", ["SELECT", "INSERT", "DELETE"])
def test_a_right_that_is_missing_is_named(ledger: Ledger, address: str, right: str) -> None:
    ledger.save(DOCS, 1, [A], [])
    do(address, f"REVOKE {right} ON document_metadata FROM {USER}")
    with pytest.raises(IndexFault, match="permission denied for table document_metadata") as caught:
        ledger.records(DOCS) if right == "SELECT" else ledger.save(DOCS, 2, [B], ["a.md"])
    assert told(caught.value)
    assert not isinstance(caught.value, IndexCorrupt)
    do(address, f"GRANT {right} ON document_metadata TO {USER}")
    assert (ledger.described(DOCS)[0], ledger.records(DOCS)) == (1, {"a.md": A})


def test_a_schema_that_is_closed_is_named(ledger: Ledger, address: str) -> None:
    do(address, "REVOKE CREATE ON SCHEMA public FROM pg_database_owner", user="postgres")
    with pytest.raises(IndexFault, match="permission denied for schema public") as caught:
        ledger.save(DOCS, 1, [A], [])
    assert told(caught.value)


def test_a_tampered_table_is_told_in_one_sentence(ledger: Ledger, address: str) -> None:
    ledger.save(DOCS, 1, [A], [])
    do(address, "ALTER TABLE document_metadata DROP COLUMN pipeline")
    for use in (lambda: ledger.records(DOCS), lambda: ledger.save(DOCS, 2, [B], [])):
        with pytest.raises(IndexCorrupt, match="are not ours") as caught:
            use()
        assert told(caught.value)


def test_a_database_in_an_encoding_without_the_character_says_so(ledger: Ledger) -> None:
    with server().superuser() as db:
        db.execute(f"CREATE DATABASE latin OWNER {USER} ENCODING 'LATIN1' TEMPLATE template0".encode())
    latin = postgres_ledger(server().uri("latin"))
    latin.save(DOCS, 1, [row("é.md")], [])
    assert list(latin.records(DOCS)) == ["é.md"]
    with pytest.raises(IndexFault, match="has no equivalent in encoding") as caught:
        latin.save(DOCS, 2, [row("日本.md")], [])
    assert told(caught.value)


def test_the_user_of_the_tests_is_no_superuser(address: str) -> None:
    assert ask(address, "SHOW is_superuser") == [("off",)]
    assert PASSWORD not in address
