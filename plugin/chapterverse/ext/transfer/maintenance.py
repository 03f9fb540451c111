"""Imports an export into an index, and repairs an index's ledger and leftovers."""

from __future__ import annotations

from dataclasses import dataclass

from chapterverse.errors import IndexCorrupt, IndexMissing
from chapterverse.ext.transfer.export_file import ExportFile
from chapterverse.indexing.apply import apply, publishing
from chapterverse.indexing.diff import FileDiff, compute_diff
from chapterverse.indexing.plan import unread_rows
from chapterverse.indexing.report import Report
from chapterverse.indexing.target import Target
from chapterverse.indexing.vectors import UnfinishedVectors, Vectors
from chapterverse.ledger import Ledger, rows_of
from chapterverse.model import ENCODER, Head, Scope
from chapterverse.progress import Progress
from chapterverse.store import Store


@dataclass(frozen=True, slots=True)
class RepairReport:
    """The outcome of a repair.

    Attributes:
        head: the live head, unchanged.
        swept: number of removed objects that no head references; the store defines what one object is.
        rebuilt: number of ledger rows written again; 0 if the ledger was intact.
    """

    head: Head
    swept: int
    rebuilt: int


def fill(export_file: ExportFile, target: Target, progress: Progress = lambda *_: None) -> Report:
    """Make the index hold exactly the chunks of an export. Nothing is embedded.

    The next `index` run reads every file again, because an export has no content hashes; it embeds nothing either.

    Raises:
        InputError: the export is of another site or version, or of another model than the target's.
        IndexFault: the index is locked, damaged or of a newer format; nothing was changed.
    """
    export_file.check(target.scope, target.card)
    with publishing(target, progress) as publication:
        live = publication.previous
        same = live is not None and live.head.embedder.fingerprint == target.card.fingerprint
        stored = [point.chunk for point in live.points()] if live and same else []
        vectors = Vectors(UnfinishedVectors(None))
        vectors.reuse(export_file.dense)
        anew = live is not None and ENCODER not in live.head.pipeline.split()
        diff = compute_diff(export_file.chunks, stored, export_file.dense.keys(), anew=anew)
        chunks = len(export_file.chunks)
        head, lost = apply(diff, vectors, target, publication, progress, chunks=chunks, export_head=export_file.head)
    _rebuild_ledger(target, head)
    return Report(target.scope, head.generation, FileDiff(), diff, head.chunks, warnings=(*export_file.warnings, *lost))


def repair(target: Target) -> RepairReport:
    """Remove objects that no head references, and rebuild a ledger that is lost or describes another generation.

    Raises:
        IndexMissing: nothing was published for the scope; leftovers of a killed first publication were removed.
        IndexCorrupt: the live generation is damaged.
        IndexLocked: another process is publishing.
    """
    swept = target.store.sweep(target.scope)
    head = target.head()
    if head is None:
        raise IndexMissing(f"Nothing was published for {target.scope} yet, and {swept} leftovers were removed.")
    if not target.store.is_complete(target.scope):
        raise IndexCorrupt(f"The index of {target.scope} is damaged: the next `chapterverse index` builds it again.")
    rebuilt = _rebuild_ledger(target, head) if rows_of(target.ledger, head) is None else 0
    return RepairReport(head, swept, rebuilt)


def unpublish(store: Store, ledger: Ledger, scope: Scope) -> None:
    """Remove a docs version from a store, and from its ledger.

    Raises:
        IndexLocked: another process is publishing.
    """
    store.unpublish(scope)
    ledger.save(scope, 0, (), list(ledger.records(scope)))


def _rebuild_ledger(target: Target, head: Head) -> int:
    rows = unread_rows(target.store.snapshot(target.scope))
    gone = target.ledger.records(target.scope).keys() - rows.keys()
    target.ledger.save(target.scope, head.generation, rows.values(), sorted(gone), head.token)
    return len(rows)
