"""Stores hold the points of indexes. A reader opens a *snapshot*, one whole generation, a publisher a *publication*.

There is one protocol with several implementations. The scheme of `settings.store` chooses one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable
from urllib.parse import quote

from chapterverse.errors import ConfigurationError, IndexCorrupt, IndexLocked, IndexMismatch, IndexMissing
from chapterverse.extensions import open_offer
from chapterverse.model import FORMAT, PERSONA, Chunk, EmbedderCard, Head, Point, Scope, SparseVector
from chapterverse.project import build_command
from chapterverse.settings import Settings
from chapterverse.text.json_text import INTEGERS, SURROGATE, parse_json

if TYPE_CHECKING:
    from chapterverse.filters import Filter

_T = TypeVar("_T")

#: The folder of a site or version whose name is empty.
_EMPTY_NAME = "@"
#: Longer names of sites and versions are shortened, because a folder's name may not be long.
_MAX_NAME_CHARS = 100
#: Results that are ranked beyond the limit, so that a tie at the limit is noticed.
_TIE_MARGIN = 16
#: Returns the context manager around one request, such as a circuit breaker's. It may raise `IndexUnavailable` at once.
RequestGuard: TypeAlias = Callable[[], AbstractContextManager[None]]


class Hit(NamedTuple):
    """One result of a search by words or by vectors.

    Attributes:
        score: the engine's own score, comparable within one search only.
        lexical: the point's sparse vector, from which evidence is computed.
    """

    chunk: Chunk
    score: float
    lexical: SparseVector


class Snapshot(Protocol):
    """One generation of one scope, as it was published. It stays readable while newer ones are published."""

    @property
    def head(self) -> Head: ...

    def search_lexical(self, vector: SparseVector, limit: int, filters: Filter | None = None) -> list[Hit]:
        """Return the best hits by sum of idf * query weight * document weight, best first, ties by chunk id."""
        ...

    def search_dense(self, vector: Sequence[float], limit: int, filters: Filter | None = None) -> list[Hit]:
        """Return the nearest hits by cosine, best first, ties by chunk id."""
        ...

    def document_frequencies(self, indices: Sequence[int]) -> list[int]:
        """Return for each hashed term the number of chunks of the generation in which it occurs."""
        ...

    def values(self, field: str) -> tuple[str | int, ...]:
        """Return the distinct values of an indexed field, or of its elements if it is a list, in ascending order."""
        ...

    def page(self, value: str, field: str = "source_file_path") -> list[Chunk]:
        """Return all chunks of a page in order, or all chunks with this value in another field, such as a `url`."""
        ...

    def points(self, file_paths: Iterable[str] | None = None) -> Iterator[Point]:
        """Yield the points of these pages with their vectors, in the order of their chunk ids; None yields all."""
        ...

    def vectors(self, embed_hashes: Collection[str]) -> dict[str, tuple[float, ...] | None]:
        """Return the dense vectors of those of these hashes that the index holds; None if it has no dense vectors."""
        ...


class Publication(Protocol):
    """The only way to write. `commit` makes all changes visible at once; without it none of them ever is."""

    @property
    def previous(self) -> Snapshot | None:
        """The generation that readers see until the commit; None for a first publication."""
        ...

    def renew(self) -> None:
        """Renew the lease. Cheap; call it often while pages are read and embedded.

        Raises:
            IndexLocked: another process took over, because this one did not renew its lease in time.
        """
        ...

    def write(self, points: Sequence[Point]) -> None:
        """Add points, or replace those with the same chunk id."""
        ...

    def delete(self, chunk_ids: Sequence[str]) -> None: ...

    def preview(self) -> Snapshot:
        """Return the generation as a commit would publish it now, to fit the calibration before the commit.

        Its head has only `pages`, `chunks` and `languages`. It is valid until the next write or commit.
        """
        ...

    def commit(self, head: Head) -> None:
        """Make everything durable, then make it the live generation.

        Raises:
            IndexLocked: another process published to the scope meanwhile.
        """
        ...


class Store(Protocol):
    """All generations of all scopes at one place."""

    @property
    def identity(self) -> str:
        """The place, equal for two spellings of one."""
        ...

    @property
    def lease_seconds(self) -> float:
        """How long a killed publisher blocks others, in seconds; 0 if they see at once that it has ended."""
        ...

    @property
    def max_age(self) -> float:
        """How long a service may cache the heads, in seconds; 0 if reading them is cheap."""
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
        """Open the live generation.

        Raises:
            IndexMissing: nothing was published for the scope.
            IndexMismatch: the index is in a newer format.
            IndexCorrupt: its files are damaged.
        """
        ...

    def is_complete(self, scope: Scope) -> bool:
        """Return whether the live generation is complete, without opening it; true if nothing was published."""
        ...

    def is_publishing(self, scope: Scope) -> bool:
        """Return whether a process is publishing to the scope right now."""
        ...

    def publish(self, scope: Scope, embedder: EmbedderCard) -> AbstractContextManager[Publication]:
        """Open a publication. If it ends without a commit, it leaves no trace.

        Args:
            scope: the scope to publish to.
            embedder: the embedder of the dense vectors. If it is not that of the live index, the publication starts
                empty.

        Raises:
            IndexLocked: another process is publishing to the scope.
        """
        ...

    def unpublish(self, scope: Scope) -> None:
        """Remove the live head of a scope, and then its generations. Without a head do nothing.

        A reader with an open snapshot may keep it.

        Raises:
            IndexLocked: another process is publishing to the scope.
        """
        ...

    def sweep(self, scope: Scope) -> int:
        """Remove everything of the scope that its head doesn't reach, and return the number of items.

        Unlike the clean-up after a publication this waits for no reader, so only `repair` calls it.

        Raises:
            IndexLocked: another process is publishing to the scope.
        """
        ...


@runtime_checkable
class CachingStore(Protocol):
    """A store that caches opened generations on this machine for later processes."""

    def open_cached(self) -> list[Snapshot]:
        """Open the complete generations in the cache, at most one of a scope, without a request to the store."""
        ...


@runtime_checkable
class GuardedStore(Protocol):
    """A remote store whose requests can run behind a circuit breaker."""

    def guard(self, request_guard: RequestGuard) -> None:
        """Run every further request in a context that `request_guard` returns.

        Only an `IndexUnavailable` or a `ProviderError` that leaves the context is a failure of the server.
        """
        ...


def open_store(settings: Settings) -> Store:
    """Return the store that `settings.store` names. Nothing is read or sent yet. Raises as `open_offer` does."""
    store: Store = open_offer("store", settings, protocol=Store)
    return store


def only_scope(store: Store, site: str = "", version: str | None = None, *, place: str = "") -> Scope:
    """Return the scope in a store that `site` and `version` name, as `only_head` does."""
    return only_head(store.heads(), site, version, place=place).scope


def only_head(heads: Sequence[Head], site: str = "", version: str | None = None, *, place: str = "") -> Head:
    """Return the one of these heads that `site` and `version` name. Either may be omitted if only one matches.

    Args:
        place: of the store, as `Settings.store` names it, for the message.

    Raises:
        IndexMissing: nothing matches.
        ConfigurationError: more than one matches; the message lists them.
    """
    matches = [h for h in heads if (not site or h.site == site) and (version is None or h.version == version)]
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(f"{h.site!r} version {h.version!r}" for h in matches or heads)
    if matches:
        raise ConfigurationError(f"The store holds {names}: say which with --site and --docs-version.")
    if heads:
        raise IndexMissing(f"The store holds nothing for that site and version, only {names}.")
    raise IndexMissing(f"There is no index yet in {_display(place)}: run {build_command(Path())}.")


def _display(place: str) -> str:
    """Return an embedded store's folder in full, because it is often another than the build's."""
    kind, _, folder = place.partition(":")
    return str(Path(folder).resolve()) if kind == "edge" else place or "the store"


def folder_name(name: str) -> str:
    """Return a name for a file system or bucket. It differs for each site or version, and is never a path."""
    quoted = quote(name, safe="", errors="surrogatepass").replace(".", "%2E")
    if len(quoted) > _MAX_NAME_CHARS:
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
        return f"{quoted[:64]}={digest[:32]}"
    return quoted or _EMPTY_NAME


def encode_head(head: Head, **fields: Any) -> bytes:
    """Return the document of a head, with further fields; `parse_head_document` is its inverse."""
    return json.dumps({**fields, "head": asdict(head)}, ensure_ascii=False, indent=1, sort_keys=True).encode()


def parse_head_document(raw: bytes, place: object) -> tuple[Head, dict[str, Any]]:
    """Return the head that a document holds, and the document.

    Args:
        place: the place of the document, for messages.

    Raises:
        IndexMismatch: it is in a newer format.
        IndexCorrupt: it is damaged.
    """
    with translating_errors(describe_damage(place)):
        document = parse_json(raw)
        return parse_head(document["head"]), document


def parse_head(fields: Mapping[str, Any]) -> Head:
    """Return the head with these fields, of JSON.

    Raises:
        IndexMismatch: it is in a newer format.
        KeyError, TypeError, ValueError: a field is missing, unknown, or not of its type.
    """
    if int(fields["format"]) > FORMAT:
        raise IndexMismatch(
            f"The index is in format {fields['format']}, this release reads up to {FORMAT}: upgrade chapterverse."
        )
    parts = {"embedder": EmbedderCard(**fields["embedder"]), "languages": tuple(fields["languages"])}
    head = Head(**{**fields, **parts})
    card, numbers = head.embedder, (*dict(head.calibration).values(), head.fusion_weight)
    names = (head.site, head.version, card.name, card.space, *head.languages)
    texts = (head.pipeline, head.base_url, head.published_at, head.token)
    counts = (head.generation, head.pages, head.chunks, card.size, card.limit)
    if not all(isinstance(text, str) for text in (*names, *texts)):
        raise TypeError
    if not all(isinstance(n, int | float) for n in numbers) or not all(type(n) is int and n >= 0 for n in counts):
        raise ValueError
    return head


@contextlib.contextmanager
def translating_errors(damage: str) -> Iterator[None]:
    """Raise `IndexCorrupt` with a message if a stored document lacks a field, or holds a value of another type."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError):
        raise IndexCorrupt(damage) from None


def describe_damage(place: object) -> str:
    """Return the message for a damaged head at this place."""
    return f"{place} is damaged: build the index again."


def missing_error(scope: Scope) -> IndexMissing:
    """Return the error of a scope without a head."""
    return IndexMissing(f"Nothing was published for {scope} yet: index the site first.")


def check_next(head: Head, previous: Head | None) -> None:
    """Raise `IndexLocked` if a head does not follow the one that was live when its publication began."""
    if head.generation != (previous.generation if previous else 0) + 1:
        raise overtaken_error(head)


def overtaken_error(head: Head) -> IndexLocked:
    """Return the error of a publication that lost a race against another one."""
    return IndexLocked(f"Generation {head.generation} of {head.scope} was published meanwhile: run it again.")


def check_point(point: Point, dense_size: int) -> None:
    """Raise `IndexMismatch` if a vector is malformed, or of another size than the index's.

    The engine would accept such a point and break.
    """
    indices, values, dense = point.lexical.indices, point.lexical.values, point.dense
    ascending = all(a < b for a, b in pairwise(indices))
    bounded = not indices or (indices[0] >= 0 and indices[-1] < 2**32)
    is_valid = len(indices) == len(values) and ascending and bounded and all(map(math.isfinite, values))
    if not is_valid or not all(map(math.isfinite, dense or ())):
        raise IndexMismatch(f"The vectors of chunk {point.chunk.chunk_id} are malformed: nothing was published.")
    if len(dense or ()) != (0 if point.chunk.type == PERSONA else dense_size):
        raise IndexMismatch(
            f"A vector has {len(dense or ())} dimensions, the index holds {dense_size}: nothing was published."
        )


def batches(values: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    return (values[at : at + size] for at in range(0, len(values), size))


def rank_with_ties(
    rank: Callable[[int], Sequence[_T]], order: Callable[[_T], tuple[float, object]], limit: int
) -> list[_T]:
    """Return the best results. Ties are put into our own order, because the engine's order of them is arbitrary.

    Args:
        rank: returns the engine's best results, at most so many.
        order: returns the negated score of a result, and the key that decides a tie.
    """
    size = limit + _TIE_MARGIN
    while True:
        results = rank(size)
        if len(results) < size or order(results[-1])[0] != order(results[limit - 1])[0]:
            return sorted(results, key=order)[:limit]
        size *= 4


def can_hold(value: str | int) -> bool:
    """Return whether a store can hold this value of a field. It can't find other values either."""
    if isinstance(value, int):
        return value in INTEGERS
    return value.isascii() or not SURROGATE.search(value)
