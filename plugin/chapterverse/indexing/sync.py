"""Updates an index from its sources. `Changes` computes the changes; `apply` is the only writer.

    sources ─ compare ─> FileDiff ─ read, cut ─> chunks ─ compare ─> Diff ─ embed, apply ─> store, head ─> ledger

The head in the store is the only truth. The ledger lists the files that a run may skip. A run ignores a ledger written
for another generation and reads every file again. It still embeds nothing twice, because chunk ids and embed hashes are
the same on every run.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from chapterverse.calibration.sampling import fit_to_index
from chapterverse.errors import IndexFault
from chapterverse.indexing import tuning
from chapterverse.indexing.changes import Changes
from chapterverse.indexing.diff import Diff
from chapterverse.indexing.publish_lease import publishing, renewing
from chapterverse.indexing.report import Report, report_unchanged
from chapterverse.indexing.source_set import Keep, SourceSet, keep_none
from chapterverse.indexing.target import Target, row_pipeline
from chapterverse.indexing.vectors import UnfinishedVectors, Vectors
from chapterverse.ledger import IMPORTED, UNREAD, LedgerRow
from chapterverse.model import (
    INDEX_TYPES,
    NO_LANGUAGE,
    PAGE,
    PERSONA,
    Chunk,
    Head,
    Point,
    Source,
    SparseVector,
    utc_now,
)
from chapterverse.progress import Progress
from chapterverse.store import Publication, Snapshot
from chapterverse.text import lexical
from chapterverse.text.plain import plain

_WRITE_BATCH = 1000


def index(
    sources: Iterable[Source], target: Target, progress: Progress = lambda *_: None, keep: Keep = keep_none
) -> Report:
    """Make the index hold exactly these sources. Of two sources with one path the first counts.

    Args:
        keep: whether a file of the index stays that is not among these sources.

    Raises:
        InputError: there is no page, or none can be read; the index stays as it is.
        IndexFault: the index is locked, damaged or of a newer format; nothing was changed.
        ProviderError: the embedder failed; nothing was changed.
    """
    started = time.perf_counter()
    source_set = SourceSet.of(sources, keep)
    damaged = not target.store.is_complete(target.scope)
    report = None if damaged else report_unchanged(source_set, target)
    if report is None:
        # Lock before embedding, so that the loser of a race pays for nothing.
        with publishing(target, progress) as publication:
            # A head without a snapshot to continue from is damaged too.
            damaged = damaged or (publication.previous is None and target.head() is not None)
            progress = renewing(publication, progress)
            changes = Changes.of(source_set, target, publication.previous, progress)
            changes.embed(progress)
            before = tuning.previous_head(publication, target)
            total = changes.total
            head = apply(changes.diff, changes.vectors, target, publication, progress, chunks=total, tuned_head=before)
            _remember(changes, target, head)
        report = changes.report(head.generation, head.chunks)
        report = replace(report, warnings=(*tuning.warn_of_lost_calibration(before, head), *report.warnings))
        if damaged:
            warning = f"The index of {target.scope} was damaged, so all of it was built again."
            report = replace(report, warnings=(warning, *report.warnings))
    return replace(report, seconds=time.perf_counter() - started)


def preview(
    sources: Iterable[Source], target: Target, progress: Progress = lambda *_: None, keep: Keep = keep_none
) -> Report:
    """Return the report that `index` would return: read the same files, write nothing."""
    started = time.perf_counter()
    source_set = SourceSet.of(sources, keep)
    report = report_unchanged(source_set, target)
    if report is None:
        head = target.head()
        snapshot = target.store.snapshot(target.scope) if head else None
        changes = Changes.of(source_set, target, snapshot, progress, dry_run=True)
        report = changes.preview_report(head.generation if head else 0)
    return replace(report, seconds=time.perf_counter() - started)


def apply(
    diff: Diff,
    vectors: Vectors,
    target: Target,
    publication: Publication,
    progress: Progress = lambda *_: None,
    *,
    chunks: int,
    tuned_head: Head | None,
) -> Head:
    """Write the diff, move the head and return it.

    The live generation stays if no chunk differs, for example after a change of white space in the markup.

    Args:
        chunks: number of chunks that the index must hold afterwards; a mismatch means that a write was lost.
        tuned_head: the head whose measured calibration and fusion weight are kept while they hold; otherwise evidence
            is fitted to the index itself.

    Raises:
        IndexFault: the store holds another number of chunks than expected; nothing was published.
    """
    live = publication.previous
    measured = tuning.valid_fields(tuned_head, target.card)
    if live is not None and diff.empty and target.matches(live.head) and tuning.has_values(live.head, measured):
        return live.head
    now = utc_now()
    for at in range(0, len(diff.write), _WRITE_BATCH):
        progress("Writing chunks", at, len(diff.write))
        batch = [c.stamp(now) for c in diff.write[at : at + _WRITE_BATCH]]
        publication.write([_point(c, vectors) for c in batch])
    progress("Writing chunks", len(diff.write), len(diff.write))
    publication.delete(diff.delete)
    written = publication.preview()
    if written.head.chunks != chunks:
        raise IndexFault(
            f"The store holds {written.head.chunks} chunks of {target.scope} instead of {chunks}: "
            "nothing was published, run it again."
        )
    head = _next_head(written, target, live.head.generation if live else 0, now, measured)
    publication.commit(head)
    return head


def _next_head(snapshot: Snapshot, target: Target, generation: int, now: str, tuned_fields: Mapping[str, Any]) -> Head:
    """Return the head of the generation after `generation`, with evidence fitted to it if none was measured."""
    return Head(
        site=target.scope.site,
        version=target.scope.version,
        generation=1 + generation,
        pages=snapshot.head.pages - _documents(snapshot),
        chunks=snapshot.head.chunks,
        pipeline=target.pipeline,
        embedder=target.card,
        languages=tuple(tag for tag in snapshot.head.languages if tag != NO_LANGUAGE),
        base_url=target.base_url,
        published_at=now,
        token=secrets.token_hex(8),
        **(tuned_fields or {"calibration": fit_to_index(snapshot).to_json()}),
    )


def _documents(snapshot: Snapshot) -> int:
    """Return the number of files that are no pages."""
    chunks = (chunk for kind in INDEX_TYPES if kind != PAGE for chunk in snapshot.page(kind, "type"))
    return len({chunk.source_file_path for chunk in chunks})


def _point(chunk: Chunk, vectors: Vectors) -> Point:
    if chunk.type == PERSONA:
        return Point(chunk, SparseVector((), ()))
    return Point(
        chunk,
        lexical.document_vector(chunk.heading_path, plain(chunk.text), chunk.language, chunk.expansion),
        vectors[chunk.embed_hash],
    )


def _remember(changes: Changes, target: Target, head: Head) -> None:
    """Write the ledger rows of the files read, and remove those of files that the index no longer holds."""
    now = utc_now()
    sources = changes.source_set.sources
    rows = [
        LedgerRow(
            path,
            sources[path].content_hash,
            len(changes.chunks[path]),
            # A later run enriches the pages for which the model failed.
            UNREAD if path in changes.unfinished else row_pipeline(target.pipeline, sources[path]),
            head.generation,
            now,
        )
        for path in changes.files.touched
    ]
    # An unreadable page is still in the index, so its row stays for the day the page is removed.
    retained_paths = (path for path in changes.records.keys() - sources.keys() if changes.source_set.keep(path))
    remaining = (*changes.failed, *retained_paths) if changes.live else ()
    unread_rows = [changes.records[path] for path in remaining if path in changes.records]
    # Another embedder starts with an empty index.
    imported = [path for path, row in changes.records.items() if changes.live and row.content_hash == IMPORTED]
    current_paths = {row.file_path for row in (*rows, *unread_rows)}.union(changes.files.unchanged, imported)
    gone = target.ledger.records(target.scope).keys() - current_paths
    target.ledger.save(target.scope, head.generation, (*rows, *unread_rows), sorted(gone), head.token)
    UnfinishedVectors(target.unfinished).forget(changes.vectors.new_hashes)
