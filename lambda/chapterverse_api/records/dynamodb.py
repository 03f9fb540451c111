"""Conversations and ratings in a DynamoDB table, with nothing always on. Implements `chapterverse_api.records.Records`.

The table has the partition key `pk` and the sort key `sk`, both strings; its TTL attribute is `expires`. The items:

    thread#THREAD  turn#NUMBER    a question with its answer: `messages`, each with `role`, `turn_index` and `text`
    thread#THREAD  ~summary       the summary: `text`, `turn_range`, `summary_index`
    turn#TURN      thread#THREAD  in which thread a turn is, and at which `number`
    feedback       TURN           a rating; a second one takes the place of the first
    faq            ENTRY          when a FAQ entry answered last

A turn and where it is are written in one transaction, on the condition that neither is there: of two tabs that write at
once one finds its number taken and takes the next, and a write that is sent twice is kept once. DynamoDB removes what
has expired within days, so what is read is checked for its age.
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
from chapterverse.model import sound
from chapterverse.net.aws import AwsFault, AwsService
from chapterverse_api.records.types import (
    FAQ_DAYS,
    LONGEST,
    TURNS,
    CitedSource,
    RecordsFault,
    StoredRating,
    StoredThread,
    StoredTurn,
    time_text,
)

#: Seconds for one request, its tries included: an answer waits for it.
SECONDS = 2.0
#: How often a turn is written that finds its number taken: by so many tabs at once at most.
TRIES = 20
#: Items of one `BatchWriteItem` (DynamoDB API reference).
_BATCH = 25
#: Seconds after each try to remove what a busy table left over.
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6)
_FEEDBACK, _FAQ = "feedback", "faq"
_SUMMARY = "~summary"
_FAILED = "ConditionalCheckFailed"

#: An item as DynamoDB writes it: {"number": {"N": "17"}}.
Item = Mapping[str, Any]


class DynamoRecords:
    """Safe to share between threads.

    Args:
        days: after which an item expires.
        clock: returns the time in UTC.
    """

    def __init__(
        self, service: AwsService, table: str, days: int, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._service = service
        self._table = table
        self._days = days
        self._clock = clock

    @classmethod
    def open(cls, table: str, days: int) -> DynamoRecords:
        """Return the records in a table of the environment's account and region; nothing is sent yet.

        Raises:
            RecordsFault: no region is named.
        """
        try:
            return cls(AwsService.open("dynamodb", seconds=SECONDS), table, days)
        except ConfigurationError as error:
            raise RecordsFault(str(error)) from error

    def append(self, thread_id: str, turn: StoredTurn) -> None:
        now = self._clock()
        for _ in range(TRIES):
            latest = next(self._query(_thread(thread_id), "turn#", newest=True, most=1), None)
            number = _number(latest, "number") + 1 if latest else 1
            if self._put_turn(thread_id, turn, number, now):
                if number > LONGEST:
                    self._remove([(_thread(thread_id), _turn_key(number - LONGEST))])
                return
        raise RecordsFault("Too many tabs write to one conversation at once: try again later.")

    def _put_turn(self, thread_id: str, turn: StoredTurn, number: int, now: datetime) -> bool:
        """Write a turn at a number; return False if the number is taken. A stored turn stays as it is."""
        head = self._head(now, now)
        messages = [
            {"M": {"role": _s(record.role), "turn_index": _n(record.turn_index), "text": _s(sound(record.text))}}
            for record in StoredTurn(turn.turn_id, turn.question, turn.answer, turn.status, number=number).records
        ]
        item = {
            **_key(_thread(thread_id), _turn_key(number)),
            **head,
            "type": _s("turn"),
            "conversation_id": _s(thread_id),
            "turn_id": _s(turn.turn_id),
            "number": _n(number),
            "messages": {"L": messages},
            "status": _s(turn.status),
            "cited": _s(json.dumps([astuple(place) for place in turn.cited])),
        }
        place = {
            **_key(_turn_place(turn.turn_id), _thread(thread_id)),
            **head,
            "type": _s("place"),
            "conversation_id": _s(thread_id),
            "number": _n(number),
        }
        failed = self._transact(
            [self._put(item, "attribute_not_exists(pk)"), self._put(place, "attribute_not_exists(pk)")]
        )
        return not failed or failed[-1] == _FAILED

    def thread(self, thread_id: str, turns: int = TURNS) -> StoredThread:
        items = [item for item in self._query(_thread(thread_id), newest=True, most=turns + 1) if self._is_fresh(item)]
        summary = next((item for item in items if _text(item, "type") == "summary"), None)
        latest = [item for item in items if _text(item, "type") == "turn"][:turns]
        return StoredThread(
            tuple(_turn(item) for item in reversed(latest)),
            _text(summary, "text") if summary else "",
            _number(summary, "through") if summary else 0,
            _number(summary, "summary_index") if summary else 0,
        )

    def summarize(self, thread_id: str, summary: str, through: int, *, read: StoredThread) -> bool:
        if read.through:
            return self._replace_summary(thread_id, summary, through, read.through)
        return self._put_summary(thread_id, summary, through)

    def _replace_summary(self, thread_id: str, summary: str, through: int, read: int) -> bool:
        """Replace the summary through the turn `read`; return False where that is not there any more."""
        return self._update(
            {
                "Key": _key(_thread(thread_id), _SUMMARY),
                "UpdateExpression": "SET #text = :text, through = :through, #range = :range, #timestamp = :now"
                " ADD summary_index :one",
                "ConditionExpression": "through = :read AND created_at >= :oldest",
                "ExpressionAttributeNames": {"#text": "text", "#range": "turn_range", "#timestamp": "timestamp"},
                "ExpressionAttributeValues": {
                    ":text": _s(sound(summary)),
                    ":through": _n(through),
                    ":range": _turn_range(through),
                    ":now": _s(time_text(self._clock())),
                    ":one": _n(1),
                    ":read": _n(read),
                    ":oldest": _s(self._oldest()),
                },
            }
        )

    def _put_summary(self, thread_id: str, summary: str, through: int) -> bool:
        """Write the first summary of a thread; return False where there is one, or the thread was forgotten."""
        now, oldest = self._clock(), self._oldest()
        turns = self._query(_thread(thread_id), "turn#")
        since = next((_text(item, "created_at") for item in turns if self._is_fresh(item)), None)
        if since is None:
            return False
        item = {
            **_key(_thread(thread_id), _SUMMARY),
            **self._head(datetime.fromisoformat(since), now),
            "type": _s("summary"),
            "conversation_id": _s(thread_id),
            "text": _s(sound(summary)),
            "through": _n(through),
            "turn_range": _turn_range(through),
            "summary_index": _n(0),
        }
        # Without the check a summary could bring back a thread that was forgotten meanwhile.
        is_there = {
            "ConditionCheck": {
                "TableName": self._table,
                "Key": _key(_thread(thread_id), _turn_key(through)),
                "ConditionExpression": "attribute_exists(pk)",
            }
        }
        is_free = self._put(item, "attribute_not_exists(pk) OR created_at < :oldest", {":oldest": _s(oldest)})
        return not self._transact([is_there, is_free])

    def rate(self, rating: StoredRating) -> None:
        now = self._clock()
        places = self._query(_turn_place(rating.turn_id))
        place = next((item for item in places if self._is_fresh(item)), None)
        since = datetime.fromisoformat(_text(place, "created_at")) if place else now
        item = {
            **_key(_FEEDBACK, rating.turn_id),
            **self._head(since, now),
            "type": _s("feedback"),
            "conversation_id": _s(_text(place, "conversation_id") if place else ""),
            "rating": _s(rating.rating),
            "reason": _s(rating.reason),
            "comment": _s(sound(rating.comment)),
        }
        self._call("PutItem", {"TableName": self._table, "Item": item})

    def ratings(self, limit: int) -> list[StoredRating]:
        fresh = [item for item in self._query(_FEEDBACK) if self._is_fresh(item)]
        fresh.sort(key=lambda item: _text(item, "sk"))
        fresh.sort(key=lambda item: _text(item, "timestamp"), reverse=True)
        return [self._rating(item) for item in fresh[:limit]]

    def _rating(self, item: Item) -> StoredRating:
        turn_id = _text(item, "sk")
        place = next(self._query(_turn_place(turn_id)), None)
        turn: Item | None = None
        if place:
            key = _key(_text(place, "sk"), _turn_key(_number(place, "number")))
            reply = self._call("GetItem", {"TableName": self._table, "Key": key, "ConsistentRead": True})
            turn = _item(reply.get("Item", {}))
        return StoredRating(
            turn_id,
            _text(item, "rating"),
            _text(item, "reason"),
            _text(item, "comment"),
            _text(item, "timestamp"),
            _turn(turn) if turn and self._is_fresh(turn) else None,
        )

    def match(self, entry_id: str) -> None:
        now = self._clock()
        until = math.ceil((now + timedelta(days=FAQ_DAYS)).timestamp())
        item = {**_key(_FAQ, entry_id), **self._head(now, now), "type": _s("faq"), "expires": _n(until)}
        self._call("PutItem", {"TableName": self._table, "Item": item})

    def matched_entries(self) -> frozenset[str]:
        oldest = self._oldest(FAQ_DAYS)
        return frozenset(_text(item, "sk") for item in self._query(_FAQ) if _text(item, "timestamp") >= oldest)

    def forget(self, thread_id: str) -> bool:
        items = list(self._query(_thread(thread_id)))
        turn_ids = {_text(item, "turn_id") for item in items if _text(item, "type") == "turn"}
        ratings = [
            _text(item, "sk")
            for item in self._query(_FEEDBACK)
            if _text(item, "conversation_id") == thread_id or _text(item, "sk") in turn_ids
        ]
        # Remove the turns last: a second run after a kill needs them to find the other items.
        self._remove([(_FEEDBACK, turn_id) for turn_id in ratings])
        self._remove([(_turn_place(turn_id), _thread(thread_id)) for turn_id in sorted(turn_ids)])
        self._remove([(_text(item, "pk"), _text(item, "sk")) for item in items])
        return bool(items or ratings)

    def expire(self, days: int) -> int:
        oldest = self._oldest(days)
        request = {
            "FilterExpression": "created_at < :oldest",
            "ExpressionAttributeValues": {":oldest": _s(oldest)},
            "ConsistentRead": True,
        }
        items = [item for item in self._pages("Scan", request) if _text(item, "type") != "faq"]
        self._remove([(_text(item, "pk"), _text(item, "sk")) for item in items])
        return sum(_text(item, "type") != "place" for item in items)

    def _head(self, since: datetime, now: datetime) -> dict[str, Any]:
        """Return the times that every item has: of its write, of the start of its age, and of its end."""
        until = math.ceil((since + timedelta(days=self._days)).timestamp())
        return {"created_at": _s(time_text(since)), "timestamp": _s(time_text(now)), "expires": _n(until)}

    def _oldest(self, days: int | None = None) -> str:
        """Return the time before which an item is expired."""
        return time_text(self._clock() - timedelta(days=self._days if days is None else days))

    def _is_fresh(self, item: Item) -> bool:
        return _text(item, "created_at") >= self._oldest()

    def _query(self, pk: str, beginning: str = "", *, newest: bool = False, most: int = 0) -> Iterator[Item]:
        """Yield at most `most` items of a partition whose sort key has this beginning, in order or newest first."""
        condition = "pk = :pk AND begins_with(sk, :sk)" if beginning else "pk = :pk"
        values = {":pk": _s(pk), **({":sk": _s(beginning)} if beginning else {})}
        request = {
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ScanIndexForward": not newest,
            "ConsistentRead": True,
            **({"Limit": most} if most else {}),
        }
        for count, item in enumerate(self._pages("Query", request), 1):
            yield item
            if count == most:
                return

    def _pages(self, operation: str, request: Mapping[str, Any]) -> Iterator[Item]:
        body: dict[str, Any] = {"TableName": self._table, **request}
        while True:
            reply = self._call(operation, body)
            items = reply.get("Items", [])
            if not isinstance(items, list):
                raise _malformed()
            yield from map(_item, items)
            if not reply.get("LastEvaluatedKey"):
                return
            body["ExclusiveStartKey"] = reply["LastEvaluatedKey"]

    def _put(self, item: Item, condition: str, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        put = {"TableName": self._table, "Item": item, "ConditionExpression": condition}
        return {"Put": {**put, **({"ExpressionAttributeValues": values} if values else {})}}

    def _transact(self, actions: Sequence[Mapping[str, Any]]) -> list[str]:
        """Carry out all of the actions, or none.

        Returns:
            Empty if all were carried out; else a code for each action: "ConditionalCheckFailed",
            "TransactionConflict", "None" …
        """
        try:
            self._service.call("DynamoDB_20120810.TransactWriteItems", {"TransactItems": actions})
        except AwsFault as error:
            reasons = error.body.get("CancellationReasons")
            if error.code != "TransactionCanceledException":
                raise self._explained(error) from error
            if not isinstance(reasons, list) or len(reasons) != len(actions):
                raise _malformed() from error
            return [str(reason.get("Code")) if isinstance(reason, dict) else "" for reason in reasons]
        return []

    def _update(self, request: Mapping[str, Any]) -> bool:
        try:
            self._service.call("DynamoDB_20120810.UpdateItem", {"TableName": self._table, **request})
        except AwsFault as error:
            if error.code == f"{_FAILED}Exception":
                return False
            raise self._explained(error) from error
        return True

    def _remove(self, keys: Sequence[tuple[str, str]]) -> None:
        for start in range(0, len(keys), _BATCH):
            left: Any = {self._table: [{"DeleteRequest": {"Key": _key(*key)}} for key in keys[start : start + _BATCH]]}
            for pause in _PAUSES:
                left = self._call("BatchWriteItem", {"RequestItems": left}).get("UnprocessedItems")
                if not left:
                    break
                time.sleep(pause)
            else:
                raise RecordsFault("DynamoDB is too busy to remove what is to be removed: try again later.")

    def _call(self, operation: str, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._service.call(f"DynamoDB_20120810.{operation}", body)
        except AwsFault as error:
            raise self._explained(error) from error

    def _explained(self, error: AwsFault) -> RecordsFault:
        if error.code == "ResourceNotFoundException":
            return RecordsFault(
                f"There is no DynamoDB table {self._table} in this account and region: make it, or name another in "
                "CHAPTERVERSE_RECORDS."
            )
        if error.code in ("AccessDeniedException", "AccessDenied"):
            return RecordsFault(
                f"The DynamoDB table {self._table} may not be used with these credentials: allow dynamodb:Query, "
                "GetItem, PutItem, UpdateItem, DeleteItem, BatchWriteItem and ConditionCheckItem on it."
            )
        if error.code == "ValidationException":
            return RecordsFault(
                f"The DynamoDB table {self._table} can't hold conversations: it needs the partition key pk and the "
                "sort key sk, both strings."
            )
        return RecordsFault(str(error))


def _thread(thread_id: str) -> str:
    return f"thread#{thread_id}"


def _turn_place(turn_id: str) -> str:
    return f"turn#{turn_id}"


def _turn_key(number: int) -> str:
    return f"turn#{number:010}"


def _turn_range(through: int) -> dict[str, Any]:
    """Return the `turn_index` of the first and of the last message in a summary."""
    return {"L": [_n(0), _n(2 * through - 1)]}


def _key(pk: str, sk: str) -> dict[str, Any]:
    return {"pk": _s(pk), "sk": _s(sk)}


def _s(text: str) -> dict[str, str]:
    return {"S": text}


def _n(number: int) -> dict[str, str]:
    return {"N": str(number)}


def _turn(item: Item) -> StoredTurn:
    try:
        question, answer = (_text(message["M"], "text") for message in item["messages"]["L"])
        cited = tuple(CitedSource(*place) for place in json.loads(_text(item, "cited")))
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed() from error
    return StoredTurn(_text(item, "turn_id"), question, answer, _text(item, "status"), cited, _number(item, "number"))


def _item(found: object) -> Item:
    """Return an item of a reply.

    Raises:
        RecordsFault: it is none.
    """
    if not isinstance(found, dict) or not all(isinstance(value, dict) for value in found.values()):
        raise _malformed()
    return found


def _text(item: Item, name: str) -> str:
    """Return a text of an item, "" where it has none of that name."""
    text = item.get(name, {}).get("S", "")
    if not isinstance(text, str):
        raise _malformed()
    return text


def _number(item: Item, name: str) -> int:
    """Return a whole number of an item, 0 where it has none of that name."""
    try:
        return int(item.get(name, {}).get("N", "0"))
    except (TypeError, ValueError):
        raise _malformed() from None


def _malformed() -> RecordsFault:
    return RecordsFault("DynamoDB answered with something that is no record: check CHAPTERVERSE_RECORDS.")
