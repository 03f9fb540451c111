"""Updates an index from its sources. `plan` computes the changes; `apply` is the only writer.

    sources ─ compare ─> FileDiff ─ read, cut ─> chunks ─ plan ─> Diff ─ embed, apply ─> store, head ─> ledger

The head in the store is the only truth. The ledger lists the files that a run may skip. A run ignores a ledger written
for another generation and reads every file again. It still embeds nothing twice, because chunk ids and embed hashes are
the same on every run.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from chapterverse.calibration.sampling import fit
from chapterverse.errors import IndexFault, InputError
from chapterverse.indexing import tuning
from chapterverse.indexing.diff import Diff, FileDiff, Report
from chapterverse.indexing.publish_lease import publishing, renewing
from chapterverse.indexing.reading import Keep, PageChunker, SourceSet, cut_all, keep_none
from chapterverse.indexing.target import Target, row_pipeline
from chapterverse.indexing.vectors import EmbeddingRejected, UnfinishedVectors, Vectors, estimate
from chapterverse.knowledge.questions import repeated_questions
from chapterverse.ledger import IMPORTED, UNREAD, LedgerRow
from chapterverse.model import (
    FAQ,
    INDEX_TYPES,
    NO_LANGUAGE,
    PAGE,
    PERSONA,
    Chunk,
    Head,
    Point,
    Source,
    SparseVector,
    embed_hash,
    utc_now,
)
from chapterverse.progress import Progress
from chapterverse.store import Publication, Snapshot
from chapterverse.text import lexical
from chapterverse.text.plain import plain

if TYPE_CHECKING:
    from chapterverse.enrichment.pages import Enrichment

_WRITE_BATCH = 1000
#: Texts shorter than this, in characters, are not cut further, even if the model rejects them as too long.
_SHORTEST = 64


def compare(
    sources: Mapping[str, Source], records: Mapping[str, LedgerRow], pipeline: str, keep: Keep = keep_none
) -> FileDiff:
    """Sort files into new, changed, unchanged and removed by their ledger rows. Pure."""
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
        removed=tuple(
            sorted(p for p in records.keys() - sources.keys() if records[p].content_hash != IMPORTED and not keep(p))
        ),
    )


def plan(chunks: Iterable[Chunk], stored: Iterable[Chunk], seen: Collection[str], *, anew: bool = False) -> Diff:
    """Compare the chunks of the files just read with those that the index stores for these files. Pure.

    Args:
        chunks: of all files that were read.
        stored: the live index's chunks of those files and of the removed ones.
        seen: the `embed_hash`es whose vectors are available without embedding.
        anew: also write unchanged chunks, because the sparse encoder changed.
    """
    chunks_by_id = {c.chunk_id: c for c in chunks}
    live = {c.chunk_id: c for c in stored}
    write = tuple(c for i, c in chunks_by_id.items() if anew or i not in live or not _same(c, live[i]))
    gone = [c for i, c in live.items() if i not in chunks_by_id]
    new_hashes = Counter(c.embed_hash for c in write if c.chunk_id not in live)
    embed = frozenset(c.embed_hash for c in write).difference(seen)
    return Diff(
        write=write,
        embed=embed,
        moved=max(0, new_hashes.total() - len(embed)),
        delete=tuple(sorted(c.chunk_id for c in gone)),
        removed=(Counter(c.embed_hash for c in gone) - new_hashes).total(),
    )


def index(
    sources: Iterable[Source], target: Target, progress: Progress = lambda *_: None, keep: Keep = keep_none
) -> Report:
    """Make the index hold exactly these sources. Of two sources with one path the first counts.

    Args:
        keep: whether a file of the index that is none of these sources stays.

    Raises:
        InputError: there is no page, or none can be read; the index stays as it is.
        IndexFault: the index is locked, damaged or of a newer format; nothing was changed.
        ProviderError: the embedder failed; nothing was changed.
    """
    started = time.perf_counter()
    source_set = SourceSet.of(sources, keep)
    damaged = not target.store.intact(target.scope)
    report = None if damaged else _nothing_to_do(source_set, target)
    if report is None:
        # Lock before embedding, so that the loser of a race pays for nothing.
        with publishing(target, progress) as publication:
            # A head without a snapshot to continue from is damaged too.
            damaged = damaged or (publication.previous is None and target.head() is not None)
            progress = renewing(publication, progress)
            changes = _changes(source_set, target, publication.previous, progress)
            _embed_missing(changes, target, progress)
            before = tuning.previous_head(publication, target)
            total = changes.total
            head = apply(changes.diff, changes.vectors, target, publication, progress, expected=total, tuned=before)
            _remember(changes, target, head)
        report = changes.report(head.generation, head.chunks)
        report = replace(report, warnings=(*tuning.lost(before, head), *report.warnings))
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
    report = _nothing_to_do(source_set, target)
    if report is None:
        head = target.head()
        snapshot = target.store.snapshot(target.scope) if head else None
        changes = _changes(source_set, target, snapshot, progress, dry_run=True)
        report = changes.report(head.generation if head else 0, changes.total)
        report = _estimated(report, changes)
    return replace(report, seconds=time.perf_counter() - started)


def _estimated(report: Report, changes: _Changes) -> Report:
    """Return the report with the number of texts left to embed, less those paid for by an unfinished run."""
    chunks = {c.embed_hash: c for c in changes.diff.write if c.embed_hash in changes.diff.embed}
    paid = UnfinishedVectors(changes.target.unfinished).read(chunks).keys()
    unpaid = [c for h, c in chunks.items() if h not in paid and c.type != PERSONA]
    return replace(report, embedded=len(unpaid), tokens=estimate(unpaid) if report.price else 0)


def _nothing_to_do(source_set: SourceSet, target: Target) -> Report | None:
    """Return the report if no file changed, else None. Takes no lock and opens no shard."""
    head = target.head()
    records = target.records(head) if head and target.described_by(head) else None
    if head is None or records is None:
        return None
    files = compare(source_set.sources, records, target.pipeline, source_set.keep)
    if files.touched or files.removed:
        return None
    skipped = len(source_set.warnings)
    pages = files.less(source_set.others)
    return Report(target.scope, head.generation, pages, Diff(), head.chunks, skipped, warnings=source_set.warnings)


@dataclass(slots=True)
class _Changes:
    """The changes of one run before it writes. `chunks` and `diff` change when the model rejects a text as too long.

    Attributes:
        live: the snapshot to reuse vectors from; None before the first publication or after a change of embedder.
        records: each file's row, from the ledger or else made from the index.
        failed: an error message for each unreadable page; such a page keeps the chunks of its last good version.
        stored: the index's chunks of the files that were read and of the removed files.
        narrowed: a warning for each page that lost its expansions to the embedder's limit.
    """

    target: Target
    source_set: SourceSet
    live: Snapshot | None
    records: Mapping[str, LedgerRow]
    files: FileDiff
    failed: Mapping[str, str]
    chunks: dict[str, list[Chunk]]
    stored: Sequence[Chunk]
    vectors: Vectors
    enrichment: Enrichment | None = None
    narrowed: list[str] = field(default_factory=list)
    diff: Diff = field(default_factory=Diff)

    @property
    def unfinished(self) -> Collection[str]:
        """Pages whose enrichment a later run tries again."""
        return self.enrichment.unfinished if self.enrichment else ()

    @property
    def total(self) -> int:
        """Number of chunks in the index after the run."""
        untouched = (self.live.head.chunks if self.live else 0) - len(self.diff.delete)
        return untouched + len({c.chunk_id for c in self.diff.write} - {c.chunk_id for c in self.stored})

    def plan(self) -> None:
        """Compute the diff, with as many vectors as possible reused from the store."""
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

    def narrow(self, path: str) -> None:
        """Drop the expansions of a page, because the model rejects one of its texts as too long with them."""
        fingerprint = self.target.card.fingerprint
        self.chunks[path] = [
            replace(c, expansion="", embed_hash=embed_hash(fingerprint, c.embed_text)) for c in self.chunks[path]
        ]
        self.narrowed.append(
            f"{path} is indexed without enrichment: the embedder rejects its texts as too long with it."
        )
        self.plan()

    def _reuse(self, snapshot: Snapshot, embed_hashes: Collection[str]) -> None:
        hashes = list(embed_hashes)
        for at in range(0, len(hashes), _WRITE_BATCH):
            self.vectors.reuse(snapshot.vectors(hashes[at : at + _WRITE_BATCH]))

    def _reuse_of_others(self, lacking: set[str]) -> None:
        """Reuse vectors of the store's other indexes: most texts of one docs version recur in the next."""
        target, heads = self.target, list[Head]()
        # Faults of other indexes must not fail this run.
        with contextlib.suppress(IndexFault):
            heads = target.store.heads()
        for head in heads:
            if lacking and head.scope != target.scope and head.embedder.fingerprint == target.card.fingerprint:
                with contextlib.suppress(IndexFault):
                    self._reuse(target.store.snapshot(head.scope), lacking)
                lacking = lacking.difference(self.vectors.known)

    def _questions(self) -> list[Chunk]:
        """Return all curated answers of the index if this run changes any."""
        new = [c for cs in self.chunks.values() for c in cs if c.type == FAQ]
        touched = {*self.files.touched, *self.files.removed}
        old = self.live.page(FAQ, "type") if new and self.live else []
        return [*new, *(c for c in old if c.source_file_path not in touched)]

    def report(self, generation: int, total: int) -> Report:
        old_paths = {r.content_hash: path for path in self.files.removed if (r := self.records[path])}
        unread = (*self.source_set.warnings, *self.failed.values())
        enriched = self.enrichment.warnings if self.enrichment else ()
        warnings = (*unread, *enriched, *self.narrowed, *repeated_questions(self._questions()))
        embedder = self.target.embedder
        documents = {c.source_file_path for c in self.stored if c.type != PAGE}
        return Report(
            self.target.scope,
            generation,
            self.files.less(documents | self.source_set.others),
            self.diff,
            total,
            len(unread),
            embedded=self.vectors.embedded,
            tokens=self.vectors.tokens,
            price=embedder.price if embedder else 0.0,
            renamed={
                path: old_paths[source.content_hash]
                for path in self.files.new
                if (source := self.source_set.sources[path]).content_hash in old_paths
            },
            warnings=warnings,
            enrichment=self.enrichment.report if self.enrichment else None,
        )


def _changes(
    source_set: SourceSet, target: Target, live: Snapshot | None, progress: Progress, *, dry_run: bool = False
) -> _Changes:
    records = _records(target, live)
    files = compare(source_set.sources, records, target.pipeline, source_set.keep)
    chunks: dict[str, list[Chunk]] = {}
    failed: dict[str, str] = {}
    chunker = PageChunker(target.scope, target.card.fingerprint, target.budget)
    for path, cut in cut_all([source_set.sources[p] for p in files.touched], chunker, target.workers, progress):
        if isinstance(cut, str):
            failed[path] = cut
        else:
            chunks[path] = cut
    files = files.without(failed)
    if not (chunks.keys() | files.unchanged) - source_set.others:
        raise InputError(f"No page could be read, so the index stays as it is: {next(iter(failed.values()))}")
    if live is not None and live.head.embedder.fingerprint != target.card.fingerprint:
        live = None
    stored = [p.chunk for p in live.points(files.touched + files.removed)] if live else []
    enrichment = _enriched(chunks, stored, live, files, target, progress, dry_run=dry_run) if target.enricher else None
    chunks = dict(enrichment.chunks) if enrichment else chunks
    vectors = Vectors(UnfinishedVectors(target.unfinished))
    changes = _Changes(target, source_set, live, records, files, failed, chunks, stored, vectors, enrichment)
    changes.plan()
    return changes


def _enriched(
    chunks: Mapping[str, list[Chunk]],
    stored: Sequence[Chunk],
    live: Snapshot | None,
    files: FileDiff,
    target: Target,
    progress: Progress,
    *,
    dry_run: bool,
) -> Enrichment:
    """Return the chunks of the pages read, widened by the target's model."""
    # Other runs do without it.
    from chapterverse.enrichment.pages import enrich

    assert target.enricher is not None
    is_same = live is not None and target.enricher.fingerprint in live.head.pipeline.split()
    gone = {*files.touched, *files.removed}
    others = (point for point in live.points() if point.chunk.source_file_path not in gone) if live else ()
    return enrich(
        chunks,
        stored if is_same else (),
        others,
        target.enricher,
        target.card.fingerprint,
        target.budget.cap,
        progress,
        dry_run=dry_run,
    )


def _records(target: Target, live: Snapshot | None) -> Mapping[str, LedgerRow]:
    """Return the ledger's rows, or rows made from the index where the ledger describes another generation.

    After a change of embedder no file may be skipped, because every chunk must be written again.
    """
    if live is None:
        return {}
    if live.head.embedder.fingerprint == target.card.fingerprint:
        records = target.records(live.head)
        if records is not None:
            return records
    return unread(live)


def unread(live: Snapshot) -> dict[str, LedgerRow]:
    """Return a row for each file of an index, marked as unread, so that every file is read again; or as imported."""
    counts, hashes = Counter[str](), dict[str, str]()
    for point in live.points():
        path = point.chunk.source_file_path
        counts[path] += 1
        # A page from beyond the site has a source, which is offered again; an imported document has none.
        is_document = point.chunk.source == "import" and point.chunk.type != PAGE
        hashes[path] = IMPORTED if is_document else UNREAD
    generation, now = live.head.generation, utc_now()
    return {path: LedgerRow(path, hashes[path], n, UNREAD, generation, now) for path, n in counts.items()}


def _embed_missing(changes: _Changes, target: Target, progress: Progress) -> None:
    """Make the missing vectors. Cut a page smaller and plan again if the model rejects one of its texts as too long."""
    chunker = PageChunker(target.scope, target.card.fingerprint, target.budget)
    budgets = dict.fromkeys(changes.chunks, target.budget)
    while True:
        try:
            changes.vectors.make(changes.diff.write, target.embedder, progress)
            return
        except EmbeddingRejected as rejection:
            path = rejection.chunk.source_file_path
            if rejection.chunk.expansion:
                changes.narrow(path)
                continue
            smaller = budgets[path].smaller()
            if smaller == budgets[path] or len(rejection.chunk.text) < _SHORTEST:
                raise rejection.__cause__ or rejection from None
            budgets[path] = smaller
            changes.chunks[path] = chunker.cut(changes.source_set.sources[path], smaller)
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
    """Write the diff, move the head and return it.

    The live generation stays if no chunk differs, for example after a change of white space in the markup.

    Args:
        expected: number of chunks that the index must hold afterwards; a mismatch means that a write was lost.
        tuned: the head whose measured calibration and fusion weight are kept while they hold; otherwise evidence is
            fitted to the index itself.

    Raises:
        IndexFault: the store holds another number of chunks than expected; nothing was published.
    """
    live = publication.previous
    measured = tuning.valid_fields(tuned, target.card)
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
        pages=written.head.pages - _documents(written),
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


def _remember(changes: _Changes, target: Target, head: Head) -> None:
    """Write the ledger rows of the files read, and remove those of files that the index no longer holds."""
    now = utc_now()
    sources = changes.source_set.sources
    rows = [
        LedgerRow(
            path,
            sources[path].content_hash,
            len(changes.chunks[path]),
            # A later run tries again what the model could not be asked for.
            UNREAD if path in changes.unfinished else row_pipeline(target.pipeline, sources[path]),
            head.generation,
            now,
        )
        for path in changes.files.touched
    ]
    # An unreadable page is still in the index, so its row stays for the day the page is removed.
    kept = (path for path in changes.records.keys() - sources.keys() if changes.source_set.keep(path))
    remaining = (*changes.failed, *kept) if changes.live else ()
    unread_rows = [changes.records[path] for path in remaining if path in changes.records]
    # Another embedder starts with an empty index.
    imported = [path for path, row in changes.records.items() if changes.live and row.content_hash == IMPORTED]
    known = {row.file_path for row in (*rows, *unread_rows)}.union(changes.files.unchanged, imported)
    gone = target.ledger.records(target.scope).keys() - known
    target.ledger.save(target.scope, head.generation, (*rows, *unread_rows), sorted(gone), head.token)
    UnfinishedVectors(target.unfinished).forget(changes.vectors.made)


def _same(chunk: Chunk, stored: Chunk) -> bool:
    """Whether the stored payload equals the new one, except for the time of indexing."""
    # The time of indexing is stored as `created_at` too where a page states no date.
    return replace(chunk, created_at=chunk.created_at or stored.timestamp, timestamp=stored.timestamp) == stored
