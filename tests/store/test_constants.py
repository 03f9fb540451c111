"""Fields in which all points have the same need no index: filters find the same, and a second value makes the index."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import qdrant_edge as edge

from chapterverse.filters import FIELDS, NUMBERS, OPTIONAL, SELDOM, Filter, In, parse_filter, resolve
from chapterverse.model import Chunk, Point
from chapterverse.store.edge import EdgeStore
from chapterverse.store.files import Manifest, sizes
from chapterverse.store.shard import SHARD, Shard
from chapterverse.text.lexical import query_vector
from fakes.docs import SCOPE, point, prose
from fakes.narrowing import corpus, meets, some_filter
from store.publishing import NONE
from store.test_store_contract import next_head

INDEXED = frozenset(FIELDS) - SELDOM


@pytest.fixture
def store(tmp_path: Path) -> EdgeStore:
    return EdgeStore(tmp_path)


def publish(store: EdgeStore, points: Sequence[Point], gone: Sequence[Point] = ()) -> None:
    with store.publish(SCOPE, NONE) as publication:
        publication.delete([p.chunk.chunk_id for p in gone])
        publication.write(points)
        publication.commit(next_head(store, publication))


def live(store: EdgeStore) -> Path:
    folder = store.root / "docs" / "@"
    return folder / str(json.loads((folder / "head.json").read_bytes())["folder"])


def indexes(store: EdgeStore) -> set[str]:
    """Return the fields for which the engine has an index; those without one must be in the manifest."""
    shard = edge.EdgeShard.load(str(live(store) / SHARD))
    found = set(shard.info().payload_schema)
    shard.close()
    assert found == INDEXED - Manifest.load(live(store)).constants.keys()
    return found


def some_corpus(chance: random.Random, constants: Sequence[str], size: int = 40) -> list[Point]:
    """Return points with the word "chunk" that have the same in each of these fields, one value at the most."""
    made = corpus(size)
    same = {name: getattr(chance.choice(made).chunk, name) for name in constants}
    same |= {"tags": same["tags"][:1]} if "tags" in same else {}
    return [replace(p, chunk=replace(p.chunk, **same)) for p in made]


def another(old: Point, field: str, value: object) -> Point:
    """Return a point that differs from an old one in its id, and in one field."""
    new = point("another", "a chunk")
    return replace(new, chunk=replace(old.chunk, chunk_id=new.chunk.chunk_id, **{field: value}))  # type: ignore[arg-type]


def found(snapshot: Shard, where: Filter | None) -> set[str]:
    return {hit.chunk.chunk_id for hit in snapshot.search_lexical(query_vector("chunk"), 1000, where)}


def check(store: EdgeStore, points: Sequence[Point], chance: random.Random) -> None:
    """Assert that values and random filters find what a look at every chunk finds."""
    snapshot, chunks = store.snapshot(SCOPE), [p.chunk for p in points]
    for field in FIELDS:
        assert snapshot.values(field) == tuple(sorted(_values(chunks, field))), field
        for value in (*snapshot.values(field), 99 if field in NUMBERS else "nothing has it"):
            expected = {c.chunk_id for c in chunks if value in _values([c], field)}
            assert found(snapshot, In(field, (value,))) == expected, (field, value)
            if isinstance(value, str):
                assert {c.chunk_id for c in snapshot.page(value, field)} == expected, (field, value)
    for _ in range(30):
        filters = some_filter(chance, chunks)
        expected = {c.chunk_id for c in chunks if meets(filters, c)}
        assert found(snapshot, resolve(parse_filter(filters), snapshot)) == expected, filters


def _values(chunks: Sequence[Chunk], field: str) -> set[str | int]:
    values = (getattr(chunk, field) for chunk in chunks)
    every = {v for one in values for v in (one if isinstance(one, tuple) else (one,))}
    return every - {""} if field in OPTIONAL else every


def test_only_fields_that_vary_have_an_index(store: EdgeStore) -> None:
    publish(store, [point(name, prose(name)) for name in "abc"])
    assert indexes(store) == {"source_file_path", "url"}
    publish(store, corpus(100))
    assert indexes(store) == INDEXED - {"source_domain"}


@pytest.mark.parametrize("seed", range(4))
def test_filters_find_the_same_with_and_without_an_index(store: EdgeStore, seed: int) -> None:
    chance = random.Random(seed)
    constants = chance.sample(sorted(INDEXED), 8)
    made = some_corpus(chance, constants)
    publish(store, made)
    assert indexes(store).isdisjoint(constants)
    check(store, made, chance)


@pytest.mark.parametrize("field", sorted(INDEXED - {"source_file_path"}))
def test_a_second_value_makes_the_index_and_its_end_removes_it(store: EdgeStore, field: str) -> None:
    chance = random.Random(field)
    made = some_corpus(chance, sorted(INDEXED), 12)
    other = {"tags": ("new", "also"), "chunk_index": 77, "created_at": "2026-03-03"}.get(field, "new")
    late = another(made[0], field, other)
    publish(store, made)
    assert indexes(store) == set()
    publish(store, [late])
    assert indexes(store) == {field}
    check(store, [*made, late], chance)
    publish(store, [], [late])
    assert indexes(store) == set()
    check(store, made, chance)
    # The only value that is left is another one than that which all had.
    publish(store, [late], made)
    assert indexes(store) == ({field} if field == "tags" else set())
    check(store, [late], chance)


def test_chunks_without_a_value_are_told_from_those_that_have_the_only_one(store: EdgeStore) -> None:
    tagged = [point(name, "a chunk", tags=("one", "one")) for name in "ab"]
    plain = point("c", "a chunk")
    publish(store, tagged)
    assert "tags" not in indexes(store)
    publish(store, [plain])
    assert "tags" in indexes(store)
    check(store, [*tagged, plain], random.Random(1))
    publish(store, [], tagged)
    assert "tags" not in indexes(store)
    check(store, [plain], random.Random(2))


def test_an_index_that_was_emptied_takes_any_points(store: EdgeStore) -> None:
    first, second = some_corpus(random.Random(1), sorted(INDEXED), 5), some_corpus(random.Random(2), ["type"], 30)
    publish(store, first)
    publish(store, [], first)
    assert indexes(store) == set()
    assert not any(store.snapshot(SCOPE).values(field) for field in FIELDS)
    publish(store, second)
    check(store, second, random.Random(4))


def test_a_preview_may_be_followed_by_other_points(store: EdgeStore) -> None:
    made = [point(name, f"a chunk {name}") for name in "ab"]
    german = point("c", "a chunk", language="de")
    with store.publish(SCOPE, NONE) as publication:
        publication.write(made)
        assert publication.preview().values("language") == ("en",)
        publication.write([german])
        assert publication.preview().values("language") == ("de", "en")
        publication.commit(next_head(store, publication))
    check(store, [*made, german], random.Random(1))


def test_an_index_of_an_earlier_release_is_read_and_continued(store: EdgeStore) -> None:
    made = some_corpus(random.Random(1), ["language", "version", "scope", "chunk_index"])
    publish(store, made)
    as_before(live(store))
    assert indexes(store) == INDEXED
    check(store, made, random.Random(2))
    more = another(made[0], "language", "fr")
    publish(store, [more])
    assert indexes(store) == INDEXED - {"version", "scope", "chunk_index", "source_domain"}
    check(store, [*made, more], random.Random(3))


def as_before(folder: Path) -> None:
    """Give a sealed folder all indexes and a manifest without constants, as releases made it that had none."""
    shard = edge.EdgeShard.load(str(folder / SHARD))
    for name in Manifest.load(folder).constants:
        kind = edge.PayloadSchemaType.Integer if name in NUMBERS else edge.PayloadSchemaType.Keyword
        shard.update(edge.UpdateOperation.create_field_index(name, kind))
    shard.flush()
    shard.close()
    # The first opening changes sizes.
    edge.EdgeShard.load(str(folder / SHARD)).close()
    manifest = {"files": sizes(folder), "slots": Manifest.load(folder).slots}
    (folder / "manifest.json").write_text(json.dumps(manifest))
