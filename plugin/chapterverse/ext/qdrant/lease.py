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
from chapterverse.ext.leases import Presence, locked_error, seconds_until_gone
from chapterverse.ext.qdrant.record import ScopeRecord, Where, equals, scope_key
from chapterverse.ext.qdrant.server import NoCollection, QdrantWriter
from chapterverse.model import Scope

#: Every field that we filter by has an index, so that servers in strict mode take our requests.
_HEAD_INDEXES = {"lease": {"type": "keyword"}, "lease_until": {"type": "integer"}, "epoch": {"type": "integer"}}
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


@dataclass
class QdrantLease:
    """A lease, held while the context manager `hold` is open.

    Attributes:
        record: the state of the scope as this publisher last read it.
        renewed_at: the time from which the lease runs: that of the request, not of the reply.

    Raises (all methods):
        IndexLocked: another process holds the lease, or took over.
    """

    writer: QdrantWriter
    times: LeaseTimes
    record: ScopeRecord
    token: str
    presence: Presence
    renewed_at: float

    def __post_init__(self) -> None:
        # A publication is renewed from one thread while another one writes.
        self._lock = threading.RLock()

    @classmethod
    @contextlib.contextmanager
    def hold(cls, writer: QdrantWriter, scope: Scope, times: LeaseTimes) -> Iterator[QdrantLease]:
        """Hold the lease in the block. If the server can't be reached at its end, the lease expires."""
        token = secrets.token_hex(16)
        with Presence.hold(token) as presence:
            record = _acquire(writer, scope, times, token)
            lease = cls(writer, times, record, token, presence, record.lease_until - times.lease)
            writer.fence = lease.fenced_write
            try:
                yield lease
            finally:
                with contextlib.suppress(IndexFault, ConfigurationError):
                    _write(writer, scope, {"lease": "", "lease_until": 0}, equals("lease", token))

    def renew_if_due(self) -> None:
        """Renew the lease if a sixth of it has passed. Call it before every write."""
        with self._lock:
            if not 0 <= self.times.clock() - self.renewed_at < self.times.lease * _RENEWAL_SHARE:
                self.renew()

    @contextlib.contextmanager
    def fenced_write(self) -> Iterator[None]:
        """Send a write in the block. Renew the lease first if the write could arrive after it expires."""
        max_seconds = self.writer.max_try_seconds + self.times.skew
        with self._lock:
            seconds_left = self.renewed_at + self.times.lease - self.times.clock()
            if not max_seconds < seconds_left <= self.times.lease:
                self.renew()
        # A publisher that takes the lease over early waits as long for this request.
        with self.presence.sending(max_seconds):
            yield

    def renew(self) -> ScopeRecord:
        """Renew the lease and return the record."""
        with self._lock:
            now = self.times.clock()
            self._write({"lease_until": int(now) + self.times.lease})
            self.renewed_at = now
            return self.record

    def update_record(self, epoch: int, **fields: Any) -> None:
        """Write the number of the live generation and these fields of the record in one step."""
        with self._lock:
            self._write({"epoch": epoch, **fields}, equals("epoch", self.record.epoch))
            if self.record.epoch != epoch:
                raise self._lost_error()

    def _write(self, payload: Mapping[str, Any], *conditions: Mapping[str, Any]) -> None:
        """Change the record if the lease is still this publisher's, and read it again."""
        _write(self.writer, self.record.scope, payload, equals("lease", self.token), *conditions)
        self.record = _read(self.writer, self.record.scope)
        if self.record.lease != self.token:
            raise self._lost_error()

    def _lost_error(self) -> IndexLocked:
        return IndexLocked(
            f"Another process took over publishing {self.record.scope}, for this one was silent too long: run it again."
        )


def _acquire(writer: QdrantWriter, scope: Scope, times: LeaseTimes, token: str) -> ScopeRecord:
    """Take the lease, and return the record."""
    record, now = _find_or_create(writer, scope), int(times.clock())
    if record.lease and record.lease_until > now:
        seconds = record.lease_until - now
        seconds_to_arrival = seconds_until_gone(record.lease)
        if seconds_to_arrival is None:
            raise locked_error(scope, writer.place.host, seconds)
        if seconds_to_arrival > 0:
            raise locked_error(scope, writer.place.host, min(seconds, math.ceil(seconds_to_arrival)), killed=True)
    # Another publisher, or a holder that was paused, changes one of these.
    unchanged = [equals(f, getattr(record, f)) for f in ("lease", "lease_until", "epoch")]
    _write(writer, scope, {"lease": token, "lease_until": now + times.lease}, *unchanged)
    record = _read(writer, scope)
    if record.lease != token:
        raise locked_error(scope, writer.place.host, times.lease)
    return record


def _find_or_create(writer: QdrantWriter, scope: Scope) -> ScopeRecord:
    with contextlib.suppress(NoCollection):
        payload = writer.payload(writer.place.heads, scope_key(scope))
        if payload is not None:
            return ScopeRecord.parse(payload)
    # One shard, so that a conditional write sees every other one.
    writer.ensure(writer.place.heads, {"vectors": {}, **writer.place.copies(1)}, _HEAD_INDEXES)
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
