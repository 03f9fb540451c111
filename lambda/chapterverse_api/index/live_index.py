"""Opens each generation once and serves it until a newer one is ready.

The heads of an embedded store are read at every question. The heads of a remote store are read every ten seconds at
most, in the background. The open generation answers until a newer one is fetched, checked and opened. If a head or its
generation is damaged, missing or unreachable, the last good generation continues to serve, if need be the one that an
earlier process left in the cache. A version that is missing while the store has others of its site was removed on
purpose: no new process serves it.

A circuit breaker protects a remote store that fails repeatedly: callers get an error at once. A check in the background
tests the store, and callers wait for it only a moment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock, Thread
from typing import Any, NamedTuple

from chapterverse.errors import (
    ChapterVerseError,
    ConfigurationError,
    IndexCorrupt,
    IndexMismatch,
    IndexMissing,
    IndexUnavailable,
    ProviderError,
)
from chapterverse.extensions import load_part
from chapterverse.model import Head, Scope
from chapterverse.store import CachingStore, GuardedStore, Snapshot, Store
from chapterverse_api import rejections

#: Seconds until a damaged or mismatched generation is fetched again, because fetching costs money.
_REFETCH_SECONDS = 120.0

#: On Lambda threads freeze between two questions, so a background check might never end. The question that starts one
#: therefore waits for it: `_MOMENT_SECONDS`, or `_FIRST_CHECK_SECONDS` if nothing is open yet. If a fetch takes over
#: `_OVERDUE_SECONDS`, the next question waits up to `_MAX_WAIT_SECONDS`, the longest that a reader may wait.
_MOMENT_SECONDS, _FIRST_CHECK_SECONDS, _OVERDUE_SECONDS, _MAX_WAIT_SECONDS = 0.25, 2.0, 30.0, 8.0


class _RejectedHead(NamedTuple):
    """A generation that was found damaged or mismatched at the time `since`, in the clock's seconds."""

    head: Head
    since: float
    failure: Exception


class _Inspection(NamedTuple):
    """Whether the store had these generations undamaged at the time `since`, in the clock's seconds."""

    heads: Sequence[Head]
    since: float
    intact: bool


class LiveIndex:
    """The open generations of one store. Thread-safe.

    Args:
        check: raises `IndexMismatch` for a head whose vectors are of another embedder.
        pinned: the only scope served unless a reader names another version; None for all scopes.
        site: the only site served; "" for all.
        clock: wall-clock seconds; a monotonic clock would stop while the process is frozen.
        freezes: whether the process freezes between two questions.

    Attributes:
        trouble: the error that keeps the store's generation from serving, else None.
    """

    def __init__(
        self,
        store: Store,
        check: Callable[[Head], None],
        pinned: Scope | None = None,
        site: str = "",
        *,
        clock: Callable[[], float] = time.time,
        freezes: bool | None = None,
    ) -> None:
        self.trouble: Exception | None = None
        self._circuit: Any = None
        if isinstance(store, GuardedStore):
            failures = (IndexUnavailable, ProviderError)
            open_circuit = load_part("circuit_breaker")
            self._circuit = open_circuit("store", failures=failures, error_type=IndexUnavailable, clock=clock)
            store.guard(self._circuit.calling)
        self._store = store
        self._check = check
        self._pinned = pinned
        self._site = site
        self._clock = clock
        self._freezes = "AWS_LAMBDA_RUNTIME_API" in os.environ if freezes is None else freezes
        self._open: dict[Scope, Snapshot] = {}
        self._heads: list[Head] | None = None
        self._all_heads = _CachedHeads(store.heads, store.max_age, clock)
        self._rejected: dict[Scope, _RejectedHead] = {}
        self._outage: IndexUnavailable | None = None
        self._last_check = 0.0
        self._fetching = False
        self._refreshing = self._inspecting = Thread()
        self._inspection = _Inspection((), float("-inf"), intact=False)
        self._opening, self._starting = Lock(), Lock()

    @property
    def key_refused(self) -> bool:
        """Whether the store rejects our key, which may have been replaced."""
        return isinstance(self.trouble, ConfigurationError)

    @property
    def is_skipped(self) -> bool:
        """Whether the store is remote and has failed too often to be read."""
        return bool(self._circuit and self._circuit.is_open)

    @property
    def latest(self) -> Snapshot | None:
        """The snapshot opened last, None before."""
        return next(reversed([*self._open.values()]), None)

    def heads(self, version: str | None = None) -> list[Head]:
        """Return the heads to serve.

        Args:
            version: the version that a reader names.

        Raises:
            IndexFault, ConfigurationError: the store can't be read, and nothing is open yet.
        """
        if not self._store.max_age:
            return self._store.heads()
        if self._heads is None and self.trouble is None:
            self._check_once()
        elif not self._is_recent(self._last_check, self._store.max_age):
            self._refresh_behind()
        # Read in this order: a successful check sets the heads before it clears the trouble.
        trouble = self.trouble
        if self._heads is None and trouble:
            raise trouble.with_traceback(None)
        if self._pinned and version not in (None, self._pinned.version):
            with suppress(ChapterVerseError):
                return self._all_heads.value()
        return self._heads or []

    def live_heads(self) -> list[Head]:
        """Return the heads of open snapshots, and the store's heads for scopes that are not open. Raises as `heads`."""
        heads = {s.head.scope: s.head for s in [*self._open.values()]} if self._store.max_age else {}
        return [heads.get(head.scope, head) for head in self.heads()]

    def snapshot(self, head: Head) -> Snapshot:
        """Return the snapshot for a head; with a remote store it may be another generation of the scope.

        Raises:
            IndexFault: it can't be opened, and there is no other.
        """
        snapshot = self._open.get(head.scope)
        if snapshot is None or self._is_stale(snapshot, head):
            with self._opening_once():
                snapshot = self._open.get(head.scope)
                if snapshot is None or self._is_stale(snapshot, head):
                    snapshot = self._open[head.scope] = self._open_snapshot(head)
        return snapshot

    def intact(self, heads: Sequence[Head]) -> bool:
        """Whether the store is known to hold these generations undamaged.

        One thread reads a remote store, every ten seconds at most. Only callers before its first answer wait for it.
        """
        if not self._store.max_age or not heads:
            return all(self._store.is_complete(head.scope) for head in heads)
        with self._starting:
            last = self._inspection
            is_new = last.heads != heads
            is_due = is_new or not self._is_recent(last.since, self._store.max_age)
            if is_due and not self._inspecting.is_alive():
                self._inspecting = _start("chapterverse-intact", partial(self._inspect, heads))
            inspecting = self._inspecting
        if inspecting.ident and (is_new or self._freezes):
            inspecting.join(_MAX_WAIT_SECONDS if is_new else _MOMENT_SECONDS)
        return self._inspection.intact

    def _is_recent(self, since: float, seconds: float) -> bool:
        return 0 <= self._clock() - since < seconds

    def _inspect(self, heads: Sequence[Head]) -> None:
        is_intact = False
        try:
            is_intact = all(self._store.is_complete(head.scope) for head in heads)
        # `_refresh` reports why a store can't be read.
        except Exception as error:
            if not isinstance(error, ChapterVerseError):
                rejections.report(error)
        self._inspection = _Inspection(heads, self._clock(), is_intact)

    @contextmanager
    def _opening_once(self) -> Iterator[None]:
        """Serialize openings. Callers that waited while the store failed get its error instead of trying again."""
        before = self._outage
        if not self._opening.acquire(blocking=not self.is_skipped):
            raise self._circuit.open_error
        try:
            if self._outage and self._outage is not before:
                raise self._outage.with_traceback(None)
            yield
        except IndexUnavailable as error:
            self._outage = error
            raise
        finally:
            self._opening.release()

    def _is_stale(self, snapshot: Snapshot, head: Head) -> bool:
        return not self._store.max_age and snapshot.head != head

    def _read_heads(self) -> list[Head]:
        if self._pinned is None:
            return self._store.heads()
        head = self._store.head(self._pinned)
        return [head] if head else []

    def _check_once(self) -> None:
        """Check the store for the first time; concurrent callers wait."""
        with self._opening:
            if self._heads is None and self.trouble is None:
                self._last_check = self._clock()
                try:
                    self._check_first()
                except Exception as error:
                    self.trouble = error
                    raise

    def _check_first(self) -> None:
        """Take the store's heads; if it can't be read or has none, serve a cached snapshot of an earlier process."""
        try:
            heads = self._read_heads()
        except Exception as error:
            if not self._fall_back([], error):
                raise
            return
        if any(self._is_wanted(head) for head in heads) or not self._fall_back(heads):
            self._heads, self.trouble = heads, None

    def _fall_back(self, heads: list[Head], error: Exception | None = None) -> bool:
        """Serve cached snapshots beside the store's heads; return whether there are any."""
        snapshots = [s for s in self._cached_snapshots() if self._is_wanted(s.head)]
        if snapshots:
            self._report_trouble(error or _missing_error(snapshots[-1].head.scope))
            self._open |= {s.head.scope: s for s in snapshots}
            self._heads = sorted([*heads, *(s.head for s in snapshots)], key=lambda h: h.scope)
        return bool(snapshots)

    def _is_wanted(self, head: Head) -> bool:
        return self._pinned in (None, head.scope) and self._site in ("", head.site)

    def _open_snapshot(self, head: Head) -> Snapshot:
        try:
            return self._fetch(head)
        # Unexpected errors must not keep readers from the last good generation either.
        except Exception as error:
            cached = next((s for s in self._cached_snapshots() if s.head.scope == head.scope), None)
            if cached is None:
                raise
            self._report_trouble(error)
            return cached

    def _fetch(self, head: Head) -> Snapshot:
        rejected = self._rejected.get(head.scope)
        if rejected and rejected.head == head and self._is_recent(rejected.since, _REFETCH_SECONDS):
            raise rejected.failure.with_traceback(None)
        try:
            snapshot = self._store.snapshot(head.scope)
            self._check(snapshot.head)
        except Exception as error:
            lasting = isinstance(error, IndexCorrupt | IndexMismatch) or not isinstance(error, ChapterVerseError)
            if lasting and self._store.max_age:
                self._rejected[head.scope] = _RejectedHead(head, self._clock(), error)
            raise
        return snapshot

    def _cached_snapshots(self) -> list[Snapshot]:
        """Return the cached snapshots of earlier processes that fit."""
        snapshots = []
        for snapshot in self._store.open_cached() if isinstance(self._store, CachingStore) else ():
            with suppress(IndexMismatch):
                self._check(snapshot.head)
                snapshots.append(snapshot)
        return snapshots

    def _refresh_behind(self) -> None:
        with self._starting:
            if not self._refreshing.is_alive():
                self._last_check = self._clock()
                self._refreshing = _start("chapterverse-index", self._refresh)
            refreshing = self._refreshing
        if self._freezes:
            overdue = self._fetching and self._clock() - self._last_check >= _OVERDUE_SECONDS
            moment = _FIRST_CHECK_SECONDS if self._heads is None else _MOMENT_SECONDS
            refreshing.join(_MAX_WAIT_SECONDS if overdue else moment)
        elif self._heads is None or self.is_skipped:
            refreshing.join(_MOMENT_SECONDS)

    def _refresh(self) -> None:
        trouble: Exception | None = None
        try:
            if self._heads is None:
                self._check_first()
                return
            heads = {head.scope: head for head in self._read_heads()}
            for scope, snapshot in [*self._open.items()]:
                try:
                    self._follow(snapshot, heads.get(scope))
                except Exception as error:
                    trouble = error
                heads[scope] = self._open[scope].head
            self._heads = sorted(heads.values(), key=lambda h: h.scope)
        # An error raised in this thread would be lost.
        except Exception as error:
            trouble = error
        self._report_trouble(trouble)

    def _follow(self, snapshot: Snapshot, head: Head | None) -> None:
        scope = snapshot.head.scope
        if head is None:
            raise _missing_error(scope)
        if head != snapshot.head:
            self._fetching = True
            try:
                self._open[scope] = self._fetch(head)
            finally:
                self._fetching = False

    def _report_trouble(self, trouble: Exception | None) -> None:
        # Report each trouble once, not at every check.
        if trouble is not None and _describe(trouble) != _describe(self.trouble):
            rejections.report(trouble)
        self.trouble = trouble


def _start(name: str, work: Callable[[], None]) -> Thread:
    thread = Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def _missing_error(scope: Scope) -> IndexMissing:
    return IndexMissing(f"The index of {scope} is gone from the store: publish it again.")


def _describe(trouble: Exception | None) -> str:
    """Return the key of an error in the log: our own message, or only the type of a foreign error."""
    return str(trouble) if isinstance(trouble, ChapterVerseError) else type(trouble).__name__


class _CachedHeads:
    """Heads that are read at most every `max_age` seconds, even if reading fails. Meanwhile callers get the
    previous result.
    """

    def __init__(self, read_heads: Callable[[], list[Head]], max_age: float, clock: Callable[[], float]) -> None:
        self._read_heads = read_heads
        self._max_age = max_age
        self._clock = clock
        self._lock = Lock()
        self._since = float("-inf")
        self._heads: list[Head] | None = None
        self._failure: Exception | None = None

    def value(self) -> list[Head]:
        has_result = self._heads is not None or self._failure is not None
        if self._lock.acquire(blocking=not has_result):
            try:
                self._update()
            finally:
                self._lock.release()
        if failure := self._failure:
            raise failure.with_traceback(None)
        return self._heads or []

    def _update(self) -> None:
        if not 0 <= self._clock() - self._since < self._max_age:
            self._since = self._clock()
            try:
                self._heads, self._failure = self._read_heads(), None
            except Exception as error:
                self._failure = error
