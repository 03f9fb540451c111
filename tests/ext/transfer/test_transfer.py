"""Exports: their content, their validation, and a lossless round trip."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chapterverse.errors import IndexCorrupt, IndexMismatch, IndexMissing, InputError
from chapterverse.ext.transfer import maintenance
from chapterverse.indexing.sync import index
from chapterverse.indexing.target import Target
from chapterverse.ledger import Ledger
from chapterverse.model import EmbedderCard, Scope
from chapterverse.store import Store
from chapterverse.store.edge import EdgeStore
from fakes.docs import SCOPE, CountingEmbedder, prose
from indexing.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path / "one", CountingEmbedder())
    for name in "abc":
        made.put(f"{name}.md", prose((name, 1)), prose((name, 2)))
    made.index()
    return made


def lines_of(store: Store, *, canonical: bool = True) -> list[str]:
    return list(maintenance.export(store.snapshot(SCOPE), canonical=canonical))


def other(site: Site, **fields: Any) -> Target:
    """Return an empty index elsewhere, filled by nobody but `fill`."""
    folder = site.folder.parent / "two"
    made = Target(SCOPE, EdgeStore(folder), Ledger.on_sqlite(folder / "ledger.sqlite"), base_url=site.base_url)
    return replace(replace(made, made_by=CountingEmbedder().card), **fields)


def test_a_canonical_line_is_a_point(site: Site) -> None:
    lines = lines_of(site.store)
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 6
    assert [row["chunk_id"] for row in rows] == sorted(row["chunk_id"] for row in rows)
    for line, row in zip(lines, rows, strict=True):
        assert line == json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"
        assert "timestamp" not in row
        assert "created_at" not in row
        assert len(row["vectors"]["dense"]) == 4
        assert all(v == round(v, 6) for v in [*row["vectors"]["dense"], *row["vectors"]["lexical"]["values"]])


def test_a_date_that_the_page_states_is_kept(site: Site) -> None:
    site.pages["a.md"] = replace(site.pages["a.md"], created_at="2020-01-02T00:00:00Z", title="Dated")
    site.index()
    dated = [json.loads(line) for line in lines_of(site.store)]
    assert [r.get("created_at") for r in dated if r["source_file_path"] == "a.md"] == ["2020-01-02T00:00:00Z"] * 2


def test_any_history_exports_as_a_clean_build(site: Site, tmp_path: Path) -> None:
    site.put("a.md", prose("other"))
    site.index()
    site.put("d.md", prose("a", 300))
    del site.pages["b.md"]
    site.index()
    clean = Site(tmp_path / "clean", CountingEmbedder(), pages=site.pages)
    clean.index()
    assert lines_of(site.store) == lines_of(clean.store)


@pytest.mark.parametrize("canonical", [True, False])
def test_an_export_fills_another_store(site: Site, canonical: bool) -> None:
    exported = maintenance.read_export(lines_of(site.store, canonical=canonical), "x.jsonl")
    target = other(site)
    report = maintenance.fill(exported, target)
    assert (report.total, report.embedded, report.generation) == (6, 0, 1)
    assert exported.base_url == site.base_url
    assert lines_of(target.store) == lines_of(site.store)
    assert target.store.heads()[0].calibration == site.store.heads()[0].calibration


def test_after_an_import_nothing_is_embedded(site: Site) -> None:
    target = other(site)
    maintenance.fill(maintenance.read_export(lines_of(site.store, canonical=False), "x"), target)
    embedder = CountingEmbedder()
    report = index(site.sources(), replace(target, embedder=embedder))
    assert (report.embedded, embedder.seen, report.files.changed) == (0, [], ("a.md", "b.md", "c.md"))
    assert index(site.sources(), replace(target, embedder=embedder)).files.unchanged == ("a.md", "b.md", "c.md")


def test_an_import_replaces_what_was_there(site: Site) -> None:
    target = other(site)
    before = maintenance.read_export(lines_of(site.store), "x")
    del site.pages["a.md"]
    site.put("z.md", prose("z"))
    site.index()
    maintenance.fill(maintenance.read_export(lines_of(site.store), "x"), target)
    maintenance.fill(before, target)
    assert {c.source_file_path for c in before.chunks} == set(target.ledger.records(SCOPE))
    assert target.store.heads()[0].generation == 2
    assert target.ledger.described(SCOPE)[1] == target.store.heads()[0].token


@pytest.mark.parametrize(
    "change",
    [
        lambda row: [],
        lambda row: {**row, "text": ""},
        lambda row: {**row, "text": 5},
        lambda row: {**row, "chunk_id": "five"},
        lambda row: {**row, "chunk_index": "x"},
        lambda row: {**row, "surprise": 1},
        lambda row: {**row, "vectors": None},
        lambda row: {**row, "vectors": {"lexical": {}}},
        lambda row: {**row, "vectors": {"dense": ["x"]}},
        lambda row: {**row, "vectors": {"dense": [float("nan")] * 4}},
        lambda row: {k: v for k, v in row.items() if k != "text"},
    ],
)
def test_a_line_that_is_none_is_refused_by_its_number(
    site: Site, change: Callable[[dict[str, object]], object]
) -> None:
    lines = lines_of(site.store)
    with pytest.raises(InputError, match=r"x\.jsonl, line 2: this is no line"):
        maintenance.read_export([lines[0], json.dumps(change(json.loads(lines[1])))], "x.jsonl")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"type": "banana"}, "type must be one of page, persona, faq, memory."),
        ({"type": "turn"}, "type must be one of page, persona, faq, memory."),
        ({"importance": 99}, "importance must be a whole number from 1 to 5."),
        ({"type": "memory", "importance": 0}, "importance must be a whole number from 1 to 5."),
        ({"content_type": "banana"}, "content_type must be one of documentation, api, faq, article, news, "),
        ({"scope": "entity:a/b"}, "scope must be global or entity:NAME, such as entity:enterprise."),
        ({"source": "web"}, "source must be chat, kb, system or import."),
        ({"chunk_index": -1}, "chunk_index must be a whole number from 0."),
        ({"created_at": "now"}, "created_at must be a date such as 2026-01-31."),
    ],
)
def test_a_field_that_no_document_has_is_named(site: Site, change: dict[str, object], sentence: str) -> None:
    row = {**json.loads(lines_of(site.store)[0]), **change}
    with pytest.raises(InputError) as raised:
        maintenance.read_export([json.dumps(row)], "x.jsonl")
    assert str(raised.value).startswith(f"x.jsonl, line 1: {sentence}")


def test_a_line_with_a_lone_surrogate_costs_only_itself(site: Site) -> None:
    lines = lines_of(site.store, canonical=False)
    row = json.loads(lines[2])
    lines[2] = json.dumps({**row, "topic": "\ud800"}) + "\n"
    exported = maintenance.read_export(lines, "x.jsonl")
    assert exported.warnings == ("x.jsonl, line 3: this holds a character that is no text, so it is left out.",)
    report = maintenance.fill(exported, other(site))
    assert (report.total, report.warnings) == (5, exported.warnings)
    lines[0] = lines[0].replace('"site":"', '"site":"\\ud800')
    with pytest.raises(InputError, match="line 1: this is no line of an exported index"):
        maintenance.read_export(lines, "x.jsonl")


@pytest.mark.parametrize("junk", ["", "\n", "{", "5", "null", "[" * 100_000])
def test_junk_is_refused(junk: str) -> None:
    with pytest.raises(InputError, match=r"x\.jsonl, line 1: this is no line"):
        maintenance.read_export([junk], "x.jsonl")


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(InputError, match="holds no point"):
        maintenance.read_export([], "x.jsonl")


def test_a_head_of_a_newer_release_is_refused(site: Site) -> None:
    lines = lines_of(site.store, canonical=False)
    with pytest.raises(IndexMismatch, match="upgrade chapterverse"):
        maintenance.read_export([lines[0].replace('"format":1', '"format":99'), *lines[1:]], "x")
    with pytest.raises(IndexCorrupt):
        maintenance.read_export(['{"head": {}}'], "x")


def test_another_site_is_refused(site: Site) -> None:
    exported = maintenance.read_export(lines_of(site.store), "x")
    for scope in (Scope("elsewhere"), Scope("docs", "2.0")):
        with pytest.raises(InputError, match="no index of"):
            maintenance.fill(exported, other(site, scope=scope))


def test_vectors_of_another_model_are_refused(site: Site) -> None:
    exported = maintenance.read_export(lines_of(site.store), "x")
    with pytest.raises(InputError, match="4 dimensions"):
        maintenance.fill(exported, other(site, made_by=EmbedderCard()))
    with pytest.raises(InputError, match="not made by"):
        maintenance.fill(exported, other(site, made_by=CountingEmbedder("other").card))


def test_an_edited_text_is_refused(site: Site) -> None:
    lines = lines_of(site.store)
    row = json.loads(lines[0])
    with pytest.raises(InputError):
        maintenance.fill(maintenance.read_export([json.dumps({**row, "text": "Other."}), *lines[1:]], "x"), other(site))
    assert other(site).store.heads() == []


def test_a_refused_import_leaves_what_was_there(site: Site) -> None:
    target = other(site)
    maintenance.fill(maintenance.read_export(lines_of(site.store), "x"), target)
    before = lines_of(target.store)
    with pytest.raises(InputError):
        maintenance.fill(maintenance.read_export(before[:3], "x"), replace(target, made_by=EmbedderCard()))
    assert lines_of(target.store) == before


# Repair


def test_a_lost_ledger_is_made_anew(site: Site) -> None:
    (site.folder / "index" / "ledger.sqlite").unlink()
    done = maintenance.repair(site.target)
    assert (done.swept, done.rebuilt) == (1 if done.swept else 0, 3)
    rows = site.ledger.records(SCOPE)
    assert {path: row.chunk_count for path, row in rows.items()} == {"a.md": 2, "b.md": 2, "c.md": 2}
    assert site.ledger.described(SCOPE)[1] == site.store.heads()[0].token
    report = site.index()
    assert (report.embedded, report.files.changed) == (0, ("a.md", "b.md", "c.md"))


def test_a_sound_index_is_left_alone(site: Site) -> None:
    rows = site.ledger.records(SCOPE)
    done = maintenance.repair(site.target)
    assert (done.swept, done.rebuilt) == (0, 0)
    assert site.ledger.records(SCOPE) == rows


def test_what_no_head_reaches_is_removed(site: Site) -> None:
    site.put("a.md", prose("later"))
    site.index()
    folder = site.folder / "index" / "docs" / "@"
    (folder / "abc.new").mkdir()
    done = maintenance.repair(site.target)
    # The draft of a killed run, and the generation before the live one.
    assert done.swept == 2
    assert len([path for path in folder.iterdir() if path.is_dir()]) == 1
    assert len(lines_of(site.store)) == 5


def test_nothing_to_repair(site: Site, tmp_path: Path) -> None:
    empty = replace(site.target, store=EdgeStore(tmp_path / "empty"))
    with pytest.raises(IndexMissing):
        maintenance.repair(empty)


def test_a_damaged_index_cannot_be_repaired(site: Site) -> None:
    shard = next((site.folder / "index" / "docs" / "@").glob("*/terms.bin"))
    shard.write_bytes(b"")
    with pytest.raises(IndexCorrupt, match="damaged"):
        maintenance.repair(site.target)
