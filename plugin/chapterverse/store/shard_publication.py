"""Writing on a private copy of the live shard: what the embedded and the S3 store have in common.

Both publish whole folders that are never written again. They differ in where the copy comes from and in how the head
moves to it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from chapterverse.errors import ChapterVerseError, IndexCorrupt, IndexFault
from chapterverse.model import EmbedderCard, Head, Point, Scope
from chapterverse.store.files import Manifest

# Opening a shard loads the engine; a build that changes nothing opens none.
if TYPE_CHECKING:
    from chapterverse.store.shard import Shard
    from chapterverse.store.shard_draft import ShardDraft

T = TypeVar("T")

_REWRITE_BATCH = 1000


class ShardSnapshot:
    """One generation in a folder. Implements `chapterverse.store.Snapshot`; searches are the shard's."""

    def __init__(self, head: Head, shard: Shard) -> None:
        self.head = head
        self.search_lexical = shard.search_lexical
        self.search_dense = shard.search_dense
        self.document_frequencies = shard.document_frequencies
        # A generation never changes, so what was looked up once is known.
        self.values = cache(shard.values)
        self.page = shard.page
        self.points = shard.points
        self.vectors = shard.vectors


class ShardPublication:
    """All of `chapterverse.store.Publication` but `renew` and `commit`.

    Args:
        place: path of the draft, in an existing folder.
        live: the sealed folder of `previous`, to start from.
        previous: the generation that readers see; None for a first publication, or if that is damaged.
    """

    def __init__(self, place: Path, live: Path, previous: ShardSnapshot | None, embedder: EmbedderCard) -> None:
        self.previous = previous
        self._place = place
        self._live = live
        self._embedder = embedder
        self._shard: ShardDraft | None = None

    def write(self, points: Sequence[Point]) -> None:
        with writing(self._place.parent):
            self._draft().write(points)

    def delete(self, chunk_ids: Sequence[str]) -> None:
        with writing(self._place.parent):
            self._draft().delete(chunk_ids)

    def preview(self) -> ShardSnapshot:
        with writing(self._place.parent):
            self._draft().settle()
        census = self._draft().census()
        head = Head("", "", 0, census.pages, census.chunks, "", languages=census.languages)
        return ShardSnapshot(head, self._draft())

    def _seal(self) -> None:
        self._draft().seal()
        self._shard = None

    def _close(self) -> None:
        if self._shard is not None:
            self._shard.close()

    def _draft(self) -> ShardDraft:
        """Return the private copy, made at the first write: a publication that writes nothing copies nothing."""
        if self._shard is None:
            self._shard = self._new_draft()
        return self._shard

    def _new_draft(self) -> ShardDraft:
        from chapterverse.store.shard_draft import ShardDraft

        size = self._embedder.size
        if not self.previous or self.previous.head.embedder.fingerprint != self._embedder.fingerprint:
            return ShardDraft.create(self._place, size)
        if not Manifest.load(self._live).is_worn(self.previous.head.chunks):
            return ShardDraft.copy(self._live, self._place, size)
        draft = ShardDraft.create(self._place, size)
        points = self.previous.points()
        while batch := list(islice(points, _REWRITE_BATCH)):
            draft.write(batch)
        return draft


def open_live(scope: Scope, live: Callable[[], T], load: Callable[[T], ShardSnapshot]) -> ShardSnapshot:
    """Return what `load` opens of the record that names the live generation.

    Raises:
        IndexCorrupt: it is damaged.
    """
    for _ in range(3):
        record = live()
        try:
            return load(record)
        except IndexCorrupt:
            # The generation may have been removed between reading its name and opening it: look again.
            if live() == record:
                raise
    raise IndexCorrupt(f"The index of {scope} moves faster than it can be opened: try again.")


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say in one sentence why the disk refused; nothing that readers see has changed then."""
    try:
        yield
    except (ChapterVerseError, KeyboardInterrupt, SystemExit):
        raise
    # The engine's panics are no `Exception`.
    except BaseException as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise IndexFault(f"The index in {folder} can't be written ({reason}): nothing was published.") from error
