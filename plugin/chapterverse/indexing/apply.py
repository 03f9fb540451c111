"""Takes the lease of an index, writes a difference, moves the head and then the ledger.

What a run of `sync` publishes passes here, and what rooms import, repair or calibrate takes the same lease. A publisher
waits for another's lease, and renews its own.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from chapterverse.calibration import Calibration
from chapterverse.errors import ChapterVerseError, IndexCorrupt, IndexFault, IndexLocked
from chapterverse.indexing.diff import Diff
from chapterverse.indexing.evidence_fit import fit_to_index
from chapterverse.indexing.plan import IndexPlan
from chapterverse.indexing.target import Target, row_pipeline
from chapterverse.indexing.vectors import UnfinishedVectors, Vectors
from chapterverse.ledger import UNREAD, LedgerRow
from chapterverse.model import (
    ENCODER,
    INDEX_TYPES,
    NO_LANGUAGE,
    PAGE,
    PERSONA,
    Chunk,
    EmbedderCard,
    Head,
    Point,
    Scope,
    SparseVector,
    utc_now,
)
from chapterverse.progress import WAITING, Progress
from chapterverse.store import Publication, Snapshot
from chapterverse.text import lexical
from chapterverse.text.markdown import plain

_WRITE_BATCH = 1000
#: Seconds between two renewals.
_RENEWAL_SECONDS = 2.0


def apply(
    diff: Diff,
    vectors: Vectors,
    target: Target,
    publication: Publication,
    progress: Progress,
    *,
    chunks: int,
    export_head: Head | None = None,
) -> tuple[Head, list[str]]:
    """Write the diff and move the head; return it, and a warning if a measured calibration was lost.

    The live generation stays if no chunk differs, for example after a change of white space in the markup. A measured
    calibration and fusion weight are kept while they hold; otherwise evidence is fitted to the index itself.

    Args:
        chunks: number of chunks that the index must hold afterwards; a mismatch means that a write was lost.
        export_head: of an export, whose calibration comes before the index's own.

    Raises:
        IndexFault: the store holds another number of chunks than expected; nothing was published.
    """
    live = publication.previous
    # A damaged index still has its calibration in its head.
    before = live.head if live else _live_head(target)
    measured = measured_fields(export_head, target.card) or measured_fields(before, target.card)
    if live is not None and diff.empty and target.matches(live.head) and has_values(live.head, measured):
        return live.head, []
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
    return head, _warn_of_lost_calibration(before, head)


@contextlib.contextmanager
def publishing(target: Target, progress: Progress) -> Iterator[Publication]:
    """Open a publication, after another publisher if need be, and renew its lease until the block ends.

    Raises:
        IndexLocked: another process is publishing, or published while this one waited.
    """
    before, waited, reasons = _live_head(target), 0.0, dict[bool, str]()
    with contextlib.ExitStack() as stack:
        while True:
            try:
                publication = stack.enter_context(target.store.publish(target.scope, target.card))
                break
            except IndexLocked as locked:
                if waited > target.store.lease_seconds or not target.store.lease_seconds:
                    raise
                reason = reasons.setdefault(locked.killed, _reason(target.scope, locked))
                # 0.1 s longer, because the server's clock counts whole seconds.
                pause = min(_RENEWAL_SECONDS, locked.seconds + 0.1) if locked.seconds else _RENEWAL_SECONDS
            progress(reason, int(waited), int(target.store.lease_seconds))
            time.sleep(pause)
            waited += pause
        if _live_head(target) != before:
            # The diff may be based on an older generation than the live one.
            raise IndexLocked(f"Another process published {target.scope} meanwhile: run it again.")
        stack.enter_context(_alive(publication))
        yield publication


def renewing(publication: Publication, progress: Progress) -> Progress:
    """Return a progress callback that also renews the lease: a run that lost it stops before it pays for more."""

    def report(stage: str, done: int, total: int) -> None:
        publication.renew()
        progress(stage, done, total)

    return report


def has_values(head: Head, values: Mapping[str, Any]) -> bool:
    """Whether a head has these field values."""
    return all(getattr(head, name) == value for name, value in values.items())


def measured_fields(head: Head | None, card: EmbedderCard) -> dict[str, Any]:
    """Return the measured calibration and fusion weight as head fields, empty if none were measured or none hold.

    They hold until the embedder or the rules for words change.
    """
    if head is None or not _is_measured(head):
        return {}
    if head.embedder.fingerprint != card.fingerprint or ENCODER not in head.pipeline.split():
        return {}
    return {"calibration": head.calibration, "fusion_weight": head.fusion_weight}


def _is_measured(head: Head) -> bool:
    """Whether a head's calibration was made from questions, and not fitted to the index itself."""
    return bool(Calibration.from_json(head.calibration).questions)


def _warn_of_lost_calibration(before: Head | None, after: Head) -> list[str]:
    """Return a warning if a calibration by questions was replaced by one fitted to the index itself."""
    if before is None or not _is_measured(before) or _is_measured(after):
        return []
    warning = (
        f"The calibration of {after.scope} was made for another embedder, or for words read by other rules, so it was"
        " replaced: run `chapterverse calibrate` again."
    )
    return [warning]


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


def remember(plan: IndexPlan, target: Target, head: Head) -> None:
    """Write the ledger rows of the files read, and remove those of files that the index no longer holds."""
    now = utc_now()
    sources = plan.source_set.sources
    rows = [
        LedgerRow(
            path,
            sources[path].content_hash,
            len(plan.chunks[path]),
            # A later run enriches the pages for which the model failed.
            UNREAD if path in plan.enrichment.unfinished else row_pipeline(target.pipeline, sources[path]),
            head.generation,
            now,
        )
        for path in plan.files.touched
    ]
    # What was not read stays in the index, and its row for the day it is removed: an unreadable page, an imported
    # document, what the run keeps without a source. Another embedder starts with an empty index.
    kept = plan.records.keys() - {*plan.files.unchanged, *plan.files.removed, *plan.chunks} if plan.live else ()
    rows += [plan.records[path] for path in sorted(kept)]
    gone = target.ledger.records(target.scope).keys() - {row.file_path for row in rows}.union(plan.files.unchanged)
    target.ledger.save(target.scope, head.generation, rows, sorted(gone), head.token)
    UnfinishedVectors(target.unfinished).forget(plan.vectors.new_hashes)


def _reason(scope: Scope, error: IndexLocked) -> str:
    """Return a progress message with the time until which this publisher waits, and why."""
    until = (datetime.now(UTC) + timedelta(seconds=error.seconds)).strftime("%H:%M:%S")
    if error.killed:
        return f"{WAITING} until {until} UTC for what a killed publisher of {scope} may have sent"
    return f"{WAITING} for another publisher of {scope}: until {until} UTC, if it was killed"


def _live_head(target: Target) -> Head | None:
    """Return the live head; None if there is none or it is damaged."""
    with contextlib.suppress(IndexCorrupt):
        return target.head()
    return None


@contextlib.contextmanager
def _alive(publication: Publication) -> Iterator[None]:
    """Renew the lease from a thread, because a call to a model may block for minutes."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(_RENEWAL_SECONDS):
            # The next beat tries again. If the lease is lost, the next write raises.
            with contextlib.suppress(ChapterVerseError):
                publication.renew()

    # A second Ctrl-C doesn't wait for a renewal.
    pulse = threading.Thread(target=beat, daemon=True)
    pulse.start()
    try:
        yield
    finally:
        done.set()
        pulse.join()
