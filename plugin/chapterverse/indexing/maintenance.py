"""Fills an index from an export, and repairs what surrounds an index."""

from __future__ import annotations

from dataclasses import dataclass

from chapterverse.errors import IndexCorrupt, IndexMissing
from chapterverse.indexing import tuning
from chapterverse.indexing.diff import FileDiff, Report
from chapterverse.indexing.publish_lease import publishing
from chapterverse.indexing.sync import apply, plan, unread
from chapterverse.indexing.target import Target
from chapterverse.indexing.transfer import ExportFile
from chapterverse.indexing.vectors import UnfinishedVectors, Vectors
from chapterverse.model import Head
from chapterverse.progress import Progress
from chapterverse.text import lexical


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair did.

    Attributes:
        head: what is live, and was not touched.
        swept: how many things were removed that no head reaches; what one thing is depends on the store.
        rebuilt: files whose rows in the ledger were made anew; 0 where the ledger was well.
    """

    head: Head
    swept: int
    rebuilt: int


def fill(exported: ExportFile, target: Target, progress: Progress = lambda *_: None) -> Report:
    """Make the index hold exactly what an export holds; nothing is embedded.

    The next `index` reads every file again, because an export says nothing of their content, and embeds nothing.

    Raises:
        InputError: the export is of another site or version, or by another model than the target's.
        IndexFault: the index is locked, damaged or of a newer format; nothing was changed.
    """
    exported.check(target.scope, target.card)
    with publishing(target, progress) as publication:
        live = publication.previous
        same = live is not None and live.head.embedder.fingerprint == target.card.fingerprint
        stored = [point.chunk for point in live.points()] if live and same else []
        vectors = Vectors(UnfinishedVectors(None))
        vectors.reuse(exported.dense)
        anew = live is not None and lexical.ENCODER not in live.head.pipeline.split()
        diff = plan(exported.chunks, stored, exported.dense.keys(), anew=anew)
        # What the index was tuned to stays, where the file says nothing of that.
        before = tuning.standing(publication, target)
        tuned = exported.head if tuning.kept(exported.head, target.card) else before
        head = apply(diff, vectors, target, publication, progress, expected=len(exported.chunks), tuned=tuned)
    _rebuild_ledger(target, head)
    lost = tuning.lost(before, head)
    return Report(target.scope, head.generation, FileDiff(), diff, head.chunks, warnings=lost)


def repair(target: Target) -> RepairReport:
    """Remove what no head reaches, and make the ledger anew if it is lost or speaks of another index.

    Raises:
        IndexMissing: nothing was published for the scope; what a killed first publication left was removed.
        IndexCorrupt: what is live is damaged.
        IndexLocked: another process is publishing.
    """
    swept = target.store.sweep(target.scope)
    head = target.head()
    if head is None:
        raise IndexMissing(f"Nothing was published for {target.scope} yet, and {swept} leftovers were removed.")
    if not target.store.intact(target.scope):
        raise IndexCorrupt(f"The index of {target.scope} is damaged: the next `chapterverse index` builds it again.")
    rebuilt = _rebuild_ledger(target, head) if target.records(head) is None else 0
    return RepairReport(head, swept, rebuilt)


def _rebuild_ledger(target: Target, head: Head) -> int:
    rows = unread(target.store.snapshot(target.scope))
    gone = target.ledger.records(target.scope).keys() - rows.keys()
    target.ledger.save(target.scope, head.generation, rows.values(), sorted(gone), head.token)
    return len(rows)
