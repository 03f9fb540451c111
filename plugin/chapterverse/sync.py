"""Keeping an index true to its site: `plan` says what must change (pure), `apply` changes it (the only writer).

    sources ─ compare ─> FileDiff ─ read, chunk ─> chunks ─ plan ─> Diff ─ embed, apply ─> store, head ─> ledger

The head in the store is the only truth. The ledger says which files may be skipped and is worth nothing when it was
written for another generation than the head's: then every file is read again, and as chunk ids and embed hashes are
the same on every run, still nothing is embedded twice.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from chapterverse import evidence, lexical
from chapterverse.chunking import CAP, TARGET, Budget, chunk
from chapterverse.diff import Diff, FileDiff, Report
from chapterverse.embedding import Embedder, Vector, open_embedder
from chapterverse.errors import ConfigurationError, InputError
from chapterverse.ledger import Ledger, Record, open_ledger
from chapterverse.model import Chunk, EmbedderCard, Head, Page, Point, Scope, Source, sound, utc_now
from chapterverse.progress import Progress
from chapterverse.settings import Settings
from chapterverse.store import Publication, Snapshot, Store, open_store
from chapterverse.vectors import Refused, embed

#: Changes when readers or the chunker make something else of the same input; then every file is read again.
READER = "reader/1"
#: The hash in the ledger of a file whose content is not known: it equals no other.
_UNREAD = "0" * 64
_LONGEST_PATH = 512
_WRITE_BATCH = 1000
#: Characters below which a text that a model calls too long is not cut any further.
_SHORTEST = 64


@dataclass(frozen=True, slots=True)
class Target:
    """Where and how to index; `base_url` is remembered so that `serve` can rewrite citations to its own origin."""

    scope: Scope
    store: Store
    ledger: Ledger
    embedder: Embedder | None = None
    budget: Budget = field(default_factory=Budget)
    base_url: str = ""

    @classmethod
    def open(cls, settings: Settings, scope: Scope, base_url: str, chunk_tokens: int = TARGET) -> Target:
        """Return the target that the settings describe.

        Raises:
            ConfigurationError: a name is unknown, a key is missing, or the chunk size is out of range.
            IndexFault: the ledger can't be used.
        """
        if not 32 <= chunk_tokens <= CAP:
            raise ConfigurationError(f"chunk_tokens must be between 32 and {CAP}.")
        if sound(str(scope)) != str(scope):
            raise ConfigurationError("The names of a site and of its version must be text without control characters.")
        store = open_store(settings)
        ledger = open_ledger(settings)
        embedder = open_embedder(settings)
        # A model counts tokens in its own way, but a text far over its limit would only be sent to be refused.
        limit = (embedder.card.limit if embedder else 0) or CAP
        budget = Budget(min(chunk_tokens, limit), min(CAP, limit))
        return cls(scope, store, ledger, embedder, budget, base_url)

    @property
    def card(self) -> EmbedderCard:
        return self.embedder.card if self.embedder else EmbedderCard()

    @property
    def pipeline(self) -> str:
        return f"{READER} {lexical.ENCODER} {self.budget.fingerprint} {self.card.fingerprint}"


def compare(sources: Mapping[str, Source], records: Mapping[str, Record], pipeline: str) -> FileDiff:
    """Sort files by what the ledger knows of them. Pure."""
    unchanged = {
        path
        for path, source in sources.items()
        if (record := records.get(path))
        and record.content_hash == source.content_hash
        and record.pipeline == _row_pipeline(pipeline, source)
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
    offered = _offered(sources)
    damaged = not target.store.intact(target.scope)
    report = None if damaged else _nothing_to_do(offered, target)
    if report is None:
        # Locked before anything is embedded, so that the loser of a race has paid for nothing.
        with target.store.publish(target.scope, target.card) as publication:
            changes = _changes(offered, target, publication.previous, progress)
            _embed_missing(changes, target, progress)
            head = apply(changes.diff, changes.vectors, target, publication, progress)
            _remember(changes, offered, target, head)
        report = changes.report(target.scope, head.generation, head.chunks)
        if damaged:
            told = f"The index of {target.scope} was damaged, so all of it was built again."
            report = replace(report, warnings=(told, *report.warnings))
    return replace(report, seconds=time.perf_counter() - started)


def preview(sources: Iterable[Source], target: Target, progress: Progress = lambda *_: None) -> Report:
    """Return what `index` would report, having read what it would read and written nothing."""
    started = time.perf_counter()
    offered = _offered(sources)
    report = _nothing_to_do(offered, target)
    if report is None:
        head = _head(target)
        changes = _changes(offered, target, target.store.snapshot(target.scope) if head else None, progress)
        report = changes.report(target.scope, head.generation if head else 0, changes.total)
    return replace(report, seconds=time.perf_counter() - started)


@dataclass(frozen=True, slots=True)
class _Offered:
    """The sources that can be indexed, by path, and what is wrong with the others."""

    sources: Mapping[str, Source]
    warnings: tuple[str, ...]


def _offered(sources: Iterable[Source]) -> _Offered:
    by_path: dict[str, Source] = {}
    warnings: list[str] = []
    for source in sources:
        path = source.file_path
        if not path or len(path) > _LONGEST_PATH or sound(path) != path:
            warnings.append(f"{path[:60]!a} is skipped: a path needs 1 to {_LONGEST_PATH} characters of plain text.")
        else:
            by_path.setdefault(path, source)
    if not by_path:
        raise InputError("There is no page to index: the site is empty, or everything in it is excluded.")
    return _Offered(by_path, tuple(warnings))


def _head(target: Target) -> Head | None:
    return next((h for h in target.store.heads() if h.scope == target.scope), None)


def _nothing_to_do(offered: _Offered, target: Target) -> Report | None:
    """Return the report of a build that changes nothing: it takes no lock and opens no shard."""
    head = _head(target)
    if head is None or not _describes(head, target) or not _written_for(head, target):
        return None
    files = compare(offered.sources, target.ledger.records(target.scope), target.pipeline)
    if files.touched or files.removed:
        return None
    skipped = len(offered.warnings)
    return Report(target.scope, head.generation, files, Diff(), head.chunks, skipped, warnings=offered.warnings)


@dataclass(slots=True)
class _Changes:
    """What a run has found out before it writes; `chunks` and `diff` change when a model finds a text too long.

    Attributes:
        live: what may be reused; None where nothing was published yet, or by another embedder.
        records: what the ledger, or else the index, knows of each file.
        failed: what is wrong with the pages that couldn't be read; they keep the chunks of their last good version.
        stored: the index's chunks of the files that were read and of those that are gone.
        vectors: the vectors at hand, by `embed_hash`.
    """

    live: Snapshot | None
    records: Mapping[str, Record]
    files: FileDiff
    pages: Mapping[str, Page]
    failed: Mapping[str, str]
    chunks: dict[str, list[Chunk]]
    stored: Sequence[Chunk]
    vectors: dict[str, Vector | None]
    warnings: tuple[str, ...]
    diff: Diff = field(default_factory=Diff)

    @property
    def total(self) -> int:
        """How many chunks the index will hold."""
        kept = (self.live.head.chunks if self.live else 0) - len(self.diff.delete)
        return kept + len({c.chunk_id for c in self.diff.write} - {c.chunk_id for c in self.stored})

    def plan(self, made: Collection[str] = ()) -> None:
        """Plan, with the vectors that the index holds of what must be written; those `made` in this run are new."""
        chunks = [c for cs in self.chunks.values() for c in cs]
        anew = self.live is not None and lexical.ENCODER not in self.live.head.pipeline.split()
        write = plan(chunks, self.stored, (), anew=anew).write
        lacking = {c.embed_hash for c in write} - self.vectors.keys()
        if self.live and lacking:
            self.vectors.update(self.live.vectors(lacking))
        self.diff = plan(chunks, self.stored, self.vectors.keys() - made, anew=anew)

    def report(self, scope: Scope, generation: int, total: int) -> Report:
        warnings = (*self.warnings, *self.failed.values())
        return Report(scope, generation, self.files, self.diff, total, len(warnings), warnings=warnings)


def _changes(offered: _Offered, target: Target, live: Snapshot | None, progress: Progress) -> _Changes:
    records = _records(target, live)
    files = compare(offered.sources, records, target.pipeline)
    pages, failed = _read(files.touched, offered.sources, progress)
    files = files.without(failed)
    if not pages and not files.unchanged:
        raise InputError(f"No page could be read, so the index stays as it is: {next(iter(failed.values()))}")
    if live is not None and live.head.embedder.fingerprint != target.card.fingerprint:
        live = None
    changes = _Changes(
        live=live,
        records=records,
        files=files,
        pages=pages,
        failed=failed,
        chunks={path: chunk(p, target.scope, target.card.fingerprint, target.budget) for path, p in pages.items()},
        stored=[p.chunk for p in live.points(files.touched + files.removed)] if live else [],
        vectors={},
        warnings=offered.warnings,
    )
    changes.plan()
    return changes


def _records(target: Target, live: Snapshot | None) -> Mapping[str, Record]:
    """Return the ledger's rows, or rows made from the index itself where the ledger speaks of another one.

    An index by another embedder is written anew, so no file of it may be skipped.
    """
    if live is None:
        return {}
    if live.head.embedder.fingerprint == target.card.fingerprint and _written_for(live.head, target):
        return target.ledger.records(target.scope)
    counts = Counter(p.chunk.source_file_path for p in live.points())
    return {path: Record(path, _UNREAD, n, "", live.head.generation, utc_now()) for path, n in counts.items()}


def _read(
    paths: Sequence[str], sources: Mapping[str, Source], progress: Progress
) -> tuple[dict[str, Page], dict[str, str]]:
    """Read pages; return them, and for each that can't be read what is wrong with it."""
    pages: dict[str, Page] = {}
    failed: dict[str, str] = {}
    for done, path in enumerate(paths):
        progress("Reading pages", done, len(paths))
        try:
            pages[path] = sources[path].read()
        except InputError as error:
            failed[path] = str(error)
    progress("Reading pages", len(paths), len(paths))
    return pages, failed


def _embed_missing(changes: _Changes, target: Target, progress: Progress) -> None:
    """Add the missing vectors; a page with a text too long for the model is cut smaller and planned again."""
    budgets = dict.fromkeys(changes.pages, target.budget)
    made: dict[str, Vector | None] = {}
    while True:
        missing = {c.embed_hash: c for c in changes.diff.write if c.embed_hash not in changes.vectors}
        try:
            embed(list(missing.values()), target.embedder, made, progress)
            return
        except Refused as refusal:
            path = refusal.chunk.source_file_path
            smaller = budgets[path].smaller()
            if smaller == budgets[path] or len(refusal.chunk.text) < _SHORTEST:
                raise refusal.__cause__ or refusal from None
            budgets[path] = smaller
            changes.chunks[path] = chunk(changes.pages[path], target.scope, target.card.fingerprint, smaller)
        finally:
            changes.vectors.update(made)
        changes.plan(made)


def apply(
    diff: Diff,
    vectors: Mapping[str, Vector | None],
    target: Target,
    publication: Publication,
    progress: Progress,
) -> Head:
    """Write the diff and move the head; return it.

    Where no chunk differs (white space in the markup, say) the live generation stays.
    """
    live = publication.previous
    if live is not None and diff.empty and _describes(live.head, target):
        return live.head
    now = utc_now()
    for at in range(0, len(diff.write), _WRITE_BATCH):
        progress("Writing chunks", at, len(diff.write))
        batch = [c.stamped(now) for c in diff.write[at : at + _WRITE_BATCH]]
        publication.write(
            [
                Point(c, lexical.document_vector(c.heading_path, c.text, c.language), vectors[c.embed_hash])
                for c in batch
            ]
        )
    progress("Writing chunks", len(diff.write), len(diff.write))
    publication.delete(diff.delete)
    written = publication.preview()
    head = Head(
        site=target.scope.site,
        version=target.scope.version,
        generation=1 + (live.head.generation if live else 0),
        pages=written.head.pages,
        chunks=written.head.chunks,
        pipeline=target.pipeline,
        embedder=target.card,
        languages=written.head.languages,
        calibration=evidence.fit(written).to_json(),
        base_url=target.base_url,
        published_at=now,
        token=secrets.token_hex(8),
    )
    publication.commit(head)
    return head


def _remember(changes: _Changes, offered: _Offered, target: Target, head: Head) -> None:
    """Write the ledger's rows of what was read, and forget those of files that the index no longer holds."""
    now = utc_now()
    rows = [
        Record(
            path,
            source.content_hash,
            len(changes.chunks[path]),
            _row_pipeline(target.pipeline, source),
            head.generation,
            now,
        )
        for path in changes.files.touched
        if (source := offered.sources[path])
    ]
    # A page that couldn't be read is still in the index, and must be known when it is removed.
    kept = [changes.records[path] for path in changes.failed if changes.live and path in changes.records]
    known = {row.file_path for row in (*rows, *kept)}.union(changes.files.unchanged)
    gone = target.ledger.records(target.scope).keys() - known
    target.ledger.save(target.scope, head.generation, (*rows, *kept), sorted(gone), head.token)


def _written_for(head: Head, target: Target) -> bool:
    """Whether the ledger speaks of this very head: a number alone may be another index's."""
    ledger, scope = target.ledger, target.scope
    return ledger.generation(scope) == head.generation and ledger.token(scope) == head.token


def _describes(head: Head, target: Target) -> bool:
    return head.base_url == target.base_url and head.embedder.fingerprint == target.card.fingerprint


def _same(chunk: Chunk, stored: Chunk) -> bool:
    """Whether the stored payload is what would be written now, but for the time of indexing."""
    return replace(chunk, created_at=chunk.created_at or stored.created_at, timestamp=stored.timestamp) == stored


def _row_pipeline(pipeline: str, source: Source) -> str:
    """Return 64 hex digits over all that decides a file's points besides its content."""
    return hashlib.sha256(f"{pipeline}\n{source.context}".encode(errors="surrogatepass")).hexdigest()
