from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse import lexical, sync
from chapterverse.chunking import Budget, chunk
from chapterverse.diff import Diff, FileDiff, Report
from chapterverse.errors import (
    ConfigurationError,
    IndexCorrupt,
    IndexLocked,
    InputError,
    ProviderError,
    TextTooLong,
    UnreadablePage,
)
from chapterverse.ledger import Record
from chapterverse.ledger.sqlite import SqliteLedger
from chapterverse.model import Chunk, Head, Page, Scope, Source
from chapterverse.settings import Settings
from chapterverse.store.edge import EdgeStore
from chapterverse.sync import Target, compare, index, plan, preview
from fakes.docs import BASE_URL, SCOPE, CountingEmbedder, page, point, prose, section, source

# plan, against a model that knows nothing of how it is made

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


@given(SOME, SOME, st.sets(st.sampled_from(sorted({c.embed_hash for c in CHUNKS.values()}))), st.booleans())
def test_a_plan_turns_what_is_stored_into_what_is_wanted(
    wanted: list[Chunk], stored: list[Chunk], elsewhere: set[str], anew: bool
) -> None:
    seen = elsewhere | {c.embed_hash for c in stored}
    diff = plan(wanted, stored, seen, anew=anew)

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


@given(SOME, SOME)
def test_the_numbers_of_a_plan_add_up(wanted: list[Chunk], stored: list[Chunk]) -> None:
    diff = plan(wanted, stored, {c.embed_hash for c in stored})
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
    assert plan(chunks, [c.stamped("2026-01-01T00:00:00Z") for c in chunks], ()).empty


def test_the_time_of_indexing_is_no_difference_but_a_stated_date_is() -> None:
    chunk_ = point("a", "text").chunk
    stored = chunk_.stamped("2026-01-01T00:00:00Z")
    assert plan([chunk_], [stored], ()).empty
    assert not plan([replace(chunk_, created_at="2020-01-01T00:00:00Z")], [stored], ()).empty


# compare


def record(path: str, **fields: object) -> Record:
    made = Record(path, "a" * 64, 1, "pipeline", 1, "now")
    return replace(made, **fields)  # type: ignore[arg-type]


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_files_are_sorted_by_what_the_ledger_knows(offered: set[int], known: set[int], edited: set[int]) -> None:
    sources = {f"{i}.md": Source(f"{i}.md", ("b" if i in edited else "a") * 64, "", page) for i in offered}
    unchanged = sync._row_pipeline("pipeline", Source("", "", "", page))
    found = compare(sources, {f"{i}.md": record(f"{i}.md", pipeline=unchanged) for i in known}, "pipeline")
    assert found == FileDiff(
        new=tuple(f"{i}.md" for i in sorted(offered - known)),
        changed=tuple(f"{i}.md" for i in sorted(offered & known & edited)),
        unchanged=tuple(f"{i}.md" for i in sorted((offered & known) - edited)),
        removed=tuple(f"{i}.md" for i in sorted(known - offered)),
    )


def test_another_context_or_pipeline_is_a_change() -> None:
    same = Source("a.md", "a" * 64, "context", page)
    records = {"a.md": record("a.md", pipeline=sync._row_pipeline("one", same))}
    assert compare({"a.md": same}, records, "one").changed == ()
    assert compare({"a.md": replace(same, context="other")}, records, "one").changed == ("a.md",)
    assert compare({"a.md": same}, records, "two").changed == ("a.md",)


# index, over the real store and ledger


@dataclass
class Site:
    """A site that is edited and indexed again and again."""

    folder: Path
    embedder: CountingEmbedder | None = None
    base_url: str = BASE_URL
    pages: dict[str, Page] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

    @property
    def store(self) -> EdgeStore:
        return EdgeStore(self.folder / "index")

    @property
    def ledger(self) -> SqliteLedger:
        return SqliteLedger(self.folder / "index" / "ledger.sqlite")

    @property
    def target(self) -> Target:
        return Target(SCOPE, self.store, self.ledger, self.embedder, base_url=self.base_url)

    def put(self, path: str, *texts: str, **fields: str) -> None:
        self.pages[path] = page(path, *(section(f"S{i}", t) for i, t in enumerate(texts)), base=self.base_url, **fields)

    def sources(self) -> list[Source]:
        return [self._source(p) for p in self.pages.values()]

    def _source(self, made: Page) -> Source:
        def fail() -> Page:
            raise UnreadablePage(f"{made.file_path} is not a text file.")

        if made.file_path in self.broken:
            return Source(made.file_path, hashlib.sha256(b"junk").hexdigest(), made.url, fail)
        return source(made)

    def index(self) -> Report:
        return index(self.sources(), self.target)

    def stored(self) -> dict[str, Chunk]:
        return {p.chunk.chunk_id: p.chunk for p in self.store.snapshot(SCOPE).points()}

    def files(self) -> dict[str, tuple[int, str]]:
        """Return time and content of every file below the site's folder."""
        return {
            str(p.relative_to(self.folder)): (p.stat().st_mtime_ns, hashlib.sha256(p.read_bytes()).hexdigest())
            for p in self.folder.rglob("*")
            if p.is_file()
        }


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path, CountingEmbedder())
    for name in "abc":
        made.put(f"{name}.md", prose((name, 1)), prose((name, 2)))
    return made


def bare(chunks: Iterable[Chunk]) -> dict[str, Chunk]:
    """Return chunks by id, without their times."""
    return {c.chunk_id: replace(c, created_at="", timestamp="") for c in chunks}


def assert_is_a_clean_build(site: Site) -> None:
    """The index holds what a build from nothing would: chunks, vectors, counts and calibration."""
    shutil.rmtree(site.folder / "clean", ignore_errors=True)
    embedder = CountingEmbedder() if site.embedder else None
    clean = Site(site.folder / "clean", embedder, site.base_url, site.pages)
    clean.index()
    ours, theirs = site.store.snapshot(SCOPE), clean.store.snapshot(SCOPE)
    for mine, other in zip(ours.points(), theirs.points(), strict=True):
        assert bare([mine.chunk]) == bare([other.chunk])
        assert mine.lexical == other.lexical
        assert mine.dense == other.dense
    changing = {"generation": 0, "published_at": ""}
    assert replace(ours.head, **changing) == replace(theirs.head, **changing)  # type: ignore[arg-type]
    rows, expected = site.ledger.records(SCOPE), clean.ledger.records(SCOPE)
    assert {p: (r.content_hash, r.chunk_count, r.pipeline) for p, r in rows.items()} == {
        p: (r.content_hash, r.chunk_count, r.pipeline) for p, r in expected.items()
    }
    assert site.ledger.generation(SCOPE) == ours.head.generation


def numbers(report: Report) -> dict[str, int]:
    chunks = report.to_json()["chunks"]
    return {k: v for k, v in chunks.items() if v}


def test_a_first_build_indexes_everything(site: Site) -> None:
    report = site.index()
    assert report.files.new == ("a.md", "b.md", "c.md")
    assert numbers(report) == {"total": 6, "new": 6}
    assert report.embedded == 6 == len(site.embedder.seen)  # type: ignore[union-attr]
    assert (report.generation, report.warnings) == (1, ())
    assert_is_a_clean_build(site)


def test_a_build_that_changes_nothing_writes_nothing(site: Site) -> None:
    site.index()
    before = site.files()
    report = site.index()
    assert numbers(report) == {"total": 6, "kept": 6}
    assert (report.generation, report.embedded) == (1, 0)
    assert site.files() == before
    assert len(site.embedder.seen) == 6  # type: ignore[union-attr]


def test_a_build_that_changes_nothing_takes_milliseconds_and_loads_no_engine(tmp_path: Path) -> None:
    program = """
import sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_sync import Site, prose
site = Site(Path(sys.argv[1]))
for i in range(300):
    site.put(f"{i}.md", prose(i))
if sys.argv[3] == "first":
    site.index()
else:
    sources = site.sources()
    started = time.process_time()
    report = sync_index(sources, site.target) if False else __import__("chapterverse.sync").sync.index(sources, site.target)
    spent = time.process_time() - started
    assert report.embedded == 0 and not report.files.touched
    assert "qdrant_edge" not in sys.modules, "the engine was loaded"
    assert spent < 0.15, spent
"""
    for run in ("first", "again"):
        subprocess.run([sys.executable, "-c", program, str(tmp_path), str(Path(__file__).parent), run], check=True)


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
    assert len(site.embedder.seen) == 200  # type: ignore[union-attr]


def test_a_paragraph_at_the_top_of_a_long_page_embeds_one_or_two_chunks(site: Site) -> None:
    texts = [prose(("long", i), 60) for i in range(120)]
    made = section("Long", *texts)
    site.pages["long.md"] = page("long.md", made)
    site.index()
    assert len(site.store.snapshot(SCOPE).page("long.md")) >= 40
    sections = [section(f"Part {i}", *texts[3 * i : 3 * i + 3]) for i in range(40)]
    site.pages["long.md"] = page("long.md", *sections)
    site.index()
    site.pages["long.md"] = page("long.md", section("Part 0", "A new paragraph.", *texts[:3]), *sections[1:])
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
    assert (report.generation, report.total) == (1, 4)
    assert site.index().files.unchanged == ("a.md", "b.md", "c.md")
    assert index(site.sources()[:2], other).files.unchanged == ("a.md", "b.md")


# Embedders


def test_another_embedder_makes_every_vector_anew(site: Site) -> None:
    site.index()
    site.embedder = CountingEmbedder("other", 8)
    report = site.index()
    assert (report.embedded, report.total, report.generation) == (6, 6, 2)
    snapshot = site.store.snapshot(SCOPE)
    assert snapshot.head.embedder == site.embedder.card
    assert all(p.dense is not None and len(p.dense) == 8 for p in snapshot.points())
    site.embedder = None
    assert site.index().total == 6
    assert all(p.dense is None for p in site.store.snapshot(SCOPE).points())
    assert_is_a_clean_build(site)


def test_another_model_of_the_same_space_makes_none(site: Site) -> None:
    site.index()
    twin = CountingEmbedder()
    twin.card = replace(twin.card, name="counting:twin")
    site.embedder = twin
    assert site.index().embedded == 0
    assert twin.seen == []


def test_a_page_with_a_text_too_long_for_the_model_is_cut_smaller(site: Site) -> None:
    site.embedder = CountingEmbedder(limit=600)
    site.put("long.md", " ".join(prose(i, 12) for i in range(40)))
    report = site.index()
    assert all(len(text) <= 600 for text in site.embedder.seen)
    assert report.embedded == len({c.embed_hash for c in site.stored().values()})
    assert [c.chunk_index for c in site.store.snapshot(SCOPE).page("long.md")] == list(
        range(len(site.store.snapshot(SCOPE).page("long.md")))
    )
    assert report.total == site.store.snapshot(SCOPE).head.chunks
    # The same page again is known, and with a new paragraph its other chunks are.
    assert site.index().files.changed == ()
    site.put("long.md", " ".join(prose(i, 12) for i in range(40)), "One more.")
    assert site.index().embedded <= 2


def test_a_model_that_refuses_everything_is_told_and_not_asked_forever(site: Site) -> None:
    site.embedder = CountingEmbedder(limit=1)
    with pytest.raises(TextTooLong):
        site.index()
    assert site.store.heads() == []


class Failing(CountingEmbedder):
    """Fails at the second batch."""

    def embed_documents(self, texts: object) -> list[tuple[float, ...]]:
        if self.seen:
            raise ProviderError("The model is out of reach.", retryable=True)
        return super().embed_documents(texts)  # type: ignore[arg-type]


def test_a_model_that_fails_leaves_the_old_index(site: Site) -> None:
    site.index()
    before = bare(site.stored().values())
    site.embedder = Failing()
    for i in range(150):
        site.put(f"new-{i}.md", prose(i))
    with pytest.raises(ProviderError):
        site.index()
    assert bare(site.stored().values()) == before
    assert site.ledger.generation(SCOPE) == 1
    assert not site.store.publishing(SCOPE)
    site.embedder = CountingEmbedder()
    assert site.index().embedded == 150


def test_sizes_are_kept_within_the_models_limit() -> None:
    settings = Settings(store="edge:unused")
    assert Target.open(settings, SCOPE, BASE_URL).budget == Budget(256, 512)
    assert Target.open(settings, SCOPE, BASE_URL, 512).budget == Budget(512, 512)
    for wrong in (0, 31, 513):
        with pytest.raises(ConfigurationError, match="between 32 and 512"):
            Target.open(settings, SCOPE, BASE_URL, wrong)
    with pytest.raises(ConfigurationError, match="names of a site"):
        Target.open(settings, Scope("a\udcffb"), BASE_URL)


def test_another_chunk_size_is_a_new_pipeline(site: Site) -> None:
    site.index()
    report = index(site.sources(), replace(site.target, budget=Budget(64)))
    assert report.files.changed == ("a.md", "b.md", "c.md")


# Ledgers lost, late and wrong


def test_a_lost_ledger_costs_reading_and_nothing_else(site: Site) -> None:
    site.index()
    (site.folder / "index" / "ledger.sqlite").unlink()
    del site.pages["c.md"]
    report = site.index()
    assert report.embedded == 0
    assert report.files.removed == ("c.md",)
    assert numbers(report) == {"total": 4, "kept": 4, "removed": 2}
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
    target = replace(site.target, ledger=SqliteLedger(tmp_path / "elsewhere.sqlite"))
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
    head.write_text(head.read_text().replace(lexical.ENCODER, "terms/0"))
    with site.ledger._connection() as db:
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
    after = site.files()
    assert {k: v for k, v in after.items() if "edge_config" not in k and "segment.json" not in k} == {
        k: v for k, v in before.items() if "edge_config" not in k and "segment.json" not in k
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


# preview


def test_a_preview_tells_what_index_would_do_and_writes_nothing(site: Site) -> None:
    empty = preview(site.sources(), site.target)
    assert numbers(empty) == {"total": 6, "new": 6}
    assert site.files() == {}
    site.index()
    for edit in (
        lambda: None,
        lambda: site.put("a.md", "Other words."),
        lambda: site.pages.pop("b.md"),
        lambda: site.put("d.md", prose(("c", 1))),
        lambda: setattr(site, "embedder", CountingEmbedder("other")),
        lambda: (site.folder / "index" / "ledger.sqlite").unlink(),
    ):
        edit()
        before = site.files()
        told = preview(site.sources(), site.target)
        after = site.files()
        assert {k: v[1] for k, v in after.items()} == {k: v[1] for k, v in before.items()}
        # The engine writes these two anew whenever it opens a shard.
        touched = {k.rpartition("/")[2] for k in after if after[k] != before[k]}
        assert touched <= {"edge_config.json", "segment.json"}
        done = site.index()
        assert numbers(told) == numbers(done)
        assert told.files == done.files
        assert told.embedded == done.embedded
        assert told.diff == done.diff


def test_a_preview_calls_no_model(site: Site) -> None:
    preview(site.sources(), site.target)
    assert site.embedder is not None
    assert site.embedder.seen == []


# Races


def test_of_two_publishers_one_is_turned_away_before_it_pays(site: Site) -> None:
    loser = Site(site.folder, CountingEmbedder(), pages=site.pages)

    class Rival(CountingEmbedder):
        def embed_documents(self, texts: object) -> list[tuple[float, ...]]:
            with pytest.raises(IndexLocked, match="Another process is publishing docs"):
                loser.index()
            return super().embed_documents(texts)  # type: ignore[arg-type]

    site.embedder = Rival()
    assert site.index().generation == 1
    assert loser.embedder is not None
    assert loser.embedder.seen == []
    assert loser.index().generation == 1
    assert loser.embedder.seen == []


PUBLISH = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from chapterverse.errors import IndexLocked
from test_sync import CountingEmbedder, Site, prose
site = Site(Path(sys.argv[1]), CountingEmbedder())
name = sys.argv[3]
won = lost = 0
for i in range(6):
    for j in range(20):
        site.put(f"{j}.md", prose((name, i, j)))
    try:
        site.index()
        won += 1
    except IndexLocked:
        lost += 1
print(won, lost)
"""


def test_processes_that_publish_at_once_leave_the_work_of_one(site: Site) -> None:
    command = [sys.executable, "-c", PUBLISH, str(site.folder), str(Path(__file__).parent)]
    rivals = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in ("x", "y", "z")]
    results = [list(map(int, rival.communicate(timeout=120)[0].split())) for rival in rivals]
    assert [rival.returncode for rival in rivals] == [0, 0, 0]
    assert sum(won for won, _ in results) >= 1
    assert sum(won + lost for won, lost in results) == 18
    texts = {c.text for c in site.stored().values()}
    whole = [{prose((name, i, j)) for j in range(20)} for name in "xyz" for i in range(6)]
    assert texts in whole
    assert site.store.snapshot(SCOPE).head.generation == sum(won for won, _ in results)


# Kills

KILLED = """
import os, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_sync import CountingEmbedder, Site, prose
from chapterverse import sync
site = Site(Path(sys.argv[1]), CountingEmbedder())
for j in range(8):
    site.put(f"{j}.md", prose(("after", j)))
target = site.target
ledger, store = target.ledger, target.store
stop = sys.argv[3]

class Dying:
    def __init__(self, real): self._real = real
    def __getattr__(self, name):
        if name == stop.removeprefix("before "): os._exit(9)
        return getattr(self._real, name)

from dataclasses import replace
if stop == "before save":
    target = replace(target, ledger=Dying(ledger))
if stop == "after save":
    class Saved(Dying):
        def save(self, *a):
            self._real.save(*a); os._exit(9)
    target = replace(target, ledger=Saved(ledger))
sync.index(site.sources(), target)
"""


@pytest.mark.parametrize("moment", ["before save", "after save"])
def test_a_kill_around_the_ledger_costs_nothing(site: Site, moment: str) -> None:
    site.pages = {}
    for j in range(8):
        site.put(f"{j}.md", prose(("before", j)))
    site.index()
    done = subprocess.run([sys.executable, "-c", KILLED, str(site.folder), str(Path(__file__).parent), moment])
    assert done.returncode == 9
    for j in range(8):
        site.put(f"{j}.md", prose(("after", j)))
    report = site.index()
    assert report.embedded == 0
    assert report.generation == 2
    assert_is_a_clean_build(site)


# Any history


def edit(site: Site, chance: random.Random) -> None:
    """Do to a site what authors do."""
    paths = sorted(site.pages)
    what = chance.choice(["add", "edit", "insert", "delete", "rename", "copy", "swap", "language", "break", "mend"])
    path = chance.choice(paths)
    texts = [s.blocks[0].text for s in site.pages[path].sections]
    if what == "add":
        site.put(f"{chance.randrange(100)}.md", *(prose(chance.random()) for _ in range(chance.randint(0, 3))))
    elif what == "edit" and texts:
        texts[chance.randrange(len(texts))] = prose(chance.random())
        site.put(path, *texts)
    elif what == "insert":
        site.put(path, prose(chance.random()), *texts)
    elif what == "delete" and len(paths) > 2:
        del site.pages[path]
    elif what == "rename":
        del site.pages[path]
        site.put(f"moved/{path}"[-60:], *texts)
    elif what == "copy":
        site.put(f"copy-{path}"[-60:], *texts)
    elif what == "swap":
        other = chance.choice(paths)
        mine, theirs = site.pages[path], site.pages[other]
        site.put(path, *(s.blocks[0].text for s in theirs.sections))
        site.put(other, *(s.blocks[0].text for s in mine.sections))
    elif what == "language":
        site.put(path, *texts, language=chance.choice(["en", "de"]))
    elif what == "break":
        (site.folder / "index" / "ledger.sqlite").unlink(missing_ok=True)


def live_history(site: Site, seed: int, steps: int) -> None:
    chance = random.Random(seed)
    site.index()
    for _ in range(steps):
        for _ in range(chance.randint(1, 4)):
            edit(site, chance)
        held = {c.embed_hash for c in site.stored().values()}
        wanted = [c for p in site.pages.values() for c in chunk(p, SCOPE, site.target.card.fingerprint)]
        report = site.index()
        assert bare(site.stored().values()) == bare(wanted)
        assert report.embedded == len({c.embed_hash for c in wanted} - held)
        assert report.total == len(wanted)
        assert report.kept >= 0
        counts = report.to_json()["chunks"]
        assert counts["total"] == counts["new"] + counts["kept"] + counts["moved"]
        before = site.files()
        assert site.index().embedded == 0
        assert site.files() == before
    assert_is_a_clean_build(site)


@pytest.mark.parametrize("seed", range(3))
def test_any_history_ends_in_a_clean_build(site: Site, seed: int) -> None:
    live_history(site, seed, 6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 15))
def test_long_histories_end_in_clean_builds(site: Site, seed: int) -> None:
    live_history(site, seed, 25)


# Reports


def test_a_report_is_the_document_of_the_contract(site: Site) -> None:
    site.index()
    site.put("a.md", prose(("a", 1)), "Other words.")
    site.put("moved.md", prose(("b", 1)), prose(("b", 2)))
    site.put("d.md", "New words.")
    del site.pages["b.md"]
    site.broken.add("c.md")
    document = json.loads(json.dumps(site.index().to_json()))
    seconds = document.pop("seconds")
    assert 0 < seconds < 60
    assert document == {
        "site": "docs",
        "version": "",
        "generation": 2,
        "pages": {"seen": 4, "new": 2, "changed": 1, "unchanged": 0, "removed": 1, "skipped": 1},
        "chunks": {"total": 7, "new": 2, "kept": 3, "moved": 2, "removed": 1},
        "embedded": 2,
        "warnings": ["c.md is not a text file."],
    }


def test_a_report_reads_as_one_line(site: Site) -> None:
    line = str(replace(site.index(), seconds=1.234))
    assert line == (
        "3 pages (3 new, 0 changed, 0 removed), 6 chunks (6 new, 0 kept, 0 moved, 0 removed), 6 embedded, 1.2 s"
    )


def test_earlier_warnings_stand_first() -> None:
    report = Report(SCOPE, 1, FileDiff(), Diff(), 0, warnings=("late",)).warned(["early"])
    assert report.warnings == ("early", "late")
    assert report.to_json()["pages"]["skipped"] == 2


def test_progress_is_told_with_counts(site: Site) -> None:
    told: list[tuple[str, int, int]] = []
    index(site.sources(), site.target, lambda *stage: told.append(stage))
    stages = list(dict.fromkeys(stage for stage, _, _ in told))
    assert stages == ["Reading pages", "Embedding chunks", "Writing chunks"]
    for stage in stages:
        steps = [(done, total) for name, done, total in told if name == stage]
        assert steps == sorted(steps)
        assert steps[-1][0] == steps[-1][1] > 0


def test_a_run_that_is_interrupted_leaves_the_old_index(site: Site) -> None:
    site.index()
    before = bare(site.stored().values())
    site.put("a.md", "Other words.")

    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "Writing chunks" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index(site.sources(), site.target, interrupt)
    assert bare(site.stored().values()) == before
    assert not site.store.publishing(SCOPE)
    assert site.index().embedded == 1


def test_importing_sync_loads_nothing_that_only_some_runs_need() -> None:
    program = """
import sys, chapterverse.sync, chapterverse.progress
heavy = {"rich", "typer", "tiktoken", "qdrant_edge", "snowballstemmer", "sqlite3", "pydantic", "httpx", "markdown_it"}
print(sorted(heavy & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_head_says_all_that_readers_need(site: Site) -> None:
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    site.index()
    head = site.store.snapshot(SCOPE).head
    assert isinstance(head, Head)
    assert (head.site, head.version, head.generation, head.pages, head.chunks) == ("docs", "", 1, 3, 6)
    assert head.pipeline == site.target.pipeline
    assert head.published_at >= started
    assert {c.timestamp for c in site.stored().values()} == {head.published_at}
    assert head.calibration.keys() == {"bias", "coverage", "strength", "length", "floor"}
