"""Keeping an index true to its site: `plan` says what must change (pure), `apply` changes it (the only writer).

    sources ─ compare ─> FileDiff ─ read, chunk ─> chunks ─ plan ─> Diff ─ embed, apply ─> store, head ─> ledger

The head in the store is the only truth. The ledger says which files may be skipped and is worth nothing when it was
written for another generation than the head's: then every file is read again, and as chunk ids and embed hashes are
the same on every run, still nothing is embedded twice.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from chapterverse import evidence, lexical
from chapterverse.chunking import CAP, TARGET, Budget, chunk
from chapterverse.diff import Diff, FileDiff, Report
from chapterverse.embedding import Embedder, Vector, open_embedder
from chapterverse.errors import ConfigurationError, InputError, TextTooLong
from chapterverse.ledger import Ledger, Record, open_ledger
from chapterverse.model import Chunk, EmbedderCard, Head, Page, Point, Scope, Source, SparseVector
from chapterverse.settings import Settings
from chapterverse.store import Publication, Snapshot, Store, open_store

#: Changes when readers or the lexical encoder make something else of the same input; then every file is read again.
READER = "reader/1 terms/1"
#: Texts handed to the embedder at once, so that progress is seen; the embedder slices further as its API demands.
_EMBED_BATCH = 96
_WRITE_BATCH = 1000
#: Characters below which a text that a model calls too long is not cut any further.
_SHORTEST = 64

#: Called with (what is being done, how many are done, how many there are).
Progress = Callable[[str, int, int], None]


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
        store = open_store(settings.store)
        ledger = open_ledger(settings.ledger, settings.store)
        return cls(scope, store, ledger, open_embedder(settings), Budget(target=chunk_tokens), base_url)

    @property
    def card(self) -> EmbedderCard:
        return self.embedder.card if self.embedder else EmbedderCard()

    @property
    def pipeline(self) -> str:
        return f"{READER} {self.budget.fingerprint} {self.card.fingerprint}"


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


def plan(chunks: Iterable[Chunk], stored: Iterable[Chunk], seen: Collection[str]) -> Diff:
    """Compare the chunks that the read files have now with those that the index holds for them. Pure.

    Args:
        chunks: of all files that were read.
        stored: what the live index holds for those files and for the removed ones.
        seen: the `embed_hash`es whose vectors are at hand.
    """
    wanted = {c.chunk_id: c for c in chunks}
    live = {c.chunk_id: c for c in stored}
    write = tuple(c for i, c in wanted.items() if i not in live or not _same(c, live[i]))
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
        InputError: there is no page at all; the index stays as it is.
        IndexFault: the index is locked, damaged or of a newer format; nothing was changed.
        ProviderError: the embedder failed; nothing was changed.
    """
    started = time.perf_counter()
    by_path = _by_path(sources)
    report = _nothing_to_do(by_path, target)
    if report is None:
        # Locked before anything is embedded, so that the loser of a race has paid for nothing.
        with target.store.publish(target.scope, target.card) as publication:
            report = _run(by_path, target, publication, progress)
    return replace(report, seconds=time.perf_counter() - started)


def preview(sources: Iterable[Source], target: Target, progress: Progress = lambda *_: None) -> Report:
    """Return what `index` would report, having read what it would read and written nothing."""
    started = time.perf_counter()
    by_path = _by_path(sources)
    report = _nothing_to_do(by_path, target)
    if report is None:
        live = target.store.snapshot(target.scope) if _head(target) else None
        changes = _changes(by_path, target, live, progress)
        fresh = {c.chunk_id for c in changes.diff.write} - {c.chunk_id for c in changes.stored}
        total = (live.head.chunks if live else 0) + len(fresh) - len(changes.diff.delete)
        generation = live.head.generation if live else 0
        report = Report(target.scope, generation, changes.files, changes.diff, total, warnings=changes.warnings)
    return replace(report, seconds=time.perf_counter() - started)


def _by_path(sources: Iterable[Source]) -> dict[str, Source]:
    by_path: dict[str, Source] = {}
    for source in sources:
        by_path.setdefault(source.file_path, source)
    if not by_path:
        raise InputError("There is no page to index: the site is empty, or everything in it is excluded.")
    return by_path


def _head(target: Target) -> Head | None:
    return next((h for h in target.store.heads() if h.scope == target.scope), None)


def _nothing_to_do(sources: Mapping[str, Source], target: Target) -> Report | None:
    """Return the report of a build that changes nothing: it takes no lock and opens no shard."""
    head = _head(target)
    if head is None or head.base_url != target.base_url or target.ledger.generation(target.scope) != head.generation:
        return None
    files = compare(sources, target.ledger.records(target.scope), target.pipeline)
    if files.touched or files.removed:
        return None
    return Report(target.scope, head.generation, files, Diff(), head.chunks)


@dataclass(slots=True)
class _Changes:
    """What a run has found out before it writes. `chunks` and `diff` change when a model finds a text too long."""

    files: FileDiff
    pages: Mapping[str, Page]
    chunks: dict[str, list[Chunk]]
    stored: Sequence[Chunk]
    vectors: dict[str, Vector | None]
    diff: Diff
    warnings: tuple[str, ...]


def _changes(sources: Mapping[str, Source], target: Target, live: Snapshot | None, progress: Progress) -> _Changes:
    files = compare(sources, _records(target, live), target.pipeline)
    pages, failed = _read(files.touched, sources, progress)
    files = _without(files, failed)
    chunks = {path: _chunk(page, target, target.budget) for path, page in pages.items()}
    stored, vectors = _stored(live, {*files.touched, *files.removed}, target)
    diff = plan((c for cs in chunks.values() for c in cs), stored, vectors)
    return _Changes(files, pages, chunks, stored, vectors, diff, tuple(failed.values()))


def _run(sources: Mapping[str, Source], target: Target, publication: Publication, progress: Progress) -> Report:
    live = publication.previous
    changes = _changes(sources, target, live, progress)
    _embed_missing(changes, target, progress)
    generation, total = apply(changes.diff, changes.vectors, target, publication, progress)
    if live is None or target.ledger.generation(target.scope) != live.head.generation:
        # Rows of another generation: of files, perhaps, that nobody offers any more.
        target.ledger.reset(target.scope)
    rows = [_row(sources[path], target, generation, len(changes.chunks[path])) for path in changes.files.touched]
    target.ledger.save(target.scope, generation, rows, changes.files.removed)
    return Report(target.scope, generation, changes.files, changes.diff, total, warnings=changes.warnings)


def apply(
    diff: Diff,
    vectors: Mapping[str, Vector | None],
    target: Target,
    publication: Publication,
    progress: Progress,
) -> tuple[int, int]:
    """Write the diff and move the head; return its generation and how many chunks it holds.

    Where no chunk differs (white space in the markup, say) the live generation stays.
    """
    live = publication.previous
    if live is not None and diff.empty and live.head.base_url == target.base_url:
        return live.head.generation, live.head.chunks
    now = _now()
    for at in range(0, len(diff.write), _WRITE_BATCH):
        progress("Writing chunks", at, len(diff.write))
        batch = [c.stamped(now) for c in diff.write[at : at + _WRITE_BATCH]]
        publication.write([Point(c, _lexical(c), vectors[c.embed_hash]) for c in batch])
    progress("Writing chunks", len(diff.write), len(diff.write))
    publication.delete(diff.delete)
    preview = publication.preview()
    languages = {c.language for c in diff.write} | set(live.head.languages if live else ())
    head = Head(
        site=target.scope.site,
        version=target.scope.version,
        generation=1 + (live.head.generation if live else 0),
        pages=preview.head.pages,
        chunks=preview.head.chunks,
        pipeline=target.pipeline,
        embedder=target.card,
        languages=tuple(sorted(languages)) or ("en",),
        calibration=evidence.fit(preview).to_json(),
        base_url=target.base_url,
        published_at=now,
    )
    publication.commit(head)
    return head.generation, head.chunks


def _records(target: Target, live: Snapshot | None) -> dict[str, Record]:
    """Return the ledger's rows, or rows made from the index itself where the ledger speaks of another generation."""
    if live is None:
        return {}
    if target.ledger.generation(target.scope) == live.head.generation:
        return target.ledger.records(target.scope)
    counts = Counter(p.chunk.source_file_path for p in live.points())
    return {path: Record(path, "", n, "", live.head.generation, "") for path, n in counts.items()}


def _read(
    paths: Sequence[str], sources: Mapping[str, Source], progress: Progress
) -> tuple[dict[str, Page], dict[str, str]]:
    """Read pages; one that can't be read is told about, and keeps the chunks of its last good version."""
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


def _without(files: FileDiff, failed: Mapping[str, str]) -> FileDiff:
    return replace(
        files,
        new=tuple(p for p in files.new if p not in failed),
        changed=tuple(p for p in files.changed if p not in failed),
    )


def _chunk(page: Page, target: Target, budget: Budget) -> list[Chunk]:
    return chunk(page, target.scope, target.card.fingerprint, budget)


def _stored(
    live: Snapshot | None, paths: Collection[str], target: Target
) -> tuple[list[Chunk], dict[str, Vector | None]]:
    """Return the index's chunks of these files, and every vector it holds by `embed_hash`."""
    if live is None or live.head.embedder.fingerprint != target.card.fingerprint:
        return [], {}
    owned: list[Chunk] = []
    vectors: dict[str, Vector | None] = {}
    for point in live.points():
        vectors[point.chunk.embed_hash] = point.dense
        if point.chunk.source_file_path in paths:
            owned.append(point.chunk)
    return owned, vectors


def _embed_missing(changes: _Changes, target: Target, progress: Progress) -> None:
    """Add the missing vectors; a page with a text too long for the model is cut smaller and planned again."""
    seen = frozenset(changes.vectors)
    budgets = dict.fromkeys(changes.pages, target.budget)
    while True:
        missing = {c.embed_hash: c for c in changes.diff.write if c.embed_hash not in changes.vectors}
        try:
            _embed(list(missing.values()), target.embedder, changes.vectors, progress)
        except _Refused as refusal:
            path = refusal.chunk.source_file_path
            budgets[path] = budgets[path].smaller()
            changes.chunks[path] = _chunk(changes.pages[path], target, budgets[path])
            changes.diff = plan((c for cs in changes.chunks.values() for c in cs), changes.stored, seen)
            continue
        return


class _Refused(Exception):
    """The model refused this chunk's text as too long."""

    def __init__(self, chunk: Chunk) -> None:
        super().__init__(chunk.chunk_id)
        self.chunk = chunk


def _embed(
    missing: Sequence[Chunk], embedder: Embedder | None, vectors: dict[str, Vector | None], progress: Progress
) -> None:
    if embedder is None:
        vectors.update({c.embed_hash: None for c in missing})
        return
    for at in range(0, len(missing), _EMBED_BATCH):
        progress("Embedding chunks", at, len(missing))
        batch = missing[at : at + _EMBED_BATCH]
        try:
            found = embedder.embed_documents([c.embed_text for c in batch])
        except TextTooLong as error:
            if len(batch[error.position].text) < _SHORTEST:
                raise
            raise _Refused(batch[error.position]) from error
        vectors.update(zip((c.embed_hash for c in batch), found, strict=True))
    progress("Embedding chunks", len(missing), len(missing))


def _lexical(chunk: Chunk) -> SparseVector:
    return lexical.document_vector(chunk.heading_path, chunk.text, chunk.language)


def _same(chunk: Chunk, stored: Chunk) -> bool:
    """Whether the stored payload is what would be written now, but for the time of indexing."""
    return replace(chunk, created_at=chunk.created_at or stored.created_at, timestamp=stored.timestamp) == stored


def _row(source: Source, target: Target, generation: int, chunk_count: int) -> Record:
    pipeline = _row_pipeline(target.pipeline, source)
    return Record(source.file_path, source.content_hash, chunk_count, pipeline, generation, _now())


def _row_pipeline(pipeline: str, source: Source) -> str:
    """Return 64 hex digits over all that decides a file's points besides its content."""
    return hashlib.sha256(f"{pipeline}\n{source.context}".encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
