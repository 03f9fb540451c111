"""A site that is edited and indexed repeatedly, and the expected content of its index."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from chapterverse.errors import UnreadablePage
from chapterverse.indexing.report import Report
from chapterverse.indexing.sync import index
from chapterverse.indexing.target import Target
from chapterverse.ledger import Ledger
from chapterverse.model import Chunk, Page, Source
from chapterverse.store.edge import EdgeStore
from fakes.docs import BASE_URL, SCOPE, CountingEmbedder, page, section, source


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
    def ledger(self) -> Ledger:
        return Ledger.on_sqlite(self.folder / "index" / "ledger.sqlite")

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


def bare(chunks: Iterable[Chunk]) -> dict[str, Chunk]:
    """Return chunks by id, without their times."""
    return {c.chunk_id: replace(c, created_at="", timestamp="") for c in chunks}


def assert_is_a_clean_build(site: Site) -> None:
    """Fail unless the index equals a build from scratch: chunks, vectors, counts and calibration."""
    shutil.rmtree(site.folder / "clean", ignore_errors=True)
    embedder = CountingEmbedder() if site.embedder else None
    clean = Site(site.folder / "clean", embedder, site.base_url, site.pages)
    clean.index()
    ours, theirs = site.store.snapshot(SCOPE), clean.store.snapshot(SCOPE)
    for mine, other in zip(ours.points(), theirs.points(), strict=True):
        assert bare([mine.chunk]) == bare([other.chunk])
        assert mine.lexical == other.lexical
        assert mine.dense == other.dense
    changing = {"generation": 0, "published_at": "", "token": ""}
    assert replace(ours.head, **changing) == replace(theirs.head, **changing)  # type: ignore[arg-type]
    rows, expected = site.ledger.records(SCOPE), clean.ledger.records(SCOPE)
    assert {p: (r.content_hash, r.chunk_count, r.pipeline) for p, r in rows.items()} == {
        p: (r.content_hash, r.chunk_count, r.pipeline) for p, r in expected.items()
    }
    assert site.ledger.described(SCOPE)[0] == ours.head.generation


def numbers(report: Report) -> dict[str, int]:
    chunks = report.to_json()["chunks"]
    return {k: v for k, v in chunks.items() if v}
