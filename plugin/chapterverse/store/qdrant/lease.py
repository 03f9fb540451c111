"""The right to publish to one scope: a token in the scope's record, which runs out unless it is renewed.

Taken, renewed and used by conditional writes that are read back, so of two publishers exactly one has it. Before each
try of any other write there is more time left than that try may take, or the lease is renewed first: what a publisher
that lost its lease still has on the way has arrived before another one can take over. Only a process that is frozen
between that look and its request, for longer than a lease lasts, could still write behind another's back.

Where the holder ran on this machine and is gone (see `presence`), the lease is taken over before it runs out, as soon
as what it sent has arrived.
"""

from __future__ import annotations

import contextlib
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chapterverse.errors import ConfigurationError, IndexFault, IndexLocked
from chapterverse.model import Scope
from chapterverse.store.presence import Presence, gone
from chapterverse.store.qdrant.collections import ensure_heads
from chapterverse.store.qdrant.filters import Where, equals
from chapterverse.store.qdrant.record import QdrantHead, key_of
from chapterverse.store.qdrant.server import NoCollection
from chapterverse.store.qdrant.writer import QdrantWriter

#: A lease is renewed when this share of it has passed.
_RENEWED_AFTER = 1 / 6


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds that a lease and a retired generation last, and the clock that counts them (seconds of the epoch).

    Attributes:
        skew: seconds by which the clocks of two publishers may differ, for they compare them.
    """

    lease: int = 60
    grace: int = 900
    skew: int = 15
    clock: Callable[[], float] = time.time


class QdrantLease:
    """Held from `held` until its `with` is left; `record` is the scope's state as this publisher last saw it."""

    def __init__(
        self,
        writer: QdrantWriter,
        times: LeaseTimes,
        record: QdrantHead,
        token: str,
        presence: Presence,
        since: float,
    ) -> None:
        self.record = record
        self._writer = writer
        self._times = times
        self._token = token
        self._presence = presence
        # The lease runs from the request, not from the reply.
        self._renewed = since
        # A publication is renewed from one thread while another one writes.
        self._lock = threading.RLock()

    @classmethod
    @contextlib.contextmanager
    def hold(cls, writer: QdrantWriter, scope: Scope, times: LeaseTimes) -> Iterator[QdrantLease]:
        """Take the lease, or raise `IndexLocked`. Release it at the end; if the server can't be reached, it expires."""
        token = secrets.token_hex(16)
        with Presence.of(token) as presence:
            lease = cls._take(writer, scope, times, token, presence)
            writer.fence = lease.fence
            try:
                yield lease
            finally:
                with contextlib.suppress(IndexFault, ConfigurationError):
                    lease._set({"lease": "", "lease_until": 0})

    def keep(self) -> None:
        """Renew if it is time; called before every write.

        Raises:
            IndexLocked: another process took over.
        """
        with self._lock:
            if not 0 <= self._times.clock() - self._renewed < self._times.lease * _RENEWED_AFTER:
                self.confirm()

    @contextlib.contextmanager
    def fence(self) -> Iterator[None]:
        """Send a write in the block; renews before where it might arrive when another publisher may have taken over.

        Raises:
            IndexLocked: it has.
        """
        longest = self._writer.longest + self._times.skew
        with self._lock:
            seconds_left = self._renewed + self._times.lease - self._times.clock()
            if not longest < seconds_left <= self._times.lease:
                self.confirm()
        # A publisher whose lease is taken over early gets as much time for its last requests.
        with self._presence.sending(longest):
            yield

    def confirm(self) -> QdrantHead:
        """Renew now; return the record as it is. Raises as `keep`."""
        with self._lock:
            now = self._times.clock()
            self._set({"lease_until": int(now) + self._times.lease})
            self.record = _read(self._writer, self.record.scope)
            if self.record.lease != self._token:
                raise self._overtaken()
            self._renewed = now
            return self.record

    def change(self, epoch: int, **fields: Any) -> None:
        """Write these fields of the record and the number of its live generation, both at once or none.

        Raises:
            IndexLocked: another process took over.
        """
        with self._lock:
            self._set({"epoch": epoch, **fields}, equals("epoch", self.record.epoch))
            self.record = _read(self._writer, self.record.scope)
            if self.record.lease != self._token or self.record.epoch != epoch:
                raise self._overtaken()

    @classmethod
    def _take(
        cls, writer: QdrantWriter, scope: Scope, times: LeaseTimes, token: str, presence: Presence
    ) -> QdrantLease:
        record, now = _find(writer, scope), int(times.clock())
        if record.lease and record.lease_until > now:
            remaining = gone(record.lease)
            if remaining is None or remaining > 0:
                raise _busy(scope, writer, record.lease_until - now, remaining)
        # As it was read: another publisher, or the owner who woke up, changes one of these.
        unchanged = [equals(f, getattr(record, f)) for f in ("lease", "lease_until", "epoch")]
        _write(writer, scope, {"lease": token, "lease_until": now + times.lease}, *unchanged)
        record = _read(writer, scope)
        if record.lease != token:
            raise _busy(scope, writer, times.lease)
        return cls(writer, times, record, token, presence, now)

    def _set(self, payload: Mapping[str, Any], *conditions: Mapping[str, Any]) -> None:
        _write(self._writer, self.record.scope, payload, equals("lease", self._token), *conditions)

    def _overtaken(self) -> IndexLocked:
        return IndexLocked(
            f"Another process took over publishing {self.record.scope}, for this one was silent too long: run it again."
        )


def _find(writer: QdrantWriter, scope: Scope) -> QdrantHead:
    """Return a scope's record, which is made if it is missing."""
    with contextlib.suppress(NoCollection):
        payload = writer.payload(writer.place.heads, key_of(scope))
        if payload is not None:
            return QdrantHead.of(payload)
    ensure_heads(writer)
    blank = {"id": key_of(scope), "vector": {}, "payload": QdrantHead(scope).payload()}
    writer.upsert(writer.place.heads, [blank], only_new=True)
    return _read(writer, scope)


def _read(writer: QdrantWriter, scope: Scope) -> QdrantHead:
    payload = writer.payload(writer.place.heads, key_of(scope))
    if payload is None:
        raise IndexFault(f"The head of {scope} was removed from {writer.place.host} meanwhile: run it again.")
    return QdrantHead.of(payload)


def _write(writer: QdrantWriter, scope: Scope, payload: Mapping[str, Any], *conditions: Mapping[str, Any]) -> None:
    where: Where = {"must": [{"has_id": [key_of(scope)]}, *conditions]}
    writer.set_payload(writer.place.heads, payload, where)


def _busy(scope: Scope, writer: QdrantWriter, seconds: int, remaining: float | None = None) -> IndexLocked:
    """Return the error of a lease that lasts for so many seconds, or for what its dead holder sent."""
    killed, seconds = remaining is not None, min(seconds, math.ceil(seconds if remaining is None else remaining))
    return IndexLocked(
        f"Another process is publishing {scope} to {writer.place.host}: wait for it, then run again; "
        f"if it was killed, in {seconds} seconds.",
        seconds=seconds,
        killed=killed,
    )
