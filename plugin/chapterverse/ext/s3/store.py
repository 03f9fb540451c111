"""The store on S3: opens snapshots and publications."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chapterverse.errors import ChapterVerseError, IndexCorrupt, IndexFault, IndexLocked, IndexMissing
from chapterverse.ext.s3 import lease
from chapterverse.ext.s3.bucket import Bucket
from chapterverse.ext.s3.cache import Cache
from chapterverse.ext.s3.pack import unpack
from chapterverse.ext.s3.publication import HEAD, CurrentHead, S3Head, S3Publication, ScopePrefix, void_head
from chapterverse.ext.s3.responses import NotModified, S3Rejection
from chapterverse.model import EmbedderCard, Head, Scope
from chapterverse.settings import Settings
from chapterverse.store import RequestGuard, files, folder_name, missing_error
from chapterverse.store.shard_publication import open_live

if TYPE_CHECKING:
    from chapterverse.store.shard import Shard

_LEASE = "publish.lease"
_GRACE_SECONDS = 15 * 60
#: Size of an unpacked pack in sizes of the pack (2.8 were measured for text, and less for vectors).
_UNPACKED_RATIO = 4


class S3Store:
    """All generations below one prefix. Implements `chapterverse.store.Store`, `CachingStore` and `GuardedStore`.

    Args:
        grace: seconds for which a retired artefact is kept.
        lease_seconds: seconds without a renewal after which a lease expires.
    """

    max_age = 10.0

    def __init__(
        self,
        bucket: Bucket,
        cache: Cache | None = None,
        grace: float = _GRACE_SECONDS,
        lease_seconds: int = lease.LEASE_SECONDS,
    ) -> None:
        self._bucket = bucket
        self._cache = cache or Cache()
        self._grace = grace
        self._lease_seconds = lease_seconds
        self._records: dict[str, tuple[str, S3Head]] = {}

    @classmethod
    def from_settings(cls, _: Settings, place: str) -> S3Store:
        """Return the store at `s3://BUCKET/PREFIX`. Nothing is read or sent yet. Raises as `Bucket.open` does."""
        return cls(Bucket.open(f"s3:{place}"))

    @property
    def identity(self) -> str:
        return str(self._bucket)

    def guard(self, request_guard: RequestGuard) -> None:
        self._bucket.request_guard = request_guard

    @property
    def lease_seconds(self) -> float:
        return float(self._lease_seconds)

    def heads(self) -> list[Head]:
        heads: list[Head] = []
        for object_ in self._bucket.list():
            if object_.key.count("/") == 2 and object_.key.endswith(f"/{HEAD}"):
                with contextlib.suppress(IndexMissing):
                    heads.append(self._record(object_.key, object_.etag).head)
        return sorted(heads, key=lambda h: h.scope)

    def head(self, scope: Scope) -> Head | None:
        with contextlib.suppress(IndexMissing):
            return self._live(scope).head
        return None

    def snapshot(self, scope: Scope) -> Shard:
        return open_live(scope, lambda: self._live(scope), lambda record: self._open(scope, record))

    def open_cached(self) -> list[Shard]:
        snapshots = []
        for document in self._cache.saved_heads(str(self._bucket)):
            with contextlib.suppress(ChapterVerseError):
                record = S3Head.parse(document, "The cache")
                place = self._cached_place(record.head.scope, record)
                snapshots.append(_load(place, record.head))
        return snapshots

    def is_complete(self, scope: Scope) -> bool:
        try:
            artefact = self._live(scope).artefact
        except IndexMissing:
            return True
        except IndexCorrupt:
            return False
        return self._bucket.stat(self._prefix(scope).key(artefact.name)) == artefact.packed

    def is_publishing(self, scope: Scope) -> bool:
        return lease.is_held(self._bucket, self._prefix(scope).key(_LEASE))

    @contextlib.contextmanager
    def publish(self, scope: Scope, embedder: EmbedderCard) -> Iterator[S3Publication]:
        prefix = self._prefix(scope)
        with self._lease(scope) as held_lease, self._scratch_dir() as scratch_dir:
            current = self._current_head(scope)
            previous = self._previous(prefix, current, scratch_dir)
            publication = S3Publication(prefix, held_lease, current, scratch_dir, previous, embedder)
            try:
                yield publication
            finally:
                publication.close()
                if publication.committed:
                    self._put_into_cache(scope, publication.committed, publication.draft)

    def unpublish(self, scope: Scope) -> None:
        if self.head(scope) is None:
            return
        with self._lease(scope):
            self._replace_head(scope, void_head(), self._current_head(scope))
        self.sweep(scope)

    def sweep(self, scope: Scope) -> int:
        prefix = self._prefix(scope)
        with self._lease(scope):
            # This fails if the head is damaged, because it is then unknown which objects it reaches.
            with contextlib.suppress(IndexMissing):
                self._live(scope)
            current = self._current_head(scope)
            record = current.record
            live = record.artefact.name if record else ""
            garbage = [name for name in prefix.artefacts(min_age=0) if name != live]
            if not garbage:
                return 0
            # From now on, publishers that have read this head are rejected. They may have uploaded one of these.
            self._replace_head(scope, replace(record, retired={}).encode() if record else void_head(), current)
            for name in garbage:
                self._bucket.remove(prefix.key(name))
            return len(garbage)

    def _replace_head(self, scope: Scope, body: bytes, current: CurrentHead) -> None:
        try:
            self._bucket.write(self._prefix(scope).head, body, current.etag)
        except S3Rejection:
            raise IndexLocked(f"{scope} was published meanwhile: run it again.") from None

    def _live(self, scope: Scope) -> S3Head:
        try:
            return self._record(self._prefix(scope).head)
        except IndexMissing:
            raise missing_error(scope) from None

    def _record(self, key: str, etag: str = "") -> S3Head:
        """Return the record of a head object. It is not downloaded if it has not changed."""
        etag_before, record_before = self._records.get(key, ("", None))
        if record_before is not None and etag == etag_before:
            return record_before
        try:
            document = self._bucket.read(key, etag_before)
        except NotModified:
            assert record_before is not None
            return record_before
        if document is None:
            raise IndexMissing("Nothing was published there yet.")
        record = S3Head.parse(document.body, f"{self._bucket}/{key}")
        self._records[key] = document.etag, record
        return record

    def _current_head(self, scope: Scope) -> CurrentHead:
        """Return the head that a publication replaces. A damaged one can only be replaced as a whole."""
        key = self._prefix(scope).head
        document = self._bucket.read(key)
        if document is None:
            return CurrentHead(None, None)
        with contextlib.suppress(IndexMissing, IndexCorrupt):
            return CurrentHead(document.etag, S3Head.parse(document.body, f"{self._bucket}/{key}"))
        return CurrentHead(document.etag, None)

    def _open(self, scope: Scope, record: S3Head) -> Shard:
        place = self._cached_place(scope, record)
        if place.is_dir():
            try:
                return _load(place, record.head)
            except IndexCorrupt:
                shutil.rmtree(place, ignore_errors=True)
        with self._scratch_dir() as scratch_dir:
            folder = scratch_dir / "live"
            # Opened before it has a name, so that no other process removes it in between.
            snapshot = self._download(self._prefix(scope), record, folder)
            self._put_into_cache(scope, record, folder)
            return snapshot

    def _previous(self, prefix: ScopePrefix, current: CurrentHead, scratch_dir: Path) -> Shard | None:
        """Return the live generation from a fresh copy, because damage to the cache must not be published."""
        if current.record is None:
            return None
        folder = scratch_dir / "live"
        # A download may be cut short; an index that is replaced for that would be embedded again as a whole.
        for _ in range(2):
            with contextlib.suppress(IndexCorrupt):
                return self._download(prefix, current.record, folder)
            shutil.rmtree(folder, ignore_errors=True)
        return None

    def _download(self, prefix: ScopePrefix, record: S3Head, folder: Path) -> Shard:
        """Download an artefact and open it. Errors don't name the folder, which has another name at every try."""
        head, name, packed = record.head, record.artefact.name, record.artefact.packed
        try:
            files.require_space(folder.parent, _UNPACKED_RATIO * packed.size)
            unpack(self._bucket.stream(prefix.key(name), packed.size), folder, packed)
            return _load(folder, head)
        except IndexCorrupt:
            raise IndexCorrupt(f"{self._bucket}/{prefix.key(name)} is missing or damaged: build it again.") from None
        except IndexFault as fault:
            if str(folder) not in str(fault):
                raise
            raise IndexFault(str(fault).replace(str(folder), str(self._cache.root))) from None
        except OSError as error:
            raise _no_space_error(self._cache.root, error) from None

    def _put_into_cache(self, scope: Scope, record: S3Head, folder: Path) -> None:
        """Put an unpacked artefact into the cache for later readers, if that is possible."""
        with contextlib.suppress(OSError):
            self._cache.put(folder, self._cached_place(scope, record))
            self._cache.save_head(self._name(scope), str(self._bucket), record.encode())

    def _cached_place(self, scope: Scope, record: S3Head) -> Path:
        return self._cache.place(self._name(scope), record.artefact.packed.sha256)

    def _name(self, scope: Scope) -> str:
        """Return the name of a scope in the cache. It differs for each store."""
        place = f"{self._bucket}/{self._prefix(scope).place}"
        return hashlib.sha256(place.encode()).hexdigest()[:16]

    @contextlib.contextmanager
    def _scratch_dir(self) -> Iterator[Path]:
        with contextlib.ExitStack() as stack:
            try:
                scratch_dir = stack.enter_context(self._cache.scratch_dir())
            except OSError as error:
                raise _no_space_error(self._cache.root, error) from None
            yield scratch_dir

    def _lease(self, scope: Scope) -> contextlib.AbstractContextManager[lease.S3Lease]:
        return lease.hold(self._bucket, self._prefix(scope).key(_LEASE), scope, self._lease_seconds)

    def _prefix(self, scope: Scope) -> ScopePrefix:
        place = f"{folder_name(scope.site)}/{folder_name(scope.version)}"
        return ScopePrefix(self._bucket, place, self._grace)


def _load(folder: Path, head: Head) -> Shard:
    # Imported here, because it loads the engine.
    from chapterverse.store.shard import Shard

    return Shard.load(folder, head)


def _no_space_error(folder: Path, error: OSError) -> ChapterVerseError:
    return IndexFault(
        f"The index can't be unpacked in {folder} ({error.strerror}): make room there, or set TMPDIR to another folder."
    )
