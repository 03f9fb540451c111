from __future__ import annotations

import subprocess
import sys

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.records.factory import open_records, parse_days
from chapterverse_api.records.table import RecordsTable


def test_nothing_is_kept_unless_it_is_asked_for() -> None:
    assert open_records(Settings()) is None


def test_opening_connects_to_nothing_and_makes_no_file() -> None:
    for address in ("postgres://u:hunter2@nowhere.invalid/db", "postgresql://nowhere.invalid/db", "sqlite:/no/where"):
        assert isinstance(open_records(Settings(records=address)), RecordsTable)


@pytest.mark.parametrize("address", ["hunter2", "sqlite:", "mysql://u:hunter2@host/db", "postgresql", ":", "SQLITE:x"])
def test_what_is_no_database_is_told_and_not_quoted(address: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_records(Settings(records=address))
    assert str(caught.value) == (
        "CHAPTERVERSE_RECORDS is nothing that is known: use sqlite:PATH, postgres[ql]://USER:PASSWORD@HOST/NAME or "
        "dynamodb:TABLE."
    )


@pytest.mark.parametrize(
    "address", ["postgresql:hunter2", "postgresql://u:hunter2@[::1/db", "postgres://u:hunter2%zz@h/d"]
)
def test_an_address_that_cannot_be_read_is_told_and_not_quoted(address: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_records(Settings(records=address))
    assert str(caught.value) == (
        "CHAPTERVERSE_RECORDS is no address of a Postgres database: write postgresql://USER:PASSWORD@HOST/NAME, the"
        " password percent-encoded."
    )
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(("said", "days"), [("30", 30), (" 1 ", 1), ("3650", 3650)])
def test_days(said: str, days: int) -> None:
    assert parse_days(Settings(records_days=said)) == days


@pytest.mark.parametrize("said", ["0", "-1", "3651", "1.5", "a week", "", "٣٠", "²", "1_0", "9" * 5000])
def test_what_is_no_number_of_days_is_told_even_where_nothing_is_kept(said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_records(Settings(records_days=said))
    assert str(caught.value) == (
        "CHAPTERVERSE_RECORDS_DAYS is no number of days: set it to a whole number from 1 to 3650."
    )


def test_psycopg_is_loaded_only_for_postgres_and_told_where_it_is_missing() -> None:
    program = """
import sys
sys.modules["psycopg"] = None
from chapterverse_api.records.protocols import RecordsFault
from chapterverse.settings import Settings
from chapterverse_api.conversation.threads import open_threads
print(open_threads(Settings()), bool(open_threads(Settings(records="sqlite:x"))))
threads = open_threads(Settings(records="postgresql://u:hunter2@host/db"))
print(threads.works, threads.recall("t").turns)
try:
    threads.forget("t")
except RecordsFault as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "None True",
        "False ()",
        'Conversations on Postgres need psycopg: pip install "chapterverse[postgres]".',
    ], done.stderr
