"""Who publishes to a scope right now: a courtesy, so that the loser of a race learns it before it pays for embedding.

A lease is an object that its holder renews; one that was not renewed for its number of seconds may be taken over, and
at once where the holder ran on this machine and is gone (see `presence`). It protects nothing: the conditional write of
the head does.
"""

from __future__ import annotations

import contextlib
import json
import math
import secrets
import threading
import time
from collections.abc import Iterator

from chapterverse.errors import ChapterVerseError, IndexLocked
from chapterverse.model import Scope
from chapterverse.store.presence import Presence, gone
from chapterverse.store.s3.bucket import Bucket, S3Object
from chapterverse.store.s3.responses import S3Rejection
from chapterverse.text.json_text import parse_json

#: Seconds after which a holder that says nothing may be taken over: how long a deploy waits after one was killed.
SECONDS = 20


class S3Lease:
    """One publisher's claim on a scope. May be renewed by another thread than the one that publishes."""

    def __init__(self, bucket: Bucket, key: str, scope: Scope, seconds: int, holder: str) -> None:
        self._bucket = bucket
        self._key = key
        self._scope = scope
        self._seconds = seconds
        self._holder = holder
        self._etag: str | None = None
        self._renewed = 0.0
        self._is_overtaken = False
        self._turn = threading.Lock()

    def acquire(self) -> None:
        """Raises `IndexLocked` if somebody holds it."""
        current = self._bucket.read(self._key)
        if current and (remaining := _seconds_left(current)):
            raise self._busy(remaining)
        self._etag = current.etag if current else None
        try:
            self._write(self._body(self._seconds))
        except IndexLocked:
            raise self._busy(self._seconds) from None

    def renew(self) -> None:
        """Renew the lease, unless that was done a moment ago.

        Raises:
            IndexLocked: another publisher took over.
        """
        with self._turn:
            if self._is_overtaken:
                raise self._overtaken()
            if time.monotonic() - self._renewed < self._seconds / 4:
                return
            try:
                self._write(self._body(self._seconds))
            except IndexLocked:
                self._is_overtaken = True
                raise
            except ChapterVerseError:
                # The next renewal may come through, and if none does the head still decides.
                return

    def release(self) -> None:
        """Leave it expired; deleting it could delete a successor's."""
        with self._turn, contextlib.suppress(ChapterVerseError):
            if not self._is_overtaken:
                self._write(self._body(0))

    def _write(self, body: bytes) -> None:
        try:
            self._etag = self._bucket.write(self._key, body, self._etag)
        except S3Rejection:
            current = self._bucket.read(self._key)
            # A request whose answer was lost is repeated, and then refused because of itself.
            if current is None or current.body != body:
                raise self._overtaken() from None
            self._etag = current.etag
        self._renewed = time.monotonic()

    def _body(self, seconds: int) -> bytes:
        # No two bodies are equal, or their etags would be.
        claim = {"holder": self._holder, "seconds": seconds, "nonce": secrets.token_hex(8)}
        return json.dumps(claim).encode()

    def _busy(self, remaining: float) -> IndexLocked:
        return IndexLocked(
            f"Another process is publishing {self._scope} to {self._bucket}: wait for it, then run again; "
            f"if it was killed, in {math.ceil(remaining)} seconds.",
            seconds=remaining,
        )

    def _overtaken(self) -> IndexLocked:
        return IndexLocked(
            f"Another process took over the publication of {self._scope}, for this one was silent too long: "
            "nothing was published, run it again."
        )


def is_held(bucket: Bucket, key: str) -> bool:
    """Return whether somebody holds the lease."""
    current = bucket.read(key)
    return current is not None and _seconds_left(current) > 0


@contextlib.contextmanager
def hold(bucket: Bucket, key: str, scope: Scope, seconds: int) -> Iterator[S3Lease]:
    """Hold it; raises `IndexLocked` if somebody does, `ConfigurationError` if the service can't hold anything."""
    holder = secrets.token_hex(16)
    with Presence.of(holder):
        lease = S3Lease(bucket, key, scope, seconds, holder)
        lease.acquire()
        try:
            bucket.check_conditions(key)
            yield lease
        finally:
            lease.release()


def _seconds_left(current: S3Object) -> float:
    """Return for how many seconds the lease still lasts; 0 after its end."""
    try:
        claim = parse_json(current.body)
        holder, seconds = str(claim["holder"]), float(claim["seconds"])
    except (ValueError, TypeError, KeyError):
        # An unknown writer may hold a lease as well, but for no longer than a release of ours.
        holder, seconds = "", SECONDS
    # No holder may lock the others out for ever.
    remaining = min(seconds, 10 * SECONDS) - current.age
    return remaining if remaining > 0 and gone(holder) is None else 0.0
