"""Detects whether a publisher that holds a lease, and ran on this machine, is still running.

    ROOT/SHA256.lease   locked while the publisher holds the lease; SHA256 is the hash of the lease's token

The kernel releases the lock exactly when the process ends: not while it is paused, and not for another process that
gets its number. So a process that gets the lock knows that no other one publishes with that token. The file also holds
the time until which a request of the ended process may still arrive, in seconds since the boot.

The file names the boot and the namespace of processes in which it was made. A copy on another machine, or in a
container with processes of its own, is ignored. So is every file on systems that don't provide these names.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import math
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from chapterverse.errors import ChapterVerseError, ConfigurationError, IndexLocked
from chapterverse.model import Scope

_SUFFIX = ".lease"
#: Only Linux has an id for each boot. Elsewhere the system empties temporary space when it starts.
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
#: Characters of the machine's name, with which the file begins.
_MACHINE_CHARS = 64
#: Characters of the time after it, in seconds.
_TIME_CHARS = 20
#: Age in seconds after which the file of a killed publisher is removed. No lease lasts as long.
_STALE_SECONDS = 3600


class Presence:
    """Marks a publisher as alive while the context manager `Presence.hold` is open."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle
        self._latest_arrival = 0.0

    @classmethod
    @contextlib.contextmanager
    def hold(cls, token: str) -> Iterator[Presence]:
        """Hold the lock for a lease's token, which no other process has seen yet.

        If the file can't be written, or the machine has no name, other processes don't see the lock.
        """
        with contextlib.ExitStack() as stack:
            handle = None
            # The code that needs the folder reports what is wrong with it.
            with contextlib.suppress(OSError, ChapterVerseError):
                handle = stack.enter_context(_lock(_path(token))) if _machine() else None
            yield cls(handle)

    @contextlib.contextmanager
    def sending(self, seconds: float) -> Iterator[None]:
        """Record that a request which is sent in the block may arrive up to `seconds` later.

        The record is withdrawn when the block ends, because the request was answered then. It stays after an error.
        """
        before, self._latest_arrival = self._latest_arrival, max(self._latest_arrival, _now() + seconds)
        self._write_latest_arrival()
        yield
        self._latest_arrival = before
        self._write_latest_arrival()

    def _write_latest_arrival(self) -> None:
        if self._handle is not None:
            os.pwrite(self._handle, f"{self._latest_arrival:0{_TIME_CHARS}.3f}".encode(), _MACHINE_CHARS)


def seconds_until_gone(token: str) -> float | None:
    """Return the seconds until the last request of the holder of a token has arrived, if the holder has ended.

    None if it is alive, or was never seen on this machine.
    """
    with contextlib.suppress(OSError, ValueError, ChapterVerseError), _path(token).open("rb") as file:
        if not (machine := _machine()) or file.read(_MACHINE_CHARS) != machine.encode():
            return None
        # A shared lock, so that other processes can look at the same time.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return max(0.0, float(file.read(_TIME_CHARS)) - _now())
    return None


def locked_error(scope: Scope, place: object, seconds: float, *, killed: bool = False) -> IndexLocked:
    """Return the error of a lease that lasts for so many seconds.

    Args:
        killed: whether its holder has ended, and only its last request has to arrive.
    """
    return IndexLocked(
        f"Another process is publishing {scope} to {place}: wait for it, then run again; "
        f"if it was killed, in {math.ceil(seconds)} seconds.",
        seconds=seconds,
        killed=killed,
    )


def shared_folder() -> Path:
    """Return the folder in temporary space that all processes of one user share, and no other user can write to.

    It may not exist yet. Its name changes with each boot.
    """
    return Path(tempfile.gettempdir()) / f"chapterverse-{os.getuid()}-{_boot()[:8] or '0'}"


def _boot() -> str:
    """Return the id of this boot of this machine; "" if the system has none."""
    with contextlib.suppress(OSError):
        return _BOOT_ID.read_text("ascii").strip()
    return ""


def make_private_folder(folder: Path) -> None:
    """Make the folder, unless it exists.

    Raises:
        ConfigurationError: another user owns it, or may write to it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise ConfigurationError(
            f"The temporary folder {folder} is another user's, or others may write there: remove it, or set "
            "TMPDIR to a folder of your own."
        )


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[int]:
    make_private_folder(path.parent)
    _remove_stale(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(handle, f"{_machine()}{0:0{_TIME_CHARS}.3f}".encode())
        yield handle
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _remove_stale(folder: Path) -> None:
    """Remove the files of publishers that were killed long ago."""
    for path in folder.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            if time.time() - os.fstat(file.fileno()).st_mtime > _STALE_SECONDS:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


def _path(token: str) -> Path:
    return shared_folder() / f"{hashlib.sha256(token.encode()).hexdigest()}{_SUFFIX}"


def _machine() -> str:
    """Return a name for this boot of this machine and this namespace of processes; "" if it is unknown."""
    if sys.platform != "linux":
        return ""
    with contextlib.suppress(OSError):
        namespace, boot = _NAMESPACE.readlink(), _boot()
        return hashlib.sha256(f"{boot} {namespace}".encode()).hexdigest() if boot else ""
    return ""


def _now() -> float:
    """Return the seconds since the boot. The time of day would not do, because it may be set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()
