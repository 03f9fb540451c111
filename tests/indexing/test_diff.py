"""The pure functions that compare files and chunks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chapterverse.indexing.diff import FileDiff, compare_files, compute_diff
from chapterverse.indexing.target import row_pipeline
from chapterverse.ledger import LedgerRow
from chapterverse.model import Chunk, Source
from fakes.docs import page, point

CHUNKS = {
    (page_, version): replace(
        point(f"p{page_}", f"text {page_ % 3} {version}").chunk,
        chunk_id=f"id-{page_}-{version % 2}",
        url=f"https://docs.example/{version}",
    )
    for page_ in range(6)
    for version in range(4)
}
SOME = st.lists(st.sampled_from(sorted(CHUNKS)), unique_by=lambda key: CHUNKS[key].chunk_id).map(
    lambda keys: [CHUNKS[key] for key in keys]
)


@settings(deadline=None)
@given(SOME, SOME, st.sets(st.sampled_from(sorted({c.embed_hash for c in CHUNKS.values()}))), st.booleans())
def test_a_plan_turns_what_is_stored_into_what_is_wanted(
    wanted: list[Chunk], stored: list[Chunk], elsewhere: set[str], anew: bool
) -> None:
    seen = elsewhere | {c.embed_hash for c in stored}
    diff = compute_diff(wanted, stored, seen, anew=anew)

    after = {c.chunk_id: c for c in stored}
    for gone in diff.delete:
        del after[gone]
    after.update({c.chunk_id: c for c in diff.write})
    assert after == {c.chunk_id: c for c in wanted}

    if not anew:
        # Nothing is written that was there already.
        assert not {c.chunk_id for c in diff.write if c in stored}
    assert diff.embed == {c.embed_hash for c in wanted} - seen
    assert list(diff.delete) == sorted({c.chunk_id for c in stored} - {c.chunk_id for c in wanted})
    assert diff.empty == (not diff.write and not diff.delete)


@settings(deadline=None)
@given(SOME, SOME)
def test_the_numbers_of_a_plan_add_up(wanted: list[Chunk], stored: list[Chunk]) -> None:
    diff = compute_diff(wanted, stored, {c.embed_hash for c in stored})
    ids = {c.chunk_id for c in stored}
    fresh = [c for c in wanted if c.chunk_id not in ids]
    assert len(diff.embed) + diff.moved == max(len(fresh), len(diff.embed))
    assert 0 <= diff.removed <= len(diff.delete)
    # What left and came back elsewhere was moved, not removed.
    came = Counter(c.embed_hash for c in fresh)
    left = Counter(c.embed_hash for c in stored if c.chunk_id in diff.delete)
    assert diff.removed == sum(max(0, n - came[h]) for h, n in left.items())


def test_a_plan_of_the_same_is_empty() -> None:
    chunks = list(CHUNKS.values())[::4]
    assert compute_diff(chunks, [c.stamp("2026-01-01T00:00:00Z") for c in chunks], ()).empty


def test_the_time_of_indexing_is_no_difference_but_a_stated_date_is() -> None:
    chunk_ = point("a", "text").chunk
    stored = chunk_.stamp("2026-01-01T00:00:00Z")
    assert compute_diff([chunk_], [stored], ()).empty
    assert not compute_diff([replace(chunk_, created_at="2020-01-01T00:00:00Z")], [stored], ()).empty


def record(path: str, **fields: Any) -> LedgerRow:
    made = LedgerRow(path, "a" * 64, 1, "pipeline", 1, "now")
    return replace(made, **fields)


def offered_page(path: str, content_hash: str, context: str = "") -> Source:
    return Source(path, content_hash, context, lambda: page(path))


@settings(deadline=None)
@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_files_are_sorted_by_what_the_ledger_knows(offered: set[int], known: set[int], edited: set[int]) -> None:
    sources = {f"{i}.md": offered_page(f"{i}.md", ("b" if i in edited else "a") * 64) for i in offered}
    unchanged = row_pipeline("pipeline", offered_page("", ""))
    found = compare_files(sources, {f"{i}.md": record(f"{i}.md", pipeline=unchanged) for i in known}, "pipeline")
    assert found == FileDiff(
        new=tuple(f"{i}.md" for i in sorted(offered - known)),
        changed=tuple(f"{i}.md" for i in sorted(offered & known & edited)),
        unchanged=tuple(f"{i}.md" for i in sorted((offered & known) - edited)),
        removed=tuple(f"{i}.md" for i in sorted(known - offered)),
    )


def test_another_context_or_pipeline_is_a_change() -> None:
    same = offered_page("a.md", "a" * 64, "context")
    records = {"a.md": record("a.md", pipeline=row_pipeline("one", same))}
    assert compare_files({"a.md": same}, records, "one").changed == ()
    assert compare_files({"a.md": replace(same, context="other")}, records, "one").changed == ("a.md",)
    assert compare_files({"a.md": same}, records, "two").changed == ("a.md",)
