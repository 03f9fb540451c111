"""Lost and outdated ledgers, and unreadable pages."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from chapterverse.errors import IndexCorrupt, InputError
from chapterverse.indexing.sync import index, preview
from chapterverse.ledger import Ledger
from chapterverse.model import ENCODER
from fakes.docs import SCOPE, CountingEmbedder
from indexing.site import Site, assert_is_a_clean_build, bare, numbers


def test_a_lost_ledger_costs_reading_and_nothing_else(site: Site) -> None:
    site.index()
    (site.folder / "index" / "ledger.sqlite").unlink()
    del site.pages["c.md"]
    report = site.index()
    assert report.embedded == 0
    assert report.files.removed == ("c.md",)
    assert numbers(report) == {"total": 4, "kept": 4, "removed": 2}
    assert_is_a_clean_build(site)


def test_a_page_of_another_site_that_left_with_the_ledger_is_gone(site: Site) -> None:
    site.pages["c.md"] = replace(site.pages["c.md"], facts={"source": "import"})
    site.index()
    (site.folder / "index" / "ledger.sqlite").unlink()
    del site.pages["c.md"]
    assert site.index().files.removed == ("c.md",)
    assert_is_a_clean_build(site)


def test_a_ledger_of_another_generation_is_not_believed(site: Site) -> None:
    site.index()
    known = (site.folder / "index" / "ledger.sqlite").read_bytes()
    site.put("a.md", "Other words.")
    site.put("d.md", "More words.")
    site.index()
    # As after a kill between the commit and the ledger, or with a ledger from a backup.
    (site.folder / "index" / "ledger.sqlite").write_bytes(known)
    del site.pages["d.md"]
    report = site.index()
    assert report.embedded == 0
    assert report.files.removed == ("d.md",)
    assert_is_a_clean_build(site)


def test_a_lost_store_is_built_again(site: Site, tmp_path: Path) -> None:
    target = replace(site.target, ledger=Ledger.on_sqlite(tmp_path / "elsewhere.sqlite"))
    index(site.sources(), target)
    shutil.rmtree(site.folder / "index")
    report = index(site.sources(), target)
    assert numbers(report) == {"total": 6, "new": 6}
    assert report.generation == 1


def test_a_corrupt_ledger_stops_the_run_before_anything_is_done(site: Site) -> None:
    site.index()
    (site.folder / "index" / "ledger.sqlite").write_bytes(b"junk" * 1000)
    before = site.files()
    site.put("a.md", "Other words.")
    with pytest.raises(IndexCorrupt):
        site.index()
    assert site.files() == before


def test_vectors_of_an_older_encoder_are_written_anew(site: Site) -> None:
    site.index()
    head = site.folder / "index" / "docs" / "@" / "head.json"
    head.write_text(head.read_text().replace(ENCODER, "terms/0"))
    with contextlib.closing(sqlite3.connect(site.folder / "index" / "ledger.sqlite", isolation_level=None)) as db:
        db.execute("UPDATE document_metadata SET pipeline = 'older'")
    report = site.index()
    assert len(report.diff.write) == 6
    assert numbers(report) == {"total": 6, "kept": 6}
    assert (report.generation, report.embedded) == (2, 0)
    assert site.index().generation == 2
    assert_is_a_clean_build(site)


# Pages that can't be read


def test_a_page_that_cannot_be_read_keeps_its_chunks(site: Site) -> None:
    site.index()
    before = bare(site.store.snapshot(SCOPE).page("b.md"))
    site.broken.add("b.md")
    site.put("a.md", "Other words.")
    report = site.index()
    assert report.warnings == ("b.md is not a text file.",)
    assert report.files.changed == ("a.md",)
    assert report.to_json()["pages"] == {
        "seen": 3, "new": 0, "changed": 1, "unchanged": 1, "removed": 0, "skipped": 1,
    }  # fmt: skip
    assert bare(site.store.snapshot(SCOPE).page("b.md")) == before
    assert report.total == 5
    # It is tried again each time, and when it can be read it is as if nothing had been.
    assert site.index().warnings == report.warnings
    site.broken.clear()
    assert site.index().warnings == ()
    assert_is_a_clean_build(site)


def test_a_page_that_cannot_be_read_is_not_forgotten_with_a_lost_ledger(site: Site) -> None:
    site.index()
    (site.folder / "index" / "ledger.sqlite").unlink()
    site.broken.add("b.md")
    assert len(site.index().warnings) == 1
    assert site.store.snapshot(SCOPE).page("b.md")
    # Its state is shown with the number of its chunks.
    assert site.ledger.records(SCOPE)["b.md"].chunk_count == 2
    # Or nobody would know that its chunks have to go.
    del site.pages["b.md"]
    report = site.index()
    assert report.files.removed == ("b.md",)
    assert site.store.snapshot(SCOPE).page("b.md") == []
    assert_is_a_clean_build(site)


def test_a_page_lost_with_its_embedder_comes_back(site: Site) -> None:
    first = site.embedder
    site.index()
    site.embedder = CountingEmbedder("other")
    site.broken.add("b.md")
    assert site.index().total == 4
    assert site.ledger.records(SCOPE).keys() == {"a.md", "c.md"}
    site.embedder = first
    site.broken.clear()
    assert site.index().total == 6
    assert_is_a_clean_build(site)


def test_when_no_page_can_be_read_the_index_stays(site: Site) -> None:
    site.index()
    before = site.files()
    site.broken |= site.pages.keys()
    site.embedder = CountingEmbedder("other")
    with pytest.raises(InputError, match=r"No page could be read.*a\.md is not a text file"):
        site.index()
    # The engine touches files that it opens, and changes none.
    assert {k: content for k, (_, content) in site.files().items()} == {
        k: content for k, (_, content) in before.items()
    }


def test_a_site_without_pages_is_refused_and_the_index_stays(site: Site) -> None:
    site.index()
    before = site.files()
    with pytest.raises(InputError, match="There is no page to index"):
        index([], site.target)
    with pytest.raises(InputError, match="There is no page to index"):
        preview([], site.target)
    assert site.files() == before


@pytest.mark.parametrize("path", ["", "x" * 513, "a\udcff.md", "a\0.md"])
def test_a_path_that_nothing_can_hold_is_skipped_and_told(site: Site, path: str) -> None:
    odd = replace(site.sources()[0], file_path=path)
    for run in (index, index, preview):
        report = run([*site.sources(), odd], site.target)
        assert len(report.warnings) == 1
        assert report.warnings[0].isprintable()
        assert report.total == 6
    assert report.to_json()["pages"]["seen"] == 4


def test_a_ledger_of_another_index_with_the_same_number_is_not_believed(site: Site, tmp_path: Path) -> None:
    mine = replace(site.target, ledger=Ledger.on_sqlite(tmp_path / "mine.sqlite"))
    index(site.sources(), mine)
    shutil.rmtree(site.folder / "index")
    other = Site(tmp_path / "other")
    other.put("foreign.md", "Somebody else's words.")
    index(other.sources(), replace(site.target, ledger=Ledger.on_sqlite(tmp_path / "theirs.sqlite")))
    report = index(site.sources(), mine)
    assert report.files.removed == ("foreign.md",)
    assert {c.source_file_path for c in site.stored().values()} == set(site.pages)


def test_a_head_of_another_embedder_makes_every_page_be_read_again(site: Site) -> None:
    site.index()
    (head,) = (site.folder / "index").glob("*/*/head.json")
    head.write_text(head.read_text().replace('"space": "', '"space": "another '))
    site.put("a.md", "Other words.")
    site.index()
    assert {c.source_file_path for c in site.stored().values()} == set(site.pages)


@pytest.mark.parametrize("what", ["head", "shard"])
def test_a_damaged_index_is_built_again_and_says_so(site: Site, what: str) -> None:
    site.index()
    files = (site.folder / "index").glob("*/*/head.json" if what == "head" else "*/*/00*/terms.bin")
    for file in files:
        file.write_bytes(b"")
    report = site.index()
    assert len(report.warnings) == 1
    assert "was damaged" in report.warnings[0]
    assert report.total == 6
    assert_is_a_clean_build(site)
    assert site.index().warnings == ()
