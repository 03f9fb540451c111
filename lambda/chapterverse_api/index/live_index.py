"""Opens each generation once, and serves it until a newer one is ready.

An embedded store is asked for its heads at every question. A remote one is asked every ten seconds at most, in the
background: what is open answers until the newer generation is fetched, found whole and opened. Where a head or what it
names is damaged, gone or out of reach, the last good generation serves on, that of an earlier process if need be. A
version that is gone while the store has others of its site was taken away on purpose: no new process answers from it.

A remote store that fails again and again is behind a circuit: who asks then is told so at once. A look in the
background tries it, and who asks meanwhile waits for a moment at most.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock, Thread

from chapterverse.errors import (
    ChapterVerseError,
    ConfigurationError,
    IndexCorrupt,
    IndexMismatch,
    IndexMissing,
    IndexUnavailable,
    ProviderError,
)
from chapterverse.model import Head, Scope
from chapterverse.store import CachingStore, Guarded, Snapshot, Store
from chapterverse_api import rejections
from chapterverse_api.circuit_breaker import CircuitBreaker

#: Seconds until a generation that is damaged, or of another embedder, is fetched again: fetching it costs.
_AGAIN = 120.0

#: On Lambda a thread stands still between two questions, and would never be done. So the question that sets it off
#: waits for what a look takes, longer where nothing is open yet, and where a generation is still not fetched after half
#: a minute, the next one waits for it as long as a reader may, in seconds.
_MOMENT, _FIRST_LOOK, _OVERDUE, _PATIENCE = 0.25, 2.0, 30.0, 8.0


class LiveIndex:
    """The open generations of one store. Safe to use from several threads.

    Args:
        check: raises `IndexMismatch` for a head whose vectors are of another embedder.
        pinned: the one scope that is asked about unless a reader names another version; None for all there are.
        site: the one that is asked about; "" for all there are.
        clock: seconds of the epoch. A clock that only counts the time awake would stand still with the process.
        freezes: whether the process stands still between two questions.

    Attributes:
        trouble: why what the store names is not what serves; None where it is.
        circuit: whether the store may be asked.
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
        failures = (IndexUnavailable, ProviderError)
        self.circuit = CircuitBreaker("store", failures=failures, resting=IndexUnavailable, clock=clock)
        if isinstance(store, Guarded):
            store.guard(self.circuit.asking)
        self._store = store
        self._check = check
        self._pinned = pinned
        self._site = site
        self._clock = clock
        self._freezes = "AWS_LAMBDA_RUNTIME_API" in os.environ if freezes is None else freezes
        self._open: dict[Scope, Snapshot] = {}
        self._heads: list[Head] | None = None
        self._others = _CachedHeads(store.heads, store.max_age, clock)
        self._refused: dict[Scope, tuple[Head, float, Exception]] = {}
        self._outage: IndexUnavailable | None = None
        self._looked = 0.0
        self._fetching = False
        self._refreshing: Thread | None = None
        self._seen: tuple[Sequence[Head], float, bool] = (), float("-inf"), False
        self._inspecting: Thread | None = None
        self._opening, self._starting = Lock(), Lock()

    @property
    def key_refused(self) -> bool:
        """Whether the store does not know our key: another may have taken its place."""
        return isinstance(self.trouble, ConfigurationError)

    @property
    def latest(self) -> Snapshot | None:
        """What was opened last; None before."""
        return next(reversed([*self._open.values()]), None)

    def heads(self, version: str | None = None) -> list[Head]:
        """Return the heads that are served.

        Args:
            version: the one that a reader names.

        Raises:
            IndexFault, ConfigurationError: the store can't be read, and nothing is open yet.
        """
        if not self._store.max_age:
            return self._store.heads()
        if self._heads is None and self.trouble is None:
            self._begin()
        elif not 0 <= self._clock() - self._looked < self._store.max_age:
            self._refresh_behind()
        # In this order: a look that succeeds has the heads before it takes back the trouble.
        trouble = self.trouble
        if self._heads is None and trouble:
            raise trouble.with_traceback(None)
        if self._pinned and version not in (None, self._pinned.version):
            with suppress(ChapterVerseError):
                return self._others.value()
        return self._heads or []

    def serving(self) -> list[Head]:
        """Return the heads of what answers now; of what was not asked for yet, what the store names. As `heads`."""
        opened = {s.head.scope: s.head for s in [*self._open.values()]} if self._store.max_age else {}
        return [opened.get(head.scope, head) for head in self.heads()]

    def snapshot(self, head: Head) -> Snapshot:
        """Return what serves for a head; of a remote store that may be another generation of the same scope.

        Raises:
            IndexFault: it can't be opened, and there is no other.
        """
        opened = self._open.get(head.scope)
        if opened is None or self._is_old(opened, head):
            with self._turn():
                opened = self._open.get(head.scope)
                if opened is None or self._is_old(opened, head):
                    opened = self._open[head.scope] = self._opened(head)
        return opened

    def intact(self, heads: Sequence[Head]) -> bool:
        """Return whether the store is known to have what these heads name, whole.

        A remote one is asked every ten seconds at most and by one thread, however many want to know. Nobody waits for
        it but those who ask before it ever answered.
        """
        if not self._store.max_age or not heads:
            return all(self._store.intact(head.scope) for head in heads)
        with self._starting:
            of, since, _ = self._seen
            is_new = of != heads
            is_due = is_new or not 0 <= self._clock() - since < self._store.max_age
            if is_due and (self._inspecting is None or not self._inspecting.is_alive()):
                self._inspecting = Thread(target=self._inspect, args=(heads,), name="chapterverse-intact", daemon=True)
                self._inspecting.start()
            inspecting = self._inspecting
        if inspecting and (is_new or self._freezes):
            inspecting.join(_PATIENCE if is_new else _MOMENT)
        return self._seen[2]

    def _inspect(self, heads: Sequence[Head]) -> None:
        whole = False
        try:
            whole = all(self._store.intact(head.scope) for head in heads)
        # As in `_refresh`; why a store can't be asked is told there.
        except Exception as error:
            if not isinstance(error, ChapterVerseError):
                rejections.report(error)
        self._seen = heads, self._clock(), whole

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Let one after the other open something; who waited while the store failed does not try that once more."""
        before = self._outage
        if not self._opening.acquire(blocking=not self.circuit.open):
            raise self.circuit.resting
        try:
            if self._outage and self._outage is not before:
                raise self._outage.with_traceback(None)
            yield
        except IndexUnavailable as error:
            self._outage = error
            raise
        finally:
            self._opening.release()

    def _is_old(self, opened: Snapshot, head: Head) -> bool:
        return not self._store.max_age and opened.head != head

    def _look(self) -> list[Head]:
        if self._pinned is None:
            return self._store.heads()
        head = self._store.head(self._pinned)
        return [head] if head else []

    def _begin(self) -> None:
        """Look at the store for the first time; who comes meanwhile waits for that."""
        with self._opening:
            if self._heads is None and self.trouble is None:
                self._looked = self._clock()
                try:
                    self._look_first()
                except Exception as error:
                    self.trouble = error
                    raise

    def _look_first(self) -> None:
        """Take the heads of the store; where it can't be read or has none, serve what an earlier process left."""
        try:
            heads = self._look()
        except Exception as error:
            if not self._fall_back([], error):
                raise
            return
        if any(self._is_wanted(head) for head in heads) or not self._fall_back(heads):
            self._heads, self.trouble = heads, None

    def _fall_back(self, heads: list[Head], error: Exception | None = None) -> bool:
        """Serve what an earlier process left of what is asked about, beside the heads of the store, if it left any."""
        kept = [s for s in self._kept() if self._is_wanted(s.head)]
        if kept:
            self._tell(error or _gone(kept[-1].head.scope))
            self._open |= {s.head.scope: s for s in kept}
            self._heads = sorted([*heads, *(s.head for s in kept)], key=lambda h: h.scope)
        return bool(kept)

    def _is_wanted(self, head: Head) -> bool:
        return self._pinned in (None, head.scope) and self._site in ("", head.site)

    def _opened(self, head: Head) -> Snapshot:
        try:
            return self._fetched(head)
        # Neither may what nobody foresaw keep readers from the last good generation.
        except Exception as error:
            kept = next((s for s in self._kept() if s.head.scope == head.scope), None)
            if kept is None:
                raise
            self._tell(error)
            return kept

    def _fetched(self, head: Head) -> Snapshot:
        refused, since, why = self._refused.get(head.scope, (None, 0.0, None))
        if why and refused == head and 0 <= self._clock() - since < _AGAIN:
            raise why.with_traceback(None)
        try:
            opened = self._store.snapshot(head.scope)
            self._check(opened.head)
        except Exception as error:
            lasting = isinstance(error, IndexCorrupt | IndexMismatch) or not isinstance(error, ChapterVerseError)
            if lasting and self._store.max_age:
                self._refused[head.scope] = head, self._clock(), error
            raise
        return opened

    def _kept(self) -> list[Snapshot]:
        """Return what an earlier process left on this machine, as far as it fits."""
        found = []
        for snapshot in self._store.kept() if isinstance(self._store, CachingStore) else ():
            with suppress(IndexMismatch):
                self._check(snapshot.head)
                found.append(snapshot)
        return found

    def _refresh_behind(self) -> None:
        with self._starting:
            if self._refreshing is None or not self._refreshing.is_alive():
                self._looked = self._clock()
                self._refreshing = Thread(target=self._refresh, name="chapterverse-index", daemon=True)
                self._refreshing.start()
            refreshing = self._refreshing
        if self._freezes:
            overdue = self._fetching and self._clock() - self._looked >= _OVERDUE
            refreshing.join(_PATIENCE if overdue else _FIRST_LOOK if self._heads is None else _MOMENT)
        elif self._heads is None or self.circuit.open:
            refreshing.join(_MOMENT)

    def _refresh(self) -> None:
        trouble: Exception | None = None
        try:
            if self._heads is None:
                self._look_first()
                return
            served = {head.scope: head for head in self._look()}
            for scope, opened in [*self._open.items()]:
                try:
                    self._follow(opened, served.get(scope))
                except Exception as error:
                    trouble = error
                served[scope] = self._open[scope].head
            self._heads = sorted(served.values(), key=lambda h: h.scope)
        # Nobody waits for this thread, so nothing that it raises would be seen.
        except Exception as error:
            trouble = error
        self._tell(trouble)

    def _follow(self, opened: Snapshot, head: Head | None) -> None:
        scope = opened.head.scope
        if head is None:
            raise _gone(scope)
        if head != opened.head:
            self._fetching = True
            try:
                self._open[scope] = self._fetched(head)
            finally:
                self._fetching = False

    def _tell(self, trouble: Exception | None) -> None:
        # Once, and not at every look.
        if trouble is not None and _described(trouble) != _described(self.trouble):
            rejections.report(trouble)
        self.trouble = trouble


def _gone(scope: Scope) -> IndexMissing:
    return IndexMissing(f"The index of {scope} is gone from the store: publish it again.")


def _described(trouble: Exception | None) -> str:
    """Return by what the log knows a trouble: our own sentence, or else its type, for the rest may name anything."""
    return str(trouble) if isinstance(trouble, ChapterVerseError) else type(trouble).__name__


class _CachedHeads:
    """Heads that are asked for once in a while, also where that fails: readers who ask on must not be so many looks.

    While one of them looks, which may take long, the others take what was seen before.
    """

    def __init__(self, look: Callable[[], list[Head]], max_age: float, clock: Callable[[], float]) -> None:
        self._look = look
        self._max_age = max_age
        self._clock = clock
        self._lock = Lock()
        self._since = float("-inf")
        self._found: list[Head] | None = None
        self._failure: Exception | None = None

    def value(self) -> list[Head]:
        known = self._found is not None or self._failure is not None
        if self._lock.acquire(blocking=not known):
            try:
                self._update()
            finally:
                self._lock.release()
        if failure := self._failure:
            raise failure.with_traceback(None)
        return self._found or []

    def _update(self) -> None:
        if not 0 <= self._clock() - self._since < self._max_age:
            self._since = self._clock()
            try:
                self._found, self._failure = self._look(), None
            except Exception as error:
                self._failure = error
