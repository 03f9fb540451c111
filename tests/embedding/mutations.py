"""Damaged replies of a model, a different one for each seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

#: Replaces a reply's list of vectors in place.
Spoil = Callable[[list[Any], random.Random], None]


def _drop(vectors: list[Any], chance: random.Random) -> None:
    del vectors[chance.randrange(len(vectors))]


def _repeat(vectors: list[Any], chance: random.Random) -> None:
    vectors.insert(chance.randrange(len(vectors) + 1), vectors[0])


def _shorten(vectors: list[Any], chance: random.Random) -> None:
    vector = chance.choice(vectors)
    del vector[chance.randrange(len(vector)) :]


def _lengthen(vectors: list[Any], chance: random.Random) -> None:
    chance.choice(vectors).extend([1] * chance.randint(1, 9))


def _empty(vectors: list[Any], chance: random.Random) -> None:
    vectors[chance.randrange(len(vectors))] = chance.choice([[], None, {}, "vector", 7, [[1.0]]])


def _zero(vectors: list[Any], chance: random.Random) -> None:
    at = chance.randrange(len(vectors))
    vectors[at] = [0] * len(vectors[at])


def _number(vectors: list[Any], chance: random.Random) -> None:
    vector = chance.choice(vectors)
    bad = [float("nan"), float("inf"), float("-inf"), 1e300, -(10**400), None, True, "0.5", [0.5], {"a": 1}]
    vector[chance.randrange(len(vector))] = chance.choice(bad)


_SPOILS: list[Spoil] = [_drop, _repeat, _shorten, _lengthen, _empty, _zero, _number, _number]


def mutated(reply: Any, vectors: Callable[[Any], list[Any]], seed: int) -> bytes:
    """Return the bytes that arrive instead of a good reply.

    Args:
        vectors: finds the list of vectors within a reply, to be spoiled in place.
    """
    chance = random.Random(seed)
    if chance.random() < 0.3:
        data = json.dumps(reply).encode()
        return chance.choice(
            [data[: chance.randrange(len(data))], b"", b"null", b"[]", b"<html>" + data, b"[" * 99_999]
        )
    # One fault a reply: two may cancel each other, and vectors that only changed places show it nowhere.
    chance.choice(_SPOILS)(vectors(reply), chance)
    return json.dumps(reply).encode()
