from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chapterverse.model import (
    Block,
    BlockKind,
    Chunk,
    EmbedderCard,
    Head,
    Scope,
    chunk_id,
    embed_hash,
    embed_text,
    join_blocks,
    replace_unstorable,
    slug,
    stated_date,
)
from fakes.docs import point

CHUNK = point("a", "Some text.", tags=("one", "two")).chunk

#: The payload of a point, as stores and exports have it.
FIELDS = {
    "chunk_id", "embed_hash", "text", "chapter_title", "section_heading", "heading_path", "chunk_index",
    "source_file_path", "url", "anchor_verified", "source_domain", "content_type", "type", "tags", "language",
    "version", "created_at", "timestamp", "scope", "source", "importance",
}  # fmt: skip


def test_a_payload_has_the_fields_of_the_contract_and_is_json() -> None:
    payload = CHUNK.payload()
    assert payload.keys() == FIELDS
    assert json.loads(json.dumps(payload)) == payload
    assert (payload["tags"], payload["heading_path"]) == (["one", "two"], ["Title", "a"])


def test_a_payload_reads_back_as_the_chunk() -> None:
    assert Chunk.from_payload(json.loads(json.dumps(CHUNK.payload()))) == CHUNK


def test_fields_of_another_release_are_left_out() -> None:
    assert Chunk.from_payload({**CHUNK.payload(), "born": 3, "invented": [1]}) == CHUNK


def test_a_stamp_keeps_a_date_that_the_page_stated() -> None:
    now = "2026-01-02T03:04:05Z"
    assert CHUNK.stamp(now) == replace(CHUNK, created_at=now, timestamp=now)
    dated = replace(CHUNK, created_at="2020-01-01T00:00:00Z")
    assert dated.stamp(now) == replace(dated, timestamp=now)


def test_values_are_frozen() -> None:
    for value in (CHUNK, Head("s", "", 1, 0, 0, ""), Scope("s"), EmbedderCard()):
        with pytest.raises(FrozenInstanceError):
            setattr(value, fields(value)[0].name, "other")


# Identity

PARTS = st.tuples(
    st.text(max_size=4), st.text(max_size=4), st.text(max_size=4), st.lists(st.text(max_size=3), max_size=3)
)


@settings(deadline=None)
@given(PARTS, PARTS)
def test_ids_differ_where_any_part_does(
    one: tuple[str, str, str, list[str]], other: tuple[str, str, str, list[str]]
) -> None:
    def made(site: str, version: str, text: str, path: list[str]) -> str:
        return chunk_id(
            Scope(site, version), language="en", file_path="a.md", anchor=None, index=0, text=text, path=tuple(path)
        )

    assert (made(*one) == made(*other)) == (one == other)


def test_parts_do_not_run_into_each_other() -> None:
    def made(scope: Scope, anchor: str | None) -> str:
        return chunk_id(scope, language="", file_path="", anchor=anchor, index=0, text="", path=())

    assert made(Scope("a", "bc"), None) != made(Scope("ab", "c"), None)
    # A missing anchor and an empty one are the same: neither can be cited.
    assert made(Scope("a"), None) == made(Scope("a"), "")


def test_ids_are_uuids_of_version_5() -> None:
    assert uuid.UUID(CHUNK.chunk_id).version == 5


def test_an_embed_hash_is_over_fingerprint_and_text_with_its_path() -> None:
    text = embed_text(("Guide", "Install"), "Run it.")
    assert text == "Guide > Install\n\nRun it."
    assert embed_hash("space/4", text) == hashlib.sha256(b"space/4\n" + text.encode()).hexdigest()


def test_a_fingerprint_is_of_the_space_and_not_of_the_model() -> None:
    assert EmbedderCard("one", 4, 100, "s").fingerprint == EmbedderCard("two", 4, 0, "s").fingerprint
    assert EmbedderCard("one", 4, 0, "s").fingerprint != EmbedderCard("one", 8, 0, "s").fingerprint
    assert EmbedderCard().fingerprint == "none/0"


def test_scopes_sort_and_read_as_their_names() -> None:
    assert sorted([Scope("b"), Scope("a", "2"), Scope("a")]) == [Scope("a"), Scope("a", "2"), Scope("b")]
    assert (str(Scope("docs")), str(Scope("docs", "1.2"))) == ("docs", "docs 1.2")
    assert Head("docs", "1.2", 1, 0, 0, "").scope == Scope("docs", "1.2")


# Text


def test_list_items_stand_close_and_all_else_apart() -> None:
    item, text = Block(BlockKind.LIST_ITEM, "- a"), Block(BlockKind.PARAGRAPH, "b")
    assert join_blocks([item, item, text, text, item]) == "- a\n- a\n\nb\n\nb\n\n- a"
    assert join_blocks(()) == ""


@settings(deadline=None)
@given(st.text(st.characters(codec=None)))
def test_sound_text_can_be_held_by_every_store(text: str) -> None:
    made = replace_unstorable(text)
    made.encode()
    assert "\x00" not in made
    assert len(made) == len(text)
    assert replace_unstorable(made) == made
    assert made == text or set(text) - set(made)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("My Docs", "my-docs"),
        ("  The  API / v2.0  ", "the-api-v2-0"),
        ("Ünïcode Größe", "ünïcode-größe"),
        ("日本語 ドキュメント", "日本語-ドキュメント"),
        ("snake_case", "snake-case"),
        ("../../etc/passwd", "etc-passwd"),
        ("", "site"),
        ("!!!", "site"),
        ("x" * 200, "x" * 64),
    ],
)
def test_slugs(name: str, expected: str) -> None:
    assert slug(name) == expected
    assert slug(slug(name)) == slug(name)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (date(2026, 1, 2), "2026-01-02T00:00:00Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 678), "2026-01-02T03:04:05Z"),  # noqa: DTZ001  (front matter has no zone)
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=5))), "2026-01-01T22:04:05Z"),
        ("2026-01-02", "2026-01-02T00:00:00Z"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
        ("soon", None),
        ("", None),
        (20260102, None),
        (None, None),
        ([], None),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))), None),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=5))), None),
    ],
)
def test_stated_dates(value: object, expected: str | None) -> None:
    assert stated_date(value) == expected
