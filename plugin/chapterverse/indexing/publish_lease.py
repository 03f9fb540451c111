"""Waits for the publish lease of another publisher, and renews our own while this one works."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from chapterverse.errors import ChapterVerseError, IndexCorrupt, IndexLocked
from chapterverse.indexing.target import Target
from chapterverse.progress import Progress
from chapterverse.store import Publication

#: Seconds between two signs of life to the store.
_PULSE = 2.0


@contextlib.contextmanager
def publishing(target: Target, progress: Progress) -> Iterator[Publication]:
    """Open a publication and keep it alive; after a publisher that was killed, as soon as its lease has run out.

    Raises:
        IndexLocked: another process is publishing, or has published while this one waited.
    """
    before, waited = _token(target), 0.0
    with contextlib.ExitStack() as stack:
        while True:
            try:
                publication = stack.enter_context(target.store.publish(target.scope, target.card))
                break
            except IndexLocked:
                if waited > target.store.patience or not target.store.patience:
                    raise
            progress("Waiting for another publisher", int(waited), int(target.store.patience))
            time.sleep(_PULSE)
            waited += _PULSE
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
