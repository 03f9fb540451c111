"""Updates an index from its site. `plan` computes the changes; `apply` is the only writer.

    sources ─ compare ─> FileDiff ─ read, cut ─> chunks ─ plan ─> Diff ─ embed, apply ─> store, head ─> ledger

The head in the store is the only truth. The ledger says which files may be skipped and is worth nothing when it was
written for another generation than the head's: then every file is read again, and as chunk ids and embed hashes are
the same on every run, still nothing is embedded twice.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from chapterverse.calibration.sampling import fit
from chapterverse.errors import IndexFault, InputError
from chapterverse.indexing import tuning
from chapterverse.indexing.diff import Diff, FileDiff, Report
from chapterverse.indexing.publish_lease import publishing, renewing
from chapterverse.indexing.reading import PageChunker, SourceSet, cut_all
from chapterverse.indexing.target import Target, row_pipeline
from chapterverse.indexing.vectors import EmbeddingRejected, UnfinishedVectors, Vectors, estimate
from chapterverse.ledger import UNREAD, LedgerRow
from chapterverse.model import NO_LANGUAGE, PERSONA, Chunk, Head, Point, Source, SparseVector, utc_now
from chapterverse.progress import Progress
from chapterverse.store import Publication, Snapshot
from chapterverse.text import lexical
from chapterverse.text.plain import plain

_WRITE_BATCH = 1000
#: Characters below which a text that a model calls too long is not cut any further.
_SHORTEST = 64


def compare(sources: Mapping[str, Source], records: Mapping[str, LedgerRow], pipeline: str) -> FileDiff:
    """Sort files by what the ledger knows of them. Pure."""
    unchanged = {
        path
        for path, source in sources.items()
        if (record := records.get(path))
        and record.content_hash == source.content_hash
        and record.pipeline == row_pipeline(pipeline, source)
    }
    return FileDiff(
        new=tuple(sorted(sources.keys() - records.keys())),
        changed=tuple(sorted((sources.keys() & records.keys()) - unchanged)),
        unchanged=tuple(sorted(unchanged)),
        removed=tuple(sorted(records.keys() - sources.keys())),
    )


def plan(chunks: Iterable[Chunk], stored: Iterable[Chunk], seen: Collection[str], *, anew: bool = False) -> Diff:
    """Compare the chunks that the read files have now with those that the index holds for them. Pure.

    Args:
        chunks: of all files that were read.
        stored: what the live index holds for those files and for the removed ones.
        seen: the `embed_hash`es whose vectors are at hand.
        anew: write also what is the same, because its sparse vector is not.
    """
    wanted = {c.chunk_id: c for c in chunks}
    live = {c.chunk_id: c for c in stored}
    write = tuple(c for i, c in wanted.items() if anew or i not in live or not _same(c, live[i]))
    gone = [c for i, c in live.items() if i not in wanted]
    fresh = Counter(c.embed_hash for c in write if c.chunk_id not in live)
    embed = frozenset(c.embed_hash for c in write).difference(seen)
    return Diff(
        write=write,
        embed=embed,
        moved=max(0, fresh.total() - len(embed)),
        delete=tuple(sorted(c.chunk_id for c in gone)),
        removed=(Counter(c.embed_hash for c in gone) - fresh).total(),
    )


def index(sources: Iterable[Source], target: Target, progress: Progress = lambda *_: None) -> Report:
    """Make the index hold exactly these sources; of two with one path the first counts.

    Raises:
        InputError: there is no page at all, or none can be read; the index stays as it is.
        IndexFault: the index is locked, damaged or of a newer format; nothing was changed.
        ProviderError: the embedder failed; nothing was changed.
    """
    started = time.perf_counter()
    offered = SourceSet.of(sources)
    damaged = not target.store.intact(target.scope)
    report = None if damaged else _nothing_to_do(offered, target)
    if report is None:
        # Locked before anything is embedded, so that the loser of a race has paid for nothing.
        with publishing(target, progress) as publication:
            # A head without anything behind it that could be continued is damaged too.
            damaged = damaged or (publication.previous is None and target.head() is not None)
            progress = renewing(publication, progress)
            changes = _changes(offered, target, publication.previous, progress)
            _embed_missing(changes, target, progress)
            before = tuning.standing(publication, target)
            total = changes.total
            head = apply(changes.diff, changes.vectors, target, publication, progress, expected=total, tuned=before)
            _remember(changes, target, head)
        report = changes.report(head.generation, head.chunks)
        report = replace(report, warnings=(*tuning.lost(before, head), *report.warnings))
        if damaged:
            told = f"The index of {target.scope} was damaged, so all of it was built again."
            report = replace(report, warnings=(told, *report.warnings))
    return replace(report, seconds=time.perf_counter() - started)


def preview(sources: Iterable[Source], target: Target, progress: Progress = lambda *_: None) -> Report:
    """Return what `index` would report, having read what it would read and written nothing."""
    started = time.perf_counter()
    offered = SourceSet.of(sources)
    report = _nothing_to_do(offered, target)
    if report is None:
        head = target.head()
        changes = _changes(offered, target, target.store.snapshot(target.scope) if head else None, progress)
        report = changes.report(head.generation if head else 0, changes.total)
        report = _estimated(report, changes)
    return replace(report, seconds=time.perf_counter() - started)


def _estimated(report: Report, changes: _Changes) -> Report:
    """Return the report with what a run would have to embed, less what an earlier one left behind."""
    chunks = {c.embed_hash: c for c in changes.diff.write if c.embed_hash in changes.diff.embed}
    paid = UnfinishedVectors(changes.target.unfinished).read(chunks).keys()
    left = [c for h, c in chunks.items() if h not in paid and c.type != PERSONA]
    return replace(report, embedded=len(left), tokens=estimate(left) if report.price else 0)


def _nothing_to_do(offered: SourceSet, target: Target) -> Report | None:
    """Return the report of a build that changes nothing: it takes no lock and opens no shard."""
    head = target.head()
    records = target.records(head) if head and target.described_by(head) else None
    if head is None or records is None:
        return None
    files = compare(offered.sources, records, target.pipeline)
    if files.touched or files.removed:
        return None
    skipped = len(offered.warnings)
    pages = files.less(offered.others)
    return Report(target.scope, head.generation, pages, Diff(), head.chunks, skipped, warnings=offered.warnings)


@dataclass(slots=True)
class _Changes:
    """What a run has found out before it writes; `chunks` and `diff` change when a model finds a text too long.

    Attributes:
        live: what may be reused; None where nothing was published yet, or by another embedder.
        records: what the ledger, or else the index, knows of each file.
        failed: what is wrong with the pages that couldn't be read; they keep the chunks of their last good version.
        stored: the index's chunks of the files that were read and of those that are gone.
    """

    target: Target
    offered: SourceSet
    live: Snapshot | None
    records: Mapping[str, LedgerRow]
    files: FileDiff
    failed: Mapping[str, str]
    chunks: dict[str, list[Chunk]]
    stored: Sequence[Chunk]
    vectors: Vectors
    diff: Diff = field(default_factory=Diff)

    @property
    def total(self) -> int:
        """How many chunks the index will hold."""
        kept = (self.live.head.chunks if self.live else 0) - len(self.diff.delete)
        return kept + len({c.chunk_id for c in self.diff.write} - {c.chunk_id for c in self.stored})

    def plan(self) -> None:
        """Plan, with the vectors that the index holds of what must be written."""
        chunks = [c for cs in self.chunks.values() for c in cs]
        anew = self.live is not None and lexical.ENCODER not in self.live.head.pipeline.split()
        diff = plan(chunks, self.stored, (), anew=anew)
        lacking = self.vectors.lacking(diff.write)
        if self.live and lacking:
            self._reuse(self.live, lacking)
            lacking = self.vectors.lacking(diff.write)
        if self.target.embedder and lacking:
            self._reuse_of_others(set(lacking))
        self.diff = plan(chunks, self.stored, self.vectors.known, anew=anew)

    def _reuse(self, snapshot: Snapshot, embed_hashes: Collection[str]) -> None:
        wanted = list(embed_hashes)
        for at in range(0, len(wanted), _WRITE_BATCH):
            self.vectors.reuse(snapshot.vectors(wanted[at : at + _WRITE_BATCH]))

    def _reuse_of_others(self, lacking: set[str]) -> None:
        """Take in what other indexes of the store hold: a version of the docs shares most texts with the one before."""
        target, heads = self.target, list[Head]()
        # Whatever is wrong with another index is none of this one's business.
        with contextlib.suppress(IndexFault):
            heads = target.store.heads()
        for head in heads:
            if lacking and head.scope != target.scope and head.embedder.fingerprint == target.card.fingerprint:
                with contextlib.suppress(IndexFault):
                    self._reuse(target.store.snapshot(head.scope), lacking)
                lacking = lacking.difference(self.vectors.known)

    def report(self, generation: int, total: int) -> Report:
        moved = {r.content_hash: path for path in self.files.removed if (r := self.records[path])}
        warnings = (*self.offered.warnings, *self.failed.values())
        embedder = self.target.embedder
        personas = {c.source_file_path for c in self.stored if c.type == PERSONA}
        return Report(
            self.target.scope,
            generation,
            self.files.less(personas | self.offered.others),
            self.diff,
            total,
            len(warnings),
            embedded=self.vectors.embedded,
            tokens=self.vectors.tokens,
            price=embedder.price if embedder else 0.0,
            renamed={
                path: moved[source.content_hash]
                for path in self.files.new
                if (source := self.offered.sources[path]).content_hash in moved
            },
            warnings=warnings,
        )


def _changes(offered: SourceSet, target: Target, live: Snapshot | None, progress: Progress) -> _Changes:
    records = _records(target, live)
    files = compare(offered.sources, records, target.pipeline)
    chunks: dict[str, list[Chunk]] = {}
    failed: dict[str, str] = {}
    cutter = PageChunker(target.scope, target.card.fingerprint, target.budget)
    for path, cut in cut_all([offered.sources[p] for p in files.touched], cutter, target.workers, progress):
        if isinstance(cut, str):
            failed[path] = cut
        else:
            chunks[path] = cut
    files = files.without(failed)
    if not (chunks.keys() | files.unchanged) - offered.others:
        raise InputError(f"No page could be read, so the index stays as it is: {next(iter(failed.values()))}")
    if live is not None and live.head.embedder.fingerprint != target.card.fingerprint:
        live = None
    stored = [p.chunk for p in live.points(files.touched + files.removed)] if live else []
    vectors = Vectors(UnfinishedVectors(target.unfinished))
    changes = _Changes(target, offered, live, records, files, failed, chunks, stored, vectors)
    changes.plan()
    return changes


def _records(target: Target, live: Snapshot | None) -> Mapping[str, LedgerRow]:
    """Return the ledger's rows, or rows made from the index itself where the ledger speaks of another one.

    An index by another embedder is written anew, so no file of it may be skipped.
    """
    if live is None:
        return {}
    if live.head.embedder.fingerprint == target.card.fingerprint:
        records = target.records(live.head)
        if records is not None:
            return records
    return unread(live)


def unread(live: Snapshot) -> dict[str, LedgerRow]:
    """Return a row for each file of an index, by which every file is read again."""
    counts = Counter(p.chunk.source_file_path for p in live.points())
    return {path: LedgerRow(path, UNREAD, n, UNREAD, live.head.generation, utc_now()) for path, n in counts.items()}


def _embed_missing(changes: _Changes, target: Target, progress: Progress) -> None:
    """Make the missing vectors; a page with a text too long for the model is cut smaller and planned again."""
    cutter = PageChunker(target.scope, target.card.fingerprint, target.budget)
    budgets = dict.fromkeys(changes.chunks, target.budget)
    while True:
        try:
            changes.vectors.make(changes.diff.write, target.embedder, progress)
            return
        except EmbeddingRejected as refusal:
            path = refusal.chunk.source_file_path
            smaller = budgets[path].smaller()
            if smaller == budgets[path] or len(refusal.chunk.text) < _SHORTEST:
                raise refusal.__cause__ or refusal from None
            budgets[path] = smaller
            changes.chunks[path] = cutter.cut(changes.offered.sources[path], smaller)
        changes.plan()


def apply(
    diff: Diff,
    vectors: Vectors,
    target: Target,
    publication: Publication,
    progress: Progress = lambda *_: None,
    *,
    expected: int,
    tuned: Head | None,
) -> Head:
    """Write the diff and move the head; return it.

    Where no chunk differs (white space in the markup, say) the live generation stays.

    Args:
        expected: how many chunks the index must hold then, by which a write that got lost is noticed in time.
        tuned: the head whose calibration and fusion weight are kept if they were measured and still hold; otherwise
            evidence is fitted to the index itself.
    """
    live = publication.previous
    measured = tuning.kept(tuned, target.card)
    if live is not None and diff.empty and target.described_by(live.head) and tuning.holds(live.head, measured):
        return live.head
    now = utc_now()
    for at in range(0, len(diff.write), _WRITE_BATCH):
        progress("Writing chunks", at, len(diff.write))
        batch = [c.stamped(now) for c in diff.write[at : at + _WRITE_BATCH]]
        publication.write([_point(c, vectors) for c in batch])
    progress("Writing chunks", len(diff.write), len(diff.write))
    publication.delete(diff.delete)
    written = publication.preview()
    if written.head.chunks != expected:
        raise IndexFault(
            f"The store holds {written.head.chunks} chunks of {target.scope} instead of {expected}: "
            "nothing was published, run it again."
        )
    languages = written.head.languages
    head = Head(
        site=target.scope.site,
        version=target.scope.version,
        generation=1 + (live.head.generation if live else 0),
        # A persona is one chunk of one file, and no page.
        pages=written.head.pages - (NO_LANGUAGE in languages),
        chunks=written.head.chunks,
        pipeline=target.pipeline,
        embedder=target.card,
        languages=tuple(tag for tag in languages if tag != NO_LANGUAGE),
        base_url=target.base_url,
        published_at=now,
        token=secrets.token_hex(8),
        **(measured or {"calibration": fit(written).to_json()}),
    )
    publication.commit(head)
    return head


def _point(chunk: Chunk, vectors: Vectors) -> Point:
    if chunk.type == PERSONA:
        return Point(chunk, SparseVector((), ()))
    return Point(
        chunk,
        lexical.document_vector(chunk.heading_path, plain(chunk.text), chunk.language),
        vectors[chunk.embed_hash],
    )


def _remember(changes: _Changes, target: Target, head: Head) -> None:
    """Write the ledger's rows of what was read, and forget those of files that the index no longer holds."""
    now = utc_now()
    sources = changes.offered.sources
    rows = [
        LedgerRow(
            path,
            sources[path].content_hash,
            len(changes.chunks[path]),
            row_pipeline(target.pipeline, sources[path]),
            head.generation,
            now,
        )
        for path in changes.files.touched
    ]
    # A page that couldn't be read is still in the index, and must be known when it is removed.
    kept = [changes.records[path] for path in changes.failed if changes.live and path in changes.records]
    known = {row.file_path for row in (*rows, *kept)}.union(changes.files.unchanged)
    gone = target.ledger.records(target.scope).keys() - known
    target.ledger.save(target.scope, head.generation, (*rows, *kept), sorted(gone), head.token)
    UnfinishedVectors(target.unfinished).forget(changes.vectors.made)


def _same(chunk: Chunk, stored: Chunk) -> bool:
    """Whether the stored payload is what would be written now, but for the time of indexing."""
    # A chunk without a date of its own was given that of its indexing, twice.
    return replace(chunk, created_at=chunk.created_at or stored.timestamp, timestamp=stored.timestamp) == stored
