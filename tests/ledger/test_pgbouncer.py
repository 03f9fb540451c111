"""The Postgres ledger and the kept conversations behind a real pgbouncer, and the same words for the same errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from chapterverse.errors import ChapterVerseError
from chapterverse.ext.postgres.ledger import postgres_ledger
from chapterverse_api.ext.conversations.table import RecordsTable
from chapterverse_api.ext.postgres import postgres_database
from fakes.pgbouncer import address, pooling, program
from fakes.postgres import server
from ledger.rows import DOCS, A, B

pytestmark = pytest.mark.skipif(program() is None, reason="pgbouncer is not installed: apt-get install pgbouncer")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with pooling(server()) as running:
        yield running


@pytest.fixture
def database() -> str:
    return server().database().rpartition("/")[2]


def ledger_error(uri: str) -> str:
    with pytest.raises(ChapterVerseError) as caught:
        postgres_ledger(uri, pauses=()).records(DOCS)
    return str(caught.value)


def records_error(uri: str) -> str:
    with pytest.raises(ChapterVerseError) as caught:
        RecordsTable(postgres_database(uri), 30).forget("a" * 32)
    return str(caught.value)


@pytest.mark.parametrize(
    "query", ["", "?pgbouncer=true", "?pgbouncer=true&connect_timeout=9", "?connect_timeout=9&pgbouncer=1"]
)
def test_a_ledger_is_kept_behind_a_pooler(port: int, database: str, query: str) -> None:
    ledger = postgres_ledger(address(port, database, query=query), pauses=())
    for generation, row in ((1, A), (2, B)):
        ledger.save(DOCS, generation, [row], [])
    assert (ledger.described(DOCS)[0], set(ledger.records(DOCS))) == (2, {A.file_path, B.file_path})


def test_conversations_are_kept_behind_a_pooler(port: int, database: str) -> None:
    records = RecordsTable(postgres_database(address(port, database)), 30)
    for _ in range(5):
        records.match("entry")
    assert records.matched_entries() == {"entry"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda port, name: address(port, name, password="hunter2"), "refuses the user or the password"),
        (lambda port, name: address(port, name, query="?sslmode=require"), "TLS"),
        (lambda port, name: address(port, name, query="?options=-chunter2%3D1"), "an option that is not accepted"),
        (lambda port, name: address(1, name), "can't be reached"),
    ],
)
def test_an_error_has_the_same_words_for_both(
    port: int, database: str, change: Callable[[int, str], str], says: str
) -> None:
    uri = change(port, database)
    told = [
        ledger_error(uri).replace("Postgres ledger", "it").replace("CHAPTERVERSE_LEDGER", "X"),
        records_error(uri).replace("database of the conversations", "it").replace("CHAPTERVERSE_RECORDS", "X"),
    ]
    assert told[0] == told[1]
    assert re.search(says, told[0])
    assert "hunter2" not in told[0]
