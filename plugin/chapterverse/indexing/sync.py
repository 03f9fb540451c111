"""Updates an index from its sources: the walk from the adapter of a generator, or a command, to a report.

    sources ─ compare ─> FileDiff ─ read, cut ─> chunks ─ compare ─> Diff ─ embed, apply ─> store, head ─> ledger

Files are compared without a lease first, so that a run without changes takes none and loads nothing that writes, and
again with it. The head in the store is the only truth. The ledger lists the files that a run may skip. A run ignores a
ledger written for another generation and reads every file again. It still embeds nothing twice, because chunk ids and
embed hashes are the same on every run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from chapterverse.indexing.additions import Keep, keep_none
from chapterverse.indexing.diff import SourceSet
from chapterverse.indexing.report import Report, report_unchanged
from chapterverse.indexing.target import Target
from chapterverse.model import Source
from chapterverse.progress import Progress

if TYPE_CHECKING:
    from chapterverse.indexing.plan import IndexPlan
    from chapterverse.store import Snapshot


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
        report = _publish(source_set, target, progress, damaged=damaged)
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
        plan = _plan(source_set, target, snapshot, progress, dry_run=True)
        report = plan.preview_report(head.generation if head else 0)
    return replace(report, seconds=time.perf_counter() - started)


def _publish(source_set: SourceSet, target: Target, progress: Progress, *, damaged: bool) -> Report:
    """Publish what differs; of a damaged live generation, which can't be read, everything."""
    from chapterverse.indexing.apply import apply, publishing, remember, renewing

    # Lock before embedding, so that the loser of a race pays for nothing.
    with publishing(target, progress) as publication:
        # A head without a snapshot to continue from is damaged too.
        damaged = damaged or (publication.previous is None and target.head() is not None)
        progress = renewing(publication, progress)
        plan = _plan(source_set, target, publication.previous, progress)
        plan.embed(progress)
        head, lost = apply(plan.diff, plan.vectors, target, publication, progress, chunks=plan.total)
        remember(plan, target, head)
    report = plan.report(head.generation, head.chunks)
    rebuilt = [f"The index of {target.scope} was damaged, so all of it was built again."] if damaged else []
    return replace(report, warnings=(*rebuilt, *lost, *report.warnings))


def _plan(
    source_set: SourceSet, target: Target, live: Snapshot | None, progress: Progress, *, dry_run: bool = False
) -> IndexPlan:
    """Compare files, read and cut those that changed, and compare their chunks with the live snapshot."""
    from chapterverse.indexing.page_chunker import chunk_all
    from chapterverse.indexing.plan import IndexPlan

    plan = IndexPlan.compare(source_set, target, live)
    plan.add(dict(chunk_all(plan.touched, plan.chunker, target.workers, progress)))
    plan.enrich(progress, dry_run=dry_run)
    plan.compute_diff()
    return plan
