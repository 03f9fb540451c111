"""Behavior of DynamoDB alone: requests, expiry, lost answers, killed processes, tables that can't be used."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chapterverse.settings import Settings
from chapterverse_api.answer.event import RecordsFault
from chapterverse_api.ext.conversations.records import StoredRating, StoredTurn, open_records
from chapterverse_api.ext.dynamodb.records import DynamoRecords
from fakes import dynamodb_server
from fakes.dynamodb_server import DynamoServer, doubled, refused, said, sometimes, unanswered
from fakes.moto_server import Fault

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TESTS = Path(__file__).parents[2]
#: Keeps turn after turn until it is killed, and writes the id of each before and after it.
WRITER = """
import sys
from chapterverse_api.ext.conversations.records import StoredTurn
from chapterverse_api.ext.dynamodb.records import DynamoRecords
from fakes import dynamodb_server
records = DynamoRecords(dynamodb_server.patient(), sys.argv[1], 30)
for number in range(10_000):
    turn_id = f"{sys.argv[2]}-{number}"
    print("asking", turn_id, flush=True)
    records.append("shared", StoredTurn(turn_id, "q?", "a.", "answered"))
    print("kept", turn_id, flush=True)
"""


@pytest.fixture
def table(dynamodb: DynamoServer) -> str:
    name = dynamodb.table("pk", "sk")
    dynamodb.calls.clear()
    return name


@pytest.fixture
def records(table: str) -> DynamoRecords:
    return DynamoRecords(dynamodb_server.patient(), table, 30, lambda: NOW)


def turn(number: int = 1) -> StoredTurn:
    return StoredTurn(f"t{number}", f"q{number}?", f"a{number}.", "answered")


def test_an_answer_waits_for_one_request(dynamodb: DynamoServer, records: DynamoRecords) -> None:
    records.append("a", turn())
    dynamodb.calls.clear()
    assert records.thread("a").turns
    ((operation, request),) = dynamodb.calls
    assert (operation, request["ConsistentRead"], request["Limit"]) == ("Query", True, 13)


def test_a_turn_is_one_transaction(dynamodb: DynamoServer, records: DynamoRecords) -> None:
    records.append("a", turn())
    assert [operation for operation, _ in dynamodb.calls] == ["Query", "TransactWriteItems"]


def test_every_item_expires_with_its_turn(dynamodb: DynamoServer, table: str, records: DynamoRecords) -> None:
    records.append("a", turn())
    later = DynamoRecords(dynamodb_server.patient(), table, 30, lambda: NOW + timedelta(days=3))
    later.rate(StoredRating("t1", "up"))
    read = later.thread("a")
    later.summarize("a", "s", 1, read=read)
    until = int((NOW + timedelta(days=30)).timestamp())
    assert {(item["type"]["S"], item["expires"]["N"]) for item in dynamodb.items(table)} == {
        (kind, str(until)) for kind in ("turn", "place", "summary", "feedback")
    }


def test_an_item_has_the_fields_of_its_type(dynamodb: DynamoServer, table: str, records: DynamoRecords) -> None:
    records.append("a", turn())
    records.summarize("a", "s", 1, read=records.thread("a"))
    items = {item["type"]["S"]: item for item in dynamodb.items(table)}
    assert items["turn"]["conversation_id"] == items["summary"]["conversation_id"] == {"S": "a"}
    messages = [message["M"] for message in items["turn"]["messages"]["L"]]
    assert messages == [
        {"role": {"S": "user"}, "turn_index": {"N": "0"}, "text": {"S": "q1?"}},
        {"role": {"S": "assistant"}, "turn_index": {"N": "1"}, "text": {"S": "a1."}},
    ]
    assert (items["summary"]["turn_range"], items["summary"]["summary_index"]) == (
        {"L": [{"N": "0"}, {"N": "1"}]},
        {"N": "0"},
    )


def test_forgetting_leaves_nothing(dynamodb: DynamoServer, table: str, records: DynamoRecords) -> None:
    for number in range(30):
        records.append("a", turn(number))
    records.rate(StoredRating("t1", "down"))
    records.summarize("a", "s", 30, read=records.thread("a"))
    assert records.forget("a")
    assert dynamodb.items(table) == []


def test_lost_and_repeated_requests_keep_each_turn_once(dynamodb: DynamoServer, records: DynamoRecords) -> None:
    dynamodb.chance = sometimes(random.Random(1), 0.2, unanswered, doubled)
    for number in range(40):
        records.append("a", turn(number))
    dynamodb.chance = lambda: None
    kept = records.thread("a", 60).turns
    assert [(turn.turn_id, turn.number) for turn in kept] == [(f"t{n}", n + 1) for n in range(40)]


@pytest.mark.slow
def test_killed_processes_leave_whole_turns_and_lose_none_that_they_kept(
    dynamodb: DynamoServer, table: str, records: DynamoRecords
) -> None:
    draw, known, begun = random.Random(7), set[str](), set[str]()
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    for round_ in range(6):
        names = [f"{round_}-{number}" for number in range(2)]
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, table, name], env=environment, stdout=subprocess.PIPE, text=True
            )
            for name in names
        ]
        for writer in writers:
            assert writer.stdout
            writer.stdout.readline()
        time.sleep(draw.uniform(0, 0.2))
        for name, writer in zip(names, writers, strict=True):
            writer.send_signal(signal.SIGKILL)
            lines = [line.split() for line in writer.communicate()[0].splitlines() if line.count(" ") == 1]
            known |= {turn_id for word, turn_id in lines if word == "kept"}
            begun |= {turn_id for _, turn_id in lines} | {f"{name}-0"}
    turns = DynamoRecords(dynamodb_server.patient(), table, 30).thread("shared", 10_000).turns
    assert [turn.number for turn in turns] == list(range(turns[0].number, turns[0].number + len(turns)))
    ids = [turn.turn_id for turn in turns]
    assert len(ids) == len(set(ids))
    assert set(ids) <= begun
    # Beyond the longest thread the oldest go.
    assert known - set(ids) == set() or turns[0].number > 1
    # One that is done again, for nobody knows whether it was, changes nothing.
    again = DynamoRecords(dynamodb_server.patient(), table, 30)
    again.append("shared", StoredTurn(ids[-1], "q?", "a.", "answered"))
    assert again.thread("shared", 10_000).turns == turns


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (refused("ResourceNotFoundException"), "There is no DynamoDB table"),
        (refused("AccessDeniedException"), "may not be used with these credentials"),
        (refused("ValidationException"), "it needs the partition key pk and the sort key sk"),
        (said({"Items": 7}), "answered with something that is no record"),
        (said({"Items": [{"pk": 7}]}), "answered with something that is no record"),
    ],
)
def test_a_table_that_can_not_be_used_is_one_sentence(
    dynamodb: DynamoServer, records: DynamoRecords, fault: Fault, sentence: str
) -> None:
    dynamodb.faults.append(fault)
    with pytest.raises(RecordsFault) as caught:
        records.append("a", turn())
    assert sentence in str(caught.value)
    assert "secret words" not in str(caught.value)


def test_a_table_with_another_key_says_which_it_needs(dynamodb: DynamoServer) -> None:
    records = DynamoRecords(dynamodb_server.patient(), dynamodb.table(), 30)
    with pytest.raises(RecordsFault, match="it needs the partition key pk and the sort key sk, both strings"):
        records.append("a", turn())


def test_opening_sends_nothing_and_needs_a_region(dynamodb: DynamoServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(open_records(Settings(records="dynamodb:t")), DynamoRecords)
    assert dynamodb.calls == []
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RecordsFault, match="AWS_REGION"):
        open_records(Settings(records="dynamodb:t"))
