"""Waits for the publish lease of another publisher, and renews our own while this one works."""

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

#: Seconds between two signs of life to the store.
_PULSE = 2.0


@contextlib.contextmanager
def publishing(target: Target, progress: Progress) -> Iterator[Publication]:
    """Open a publication and keep it alive; after a publisher that was killed, as soon as its lease ends.

    Raises:
        IndexLocked: another process is publishing, or has published while this one waited.
    """
    before, waited, reasons = _token(target), 0.0, dict[bool, str]()
    with contextlib.ExitStack() as stack:
        while True:
            try:
                publication = stack.enter_context(target.store.publish(target.scope, target.card))
                break
            except IndexLocked as locked:
                if waited > target.store.patience or not target.store.patience:
                    raise
                reason = reasons.setdefault(locked.killed, _reason(target.scope, locked))
                # A little later than it ends, by a clock that counts whole seconds.
                pause = min(_PULSE, locked.seconds + 0.1) if locked.seconds else _PULSE
            progress(reason, int(waited), int(target.store.patience))
            time.sleep(pause)
            waited += pause
        if _token(target) != before:
            # What this process read may be older than what is live now.
            raise IndexLocked(f"Another process published {target.scope} meanwhile: run it again.")
        stack.enter_context(_alive(publication))
        yield publication


def renewing(publication: Publication, progress: Progress) -> Progress:
    """Return a progress that also asks whether this publisher may go on, so that a loser pays for nothing more."""

    def report(stage: str, done: int, total: int) -> None:
        publication.renew()
        progress(stage, done, total)

    return report


def _reason(scope: Scope, locked: IndexLocked) -> str:
    """Return until when this publisher waits, and why."""
    until = (datetime.now(UTC) + timedelta(seconds=locked.seconds)).strftime("%H:%M:%S")
    if locked.killed:
        return f"{WAITING} until {until} UTC for what a killed publisher of {scope} may have sent"
    return f"{WAITING} for another publisher of {scope}: until {until} UTC, if it was killed"


def _token(target: Target) -> str:
    """Return what tells the live generation from every other; "" where there is none, or a damaged head."""
    with contextlib.suppress(IndexCorrupt):
        head = target.head()
        return head.token if head else ""
    return ""


@contextlib.contextmanager
def _alive(publication: Publication) -> Iterator[None]:
    """Tell the store now and then that this publisher is at work; a model may make it wait for minutes."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(_PULSE):
            try:
                publication.renew()
            except IndexLocked:
                # There is nothing left to renew; the next write says so.
                return
            except ChapterVerseError:
                # The network may be back at the next beat.
                continue

    pulse = threading.Thread(target=beat, name="chapterverse-pulse", daemon=True)
    pulse.start()
    try:
        yield
    finally:
        done.set()
        pulse.join()
