"""Derives the state of every file from ledger, sources and publish lock. It stores nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from chapterverse.errors import IndexMissing
from chapterverse.indexing.target import row_pipeline
from chapterverse.ledger import IMPORTED, Ledger, LedgerRow, rows_of
from chapterverse.model import PAGE, Chunk, Head, Scope, Source
from chapterverse.readers.urls import is_web_address
from chapterverse.store import Store

#: Attempts to read a head and a ledger that match.
_TRIES = 3

State = Literal["Unindexed", "Indexed", "Stale", "Indexing", "Re-indexing", "Removed"]


@dataclass(frozen=True, slots=True)
class FileState:
    file_path: str
    state: State
    content_hash: str
    chunk_count: int
    last_indexed_at: str


@dataclass(frozen=True, slots=True)
class States:
    """An index and its files; `to_json` is the document of `status --json`.

    Attributes:
        head: None before the first publication.
        enrichment: number of pages and chunks with an expansion, and of all its lines; None where no enricher is set.
    """

    scope: Scope
    head: Head | None
    files: tuple[FileState, ...]
    enrichment: Mapping[str, int] | None = None

    @property
    def summary(self) -> str:
        head, more = self.head, self.enrichment
        if head is None:
            return f"Nothing was published for {self.scope} yet."
        version = f" {head.version}" if head.version else ""
        return (
            f"{head.site}{version}: generation {head.generation}, {head.pages} pages, {head.chunks} chunks, "
            f"embedder {head.embedder.name}, published {head.published_at}"
            + (", {lines} questions and keywords in {chunks} chunks of {pages} pages".format(**more) if more else "")
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "site": self.scope.site,
            "version": self.scope.version,
            "generation": self.head.generation if self.head else 0,
            "embedder": self.head.embedder.name if self.head else "none",
            "files": [asdict(file) for file in self.files],
            **({"enrichment": self.enrichment} if self.enrichment else {}),
        }


def derive(store: Store, ledger: Ledger, scope: Scope, sources: Iterable[Source] | None = None) -> States:
    """Return the states of a scope's files. Without `sources` every ledger row counts as indexed.

    Raises:
        IndexMissing: nothing was published for the scope, and there are no `sources` either.
    """
    busy = store.is_publishing(scope)
    head, records = _describe(store, ledger, scope)
    enrichment = _enrichment(store, head) if head else None
    if sources is None and head is None:
        raise IndexMissing(f"Nothing was published for {scope} yet.")
    if sources is None:
        return States(scope, head, tuple(_state(record, "Indexed") for record in records.values()), enrichment)
    by_path = {s.file_path: s for s in sources}
    elsewhere = _beyond_the_site(store, scope, records, records.keys() - by_path.keys())
    pipeline = head.pipeline if head else ""
    paths = sorted(by_path.keys() | records.keys())
    files = (_compare(p, by_path.get(p), records.get(p), pipeline, busy=busy, elsewhere=p in elsewhere) for p in paths)
    return States(scope, head, tuple(files), enrichment)


def _beyond_the_site(store: Store, scope: Scope, records: Mapping[str, LedgerRow], paths: set[str]) -> set[str]:
    """Return the paths that came from beyond the site: whether they are still configured only a build finds out."""
    elsewhere = {path for path in paths if records[path].content_hash == IMPORTED or is_web_address(path)}
    # A file has a path like a page's, so its chunks tell.
    if file_paths := paths - elsewhere:
        snapshot = store.snapshot(scope)
        elsewhere.update(path for path in file_paths if any(map(_is_imported, snapshot.page(path))))
    return elsewhere


def _is_imported(chunk: Chunk) -> bool:
    return chunk.type == PAGE and chunk.source == "import"


def _enrichment(store: Store, head: Head) -> dict[str, int] | None:
    if not any(word.startswith("enrich/") for word in head.pipeline.split()):
        return None
    chunks = [point.chunk for point in store.snapshot(head.scope).points() if point.chunk.expansion]
    lines = sum(chunk.expansion.count("\n") + 1 for chunk in chunks)
    return {"pages": len({chunk.source_file_path for chunk in chunks}), "chunks": len(chunks), "lines": lines}


def _describe(store: Store, ledger: Ledger, scope: Scope) -> tuple[Head | None, Mapping[str, LedgerRow]]:
    """Return the head and its ledger rows; no rows if the ledger describes another index, or there is no head."""
    head = store.head(scope)
    for _ in range(_TRIES):
        if head is None:
            break
        if (records := rows_of(ledger, head)) is not None:
            return head, records
        # A publication may have ended between the two reads. If the head did not change, the ledger is of another
        # index.
        latest = store.head(scope)
        if latest == head:
            break
        head = latest
    return head, {}


def _compare(
    path: str, source: Source | None, record: LedgerRow | None, pipeline: str, *, busy: bool, elsewhere: bool
) -> FileState:
    if record is None:
        content_hash = source.content_hash if source else ""
        return FileState(path, "Indexing" if busy else "Unindexed", content_hash, 0, "")
    if source is None:
        return _state(record, "Indexed" if elsewhere else "Removed")
    if source.content_hash == record.content_hash and record.pipeline == row_pipeline(pipeline, source):
        return _state(record, "Indexed")
    return _state(record, "Re-indexing" if busy else "Stale")


def _state(record: LedgerRow, state: State) -> FileState:
    return FileState(record.file_path, state, record.content_hash, record.chunk_count, record.last_indexed_at)
