"""Unpacked artefacts in temporary space, shared by all processes of one user.

    ROOT/SCOPE/SHA256/   an unpacked artefact, complete from the moment it has this name
    ROOT/SCOPE.head      the store of the artefact, and the head that named it
    ROOT/*.new           the scratch folder of a process, which holds a lock on it

A folder under a hash had this hash when it was unpacked, and is never written again. Nothing is made to survive a power
cut, because that would take longer than all the rest. The root has another name after each boot.
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

from chapterverse.ext.leases import make_private_folder, shared_folder

#: Seconds after which a scratch folder without a lock is removed. A younger one may not be locked yet.
_UNLOCKED_SECONDS = 60


class Cache:
    """The folder of the cache, which is made at its first use."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or shared_folder()

    def place(self, scope: str, sha256: str) -> Path:
        """Return the folder of an artefact of a scope. It need not exist."""
        if self.root.exists():
            make_private_folder(self.root)
        return self.root / scope / sha256

    def put(self, folder: Path, place: Path) -> None:
        """Move an unpacked artefact from a scratch folder to its place, and remove the scope's older ones.

        Processes that have opened an older one can still read it, until they close it.
        """
        place.parent.mkdir(exist_ok=True)
        # Another process may have been faster. Its copy is as good.
        with contextlib.suppress(OSError):
            folder.rename(place)
        for other in place.parent.iterdir():
            if other != place:
                shutil.rmtree(other, ignore_errors=True)

    def save_head(self, scope: str, store: str, head: bytes) -> None:
        """Save the head of a scope's artefact."""
        with tempfile.NamedTemporaryFile(dir=self.root, suffix=".part", delete=False) as file:
            file.write(store.encode() + b"\n" + head)
        Path(file.name).replace(self.root / f"{scope}.head")

    def saved_heads(self, store: str) -> Iterator[bytes]:
        """Yield the saved heads of a store."""
        with contextlib.suppress(OSError):
            self.place("", "")
            for file in sorted(self.root.glob("*.head")):
                store_name, _, head = file.read_bytes().partition(b"\n")
                if store_name == store.encode():
                    yield head

    @contextlib.contextmanager
    def scratch_dir(self) -> Iterator[Path]:
        """Yield a private folder and remove it at the end. Also remove the folders of killed processes."""
        make_private_folder(self.root)
        _remove_abandoned(self.root)
        scratch_dir = Path(tempfile.mkdtemp(suffix=".new", dir=self.root))
        handle = os.open(scratch_dir, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield scratch_dir
        finally:
            os.close(handle)
            shutil.rmtree(scratch_dir, ignore_errors=True)


def _remove_abandoned(root: Path) -> None:
    for scratch_dir in root.glob("*.new"):
        # A folder may be too deep to be removed.
        with contextlib.suppress(OSError, RecursionError):
            if time.time() - scratch_dir.stat().st_mtime > _UNLOCKED_SECONDS and not _is_locked(scratch_dir):
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
