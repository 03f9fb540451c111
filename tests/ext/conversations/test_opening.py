from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from api import quill
from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.answer.event import parse_days
from chapterverse_api.ext.conversations.records import open_records
from chapterverse_api.ext.conversations.table import RecordsTable

TESTS = Path(__file__).parents[2]


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
from chapterverse_api.answer.event import RecordsFault
from chapterverse.settings import Settings
from chapterverse_api.ext.conversations.threads import open_threads
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


def test_the_room_is_not_imported_where_nothing_is_kept(tmp_path: Path) -> None:
    quill.publish(tmp_path)
    program = f"""
import sys
from api.scripted import Client
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
for records in ("", "sqlite:{tmp_path}/records.sqlite"):
    client = Client(create_app(settings=Settings(store="edge:{tmp_path}", records=records)))
    answer = client.post("/v1/chat", {{"query": "How do I clear the cache?"}}).json()
    rated = client.post("/v1/feedback", {{"turn_id": answer["turn_id"], "rating": "up"}})
    status = client.get("/v1/status").json()
    print(answer["status"], bool(answer["thread_id"]), rated.status_code, status["degraded"],
        any(name.startswith("chapterverse_api.ext.conversations") for name in sys.modules))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["answered False 204 [] False", "answered True 204 [] True"], done.stderr
