"""Counters in a DynamoDB table, for any number of machines and with nothing always on.

The table has the partition key `pk`, a string, and no sort key; its TTL attribute is `expires`. Every step is one
`UpdateItem` of one item under a condition, which DynamoDB carries out alone among all that ask. There are three kinds:

    requests#CLIENT#DAY   a number for each window, `SECONDS@START`, and `last`, the id of the last request
    account#ACCOUNT       `spent` in microdollars, and the sum of each open reservation, `open@ID`
    token#TOKEN           `owner`, the id of the request that brought it

A step may arrive twice, because it is sent again if its answer was lost. The second one finds the id of the first,
changes nothing and has the same answer. This fails in two cases, which count too much and never too little: another
request of the same client came between the two, or the network delayed one until its money had been settled.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from chapterverse.ext.aws import AwsService
from chapterverse.ext.dynamodb import CALL_SECONDS, DynamoTable, Item, TableErrors, attributes
from chapterverse.settings import Settings
from chapterverse_api.limits import ACCOUNT_SECONDS, LimiterFault, RateWindow, Reservation

#: Stale attributes that an item may hold before they are removed. Above 1 KB every write of the item costs double.
MAX_STALE_ATTRIBUTES = 24
#: Attributes that are removed at once, because an expression holds 4 KB (DynamoDB Developer Guide, "Quotas").
_MAX_REMOVED_ATTRIBUTES = 200
#: Seconds after which nothing settles a reservation any more. A Lambda function runs for 900 at most.
ABANDONED_SECONDS = 3600

_DAY_SECONDS = 24 * 60 * 60
_RESERVATION_PREFIX = "open@"

_ERRORS = TableErrors(
    LimiterFault,
    "There is no DynamoDB table {table} in this account and region: make it, or name another in CHAPTERVERSE_LIMITER.",
    "The DynamoDB table {table} may not be used with these credentials: allow dynamodb:UpdateItem and dynamodb:GetItem "
    "on it.",
    "The DynamoDB table {table} can't hold the counters: it needs the partition key pk, a string, and no sort key.",
    "DynamoDB answered with something that is no reply: check AWS_ENDPOINT_URL.",
)


@dataclass(frozen=True, slots=True)
class _Update:
    """One `UpdateItem`: a write, its condition, and the names and values that both use."""

    key: str
    write: str
    condition: str
    names: Mapping[str, str]
    values: Mapping[str, str | int] = field(default_factory=dict)

    def request(self) -> dict[str, object]:
        return {
            "Key": attributes({"pk": self.key}),
            "UpdateExpression": self.write,
            "ConditionExpression": self.condition,
            "ExpressionAttributeNames": self.names,
            **({"ExpressionAttributeValues": attributes(self.values)} if self.values else {}),
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }


class DynamoLimiter:
    """Safe to share between threads. Implements `Limiter`."""

    def __init__(self, service: AwsService, table: str) -> None:
        self._table = DynamoTable(service, table, _ERRORS)

    @classmethod
    def from_settings(cls, _: Settings, table: str) -> DynamoLimiter:
        """Return the limiter on a table of the environment's account and region. Raises as `AwsService` does."""
        return cls(AwsService("dynamodb", seconds=CALL_SECONDS), table)

    def admit(self, client: str, windows: Sequence[RateWindow], now: float) -> float | None:
        if not windows:
            return None
        key, own_id = f"requests#{client}#{int(now // _DAY_SECONDS)}", secrets.token_hex(8)
        is_written, item = self._apply(_count_update(key, own_id, windows, now))
        is_own_last = item.text("last") == own_id
        if is_written:
            if not is_own_last:
                raise _ERRORS.malformed
            self._sweep(key, (name for name in item if _is_past(name, now)))
            return None
        if is_own_last:
            return None
        full = [window for window in windows if item.number(_counter(window, now)) >= window.limit]
        return max((window.seconds_left(now) for window in full), default=1.0)

    def reserve(self, account: str, micros: int, cap: int, now: float) -> Reservation | None:
        if micros > cap:
            return None
        key, own_id = f"account#{account}", f"{int(now)}-{secrets.token_hex(8)}"
        step = _Update(
            key,
            "SET #open = :micros, #expires = :expires ADD #spent :micros",
            "attribute_not_exists(#open) AND (attribute_not_exists(#spent) OR #spent <= :room)",
            {"#open": _RESERVATION_PREFIX + own_id, "#expires": "expires", "#spent": "spent"},
            {":micros": micros, ":room": cap - micros, ":expires": int(now) + ACCOUNT_SECONDS},
        )
        is_written, item = self._apply(step)
        is_reserved, spent = _RESERVATION_PREFIX + own_id in item, item.number("spent")
        # The table decides whether money is reserved, because a reply with an error may follow a write.
        if (is_written and not is_reserved) or (
            is_reserved and (item.number(_RESERVATION_PREFIX + own_id) != micros or spent < micros)
        ):
            raise _ERRORS.malformed
        if not is_reserved:
            return None
        if is_written:
            self._sweep(key, sorted(name for name in item if _is_abandoned(name, now)))
        return Reservation(own_id, account, micros, spent - micros)

    def settle(self, reservation: Reservation, micros: int) -> None:
        step = _Update(
            f"account#{reservation.account}",
            "ADD #spent :difference REMOVE #open",
            "attribute_exists(#open)",
            {"#spent": "spent", "#open": _RESERVATION_PREFIX + reservation.id},
            {":difference": min(micros, reservation.micros) - reservation.micros},
        )
        self._apply(step)

    def spent_micros(self, account: str) -> int:
        key = attributes({"pk": f"account#{account}"})
        reply = self._table.send("GetItem", Key=key, ConsistentRead=True, ProjectionExpression="spent")
        return self._table.item(reply.get("Item", {})).number("spent")

    def use_token(self, token: str, until: float, now: float) -> bool:
        own_id = secrets.token_hex(8)
        step = _Update(
            f"token#{token}",
            "SET #owner = :id, #expires = :expires",
            # DynamoDB removes expired items within days, not at once.
            "attribute_not_exists(#expires) OR #expires <= :now OR #owner = :id",
            {"#owner": "owner", "#expires": "expires"},
            {":id": own_id, ":expires": math.ceil(until), ":now": int(now)},
        )
        is_written, item = self._apply(step)
        if is_written and item.text("owner") != own_id:
            raise _ERRORS.malformed
        return is_written

    def _apply(self, step: _Update) -> tuple[bool, Item]:
        """Return whether the condition held, and the item as it is now."""
        is_written, reply = self._table.update(step.request())
        return is_written, self._table.item(reply.get("Attributes" if is_written else "Item", {}))

    def _sweep(self, key: str, stale: Iterable[str]) -> None:
        """Remove attributes that nothing needs any more, once there are many. A second call does no harm."""
        stale_names = list(stale)[:_MAX_REMOVED_ATTRIBUTES]
        if len(stale_names) <= MAX_STALE_ATTRIBUTES:
            return
        names = {f"#{i}": name for i, name in enumerate(stale_names)}
        # Without the condition this would create an expired item again, without an expiry.
        step = _Update(key, f"REMOVE {', '.join(names)}", "attribute_exists(#expires)", names | {"#expires": "expires"})
        # What remains is removed with the next request, or with the item.
        with suppress(LimiterFault):
            self._apply(step)


def _count_update(key: str, own_id: str, windows: Sequence[RateWindow], now: float) -> _Update:
    numbers = range(len(windows))
    below = [f"(attribute_not_exists(#n{i}) OR #n{i} < :limit{i})" for i in numbers]
    return _Update(
        key,
        f"SET #last = :id, #expires = :expires ADD {', '.join(f'#n{i} :one' for i in numbers)}",
        " AND ".join(["(attribute_not_exists(#last) OR #last <> :id)", *below]),
        {"#last": "last", "#expires": "expires", **{f"#n{i}": _counter(windows[i], now) for i in numbers}},
        {
            ":id": own_id,
            ":one": 1,
            ":expires": int(now) + 2 * _DAY_SECONDS,
            **{f":limit{i}": windows[i].limit for i in numbers},
        },
    )


def _counter(window: RateWindow, now: float) -> str:
    return f"{window.seconds}@{window.start(now)}"


def _is_past(name: str, now: float) -> bool:
    """Return whether this is a counter whose window is over, even by a clock that is a little late."""
    seconds, _, start = name.partition("@")
    return seconds.isdecimal() and start.isdecimal() and int(start) + 2 * int(seconds) <= now


def _is_abandoned(name: str, now: float) -> bool:
    """Return whether a process that was killed made this reservation; its money stays spent."""
    began = name.removeprefix(_RESERVATION_PREFIX).partition("-")[0]
    return name.startswith(_RESERVATION_PREFIX) and began.isdecimal() and int(began) + ABANDONED_SECONDS <= now
