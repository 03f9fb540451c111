"""The changes of one run, which `sync` makes step by step. Nothing of the index is written here."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from chapterverse.errors import IndexFault, InputError
from chapterverse.extensions import load_part
from chapterverse.indexing.additions import Enrichment
from chapterverse.indexing.diff import Diff, FileDiff, SourceSet, compare_files, compute_diff
from chapterverse.indexing.page_chunker import ChunksOrError, PageChunker
from chapterverse.indexing.report import Report
from chapterverse.indexing.target import Target
from chapterverse.indexing.vectors import EmbeddingRejected, UnfinishedVectors, Vectors, count_tokens
from chapterverse.ledger import IMPORTED, UNREAD, LedgerRow, rows_of
from chapterverse.model import ENCODER, FAQ, MAX_CHUNK_TOKENS, PAGE, PERSONA, Chunk, Source, embed_hash, utc_now
from chapterverse.progress import Progress
from chapterverse.store import Snapshot

#: Vectors read from a snapshot at once.
_READ_BATCH = 1000
#: Texts shorter than this, in characters, are not cut further, even if the model rejects them as too long.
_MIN_CUT_CHARS = 64


@dataclass(slots=True)
class IndexPlan:
    """The changes of one run: `compare`, `add`, `enrich`, `compute_diff` and `embed` make it, in this order.

    `chunks` and `diff` change again when the model rejects a text as too long.

    Attributes:
        live: the snapshot to reuse vectors from; None before the first publication or after a change of embedder.
        records: each file's row, from the ledger or else made from the index.
        failed: an error message for each unreadable page; such a page keeps the chunks of its last good version.
        stored_chunks: the index's chunks of the files that were read and of the removed files.
        unexpanded: a warning for each page that lost its expansions to the embedder's limit.
    """

    target: Target
    source_set: SourceSet
    live: Snapshot | None
    records: Mapping[str, LedgerRow]
    files: FileDiff
    vectors: Vectors
    failed: Mapping[str, str] = field(default_factory=dict)
    chunks: dict[str, list[Chunk]] = field(default_factory=dict)
    stored_chunks: Sequence[Chunk] = ()
    enrichment: Enrichment = field(default_factory=lambda: Enrichment({}))
    unexpanded: list[str] = field(default_factory=list)
    diff: Diff = field(default_factory=Diff)

    @classmethod
    def compare(cls, source_set: SourceSet, target: Target, live: Snapshot | None) -> IndexPlan:
        """Return the plan of the files that changed, not read yet. Raises `IndexFault` if the live index is damaged."""
        records = _records(target, live)
        files = compare_files(source_set.sources, records, target.pipeline, source_set.keep)
        if live is not None and live.head.embedder.fingerprint != target.card.fingerprint:
            live = None
        return cls(target, source_set, live, records, files, Vectors(UnfinishedVectors(target.unfinished)))

    @property
    def touched(self) -> list[Source]:
        """The sources to read."""
        return [self.source_set.sources[path] for path in self.files.touched]

    @property
    def chunker(self) -> PageChunker:
        return PageChunker(self.target.scope, self.target.card.fingerprint, self.target.sizes)

    def add(self, outcomes: Mapping[str, ChunksOrError]) -> None:
        """Add the chunks or the error of each file that was read. Raises `InputError` if no page can be read."""
        self.failed = {path: outcome for path, outcome in outcomes.items() if isinstance(outcome, str)}
        self.chunks = {path: outcome for path, outcome in outcomes.items() if not isinstance(outcome, str)}
        self.files = self.files.without(self.failed)
        if not (self.chunks.keys() | self.files.unchanged) - self.source_set.document_paths:
            raise InputError(f"No page could be read, so the index stays as it is: {next(iter(self.failed.values()))}")
        if self.live:
            self.stored_chunks = [p.chunk for p in self.live.points(self.files.touched + self.files.removed)]

    def enrich(self, progress: Progress, *, dry_run: bool = False) -> None:
        """Widen the chunks of the pages read by the target's model, if it has one."""
        enricher, live = self.target.enricher, self.live
        if enricher is None:
            return
        is_same = live is not None and enricher.fingerprint in live.head.pipeline.split()
        gone = {*self.files.touched, *self.files.removed}
        other_points = (point for point in live.points() if point.chunk.source_file_path not in gone) if live else ()
        self.enrichment = enricher.enrich(
            self.chunks,
            self.stored_chunks if is_same else (),
            other_points=other_points,
            fingerprint=self.target.card.fingerprint,
            cap=self.target.sizes.cap,
            progress=progress,
            dry_run=dry_run,
        )
        self.chunks = dict(self.enrichment.chunks)

    @property
    def total(self) -> int:
        """Number of chunks in the index after the run."""
        untouched = (self.live.head.chunks if self.live else 0) - len(self.diff.delete)
        return untouched + len({c.chunk_id for c in self.diff.write} - {c.chunk_id for c in self.stored_chunks})

    def compute_diff(self) -> None:
        """Compute the diff, with as many vectors as possible reused from the store."""
        chunks = [c for cs in self.chunks.values() for c in cs]
        anew = self.live is not None and ENCODER not in self.live.head.pipeline.split()
        diff = compute_diff(chunks, self.stored_chunks, (), anew=anew)
        if self.live:
            self._reuse(self.live, diff)
        if self.target.embedder:
            self._reuse_of_others(diff)
        self.diff = compute_diff(chunks, self.stored_chunks, self.vectors.reusable_hashes, anew=anew)

    def embed(self, progress: Progress) -> None:
        """Make the missing vectors. If the model rejects a text as too long, cut its page smaller and compare again.

        Raises:
            ProviderError: the embedder failed, or rejects even the smallest text as too long.
        """
        sizes = dict.fromkeys(self.chunks, self.target.sizes)
        while True:
            try:
                self.vectors.make(self.diff.write, self.target.embedder, progress)
                return
            except EmbeddingRejected as rejection:
                path = rejection.chunk.source_file_path
                if rejection.chunk.expansion:
                    self._drop_expansions(path)
                else:
                    smaller = sizes[path].smaller()
                    if smaller == sizes[path] or len(rejection.chunk.text) < _MIN_CUT_CHARS:
                        raise rejection.__cause__ or rejection from None
                    sizes[path] = smaller
                    self.chunks[path] = self.chunker.chunk(self.source_set.sources[path], smaller)
                self.compute_diff()

    def _drop_expansions(self, path: str) -> None:
        fingerprint = self.target.card.fingerprint
        self.chunks[path] = [
            replace(c, expansion="", embed_hash=embed_hash(fingerprint, c.embed_text)) for c in self.chunks[path]
        ]
        self.unexpanded.append(
            f"{path} is indexed without enrichment: the embedder rejects its texts as too long with it."
        )

    def _reuse(self, snapshot: Snapshot, diff: Diff) -> None:
        hashes = list(self.vectors.find_missing(diff.write))
        for at in range(0, len(hashes), _READ_BATCH):
            self.vectors.reuse(snapshot.vectors(hashes[at : at + _READ_BATCH]))

    def _reuse_of_others(self, diff: Diff) -> None:
        """Reuse vectors of the store's other indexes: most texts of one docs version recur in the next."""
        store, scope = self.target.store, self.target.scope
        if not self.vectors.find_missing(diff.write):
            return
        # Faults of other indexes must not fail this run.
        with contextlib.suppress(IndexFault):
            for other in (head.scope for head in store.heads() if head.scope != scope):
                with contextlib.suppress(IndexFault):
                    if self.vectors.find_missing(diff.write):
                        self._reuse(store.snapshot(other), diff)

    def _repeated_questions(self) -> Iterable[str]:
        """Return a warning for each question that two curated answers claim, if this run changes any answer."""
        new = [c for cs in self.chunks.values() for c in cs if c.type == FAQ]
        if not new:
            return ()
        touched = {*self.files.touched, *self.files.removed}
        old = self.live.page(FAQ, "type") if self.live else []
        answers = [*new, *(c for c in old if c.source_file_path not in touched)]
        warnings: Iterable[str] = load_part("repeated_questions")(
            answers, chunk_is_entry=self.target.sizes.cap >= MAX_CHUNK_TOKENS
        )
        return warnings

    def report(self, generation: int, total: int) -> Report:
        """Return the report of a run after which the index has this generation and number of chunks."""
        old_paths = {self.records[path].content_hash: path for path in self.files.removed}
        counts = {path: self.records[path].chunk_count for path in self.files.unchanged}
        blank = self.source_set.explain_blank(counts | {path: len(chunks) for path, chunks in self.chunks.items()})
        unread = {**self.source_set.left_out, **self.failed, **blank}
        warnings = (*unread.values(), *self.enrichment.warnings, *self.unexpanded, *self._repeated_questions())
        embedder = self.target.embedder
        return Report(
            self.target.scope,
            generation,
            self.files.without(blank),
            self.diff,
            total,
            documents=self.source_set.document_paths,
            left_out=unread,
            embedded=self.vectors.embedded,
            tokens=self.vectors.tokens,
            price=embedder.price if embedder else 0.0,
            renamed={
                path: old_paths[source.content_hash]
                for path in self.files.new
                if (source := self.source_set.sources[path]).content_hash in old_paths
            },
            warnings=warnings,
            enrichment=self.enrichment.report,
        )

    def preview_report(self, generation: int) -> Report:
        """Return the report of a dry run, with the texts left to embed; an unfinished run paid for the others."""
        report = self.report(generation, self.total)
        chunks = {c.embed_hash: c for c in self.diff.write if c.embed_hash in self.diff.embed}
        paid = UnfinishedVectors(self.target.unfinished).read(chunks).keys()
        unpaid = [c for h, c in chunks.items() if h not in paid and c.type != PERSONA]
        return replace(report, embedded=len(unpaid), tokens=count_tokens(unpaid) if report.price else 0)


def _records(target: Target, live: Snapshot | None) -> Mapping[str, LedgerRow]:
    """Return the ledger's rows, or rows made from the index if the ledger describes another generation.

    After a change of embedder no file may be skipped, because every chunk must be written again.
    """
    if live is None:
        return {}
    if live.head.embedder.fingerprint == target.card.fingerprint:
        records = rows_of(target.ledger, live.head)
        if records is not None:
            return records
    return unread_rows(live)


def unread_rows(live: Snapshot) -> dict[str, LedgerRow]:
    """Return a row for each file of an index, marked as unread, so that every file is read again; or as imported."""
    counts, hashes = Counter[str](), dict[str, str]()
    for point in live.points():
        path = point.chunk.source_file_path
        counts[path] += 1
        # The source of an external page offers it again; an imported document has no source to read again.
        is_document = point.chunk.source == "import" and point.chunk.type != PAGE
        hashes[path] = IMPORTED if is_document else UNREAD
    generation, now = live.head.generation, utc_now()
    return {path: LedgerRow(path, hashes[path], n, UNREAD, generation, now) for path, n in counts.items()}
