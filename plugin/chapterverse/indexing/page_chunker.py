"""Reads sources and cuts them into chunks, in several processes for large sites."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from typing import TypeAlias

from chapterverse.errors import InputError, PageTooLarge, UnreadablePage
from chapterverse.indexing.chunking import ChunkSizes, chunk
from chapterverse.model import MAX_CHUNK_TOKENS, PERSONA, Chunk, Scope, Source, is_storable
from chapterverse.progress import Progress

#: Pages from which worker processes save more time than their start costs, and pages per task.
_MANY, _BATCH = 1000, 50

#: A page's chunks, or its error message.
ChunksOrError: TypeAlias = "list[Chunk] | str"


@dataclass(frozen=True, slots=True)
class PageChunker:
    """The parameters that turn pages into chunks. It is pickled for worker processes."""

    scope: Scope
    fingerprint: str
    sizes: ChunkSizes

    def chunk(self, source: Source, sizes: ChunkSizes | None = None) -> list[Chunk]:
        """Read a page and return its chunks. Raises `InputError` if the page can't be read."""
        if source.type == PERSONA:
            # The persona is never embedded, so it stays one chunk however small the model's limit is.
            sizes = ChunkSizes(MAX_CHUNK_TOKENS, MAX_CHUNK_TOKENS)
        try:
            page = source.read()
        except PageTooLarge as error:
            raise error.of_page(source.file_path) from None
        # What can't be stored is replaced in a page's texts. A fact or a language must be right or absent.
        if not is_storable((page.language, page.facts)):
            raise UnreadablePage(f"{source.file_path}: its front matter holds a character that is no text: remove it.")
        return chunk(page, self.scope, self.fingerprint, sizes or self.sizes, source.type)

    def try_to_chunk(self, source: Source) -> ChunksOrError:
        """Return a page's chunks or error message. Raises `InputError` for an unreadable persona."""
        try:
            return self.chunk(source)
        except InputError as error:
            # An unreadable page keeps its last good version. An outdated persona would speak for the owner, so the run
            # fails.
            if source.type == PERSONA:
                raise
            return str(error)


def chunk_all(
    sources: Sequence[Source], chunker: PageChunker, workers: int, progress: Progress
) -> Iterator[tuple[str, ChunksOrError]]:
    """Yield each page's path with its chunks or error message. Raises `InputError` for an unreadable persona."""
    for done, (source, outcome) in enumerate(zip(sources, _chunk_each(sources, chunker, workers), strict=True)):
        progress("Reading pages", done, len(sources))
        yield source.file_path, outcome
    progress("Reading pages", len(sources), len(sources))


def _chunk_each(sources: Sequence[Source], chunker: PageChunker, workers: int) -> Iterator[ChunksOrError]:
    done = 0
    if workers > 1 and len(sources) >= _MANY and _is_picklable(sources[0]):
        try:
            for outcome in _chunk_in_processes(sources, chunker, workers):
                yield outcome
                done += 1
            return
        except BrokenExecutor:
            # A worker was killed, for example for lack of memory: this process reads the rest.
            pass
    yield from map(chunker.try_to_chunk, sources[done:])


def _chunk_in_processes(sources: Sequence[Source], chunker: PageChunker, workers: int) -> Iterator[ChunksOrError]:
    # Imported here, because only very large sites need them.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # Never fork: this process may hold an open shard, and a forked child would hang (qdrant-edge-py 0.9.0).
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _ignore_interrupts)
    try:
        yield from pool.map(chunker.try_to_chunk, sources, chunksize=_BATCH)
    finally:
        pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _is_picklable(source: Source) -> bool:
    """Whether a source can be pickled. The in-memory pages of a docs generator can't."""
    try:
        pickle.dumps(source)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True
