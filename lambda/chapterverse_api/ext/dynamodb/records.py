"""Conversations and ratings in a DynamoDB table, with nothing always on. Implements `Records`.

The table has the partition key `pk` and the sort key `sk`, both strings; its TTL attribute is `expires`. The items:

    thread#THREAD  turn#NUMBER    a question with its answer: `messages`, each with `role`, `turn_index` and `text`
    thread#THREAD  ~summary       the summary: `text`, `turn_range`, `summary_index`
    turn#TURN      thread#THREAD  the thread of a turn, and its `number` there
    feedback       TURN           a rating; a second one replaces the first
    faq            ENTRY          the time at which a FAQ entry answered last

A turn and its place are written in one transaction, on the condition that neither exists. If two tabs write at once,
one of them finds its number taken and takes the next. A write that is sent twice is kept once. DynamoDB removes expired
items only within days, so each item that is read is checked for its age.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from typing import Any

from chapterverse.errors import ConfigurationError
from chapterverse.ext.aws import AwsService
from chapterverse.ext.dynamodb import CALL_SECONDS, CONDITION_FAILED, DynamoTable, Item, TableErrors, attributes
from chapterverse.model import replace_unstorable
from chapterverse.settings import Settings
from chapterverse_api.answer.event import RecordsFault, parse_days
from chapterverse_api.ext.conversations import records

#: Tries to write a turn whose number another tab has taken. No more tabs are expected to write at once.
_MAX_APPEND_TRIES = 20
#: Items of one `BatchWriteItem` (DynamoDB API reference).
_BATCH_ITEMS = 25
#: Seconds after each try to remove the items that a busy table did not remove.
_RETRY_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6)
_FEEDBACK, _FAQ = "feedback", "faq"
_SUMMARY = "~summary"
_ERRORS = TableErrors(
    RecordsFault,
    "There is no DynamoDB table {table} in this account and region: make it, or name another in CHAPTERVERSE_RECORDS.",
    "The DynamoDB table {table} may not be used with these credentials: allow dynamodb:Query, Scan, GetItem, "
    "PutItem, UpdateItem, DeleteItem, BatchWriteItem and ConditionCheckItem on it.",
    "The DynamoDB table {table} can't hold conversations: it needs the partition key pk and the sort key sk, both "
    "strings.",
    "DynamoDB answered with something that is no record: check CHAPTERVERSE_RECORDS.",
)


class DynamoRecords:
    """Safe to share between threads.

    Args:
        days: days after which an item expires.
        clock: returns the time in UTC.
    """

    def __init__(
        self, service: AwsService, table: str, days: int, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._table = DynamoTable(service, table, _ERRORS)
        self._nothing = self._table.item({})
        self._days = days
        self._clock = clock

    @classmethod
    def from_settings(cls, settings: Settings, table: str) -> DynamoRecords:
        """Return the records in a table of the environment's account and region. Nothing is sent yet."""
        try:
            return cls(AwsService("dynamodb", seconds=CALL_SECONDS), table, parse_days(settings))
        except ConfigurationError as error:
            raise RecordsFault(str(error)) from error

    def append(self, thread_id: str, turn: records.StoredTurn) -> None:
        now = self._clock()
        for _ in range(_MAX_APPEND_TRIES):
            latest = next(self._query(_thread(thread_id), "turn#", newest=True, limit=1), self._nothing)
            number = latest.number("number") + 1
            if self._put_turn(thread_id, turn, number, now):
                if number > records.MAX_STORED_TURNS:
                    self._remove([(_thread(thread_id), _turn_key(number - records.MAX_STORED_TURNS))])
                return
        raise RecordsFault("Too many tabs write to one conversation at once: try again later.")

    def _put_turn(self, thread_id: str, turn: records.StoredTurn, number: int, now: datetime) -> bool:
        """Write a turn at a number; return False if the number is taken. A stored turn stays as it is."""
        head = self._head(now, now)
        # `turn_index` counts all messages that were ever stored of the thread, from 0.
        messages = [
            {"M": attributes({"role": role, "turn_index": index, "text": replace_unstorable(text)})}
            for index, (role, text) in enumerate(
                (("user", turn.question), ("assistant", turn.answer)), 2 * (number - 1)
            )
        ]
        item = {
            **_key(_thread(thread_id), _turn_key(number)),
            **head,
            **attributes({"type": "turn", "conversation_id": thread_id, "turn_id": turn.turn_id, "number": number}),
            "messages": {"L": messages},
            **attributes({"status": turn.status, "cited": json.dumps([astuple(place) for place in turn.cited])}),
        }
        place = {
            **_key(_turn_place(turn.turn_id), _thread(thread_id)),
            **head,
            **attributes({"type": "place", "conversation_id": thread_id, "number": number}),
        }
        failed = self._table.transact(
            [self._put(item, "attribute_not_exists(pk)"), self._put(place, "attribute_not_exists(pk)")]
        )
        return not failed or failed[-1] == CONDITION_FAILED

    def thread(self, thread_id: str, turns: int = records.DEFAULT_TURNS) -> records.StoredThread:
        items = [item for item in self._query(_thread(thread_id), newest=True, limit=turns + 1) if self._is_fresh(item)]
        summary = next((item for item in items if item.text("type") == "summary"), self._nothing)
        latest = [item for item in items if item.text("type") == "turn"][:turns]
        return records.StoredThread(
            tuple(self._turn(item) for item in reversed(latest)),
            summary.text("text"),
            summary.number("through"),
            summary.number("summary_index"),
        )

    def summarize(self, thread_id: str, summary: str, through: int, *, read: records.StoredThread) -> bool:
        if read.through:
            return self._replace_summary(thread_id, summary, through, read.through)
        return self._put_summary(thread_id, summary, through)

    def _replace_summary(self, thread_id: str, summary: str, through: int, old_through: int) -> bool:
        """Replace the summary through the turn `old_through`; return False if it is gone."""
        values: dict[str, str | int] = {
            ":text": replace_unstorable(summary),
            ":through": through,
            ":now": records.time_text(self._clock()),
            ":one": 1,
            ":read": old_through,
            ":oldest": self._oldest(),
        }
        is_written, _ = self._table.update(
            {
                "Key": _key(_thread(thread_id), _SUMMARY),
                "UpdateExpression": "SET #text = :text, through = :through, #range = :range, #timestamp = :now"
                " ADD summary_index :one",
                "ConditionExpression": "through = :read AND created_at >= :oldest",
                "ExpressionAttributeNames": {"#text": "text", "#range": "turn_range", "#timestamp": "timestamp"},
                "ExpressionAttributeValues": {**attributes(values), ":range": _turn_range(through)},
            }
        )
        return is_written

    def _put_summary(self, thread_id: str, summary: str, through: int) -> bool:
        """Write the first summary of a thread; return False if there is one, or the thread was forgotten."""
        now, oldest = self._clock(), self._oldest()
        turns = self._query(_thread(thread_id), "turn#")
        since = next((item.text("created_at") for item in turns if self._is_fresh(item)), None)
        if since is None:
            return False
        item = {
            **_key(_thread(thread_id), _SUMMARY),
            **self._head(datetime.fromisoformat(since), now),
            **attributes({"type": "summary", "conversation_id": thread_id, "text": replace_unstorable(summary)}),
            **attributes({"through": through, "summary_index": 0}),
            "turn_range": _turn_range(through),
        }
        # Without the check a summary could bring back a thread that was forgotten meanwhile.
        is_there = {
            "ConditionCheck": {
                "TableName": self._table.name,
                "Key": _key(_thread(thread_id), _turn_key(through)),
                "ConditionExpression": "attribute_exists(pk)",
            }
        }
        is_free = self._put(item, "attribute_not_exists(pk) OR created_at < :oldest", attributes({":oldest": oldest}))
        return not self._table.transact([is_there, is_free])

    def rate(self, rating: records.StoredRating) -> None:
        now = self._clock()
        places = self._query(_turn_place(rating.turn_id))
        place = next((item for item in places if self._is_fresh(item)), self._nothing)
        since = datetime.fromisoformat(place.text("created_at")) if place else now
        item = {
            **_key(_FEEDBACK, rating.turn_id),
            **self._head(since, now),
            **attributes({"type": "feedback", "conversation_id": place.text("conversation_id")}),
            **attributes({"rating": rating.rating, "reason": rating.reason}),
            **attributes({"comment": replace_unstorable(rating.comment)}),
        }
        self._table.send("PutItem", Item=item)

    def ratings(self, limit: int) -> list[records.StoredRating]:
        fresh = [item for item in self._query(_FEEDBACK) if self._is_fresh(item)]
        fresh.sort(key=lambda item: item.text("sk"))
        fresh.sort(key=lambda item: item.text("timestamp"), reverse=True)
        return [self._rating(item) for item in fresh[:limit]]

    def _rating(self, item: Item) -> records.StoredRating:
        turn_id = item.text("sk")
        place, turn = next(self._query(_turn_place(turn_id)), None), self._nothing
        if place:
            key = _key(place.text("sk"), _turn_key(place.number("number")))
            reply = self._table.send("GetItem", Key=key, ConsistentRead=True)
            turn = self._table.item(reply.get("Item", {}))
        return records.StoredRating(
            turn_id,
            item.text("rating"),
            item.text("reason"),
            item.text("comment"),
            item.text("timestamp"),
            self._turn(turn) if self._is_fresh(turn) else None,
        )

    def _turn(self, item: Item) -> records.StoredTurn:
        try:
            question, answer = (self._table.item(message["M"]).text("text") for message in item["messages"]["L"])
            cited = tuple(records.CitedSource(*place) for place in json.loads(item.text("cited")))
        except (KeyError, TypeError, ValueError) as error:
            raise _ERRORS.malformed from error
        number = item.number("number")
        return records.StoredTurn(item.text("turn_id"), question, answer, item.text("status"), cited, number)

    def turns(self) -> list[tuple[str, str, records.StoredTurn, str]]:
        ratings = {item.text("sk"): item.text("rating") for item in self._query(_FEEDBACK)}
        request = {
            # Only turns have messages.
            "FilterExpression": "attribute_exists(messages) AND created_at >= :oldest",
            "ExpressionAttributeValues": attributes({":oldest": self._oldest()}),
        }
        found = ((item, self._turn(item)) for item in self._pages("Scan", request))
        return [(i.text("conversation_id"), i.text("created_at"), t, ratings.get(t.turn_id, "")) for i, t in found]

    def match(self, entry_id: str) -> None:
        now = self._clock()
        until = math.ceil((now + timedelta(days=records.FAQ_DAYS)).timestamp())
        item = {**_key(_FAQ, entry_id), **self._head(now, now), **attributes({"type": "faq", "expires": until})}
        self._table.send("PutItem", Item=item)

    def matched_entries(self) -> frozenset[str]:
        oldest = self._oldest(records.FAQ_DAYS)
        return frozenset(item.text("sk") for item in self._query(_FAQ) if item.text("timestamp") >= oldest)

    def forget(self, thread_id: str) -> bool:
        items = list(self._query(_thread(thread_id)))
        turn_ids = {item.text("turn_id") for item in items if item.text("type") == "turn"}
        ratings = [
            item.text("sk")
            for item in self._query(_FEEDBACK)
            if item.text("conversation_id") == thread_id or item.text("sk") in turn_ids
        ]
        # Remove the turns last: a second run after a kill needs them to find the other items.
        self._remove([(_FEEDBACK, turn_id) for turn_id in ratings])
        self._remove([(_turn_place(turn_id), _thread(thread_id)) for turn_id in sorted(turn_ids)])
        self._remove([(item.text("pk"), item.text("sk")) for item in items])
        return bool(items or ratings)

    def expire(self, days: int) -> int:
        oldest = self._oldest(days)
        request = {
            "FilterExpression": "created_at < :oldest",
            "ExpressionAttributeValues": attributes({":oldest": oldest}),
            "ConsistentRead": True,
        }
        items = [item for item in self._pages("Scan", request) if item.text("type") != "faq"]
        self._remove([(item.text("pk"), item.text("sk")) for item in items])
        return sum(item.text("type") != "place" for item in items)

    def _head(self, since: datetime, now: datetime) -> dict[str, Any]:
        """Return the times that every item has: from which its age counts, of its write, and of its expiry."""
        until = math.ceil((since + timedelta(days=self._days)).timestamp())
        return attributes(
            {"created_at": records.time_text(since), "timestamp": records.time_text(now), "expires": until}
        )

    def _oldest(self, days: int | None = None) -> str:
        """Return the time before which an item is expired."""
        return records.time_text(self._clock() - timedelta(days=self._days if days is None else days))

    def _is_fresh(self, item: Item) -> bool:
        return item.text("created_at") >= self._oldest()

    def _query(self, pk: str, prefix: str = "", *, newest: bool = False, limit: int = 0) -> Iterator[Item]:
        """Yield at most `limit` items of a partition whose sort key has this prefix, in order or newest first."""
        condition = "pk = :pk AND begins_with(sk, :sk)" if prefix else "pk = :pk"
        values = attributes({":pk": pk, **({":sk": prefix} if prefix else {})})
        request = {
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ScanIndexForward": not newest,
            "ConsistentRead": True,
            **({"Limit": limit} if limit else {}),
        }
        for count, item in enumerate(self._pages("Query", request), 1):
            yield item
            if count == limit:
                return

    def _pages(self, operation: str, request: Mapping[str, Any]) -> Iterator[Item]:
        body = {**request}
        while True:
            reply = self._table.send(operation, **body)
            items = reply.get("Items", [])
            if not isinstance(items, list):
                raise _ERRORS.malformed
            yield from map(self._table.item, items)
            if not reply.get("LastEvaluatedKey"):
                return
            body["ExclusiveStartKey"] = reply["LastEvaluatedKey"]

    def _put(self, item: Mapping[str, Any], condition: str, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        put = {"TableName": self._table.name, "Item": item, "ConditionExpression": condition}
        return {"Put": {**put, **({"ExpressionAttributeValues": values} if values else {})}}

    def _remove(self, keys: Sequence[tuple[str, str]]) -> None:
        for start in range(0, len(keys), _BATCH_ITEMS):
            batch = [{"DeleteRequest": {"Key": _key(*key)}} for key in keys[start : start + _BATCH_ITEMS]]
            unprocessed: Any = {self._table.name: batch}
            for pause in _RETRY_PAUSES:
                unprocessed = self._table.call("BatchWriteItem", {"RequestItems": unprocessed}).get("UnprocessedItems")
                if not unprocessed:
                    break
                time.sleep(pause)
            else:
                raise RecordsFault("DynamoDB is too busy to remove what is to be removed: try again later.")


def _thread(thread_id: str) -> str:
    return f"thread#{thread_id}"


def _turn_place(turn_id: str) -> str:
    return f"turn#{turn_id}"


def _turn_key(number: int) -> str:
    return f"turn#{number:010}"


def _turn_range(through: int) -> dict[str, Any]:
    """Return the `turn_index` of the first and of the last message in a summary."""
    return {"L": [{"N": "0"}, {"N": str(2 * through - 1)}]}


def _key(pk: str, sk: str) -> dict[str, Any]:
    return attributes({"pk": pk, "sk": sk})
