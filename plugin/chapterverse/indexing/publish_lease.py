"""Waits for another publisher's lease, and renews our own during a publication."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from chapterverse.errors import ChapterVerseError, IndexCorrupt, IndexLocked
from chapterverse.indexing.target import Target
from chapterverse.model import Scope
from chapterverse.progress import WAITING, Progress
from chapterverse.store import Publication

#: Seconds between two renewals.
_RENEWAL_SECONDS = 2.0


@contextlib.contextmanager
def publishing(target: Target, progress: Progress) -> Iterator[Publication]:
    """Open a publication, after another publisher if need be, and renew its lease until the block ends.

    Raises:
        IndexLocked: another process is publishing, or published while this one waited.
    """
    before, waited, reasons = _token(target), 0.0, dict[bool, str]()
    with contextlib.ExitStack() as stack:
        while True:
            try:
                publication = stack.enter_context(target.store.publish(target.scope, target.card))
                break
            except IndexLocked as locked:
                if waited > target.store.lease_seconds or not target.store.lease_seconds:
                    raise
                reason = reasons.setdefault(locked.killed, _reason(target.scope, locked))
                # 0.1 s longer, because the server's clock counts whole seconds.
                pause = min(_RENEWAL_SECONDS, locked.seconds + 0.1) if locked.seconds else _RENEWAL_SECONDS
            progress(reason, int(waited), int(target.store.lease_seconds))
            time.sleep(pause)
            waited += pause
        if _token(target) != before:
            # The diff may be based on an older generation than the live one.
            raise IndexLocked(f"Another process published {target.scope} meanwhile: run it again.")
        stack.enter_context(_alive(publication))
        yield publication


def renewing(publication: Publication, progress: Progress) -> Progress:
    """Return a progress callback that also renews the lease: a run that lost it stops before it pays for more."""

    def report(stage: str, done: int, total: int) -> None:
        publication.renew()
        progress(stage, done, total)

    return report


def _reason(scope: Scope, error: IndexLocked) -> str:
    """Return a progress message with the time until which this publisher waits, and why."""
    until = (datetime.now(UTC) + timedelta(seconds=error.seconds)).strftime("%H:%M:%S")
    if error.killed:
        return f"{WAITING} until {until} UTC for what a killed publisher of {scope} may have sent"
    return f"{WAITING} for another publisher of {scope}: until {until} UTC, if it was killed"


def _token(target: Target) -> str:
    """Return the live generation's token; "" if there is none or the head is damaged."""
    with contextlib.suppress(IndexCorrupt):
        head = target.head()
        return head.token if head else ""
    return ""


@contextlib.contextmanager
def _alive(publication: Publication) -> Iterator[None]:
    """Renew the lease from a thread, because a call to a model may block for minutes."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(_RENEWAL_SECONDS):
            try:
                publication.renew()
            except IndexLocked:
                # The lease is lost; the next write raises.
                return
            except ChapterVerseError:
                # Retry at the next beat.
                continue

    pulse = threading.Thread(target=beat, name="chapterverse-pulse", daemon=True)
    pulse.start()
    try:
        yield
    finally:
        done.set()
        pulse.join()
