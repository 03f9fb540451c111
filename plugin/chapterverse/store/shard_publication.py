"""Writes to a private copy of the live shard, for the embedded store and the S3 store.

Both publish whole folders that are never written again. They differ in the source of the copy, and in how the copy
becomes the live generation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from chapterverse.errors import ChapterVerseError, IndexCorrupt, IndexFault
from chapterverse.model import EmbedderCard, Point, Scope
from chapterverse.store.files import Manifest

# Opening a shard loads the engine; a build that changes nothing opens none.
if TYPE_CHECKING:
    from chapterverse.store.shard import Shard
    from chapterverse.store.shard_draft import ShardDraft

_T = TypeVar("_T")

_REWRITE_POINTS = 1000


class ShardPublication:
    """All of `chapterverse.store.Publication` but `renew` and `commit`.

    Args:
        place: the path of the draft, in an existing folder.
        live: the sealed folder of `previous`, to start from.
        previous: the generation that readers see; None for a first publication, or if it is damaged.
    """

    def __init__(self, place: Path, live: Path, previous: Shard | None, embedder: EmbedderCard) -> None:
        self.previous = previous
        self._place = place
        self._live = live
        self._embedder = embedder
        self._shard: ShardDraft | None = None

    def write(self, points: Sequence[Point]) -> None:
        with translating_write_errors(self._place.parent):
            self._draft().write(points)

    def delete(self, chunk_ids: Sequence[str]) -> None:
        with translating_write_errors(self._place.parent):
            self._draft().delete(chunk_ids)

    def preview(self) -> Shard:
        with translating_write_errors(self._place.parent):
            self._draft().settle()
        return self._draft()

    def _seal(self) -> None:
        self._draft().seal()
        self._shard = None

    def _close(self) -> None:
        if self._shard is not None:
            self._shard.close()

    def _draft(self) -> ShardDraft:
        """Return the private copy. It is made at the first write, so that one without writes copies nothing."""
        if self._shard is None:
            self._shard = self._new_draft()
        return self._shard

    def _new_draft(self) -> ShardDraft:
        from chapterverse.store.shard_draft import ShardDraft

        card = self._embedder
        if not self.previous or self.previous.head.embedder.fingerprint != card.fingerprint:
            return ShardDraft.create(self._place, card)
        if not Manifest.load(self._live).is_worn(self.previous.head.chunks):
            return ShardDraft.copy(self._live, self._place, card)
        draft = ShardDraft.create(self._place, card)
        points = self.previous.points()
        while batch := list(islice(points, _REWRITE_POINTS)):
            draft.write(batch)
        return draft


def open_live(scope: Scope, live: Callable[[], _T], load: Callable[[_T], Shard]) -> Shard:
    """Open the live generation.

    Args:
        live: returns the record that names it.
        load: opens the generation of a record.

    Raises:
        IndexCorrupt: it is damaged, or was replaced three times meanwhile.
    """
    for _ in range(3):
        record = live()
        try:
            return load(record)
        except IndexCorrupt:
            # The generation may have been removed after its name was read.
            if live() == record:
                raise
    raise IndexCorrupt(f"The index of {scope} moves faster than it can be opened: try again.")


@contextlib.contextmanager
def translating_write_errors(folder: Path) -> Iterator[None]:
    """Turn errors of the disk and of the engine into an `IndexFault`. Readers see no change then."""
    try:
        yield
    except (ChapterVerseError, KeyboardInterrupt, SystemExit):
        raise
    # The engine's panics are no `Exception`.
    except BaseException as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise IndexFault(f"The index in {folder} can't be written ({reason}): nothing was published.") from error
