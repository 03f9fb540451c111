"""Damaged rankings, each kind by name, and a different one for each seed."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from typing import Any

from fakes.loopback import Fault
from fakes.rankings import with_results


def _first(**changes: Any) -> Fault:
    """The best result with other values than it had."""
    return with_results(lambda results: [{**results[0], **changes}, *results[1:]])


#: Replies of status 200 that rank other texts than were sent, or rank them by what is no relevance.
BAD_RANKINGS = {
    "too few": with_results(lambda results: results[:-1]),
    "too many": with_results(lambda results: [*results, {"index": len(results), "relevance_score": 0.1}]),
    "one twice": with_results(lambda results: [*results[:-1], results[0]]),
    "one twice and all there": with_results(lambda results: [*results, results[0]]),
    "out of range": _first(index=3),
    "below range": _first(index=-1),
    "index of 1.0": with_results(lambda results: [{**r, "index": float(r["index"])} for r in results]),
    "index of true": with_results(lambda results: [{**r, "index": r["index"] == 1 or r["index"]} for r in results]),
    "index of text": with_results(lambda results: [{**r, "index": str(r["index"])} for r in results]),
    "index of a list": _first(index=[0]),
    "no index": with_results(lambda results: [{"relevance_score": r["relevance_score"]} for r in results]),
    "no score": with_results(lambda results: [{"index": r["index"]} for r in results]),
    "score of 2": _first(relevance_score=2),
    "a little over": _first(relevance_score=1.0000001),
    "negative": _first(relevance_score=-0.0001),
    "not a number": _first(relevance_score=math.nan),
    "infinite": _first(relevance_score=math.inf),
    "beyond a float": _first(relevance_score=10**400),
    "score of true": _first(relevance_score=True),
    "score of text": _first(relevance_score="0.5"),
    "no score at all": _first(relevance_score=None),
    "texts instead": with_results(lambda results: ["one", "two", "three"]),
    "by name": with_results(lambda results: {str(r["index"]): r["relevance_score"] for r in results}),
    "nothing": with_results(lambda results: None),
    "no results": Fault(change=lambda reply: {"id": "fake"}),
    "a list": Fault(change=lambda reply: reply["results"]),
}

#: Replies of status 200 that are no JSON, or end in the middle.
BROKEN = {
    "page": Fault(change=lambda reply: b"<!doctype html><title>Sign in</title>"),
    "empty": Fault(change=lambda reply: b""),
    "too deep": Fault(change=lambda reply: b"[" * 100_000),
    "no text": Fault(change=lambda reply: b"\xff\xfe\x00"),
    "cut": Fault(cut=True),
}

_KINDS: list[Callable[[Any], Any]] = [f.change for f in (*BAD_RANKINGS.values(), *BROKEN.values()) if f.change]


def mutated(reply: Any, seed: int) -> bytes:
    """Return the bytes that arrive instead of a good reply: of a wrong kind, cut, or with some bytes turned."""
    chance = random.Random(seed)
    data = bytearray(json.dumps(reply).encode())
    if chance.random() < 0.4:
        changed = chance.choice(_KINDS)(reply)
        return changed if isinstance(changed, bytes) else json.dumps(changed).encode()
    if chance.random() < 0.3:
        return bytes(data[: chance.randrange(len(data))])
    for _ in range(chance.randint(1, 4)):
        data[chance.randrange(len(data))] = chance.choice(b'0123456789.-+eE"[]{},: \\tfn\x00\x80\xff')
    return bytes(data)
