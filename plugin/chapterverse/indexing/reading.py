"""Reads sources and cuts them into chunks, in several processes for many pages."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from typing import TypeAlias

from chapterverse.errors import InputError
from chapterverse.indexing.chunking import CAP, Budget, chunk
from chapterverse.model import PAGE, Chunk, Scope, Source, sound
from chapterverse.progress import Progress

_LONGEST_PATH = 512
#: Pages from which further processes save more than they cost to start, and how many each is given at once.
_MANY, _BATCH = 1000, 50

#: What became of a page: its chunks, or what is wrong with it.
Cut: TypeAlias = "list[Chunk] | str"


@dataclass(frozen=True, slots=True)
class SourceSet:
    """The sources that can be indexed, by path, and what is wrong with the others."""

    sources: Mapping[str, Source]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, sources: Iterable[Source]) -> SourceSet:
        """Sort sources out; of two with one path the first counts. Raises `InputError` if there is none at all."""
        by_path: dict[str, Source] = {}
        warnings: list[str] = []
        for source in sources:
            path = source.file_path
            if not path or len(path) > _LONGEST_PATH or sound(path) != path:
                warnings.append(
                    f"{path[:60]!a} is skipped: a path needs 1 to {_LONGEST_PATH} characters of plain text."
                )
            else:
                by_path.setdefault(path, source)
        if all(source.type != PAGE for source in by_path.values()):
            raise InputError("There is no page to index: the site is empty, or everything in it is excluded.")
        return cls(by_path, tuple(warnings))

    @property
    def others(self) -> frozenset[str]:
        """The paths of what is no page."""
        return frozenset(path for path, source in self.sources.items() if source.type != PAGE)


@dataclass(frozen=True, slots=True)
class PageChunker:
    """How pages become chunks; it travels to other processes as it is."""

    scope: Scope
    fingerprint: str
    budget: Budget

    def cut(self, source: Source, budget: Budget | None = None) -> list[Chunk]:
        """Read a page and return its chunks. Raises `InputError` if it can't be read."""
        if source.type != PAGE:
            # What is never embedded and never searched stays whole, however small the texts of a model must be.
            budget = Budget(CAP, CAP)
        return chunk(source.read(), self.scope, self.fingerprint, budget or self.budget, source.type)

    def cut_each(self, sources: Sequence[Source]) -> list[Cut]:
        """Return what becomes of each page."""
        return [self._cut_or_say(source) for source in sources]

    def _cut_or_say(self, source: Source) -> Cut:
        try:
            return self.cut(source)
        except InputError as error:
            # A page keeps its last good version; there is just one persona, and an old one would speak for the owner.
            if source.type != PAGE:
                raise
            return str(error)


def cut_all(
    sources: Sequence[Source], cutter: PageChunker, workers: int, progress: Progress
) -> Iterator[tuple[str, Cut]]:
    """Yield the path of each page with what becomes of it, in order. Raises `InputError` for a persona that is none."""
    for done, (source, cut) in enumerate(zip(sources, _cut(sources, cutter, workers), strict=True)):
        progress("Reading pages", done, len(sources))
        yield source.file_path, cut
    progress("Reading pages", len(sources), len(sources))


def _cut(sources: Sequence[Source], cutter: PageChunker, workers: int) -> Iterator[Cut]:
    done = 0
    if workers > 1 and len(sources) >= _MANY and _travels(sources[0]):
        try:
            for cut in _cut_by_others(sources, cutter, workers):
                yield cut
                done += 1
            return
        except BrokenExecutor:
            # Another process was killed, for want of memory say: what it had not finished is read here.
            pass
    for source in sources[done:]:
        yield from cutter.cut_each([source])


def _cut_by_others(sources: Sequence[Source], cutter: PageChunker, workers: int) -> Iterator[Cut]:
    # Loaded for very large sites alone.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # Never a fork: this process may hold an open shard, and a child of it hangs (qdrant-edge-py 0.9.0).
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _leave_interrupts_to_the_first_process)
    try:
        for batch in pool.map(cutter.cut_each, [sources[at : at + _BATCH] for at in range(0, len(sources), _BATCH)]):
            yield from batch
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_first_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _travels(source: Source) -> bool:
    """Whether a source can be handed to another process; what a docs generator holds in memory can't."""
    try:
        pickle.dumps(source)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True
