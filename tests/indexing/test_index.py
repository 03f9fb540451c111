"""The effect of each edit of a site on its index."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from chapterverse.indexing.sync import index
from chapterverse.model import Scope
from chapterverse.text import lexical
from fakes.docs import SCOPE, CountingEmbedder, page, prose, section, source
from indexing.site import Site, assert_is_a_clean_build, numbers


def texts_embedded(site: Site) -> list[str]:
    assert site.embedder
    return site.embedder.seen


def test_a_first_build_indexes_everything(site: Site) -> None:
    report = site.index()
    assert report.files.new == ("a.md", "b.md", "c.md")
    assert numbers(report) == {"total": 6, "new": 6}
    assert report.embedded == 6 == len(texts_embedded(site))
    assert (report.generation, report.warnings) == (1, ())
    assert_is_a_clean_build(site)


def test_a_chunk_is_found_by_its_words_and_not_by_where_its_links_lead(site: Site) -> None:
    site.put("a.md", "See [the guide](https://leopard.invalid/xylophone) or `index[0](zebras)`.")
    site.index()
    snapshot = site.store.snapshot(SCOPE)
    (hit,) = snapshot.search_lexical(lexical.query_vector("zebras"), 5)
    assert hit.chunk.text == "See [the guide](https://leopard.invalid/xylophone) or `index[0](zebras)`."
    assert snapshot.search_lexical(lexical.query_vector("leopard.invalid xylophone"), 5) == []


def test_a_build_that_changes_nothing_writes_nothing(site: Site) -> None:
    site.index()
    before = site.files()
    report = site.index()
    assert numbers(report) == {"total": 6, "kept": 6}
    assert (report.generation, report.embedded) == (1, 0)
    assert site.files() == before
    assert len(texts_embedded(site)) == 6


def test_a_build_that_changes_nothing_takes_milliseconds_and_loads_no_engine(tmp_path: Path) -> None:
    program = """
import sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from chapterverse.indexing.sync import index
from fakes.docs import prose
from indexing.site import Site
site = Site(Path(sys.argv[1]))
for i in range(300):
    site.put(f"{i}.md", prose(i))
if sys.argv[3] == "first":
    site.index()
else:
    sources = site.sources()
    started = time.process_time()
    report = index(sources, site.target)
    spent = time.process_time() - started
    assert report.embedded == 0 and not report.files.touched
    assert "qdrant_edge" not in sys.modules, "the engine was loaded"
    assert spent < 0.15, spent
"""
    for run in ("first", "again"):
        subprocess.run([sys.executable, "-c", program, str(tmp_path), str(Path(__file__).parents[1]), run], check=True)


def test_an_edited_page_embeds_only_its_changed_chunks(site: Site) -> None:
    site.index()
    site.put("b.md", prose(("b", 1)), "Something else.")
    report = site.index()
    assert report.files.changed == ("b.md",)
    assert numbers(report) == {"total": 6, "new": 1, "kept": 5, "removed": 1}
    assert report.embedded == 1
    assert_is_a_clean_build(site)


def test_a_deleted_page_is_gone(site: Site) -> None:
    site.index()
    gone = site.pages.pop("b.md")
    report = site.index()
    assert report.files.removed == ("b.md",)
    assert numbers(report) == {"total": 4, "kept": 4, "removed": 2}
    snapshot = site.store.snapshot(SCOPE)
    assert snapshot.page("b.md") == []
    assert gone.url not in {h.chunk.url.partition("#")[0] for h in snapshot.search_lexical(
        lexical.query_vector(prose(("b", 1))), 50)}  # fmt: skip
    assert_is_a_clean_build(site)


def test_a_renamed_page_is_moved_and_not_embedded(site: Site) -> None:
    site.index()
    site.put("renamed.md", prose(("b", 1)), prose(("b", 2)))
    del site.pages["b.md"]
    report = site.index()
    assert numbers(report) == {"total": 6, "kept": 4, "moved": 2}
    assert report.embedded == 0
    assert_is_a_clean_build(site)


def test_a_renamed_folder_of_two_hundred_pages_embeds_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path, CountingEmbedder())
    for i in range(200):
        site.put(f"old/{i}.md", prose(i))
    site.index()
    site.pages = {}
    for i in range(200):
        site.put(f"new/{i}.md", prose(i))
    report = site.index()
    assert numbers(report) == {"total": 200, "moved": 200}
    assert report.embedded == 0
    assert len(texts_embedded(site)) == 200


def test_a_paragraph_at_the_top_of_a_long_page_embeds_one_or_two_chunks(site: Site) -> None:
    sections = [section(f"Part {i}", *(prose((i, j), 40) for j in range(3))) for i in range(40)]
    site.pages["long.md"] = page("long.md", *sections)
    site.index()
    assert len(site.store.snapshot(SCOPE).page("long.md")) == 40
    texts = [b.text for b in sections[0].blocks]
    site.pages["long.md"] = page("long.md", section("Part 0", "A new paragraph.", *texts), *sections[1:])
    report = site.index()
    assert 1 <= report.embedded <= 2
    assert_is_a_clean_build(site)


def test_a_chunk_on_two_pages_is_embedded_once(site: Site) -> None:
    for name in ("x.md", "y.md"):
        site.put(name, "The same words on two pages.")
    report = site.index()
    assert report.embedded == 7
    assert numbers(report) == {"total": 8, "new": 7, "moved": 1}
    del site.pages["x.md"]
    assert numbers(site.index()) == {"total": 7, "kept": 7, "removed": 1}
    assert_is_a_clean_build(site)


def test_markup_that_changes_no_chunk_moves_no_head(site: Site) -> None:
    site.index()
    touched = [replace(s, content_hash=hashlib.sha256(s.file_path.encode()).hexdigest()) for s in site.sources()]
    report = index(touched, site.target)
    assert report.files.changed == ("a.md", "b.md", "c.md")
    assert numbers(report) == {"total": 6, "kept": 6}
    assert (report.generation, report.embedded) == (1, 0)
    # Next time the files are known.
    assert index(touched, site.target).files.unchanged == ("a.md", "b.md", "c.md")


def test_of_two_pages_with_one_path_the_first_counts(site: Site) -> None:
    twin = source(page("a.md", section("Twin", "Twin.")))
    report = index([*site.sources(), twin], site.target)
    assert report.total == 6
    assert "Twin." not in {c.text for c in site.stored().values()}


def test_a_new_address_rewrites_urls_and_embeds_nothing(site: Site) -> None:
    site.index()
    site.base_url = "https://moved.example/v2/"
    for path in list(site.pages):
        site.pages[path] = replace(site.pages[path], url=f"{site.base_url}{path.removesuffix('.md')}/")
    report = site.index()
    assert (report.generation, report.embedded) == (2, 0)
    assert numbers(report) == {"total": 6, "kept": 6}
    assert all(c.url.startswith(site.base_url) and c.source_domain == "moved.example" for c in site.stored().values())
    assert site.store.snapshot(SCOPE).head.base_url == site.base_url
    assert_is_a_clean_build(site)


def test_a_new_address_that_no_page_shows_is_still_remembered(site: Site) -> None:
    site.index()
    site.base_url = "https://docs.example/same/"
    report = site.index()
    assert report.generation == 2
    assert site.store.snapshot(SCOPE).head.base_url == site.base_url
    assert site.index().generation == 2


def test_languages_are_those_of_the_pages_that_are_left(site: Site) -> None:
    site.put("de.md", "Die Anleitung zum Aufbau.", language="de")
    site.index()
    assert site.store.snapshot(SCOPE).head.languages == ("de", "en")
    del site.pages["de.md"]
    site.index()
    assert site.store.snapshot(SCOPE).head.languages == ("en",)


def test_two_versions_of_one_site_share_a_store_and_a_ledger(site: Site) -> None:
    site.index()
    other = replace(site.target, scope=Scope("docs", "2.0"))
    report = index(site.sources()[:2], other)
    # Most texts of one version recur in the next.
    assert (report.generation, report.total, report.embedded) == (1, 4, 0)
    assert site.index().files.unchanged == ("a.md", "b.md", "c.md")
    assert index(site.sources()[:2], other).files.unchanged == ("a.md", "b.md")


def test_a_version_takes_no_vectors_of_another_embedder_and_fails_with_no_other_index(site: Site) -> None:
    site.index()
    other = replace(site.target, scope=Scope("docs", "2.0"), embedder=CountingEmbedder("other"))
    assert index(site.sources(), other).embedded == 6
    for file in (site.folder / "index" / "docs" / "@").rglob("*.*"):
        file.write_bytes(b"")
    assert index(site.sources(), replace(site.target, scope=Scope("docs", "3.0"))).embedded == 6
