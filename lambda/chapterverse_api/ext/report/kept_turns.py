"""Reads the questions of all kept conversations. What is forgotten or expired is not among them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from chapterverse.database import Row
from chapterverse.errors import ConfigurationError
from chapterverse.ext.report.turns import STATUSES, AskedTurn
from chapterverse.settings import Settings
from chapterverse_api.records.factory import open_records, parse_days
from chapterverse_api.records.protocols import RecordsFault, time_text
from chapterverse_api.records.table import sqlite_database

#: Ratings that are read, newest first.
_MAX_RATINGS = 1_000_000
#: A whole table is read, and no reader waits.
_SCAN_SECONDS = 60.0
_SQL = """
    SELECT chunk_id, scope, question, status, cited, created_at FROM conversations
    WHERE type = 'turn' AND created_at >= ? ORDER BY id
"""


def read_kept_turns(settings: Settings) -> Iterator[AskedTurn]:
    """Yield the turns that `settings.records` names, with their ratings.

    Raises:
        ConfigurationError: it names no database.
        RecordsFault: the database can't be reached or used.
    """
    records = open_records(settings)
    ratings = {row.turn_id: row.rating for row in records.ratings(_MAX_RATINGS)} if records else {}
    oldest = time_text(datetime.now(UTC) - timedelta(days=parse_days(settings)))
    kind, _, place = settings.records.partition(":")
    rows = _scan(place, oldest) if kind == "dynamodb" else _select(settings.records, oldest)
    for turn_id, scope, question, status, cited, at in rows:
        yield AskedTurn(
            turn_id,
            thread=scope.removeprefix("entity:"),
            at=at,
            question=question,
            status=STATUSES.get(status),
            sections=_addresses(cited),
            is_rated_down=ratings.get(turn_id) == "down",
        )


def _select(uri: str, oldest: str) -> list[Row]:
    kind, _, place = uri.partition(":")
    if kind == "sqlite":
        database = sqlite_database(Path(place))
    else:
        # Lazy: each room needs its own packages.
        from chapterverse_api.ext.postgres.records import postgres_database

        database = postgres_database(uri)
    return database.run(lambda db: db.rows(_SQL, (oldest,)), otherwise=list[Row](), reading=True)


def _scan(table: str, oldest: str) -> Iterator[Row]:
    from chapterverse.ext.aws.service import AwsService
    from chapterverse.ext.dynamodb.table import DynamoTable, attributes
    from chapterverse_api.ext.dynamodb.records import ERRORS

    try:
        dynamo = DynamoTable(AwsService.open("dynamodb", seconds=_SCAN_SECONDS), table, ERRORS)
    except ConfigurationError as error:
        raise RecordsFault(str(error)) from error
    request: dict[str, Any] = {
        "FilterExpression": "#type = :turn AND created_at >= :oldest",
        "ExpressionAttributeNames": {"#type": "type"},
        "ExpressionAttributeValues": attributes({":turn": "turn", ":oldest": oldest}),
    }
    names = ("turn_id", "conversation_id", "status", "cited", "created_at")
    while True:
        reply = dynamo.send("Scan", **request)
        for item in map(dynamo.item, reply.get("Items", [])):
            turn_id, thread, status, cited, at = map(item.text, names)
            try:
                yield turn_id, thread, str(item["messages"]["L"][0]["M"]["text"]["S"]), status, cited, at
            except (KeyError, IndexError, TypeError) as error:
                raise ERRORS.malformed from error
        if not (last := reply.get("LastEvaluatedKey")):
            return
        request["ExclusiveStartKey"] = last


def _addresses(places: str) -> tuple[str, ...]:
    try:
        return tuple(str(url) for _, url in json.loads(places))
    except (TypeError, ValueError):
        raise RecordsFault("A row of the conversations was not written by this release: remove it.") from None
