"""Damaged chat streams, a different one for each seed."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

Events = list[dict[str, Any]]

#: What may stand where something else was expected.
_ODD: list[Any] = [
    None, True, False, -1, 0, 7, 3.5, float("nan"), float("inf"), 2**31, 2**63, 10**400, "", "x", "\ud800", "1", "99",
    [], {}, [[]], [1], ["x"], {"x": 1}, [{}], "thinking", "text", "THINKING_CONTENT", "ERROR", "message-end",
]  # fmt: skip

_BYTES = b'0123456789.-+eE"[]{},: \\tfn\n\r\x00\x80\xff'


def damaged_events(seed: int) -> Callable[[Events], Events]:
    """Return what becomes of the events: some dropped, doubled, moved, or with other values."""

    def change(events: Events) -> Events:
        chance = random.Random(seed)
        events = copy.deepcopy(events)
        for _ in range(chance.randint(0, 3)):
            if events:
                chance.choice([_drop, _double, _move, _shuffle, _alter, _alter, _alter, _lose])(events, chance)
        return events

    return change


def damaged_bytes(seed: int) -> Callable[[Iterator[bytes]], Iterator[bytes]]:
    """Return what becomes of the bytes: cut off, turned, a number without an end, or nothing at all."""

    def change(pieces: Iterator[bytes]) -> Iterator[bytes]:
        chance = random.Random(seed + 1_000_000)
        data = bytearray(b"".join(pieces))
        kind = chance.random()
        if kind < 0.15:
            del data[chance.randrange(len(data) + 1) :]
        elif kind < 0.3:
            for _ in range(chance.randint(1, 5)):
                data[chance.randrange(len(data))] = chance.choice(_BYTES)
        elif kind < 0.35:
            data = data.replace(b'"start": ', b'"start": ' + b"9" * 5000)
        size = chance.choice([50, 300, 10_000]) if seed % 40 else 1
        return iter([bytes(data[i : i + size]) for i in range(0, len(data), size)])

    return change


def _drop(events: Events, chance: random.Random) -> None:
    del events[chance.randrange(len(events))]


def _double(events: Events, chance: random.Random) -> None:
    events.insert(chance.randrange(len(events)), copy.deepcopy(chance.choice(events)))


def _move(events: Events, chance: random.Random) -> None:
    events.insert(chance.randrange(len(events)), events.pop(chance.randrange(len(events))))


def _shuffle(events: Events, chance: random.Random) -> None:
    chance.shuffle(events)


def _alter(events: Events, chance: random.Random) -> None:
    holder, key = chance.choice(list(_places(events)))
    holder[key] = copy.deepcopy(chance.choice(_ODD))


def _lose(events: Events, chance: random.Random) -> None:
    places = [
        (holder, key) for holder, key in _places(events) if isinstance(holder, dict) and holder.keys() != {"type"}
    ]
    holder, key = chance.choice(places)
    del holder[key]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place of a value within the events, as what holds it and under what."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        # The events themselves stay objects: the fake reads their type.
        if isinstance(value, dict):
            yield value, key
        yield from _places(inner)
