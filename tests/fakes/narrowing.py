"""Random filters, and their answer by a scan of all chunks: the reference for all stores."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from chapterverse.filters import FIELDS, NUMBERS, OPTIONAL
from chapterverse.model import Chunk, Point
from fakes.docs import point, prose

_ORDER = {
    "$gt": lambda a, b: a > b,
    "$gte": lambda a, b: a >= b,
    "$lt": lambda a, b: a < b,
    "$lte": lambda a, b: a <= b,
}
_TEXT = {"$prefix": lambda a, b: a[: len(b)] == b, "$contains": lambda a, b: b in a}

TAGS = ("linux", "linux/arm", "mac", "", "größe", "日本語", "a'\"\\b")
#: Dates of one instant in different spellings, and invalid dates, as other tools may have written them.
DATES = (
    "2025-12-31T23:59:59Z",
    "2026-01-01T00:00:00Z",
    "2026-01-01T02:00:00+02:00",
    "2026-02-03",
    "2026-02-03T04:05:06.5",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "",
    "soon",
)


def corpus(size: int) -> list[Point]:
    """Return points with the word "chunk" that differ in every field of filters."""
    chance = random.Random(size)
    made = []
    for i in range(size):
        page = f"{chance.choice(['guide', 'guide2', 'api'])}/{i % 13}"
        fields: dict[str, Any] = {
            "source_file_path": f"{page}.md",
            "url": f"https://docs.example/{page}/" + chance.choice(["", "#top", f"#part-{i}"]),
            "chapter_title": chance.choice(["Guide", "Guide to %_*", "Führer", ""]),
            "type": chance.choice(["page", "faq", "memory"]),
            "content_type": chance.choice(["documentation", "api"]),
            "tags": tuple(chance.sample(TAGS, chance.randrange(4))),
            "language": chance.choice(["en", "en-GB", "de"]),
            "version": chance.choice(["", "2.0", "2.10"]),
            "scope": chance.choice(["global", "entity:quill"]),
            "chunk_index": chance.randrange(12),
            "created_at": chance.choice(DATES),
            "importance": chance.randint(1, 5),
            "topic": chance.choice(["", "pricing", "pricing/eu", "größe"]),
            "entity": chance.choice(["", "quill", "Quill Inc."]),
            "conversation_id": chance.choice(["", "c-1", "c-2"]),
        }
        made.append(point(f"n{i}", f"chunk {prose(i, 5)}", **fields))
    return made


def some_filter(chance: random.Random, chunks: Sequence[Chunk], depth: int = 3) -> dict[str, Any]:
    """Return a filter as in a request; most of its values occur in some of the chunks."""
    made: dict[str, Any] = {}
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if depth > 1 and chance.random() < 0.3:
            groups = [some_filter(chance, chunks, depth - 1) for _ in range(chance.randint(1, 3))]
            made[chance.choice(("$and", "$or"))] = groups
        else:
            field = chance.choice(FIELDS)
            made[field] = _wanted(chance, field, chunks)
    return made


def meets(filters: Mapping[str, Any], chunk: Chunk) -> bool:
    """Return whether a chunk passes a filter."""
    return all(_part(name, value, chunk) for name, value in filters.items())


def _wanted(chance: random.Random, field: str, chunks: Sequence[Chunk]) -> Any:
    form = chance.random()
    if form < 0.2:
        return _value(chance, field, chunks)
    if form < 0.4:
        return [_value(chance, field, chunks) for _ in range(chance.randint(1, 4))]
    conditions: dict[str, Any] = {}
    for operator in chance.sample(["$eq", "$in", *(_ORDER if _ordered(field) else _TEXT)], chance.randint(1, 2)):
        value = _value(chance, field, chunks)
        if operator in _TEXT and not (field == "tags" and operator == "$contains"):
            start = chance.randrange(len(value) + 1) if operator == "$contains" else 0
            value = value[start : chance.randint(start, len(value))]
        conditions[operator] = [value] if operator == "$in" else value
    return conditions


def _value(chance: random.Random, field: str, chunks: Sequence[Chunk]) -> Any:
    if chance.random() < 0.1:
        return {"chunk_index": 2**70, "importance": 2**70, "created_at": "2026-01-01"}.get(
            field, chance.choice(["\ud800", "nowhere"])
        )
    if field == "created_at":
        return chance.choice([date for date in DATES if _instant(date)])
    if field == "tags":
        return chance.choice(TAGS)
    return getattr(chance.choice(chunks), field)


def _ordered(field: str) -> bool:
    return field in NUMBERS or field == "created_at"


def _part(name: str, value: Any, chunk: Chunk) -> bool:
    if name == "$and":
        return all(meets(group, chunk) for group in value)
    if name == "$or":
        return any(meets(group, chunk) for group in value)
    held = getattr(chunk, name)
    if name in OPTIONAL and not held:
        return False
    if name == "url" and not isinstance(value, dict):
        return any(chunk.url.startswith(address) for address in (value if isinstance(value, list) else [value]))
    conditions = value if isinstance(value, dict) else {"$in" if isinstance(value, list) else "$eq": value}
    return all(
        any(_condition(name, operator, one, operand) for one in (held if isinstance(held, tuple) else [held]))
        for operator, operand in conditions.items()
    )


def _condition(field: str, operator: str, held: Any, operand: Any) -> bool:
    if operator == "$in":
        return any(_condition(field, "$eq", held, one) for one in operand)
    if field == "created_at":
        held, operand = _instant(held), _instant(operand)
        if held is None:
            return False
    if operator == "$eq" or (field == "tags" and operator == "$contains"):
        return bool(held == operand)
    return bool((_ORDER | _TEXT)[operator](held, operand))


def _instant(text: str) -> datetime | None:
    try:
        made = datetime.fromisoformat(text)
    except ValueError:
        return None
    return made.replace(tzinfo=made.tzinfo or UTC)
