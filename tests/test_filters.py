"""The filter language: all valid and invalid filters, and the results against a scan of all chunks."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chapterverse.errors import InputError
from chapterverse.filters import (
    EVERYTHING,
    FIELDS,
    MAX_CONDITIONS,
    MAX_FILTER_DEPTH,
    MAX_VALUES,
    OPERATORS,
    And,
    FieldCondition,
    Filter,
    FilterTree,
    In,
    Or,
    all_of,
    fields,
    map_addresses,
    parse_filter,
    resolve,
    version_of,
)
from chapterverse.model import Chunk
from fakes.docs import point
from fakes.narrowing import corpus, meets, some_filter

CHUNKS = [p.chunk for p in corpus(120)]
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def stored(chunk: Chunk, field: str) -> list[Any]:
    """Return the values of a field as a store has them: none of a field that is not stated."""
    held = chunk.payload().get(field, [])
    return held if isinstance(held, list) else [held]


class Listed:
    """What `resolve` needs of a snapshot, over a list of chunks."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks

    def values(self, field: str) -> tuple[Any, ...]:
        return tuple(sorted({v for chunk in self._chunks for v in stored(chunk, field)}))


def resolved(asked: FilterTree | None, chunks: Sequence[Chunk] = CHUNKS) -> Filter | None:
    return resolve(asked, Listed(chunks))


def kept(filters: Filter | None, chunk: Chunk) -> bool:
    """Return the chunks that a store finds by a tree."""
    if filters is None:
        return True
    if isinstance(filters, In):
        return any(value in filters.values for value in stored(chunk, filters.field))
    return (all if isinstance(filters, And) else any)(kept(part, chunk) for part in filters.parts)


def found(filters: dict[str, Any]) -> list[Chunk]:
    where = resolved(parse_filter(filters))
    return [chunk for chunk in CHUNKS if kept(where, chunk)]


def sentence(filters: object) -> str:
    with pytest.raises(InputError) as caught:
        parse_filter(filters)
    assert caught.value.field == "filters"
    return str(caught.value)


# What may be asked


@pytest.mark.parametrize(
    ("filters", "asked"),
    [
        ({}, None),
        ({"language": "de"}, In("language", ("de",))),
        ({"language": ["de", "fr", "de"]}, In("language", ("de", "fr"))),
        ({"language": {"$eq": "de"}}, In("language", ("de",))),
        ({"language": {"$in": ["de"]}}, In("language", ("de",))),
        ({"tags": {"$contains": "linux"}}, In("tags", ("linux",))),
        ({"tags": {"$prefix": "lin"}}, FieldCondition("tags", "$prefix", "lin")),
        ({"chapter_title": {"$contains": "lin"}}, FieldCondition("chapter_title", "$contains", "lin")),
        ({"url": "https://docs.example/"}, FieldCondition("url", "$prefix", "https://docs.example/")),
        ({"url": {"$eq": "https://docs.example/"}}, In("url", ("https://docs.example/",))),
        ({"url": ["a", "b", "a"]}, Or((FieldCondition("url", "$prefix", "a"), FieldCondition("url", "$prefix", "b")))),
        ({"url": {"$prefix": "https://"}}, FieldCondition("url", "$prefix", "https://")),
        ({"chunk_index": 0}, In("chunk_index", (0,))),
        ({"created_at": "2026-01-01"}, FieldCondition("created_at", "$eq", NEW_YEAR)),
        (
            {"chunk_index": {"$gt": 1, "$lte": 5}},
            And((FieldCondition("chunk_index", "$gt", 1), FieldCondition("chunk_index", "$lte", 5))),
        ),
        ({"type": "faq", "scope": "global"}, And((In("type", ("faq",)), In("scope", ("global",))))),
        ({"$or": [{"type": "faq"}, {"version": "2"}]}, Or((In("type", ("faq",)), In("version", ("2",))))),
        ({"$and": [{"type": "faq"}]}, In("type", ("faq",))),
        ({"type": ("faq",)}, In("type", ("faq",))),
    ],
)
def test_what_is_asked_becomes_a_tree(filters: dict[str, Any], asked: FilterTree | None) -> None:
    assert parse_filter(filters) == asked


@pytest.mark.parametrize(
    "date", ["2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00Z", "2026-01-01T02:00+02:00", "20251231T19-05"]
)
def test_dates_are_instants(date: str) -> None:
    assert parse_filter({"created_at": {"$gte": date}}) == FieldCondition("created_at", "$gte", NEW_YEAR)


def test_several_dates_are_any_of_them() -> None:
    asked = parse_filter({"created_at": ["2026-01-01", "2026-01-01T00:00:00Z", "2027-01-01"]})
    assert asked == Or(
        (FieldCondition("created_at", "$eq", NEW_YEAR), FieldCondition("created_at", "$eq", NEW_YEAR.replace(2027)))
    )


@pytest.mark.parametrize(
    ("filters", "few"),
    [
        ({"url": "https://docs.example/guide/"}, {"url": {"$prefix": "https://docs.example/guide/1"}}),
        ({"tags": {"$prefix": "linux"}}, {"tags": "linux"}),
        ({"version": {"$prefix": "2."}}, {"version": "2.0"}),
        ({"created_at": {"$gte": "2026-01-01", "$lt": "2027-01-01"}}, {"created_at": "2026-01-01"}),
        ({"chunk_index": {"$gte": 2, "$lt": 5}}, {"chunk_index": 2}),
        ({"importance": {"$gte": 4}}, {"importance": 4}),
        ({"topic": {"$prefix": "pricing"}}, {"topic": "pricing"}),
        ({"entity": {"$contains": "uill"}}, {"entity": "quill"}),
        ({"conversation_id": {"$prefix": "c-"}}, {"conversation_id": "c-1"}),
    ],
)
def test_a_range_leaves_more_than_one_value_and_not_all(filters: dict[str, Any], few: dict[str, Any]) -> None:
    assert 0 < len(found(few)) < len(found(filters)) < len(CHUNKS)


def test_what_every_chunk_fulfills_costs_the_store_no_list() -> None:
    assert resolved(parse_filter({"url": {"$prefix": "https://"}})) == EVERYTHING
    # Of a list not every chunk need have an element.
    assert resolved(parse_filter({"tags": {"$prefix": ""}})) != EVERYTHING
    assert resolved(parse_filter({"url": {"$prefix": "ftp:"}})) == In("url", ())
    # What has no date is in no range of them.
    undated = [point("a", "a", created_at="soon").chunk]
    assert resolved(parse_filter({"created_at": {"$lt": "9999-12-31"}}), undated) == In("created_at", ())


@settings(deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_answer_is_that_of_a_look_at_every_chunk(seed: int) -> None:
    filters = some_filter(random.Random(seed), CHUNKS)
    assert found(filters) == [chunk for chunk in CHUNKS if meets(filters, chunk)], filters


def test_the_made_filters_are_worth_asking() -> None:
    answers = [len(found(some_filter(random.Random(seed), CHUNKS))) for seed in range(300)]
    assert sum(0 < n < len(CHUNKS) for n in answers) > 150


# What is refused

KNOWN = (
    "known are type, url, chapter_title, source_file_path, source_domain, content_type, tags, language, version, scope,"
    " chunk_index, created_at, importance, topic, entity, conversation_id."
)
OF_TEXT = "$eq, $in, $prefix, $contains."
OF_ORDER = "$eq, $in, $gt, $gte, $lt, $lte."
DATES = "The filter on created_at needs dates, as 2026-01-31 or 2026-01-31T12:00:00Z."

NO_DATES: list[object] = ["", "soon", "2026-13-01", "\ud800", 2026, None, [], {}, ["2026-01-01", "x"]]
NO_TEXTS: list[object] = [7, None, True, [], {}, [["a"]], {"$eq": ["a"]}, {"$prefix": ["a"]}]
NO_NUMBERS: list[object] = ["0", 1.0, True, None, [0, "1"], {"$gte": "1"}]


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (None, "filters must be an object."),
        ([], "filters must be an object."),
        ({"nope": "a"}, f"A filter names no known field; {KNOWN}"),
        ({"born": 1}, "A filter names no known field;"),
        ({7: "a"}, "A filter names no known field;"),
        ({"$or": [{"$and": [{"nope": 1}]}]}, "A filter names no known field;"),
        ({"$not": {"type": "faq"}}, "A filter uses no known operator; known are $and, $or, $eq, $in, $gt, $gte, $lt,"),
        ({"type": {"$ne": "faq"}}, "A filter uses no known operator; known are $and, $or,"),
        ({"type": {"faq": 1}}, "A filter uses no known operator;"),
        ({"$gte": 3}, 'In a filter $gte belongs inside a field: {"created_at": {"$gte": "2026-01-31"}}.'),
        ({"version": {"$gte": "2"}}, f"The filter on version takes no $gte, only {OF_TEXT}"),
        ({"tags": {"$lt": "2"}}, f"The filter on tags takes no $lt, only {OF_TEXT}"),
        ({"chunk_index": {"$prefix": "2"}}, f"The filter on chunk_index takes no $prefix, only {OF_ORDER}"),
        ({"created_at": {"$contains": "2"}}, f"The filter on created_at takes no $contains, only {OF_ORDER}"),
        ({"type": {"$or": ["faq"]}}, f"The filter on type takes no $or, only {OF_TEXT}"),
        ({"type": {"$in": "faq"}}, "The filter on type needs a list in $in."),
        ({"type": {"$in": None}}, "The filter on type needs a list in $in."),
        ({"$or": []}, "In a filter $or needs a list of filters, each with a field."),
        ({"$and": {"type": "faq"}}, "In a filter $and needs a list of filters, each with a field."),
        ({"$or": [{"type": "faq"}, {}]}, "In a filter $or needs a list of filters, each with a field."),
        ({"$and": ["type"]}, "In a filter $and needs a list of filters, each with a field."),
        *(({"created_at": v}, DATES) for v in NO_DATES),
        *(({"type": v}, "The filter on type needs values of type str.") for v in NO_TEXTS),
        *(({"chunk_index": v}, "The filter on chunk_index needs values of type int.") for v in NO_NUMBERS),
        *(({"importance": v}, "The filter on importance needs values of type int.") for v in NO_NUMBERS),
        ({"topic": 7}, "The filter on topic needs values of type str."),
        ({"entity": {"$gt": "a"}}, "The filter on entity takes no $gt, only $eq, $in, $prefix, $contains."),
    ],
)
def test_what_is_wrong_is_one_sentence(filters: object, said: str) -> None:
    assert sentence(filters).startswith(said)


def nested(depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "faq"}
    for level in range(depth - 1):
        made = {"$and" if level % 2 else "$or": [made]}
    return made


def test_a_filter_within_filters_ends_somewhere() -> None:
    assert parse_filter(nested(MAX_FILTER_DEPTH))
    for depth in (MAX_FILTER_DEPTH + 1, 100, 100_000):
        assert sentence(nested(depth)) == "A filter may be nested at most 5 deep."
    endless: dict[str, Any] = {}
    endless["$and"] = [endless]
    assert sentence(endless) == "A filter may be nested at most 5 deep."


def test_a_filter_has_a_size() -> None:
    def either(number: int) -> dict[str, Any]:
        return {"$or": [{"type": "faq"}] * number}

    assert parse_filter(either(MAX_CONDITIONS))
    assert sentence(either(MAX_CONDITIONS + 1)) == "A filter may hold at most 100 conditions."
    assert parse_filter({"chunk_index": list(range(MAX_VALUES))})
    many = [{"chunk_index": list(range(MAX_VALUES))}, {"chunk_index": 1}]
    assert sentence({"$or": many}) == "A filter may hold at most 1000 values."
    dates = [f"2026-01-01T{n // 60:02}:{n % 60:02}" for n in range(MAX_CONDITIONS + 1)]
    assert sentence({"created_at": dates}) == "A filter may hold at most 100 conditions."


NAMES = st.sampled_from([*FIELDS, *OPERATORS, "$ne", "nope"]) | st.text(max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes().map(str) | NAMES
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4))


@settings(deadline=None)
@example({"created_at": {"$gt": "0001-01-01T00:00:00+23:59"}})
@example({"created_at": {"$lt": "9999-12-31T23:59:59-23:59"}})
@example({"created_at": ["2026-01-01\ud80000:00", "2026-W01-1", "2026-001", "１２３４-０１-０１"]})
@given(st.dictionaries(NAMES, JSON, max_size=4) | JSON)
def test_any_json_is_a_filter_or_one_sentence(value: Any) -> None:
    try:
        asked = parse_filter(value)
    except InputError:
        assert sentence(value).endswith(".")
        return
    # What was taken can be answered.
    assert fields(asked) <= set(FIELDS)
    where = resolved(asked, CHUNKS[:30])
    assert all(kept(where, chunk) == meets(value, chunk) for chunk in CHUNKS[:30])


@pytest.mark.parametrize("hostile", ["<script>", "cAnArY", "${jndi}", "$cAnArY"])
def test_no_sentence_repeats_what_was_sent(hostile: str) -> None:
    for filters in (
        {hostile: "a"},
        {"type": {hostile: "a"}},
        {"$or": [{hostile: 1}]},
        {"created_at": hostile},
        {"chunk_index": hostile},
        {"type": {"$in": hostile}},
        {"$and": hostile},
    ):
        assert hostile not in sentence(filters), json.dumps(filters)


# What callers ask of a tree


def test_filters_are_joined() -> None:
    german, faq = In("language", ("de",)), In("type", ("faq",))
    assert all_of() is None
    assert all_of(None, None) is None
    assert all_of(None, german) == german
    assert all_of(german, None, faq) == And((german, faq))


def test_addresses_are_those_that_the_index_has() -> None:
    def asked(base: str, other: str = "http://here/b") -> FilterTree | None:
        named = (
            {"url": [f"{base}a", "x"]},
            {"url": {"$eq": f"{base}b", "$contains": other}},
            {"version": "http://here/"},
        )
        return parse_filter({"$or": list(named)})

    moved = map_addresses(asked("http://here/"), lambda url: url.replace("http://here/", "https://docs.example/"))
    assert moved == asked("https://docs.example/")
    assert map_addresses(None, str.upper) is None


def test_the_fields_of_a_filter() -> None:
    assert fields(None) == frozenset()
    assert fields(parse_filter({"$or": [{"language": "de"}, {"tags": "a", "url": {"$prefix": "b"}}]})) == {
        "language",
        "tags",
        "url",
    }


@pytest.mark.parametrize(
    ("filters", "version"),
    [
        ({}, None),
        ({"type": "faq"}, None),
        ({"version": "2.0"}, "2.0"),
        ({"version": ""}, ""),
        ({"version": "", "type": "faq"}, ""),
        ({"version": ["2.0"]}, "2.0"),
        ({"version": {"$eq": "2.0"}}, "2.0"),
        ({"version": {"$in": ["2.0", "2.0"]}}, "2.0"),
        ({"type": "faq", "$and": [{"version": "2.0"}, {"tags": "a"}]}, "2.0"),
        ({"version": ["1.0", "2.0"]}, None),
        ({"version": {"$prefix": "2"}}, None),
        ({"$or": [{"version": "2.0"}, {"type": "faq"}]}, None),
    ],
)
def test_the_version_that_a_filter_leaves(filters: dict[str, Any], version: str | None) -> None:
    assert version_of(parse_filter(filters)) == version
