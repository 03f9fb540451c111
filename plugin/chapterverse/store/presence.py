"""Whether the publisher that holds a lease still runs, where it ran on this machine.

    ROOT/SHA256.lease   locked while the publisher holds a lease; SHA256 is that of the lease's token

The system frees the lock when the process has ended, in any way, and at no other time: not while it is stopped, and not
for another process that got its number. So a process that gets the lock knows that no other one publishes by that
token. The file also states until when a request of the ended process may still arrive, by the clock of the boot.

A copy of the file proves nothing on another machine, or in a container that has processes of its own. It names the
boot and the namespace that it was made in, so there it counts for nothing, as on systems that don't tell those.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from chapterverse.errors import ChapterVerseError, ConfigurationError

_ENDING = ".lease"
#: Linux alone tells one boot from another; elsewhere the system empties temporary space when it starts.
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
#: Characters of the machine's name, and of a time in seconds behind it.
_NAME, _TIME = 64, 20
#: Seconds after which no lease can be meant any more by what a killed publisher left.
_OLD = 3600


class Presence:
    """A publisher that can be seen to be alive, as long as the `with` of `of` lasts."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle
        self._until = 0.0

    @classmethod
    @contextlib.contextmanager
    def of(cls, token: str) -> Iterator[Presence]:
        """Hold the lock for a lease's token, which no other process has seen yet.

        Without room for the file, or without a way to tell one machine from another, the lock is not visible to others.
        """
        with contextlib.ExitStack() as stack:
            handle = None
            # The code that needs the folder tells the operator what to mend.
            with contextlib.suppress(OSError, ChapterVerseError):
                handle = stack.enter_context(_lock(_path(token))) if _machine() else None
            yield cls(handle)

    @contextlib.contextmanager
    def sending(self, seconds: float) -> Iterator[None]:
        """Send a request in the block; it arrives within so many seconds, or it was answered when the block ends.

        What leaves the block by an error may still arrive.
        """
        before, self._until = self._until, max(self._until, _now() + seconds)
        self._note()
        yield
        self._until = before
        self._note()

    def _note(self) -> None:
        if self._handle is not None:
            os.pwrite(self._handle, f"{self._until:0{_TIME}.3f}".encode(), _NAME)


def gone(token: str) -> float | None:
    """Return in how many seconds all that the holder of a token sent has arrived, if it is known to be gone.

    None if it is alive, or was never seen on this machine.
    """
    with contextlib.suppress(OSError, ValueError, ChapterVerseError), _path(token).open("rb") as file:
        if not (machine := _machine()) or file.read(_NAME) != machine.encode():
            return None
        # Shared, so that others who look at the same time learn the same.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return max(0.0, float(file.read(_TIME)) - _now())
    return None


def shared_folder() -> Path:
    """Return the folder in temporary space that all processes of one user share, and no other user can write to.

    It need not be there yet; after a boot it is another one.
    """
    return Path(tempfile.gettempdir()) / f"chapterverse-{os.getuid()}-{_boot()[:8] or '0'}"


def _boot() -> str:
    """Return what tells this boot of this machine from every other; "" where the system doesn't say."""
    with contextlib.suppress(OSError):
        return _BOOT_ID.read_text("ascii").strip()
    return ""


def secure(folder: Path) -> None:
    """Make the folder; raises `ConfigurationError` if anybody else could have put something there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise ConfigurationError(
            f"The temporary folder {folder} is another user's, or others may write there: remove it, or set "
            "TMPDIR to a folder of your own."
        )


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[int]:
    secure(path.parent)
    _clear(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(handle, f"{_machine()}{0:0{_TIME}.3f}".encode())
        yield handle
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _clear(folder: Path) -> None:
    """Remove what publishers left that were killed long ago."""
    for path in folder.glob(f"*{_ENDING}"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            if time.time() - os.fstat(file.fileno()).st_mtime > _OLD:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


def _path(token: str) -> Path:
    return shared_folder() / f"{hashlib.sha256(token.encode()).hexdigest()}{_ENDING}"


def _machine() -> str:
    """Return a name for this boot of this machine and this namespace of processes; "" if it is unknown."""
    if sys.platform != "linux":
        return ""
    with contextlib.suppress(OSError):
        namespace, boot = _NAMESPACE.readlink(), _boot()
        return hashlib.sha256(f"{boot} {namespace}".encode()).hexdigest() if boot else ""
    return ""


def _now() -> float:
    """Seconds since the boot; no clock of the day, which may be set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()
