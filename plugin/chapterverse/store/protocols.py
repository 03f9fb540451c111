"""What the rest of the system needs of a store: snapshots to read, publications to write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from chapterverse.filters import Filter
from chapterverse.model import Chunk, EmbedderCard, Head, Point, Scope, SparseVector

#: Makes a block in which one request runs; it may refuse to begin, by an `IndexUnavailable`.
Asking: TypeAlias = Callable[[], AbstractContextManager[None]]


class Hit(NamedTuple):
    """One result of one search side.

    Attributes:
        score: the engine's own score, comparable within one search only.
        lexical: the point's sparse vector, from which evidence is computed.
    """

    chunk: Chunk
    score: float
    lexical: SparseVector


class Snapshot(Protocol):
    """One generation of one scope, as it was published; stays readable while newer ones are published."""

    @property
    def head(self) -> Head: ...

    def search_lexical(self, vector: SparseVector, limit: int, filters: Filter | None = None) -> list[Hit]:
        """Return the best hits by sum of idf * query weight * document weight, best first, ties by chunk id."""
        ...

    def search_dense(self, vector: Sequence[float], limit: int, filters: Filter | None = None) -> list[Hit]:
        """Return the nearest by cosine, best first, ties by chunk id."""
        ...

    def document_frequencies(self, indices: Sequence[int]) -> list[int]:
        """Return for each hashed term in how many of the generation's chunks it occurs."""
        ...

    def values(self, field: str) -> tuple[str | int, ...]:
        """Return the distinct values of an indexed field in ascending order; of a list field those of its elements."""
        ...

    def page(self, place: str, field: str = "source_file_path") -> list[Chunk]:
        """Return all chunks of a page in order, or those of another field's value, such as one `url`."""
        ...

    def points(self, file_paths: Iterable[str] | None = None) -> Iterator[Point]:
        """Yield the points of these pages, or all, with their vectors, by chunk id."""
        ...

    def vectors(self, embed_hashes: Collection[str]) -> dict[str, tuple[float, ...] | None]:
        """Return the dense vector of each of these hashes that the index holds; None in an index without any."""
        ...


class Publication(Protocol):
    """The only way to write: all changes become visible at once by `commit`, or none of them ever does."""

    @property
    def previous(self) -> Snapshot | None:
        """What readers see until the commit; None for a first publication."""
        ...

    def renew(self) -> None:
        """Say that this publisher is still at work; cheap, and called often while pages are read and embedded.

        Raises:
            IndexLocked: another process took over, because this one was silent for too long.
        """
        ...

    def write(self, points: Sequence[Point]) -> None:
        """Add points, or replace those with the same chunk id."""
        ...

    def delete(self, chunk_ids: Sequence[str]) -> None: ...

    def preview(self) -> Snapshot:
        """Return what would be published now, for fitting the calibration before the commit.

        Of its head only `pages`, `chunks` and `languages` say something. It is good until the next write or commit.
        """
        ...

    def commit(self, head: Head) -> None:
        """Make everything durable, then move the head to it.

        Raises:
            IndexLocked: another process published to the scope meanwhile.
        """
        ...


class Store(Protocol):
    """All generations of all scopes at one place."""

    @property
    def lease_seconds(self) -> float:
        """Seconds for which a publisher that was killed keeps others out; 0 where its death is seen at once."""
        ...

    @property
    def max_age(self) -> float:
        """Seconds for which a service may take the heads for what they were; 0 where a look at them costs nothing."""
        ...

    def heads(self) -> list[Head]:
        """Return the live head of every scope, sorted by scope."""
        ...

    def head(self, scope: Scope) -> Head | None:
        """Return the live head of one scope, even if others are damaged; None if nothing was published.

        Raises:
            IndexMismatch: the index is in a newer format.
            IndexCorrupt: the head is damaged.
        """
        ...

    def snapshot(self, scope: Scope) -> Snapshot:
        """Open what is live now.

        Raises:
            IndexMissing: nothing was published for the scope.
            IndexMismatch: the index is in a newer format.
            IndexCorrupt: its files are damaged.
        """
        ...

    def intact(self, scope: Scope) -> bool:
        """Return whether what is live is whole, by a look that opens nothing; also when nothing was published."""
        ...

    def is_publishing(self, scope: Scope) -> bool:
        """Return whether somebody is publishing to the scope right now."""
        ...

    def publish(self, scope: Scope, embedder: EmbedderCard) -> AbstractContextManager[Publication]:
        """Open a publication; leaving it without a commit leaves no trace.

        Args:
            scope: the head to move.
            embedder: what makes the dense vectors; where the live index is of another, the publication starts empty.

        Raises:
            IndexLocked: another process is publishing to the scope.
        """
        ...

    def unpublish(self, scope: Scope) -> None:
        """Remove the live head of a scope, and then all that it reached; without one nothing happens.

        A reader that has a snapshot open may keep it.

        Raises:
            IndexLocked: another process is publishing to the scope.
        """
        ...

    def sweep(self, scope: Scope) -> int:
        """Remove everything of the scope, of any age, that its head doesn't reach; return how much there was.

        Unlike the clean-up after a publication this waits for no reader, so it is for `repair` alone.

        Raises:
            IndexLocked: another process is publishing to the scope.
        """
        ...


@runtime_checkable
class CachingStore(Protocol):
    """A store that leaves what it opened on this machine, for processes that come later."""

    def open_cached(self) -> list[Snapshot]:
        """Open the whole generations that are there, one of a scope at most, without a request to the store."""
        ...


@runtime_checkable
class GuardedStore(Protocol):
    """A store on a server, which readers may leave alone while it does not answer."""

    def guard(self, asking: Asking) -> None:
        """Run every request from now on in such a block.

        What leaves the block as an `IndexUnavailable` or a `ProviderError` is a failure of the server, and nothing
        else is.
        """
        ...
