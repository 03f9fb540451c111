"""The lease of a scope: the right to publish to it. It is a token in the scope's record, and expires unless renewed.

A publisher takes, renews and uses it by conditional writes, and reads the record again after each. So of two publishers
exactly one has it.

Other writes have no condition. Before each try of one, the lease must last longer than the try may take, or it is
renewed first. So the last request of a publisher that loses its lease arrives before another one can take over. There
is one gap: a process could be frozen after this check and before its request, for longer than a lease lasts.

A holder that ran on this machine and has ended (see `leases`) loses the lease before it expires, as soon as its last
request has arrived.
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
from chapterverse.ext.leases import Presence, seconds_until_gone
from chapterverse.ext.qdrant.collections import ensure_heads
from chapterverse.ext.qdrant.filters import Where, equals
from chapterverse.ext.qdrant.record import ScopeRecord, scope_key
from chapterverse.ext.qdrant.server import NoCollection
from chapterverse.ext.qdrant.writer import QdrantWriter
from chapterverse.model import Scope

#: Share of a lease after which it is renewed: every ten seconds, so several renewals may fail before it expires.
_RENEWAL_SHARE = 1 / 6


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long a lease and a retired generation last.

    Attributes:
        lease: seconds without a renewal after which another publisher may take over.
        grace: seconds for which readers may read a generation that is no longer live.
        skew: seconds by which the clocks of two publishers, which they compare, may differ.
        clock: returns the seconds since the epoch.
    """

    lease: int = 60
    grace: int = 900
    skew: int = 15
    clock: Callable[[], float] = time.time


class QdrantLease:
    """A lease, held while the context manager `hold` is open.

    Attributes:
        record: the state of the scope as this publisher last read it.
    """

    def __init__(
        self,
        writer: QdrantWriter,
        times: LeaseTimes,
        record: ScopeRecord,
        token: str,
        presence: Presence,
        renewed_at: float,
    ) -> None:
        self.record = record
        self._writer = writer
        self._times = times
        self._token = token
        self._presence = presence
        # The lease runs from the request, not from the reply.
        self._renewed_at = renewed_at
        # A publication is renewed from one thread while another one writes.
        self._lock = threading.RLock()

    @classmethod
    @contextlib.contextmanager
    def hold(cls, writer: QdrantWriter, scope: Scope, times: LeaseTimes) -> Iterator[QdrantLease]:
        """Hold the lease in the block. If the server can't be reached at its end, the lease expires.

        Raises:
            IndexLocked: another process holds it.
        """
        token = secrets.token_hex(16)
        with Presence.hold(token) as presence:
            lease = cls._acquire(writer, scope, times, token, presence)
            writer.fence = lease.fenced_write
            try:
                yield lease
            finally:
                with contextlib.suppress(IndexFault, ConfigurationError):
                    lease._conditional_write({"lease": "", "lease_until": 0})

    def renew_if_due(self) -> None:
        """Renew the lease if a sixth of it has passed. Call it before every write.

        Raises:
            IndexLocked: another process took over.
        """
        with self._lock:
            if not 0 <= self._times.clock() - self._renewed_at < self._times.lease * _RENEWAL_SHARE:
                self.renew()

    @contextlib.contextmanager
    def fenced_write(self) -> Iterator[None]:
        """Send a write in the block. Renew the lease first if the write could arrive after it expires.

        Raises:
            IndexLocked: another process took over.
        """
        max_seconds = self._writer.max_try_seconds + self._times.skew
        with self._lock:
            seconds_left = self._renewed_at + self._times.lease - self._times.clock()
            if not max_seconds < seconds_left <= self._times.lease:
                self.renew()
        # A publisher that takes the lease over early waits as long for this request.
        with self._presence.sending(max_seconds):
            yield

    def renew(self) -> ScopeRecord:
        """Renew the lease and return the record.

        Raises:
            IndexLocked: another process took over.
        """
        with self._lock:
            now = self._times.clock()
            self._conditional_write({"lease_until": int(now) + self._times.lease})
            self.record = _read(self._writer, self.record.scope)
            if self.record.lease != self._token:
                raise self._lost_error()
            self._renewed_at = now
            return self.record

    def update_record(self, epoch: int, **fields: Any) -> None:
        """Write the number of the live generation and these fields of the record in one step.

        Raises:
            IndexLocked: another process took over.
        """
        with self._lock:
            self._conditional_write({"epoch": epoch, **fields}, equals("epoch", self.record.epoch))
            self.record = _read(self._writer, self.record.scope)
            if self.record.lease != self._token or self.record.epoch != epoch:
                raise self._lost_error()

    @classmethod
    def _acquire(
        cls, writer: QdrantWriter, scope: Scope, times: LeaseTimes, token: str, presence: Presence
    ) -> QdrantLease:
        record, now = _find_or_create(writer, scope), int(times.clock())
        if record.lease and record.lease_until > now:
            seconds = record.lease_until - now
            seconds_to_arrival = seconds_until_gone(record.lease)
            if seconds_to_arrival is None:
                raise _locked_error(scope, writer, seconds)
            if seconds_to_arrival > 0:
                raise _locked_error(scope, writer, min(seconds, math.ceil(seconds_to_arrival)), killed=True)
        # Another publisher, or a holder that was paused, changes one of these.
        unchanged = [equals(f, getattr(record, f)) for f in ("lease", "lease_until", "epoch")]
        _write(writer, scope, {"lease": token, "lease_until": now + times.lease}, *unchanged)
        record = _read(writer, scope)
        if record.lease != token:
            raise _locked_error(scope, writer, times.lease)
        return cls(writer, times, record, token, presence, now)

    def _conditional_write(self, payload: Mapping[str, Any], *conditions: Mapping[str, Any]) -> None:
        _write(self._writer, self.record.scope, payload, equals("lease", self._token), *conditions)

    def _lost_error(self) -> IndexLocked:
        return IndexLocked(
            f"Another process took over publishing {self.record.scope}, for this one was silent too long: run it again."
        )


def _find_or_create(writer: QdrantWriter, scope: Scope) -> ScopeRecord:
    with contextlib.suppress(NoCollection):
        payload = writer.payload(writer.place.heads, scope_key(scope))
        if payload is not None:
            return ScopeRecord.parse(payload)
    ensure_heads(writer)
    blank = {"id": scope_key(scope), "vector": {}, "payload": ScopeRecord(scope).payload()}
    writer.upsert(writer.place.heads, [blank], only_new=True)
    return _read(writer, scope)


def _read(writer: QdrantWriter, scope: Scope) -> ScopeRecord:
    payload = writer.payload(writer.place.heads, scope_key(scope))
    if payload is None:
        raise IndexFault(f"The head of {scope} was removed from {writer.place.host} meanwhile: run it again.")
    return ScopeRecord.parse(payload)


def _write(writer: QdrantWriter, scope: Scope, payload: Mapping[str, Any], *conditions: Mapping[str, Any]) -> None:
    where: Where = {"must": [{"has_id": [scope_key(scope)]}, *conditions]}
    writer.set_payload(writer.place.heads, payload, where)


def _locked_error(scope: Scope, writer: QdrantWriter, seconds: int, *, killed: bool = False) -> IndexLocked:
    """Return the error of a lease that lasts for so many seconds.

    Args:
        killed: whether its holder has ended, and only its last request has to arrive.
    """
    return IndexLocked(
        f"Another process is publishing {scope} to {writer.place.host}: wait for it, then run again; "
        f"if it was killed, in {seconds} seconds.",
        seconds=seconds,
        killed=killed,
    )
