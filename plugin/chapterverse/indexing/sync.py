"""Updates an index from its sources: the walk from the adapter of a generator, or a command, to a report.

    sources ─ compare ─> FileDiff ─ read, cut ─> chunks ─ compare ─> Diff ─ embed, apply ─> store, head ─> ledger

`IndexPlan` computes the changes, and `apply` is the only writer. The head in the store is the only truth. The ledger
lists the files that a run may skip. A run ignores a ledger written for another generation and reads every file again.
It still embeds nothing twice, because chunk ids and embed hashes are the same on every run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from chapterverse.indexing.additions import Keep, keep_none
from chapterverse.indexing.diff import SourceSet
from chapterverse.indexing.report import Report, report_unchanged
from chapterverse.indexing.target import Target
from chapterverse.model import Source
from chapterverse.progress import Progress


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
        # A build that changes nothing loads nothing that writes.
        from chapterverse.indexing.apply import publish

        report = publish(source_set, target, progress, damaged=damaged)
    return replace(report, seconds=time.perf_counter() - started)


def preview(
    sources: Iterable[Source], target: Target, progress: Progress = lambda *_: None, keep: Keep = keep_none
) -> Report:
    """Return the report that `index` would return: read the same files, write nothing."""
    started = time.perf_counter()
    source_set = SourceSet.of(sources, keep)
    report = report_unchanged(source_set, target)
    if report is None:
        from chapterverse.indexing.plan import IndexPlan

        head = target.head()
        snapshot = target.store.snapshot(target.scope) if head else None
        plan = IndexPlan.of(source_set, target, snapshot, progress, dry_run=True)
        report = plan.preview_report(head.generation if head else 0)
    return replace(report, seconds=time.perf_counter() - started)
