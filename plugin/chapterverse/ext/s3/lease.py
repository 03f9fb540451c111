"""The lease of a scope: an object that its publisher renews.

The lease only tells the loser of a race early, before it pays for embedding. The conditional write of the head is what
protects the index. Another publisher may take a lease over when it has expired, or as soon as its holder, if it ran on
this machine, has ended (see `leases`).
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from chapterverse.errors import ChapterVerseError, IndexLocked
from chapterverse.ext.leases import Presence, locked_error, seconds_until_gone
from chapterverse.ext.s3.bucket import Bucket, S3Object
from chapterverse.ext.s3.responses import S3Rejection
from chapterverse.model import Scope
from chapterverse.text.json_text import parse_json

#: Seconds without a renewal after which a lease expires. A deploy waits as long after a publisher was killed.
LEASE_SECONDS = 20


@dataclass
class S3Lease:
    """One publisher's lease of a scope. It may be renewed by another thread than the one that publishes."""

    bucket: Bucket
    key: str
    scope: Scope
    seconds: int
    holder: str

    def __post_init__(self) -> None:
        self._etag: str | None = None
        self._renewed_at = 0.0
        self._is_overtaken = False
        self._lock = threading.Lock()

    def acquire(self) -> None:
        """Take the lease. Raise `IndexLocked` if another publisher holds it."""
        current = self.bucket.read(self.key)
        if current and (remaining := _seconds_left(current)):
            raise locked_error(self.scope, self.bucket, remaining)
        self._etag = current.etag if current else None
        try:
            self._write(self.seconds)
        except IndexLocked:
            raise locked_error(self.scope, self.bucket, self.seconds) from None

    def renew(self) -> None:
        """Renew the lease, unless less than a quarter of it has passed.

        Raises:
            IndexLocked: another publisher took over.
        """
        with self._lock:
            if self._is_overtaken:
                raise self._lost_error()
            if time.monotonic() - self._renewed_at < self.seconds / 4:
                return
            try:
                self._write(self.seconds)
            except IndexLocked:
                self._is_overtaken = True
                raise
            except ChapterVerseError:
                # The next renewal may succeed. If none does, the write of the head still decides.
                return

    def release(self) -> None:
        """Let the lease expire now. Deleting the object could delete the lease of a successor."""
        with self._lock, contextlib.suppress(ChapterVerseError):
            if not self._is_overtaken:
                self._write(0)

    def _write(self, seconds: int) -> None:
        # No two bodies are equal, or their etags would be.
        claim = {"holder": self.holder, "seconds": seconds, "nonce": secrets.token_hex(8)}
        body = json.dumps(claim).encode()
        try:
            self._etag = self.bucket.write(self.key, body, self._etag)
        except S3Rejection:
            current = self.bucket.read(self.key)
            # A request whose answer was lost is repeated, and then rejected because of itself.
            if current is None or current.body != body:
                raise self._lost_error() from None
            self._etag = current.etag
        self._renewed_at = time.monotonic()

    def _lost_error(self) -> IndexLocked:
        return IndexLocked(
            f"Another process took over the publication of {self.scope}, for this one was silent too long: "
            "nothing was published, run it again."
        )


def is_held(bucket: Bucket, key: str) -> bool:
    """Return whether a publisher holds the lease."""
    current = bucket.read(key)
    return current is not None and _seconds_left(current) > 0


@contextlib.contextmanager
def hold(bucket: Bucket, key: str, scope: Scope, seconds: int) -> Iterator[S3Lease]:
    """Hold the lease in the block.

    Raises:
        IndexLocked: another publisher holds it.
        ConfigurationError: the service has no conditional writes.
    """
    holder = secrets.token_hex(16)
    with Presence.hold(holder):
        lease = S3Lease(bucket, key, scope, seconds, holder)
        lease.acquire()
        try:
            bucket.check_conditions(key)
            yield lease
        finally:
            lease.release()


def _seconds_left(current: S3Object) -> float:
    """Return the seconds until the lease expires; 0 afterwards."""
    try:
        claim = parse_json(current.body)
        holder, seconds = str(claim["holder"]), float(claim["seconds"])
    except (ValueError, TypeError, KeyError):
        # A malformed lease counts as one of the usual length.
        holder, seconds = "", LEASE_SECONDS
    # No lease may lock the others out for ever.
    remaining = min(seconds, 10 * LEASE_SECONDS) - current.age
    return remaining if remaining > 0 and seconds_until_gone(holder) is None else 0.0
