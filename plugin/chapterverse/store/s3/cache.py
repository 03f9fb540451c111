"""Unpacked artefacts in temporary space, shared by all processes of one user.

    ROOT/SCOPE/SHA256/   an unpacked artefact, complete from the moment it has this name
    ROOT/SCOPE.head      the store that it is of, and the head that named it
    ROOT/*.new           a scratch folder of one process; its lock tells whether that process still runs

What is under a hash is never written to by us, and was found to have that hash when it was unpacked. Nothing is made to
survive a power cut, which takes longer than all the rest: the next boot of the machine begins with another root.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from chapterverse.store.presence import secure, shared_folder

#: Seconds in which a scratch folder may have been made and not locked yet.
_YOUNG = 60


class Cache:
    """The folder; made when something is first put there."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or shared_folder()

    def place(self, scope: str, sha256: str) -> Path:
        """Return where an artefact of a scope is, or would be."""
        if self.root.exists():
            secure(self.root)
        return self.root / scope / sha256

    def put(self, folder: Path, place: Path) -> None:
        """Move an unpacked artefact from a scratch folder to its place; the scope's older ones make room.

        Those who have opened them keep them: the system removes a file when its last reader is gone.
        """
        place.parent.mkdir(exist_ok=True)
        # Another process may have been faster; then its copy is as good.
        with contextlib.suppress(OSError):
            folder.rename(place)
        for other in place.parent.iterdir():
            if other != place:
                shutil.rmtree(other, ignore_errors=True)

    def remember(self, scope: str, store: str, head: bytes) -> None:
        """Note the head of the artefact that was put there last."""
        with tempfile.NamedTemporaryFile(dir=self.root, suffix=".part", delete=False) as file:
            file.write(store.encode() + b"\n" + head)
        Path(file.name).replace(self.root / f"{scope}.head")

    def recall(self, store: str) -> Iterator[bytes]:
        """Yield the heads that were written down of a store."""
        with contextlib.suppress(OSError):
            self.place("", "")
            for file in sorted(self.root.glob("*.head")):
                of, _, head = file.read_bytes().partition(b"\n")
                if of == store.encode():
                    yield head

    @contextlib.contextmanager
    def scratch_dir(self) -> Iterator[Path]:
        """Give a private folder, removed at the end; those of killed processes are removed as well."""
        secure(self.root)
        _clear(self.root)
        scratch_dir = Path(tempfile.mkdtemp(suffix=".new", dir=self.root))
        handle = os.open(scratch_dir, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield scratch_dir
        finally:
            os.close(handle)
            shutil.rmtree(scratch_dir, ignore_errors=True)


def _clear(root: Path) -> None:
    for scratch_dir in root.glob("*.new"):
        # A release that unpacked folders of any depth may have left some that can't be removed.
        with contextlib.suppress(OSError, RecursionError):
            if time.time() - scratch_dir.stat().st_mtime > _YOUNG and not _is_locked(scratch_dir):
                shutil.rmtree(scratch_dir, ignore_errors=True)


def _is_locked(scratch_dir: Path) -> bool:
    handle = os.open(scratch_dir, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
