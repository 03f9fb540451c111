"""The folder in temporary space that all processes of one user share, and nobody else writes to."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from chapterverse.errors import ConfigurationError

#: Linux alone tells one boot from another; elsewhere the system empties temporary space when it starts.
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def root() -> Path:
    """Return the folder, which need not be there yet; after a boot it is another one."""
    return Path(tempfile.gettempdir()) / f"chapterverse-{os.getuid()}-{boot()[:8] or '0'}"


def boot() -> str:
    """Return what tells this boot of this machine from every other; "" where the system doesn't say."""
    with contextlib.suppress(OSError):
        return _BOOT.read_text("ascii").strip()
    return ""


def secure(folder: Path) -> None:
    """Make the folder; raises `ConfigurationError` if anybody else could have put something there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise ConfigurationError(
            f"The temporary folder {folder} is another user's, or others may write there: remove it, or set "
            "TMPDIR to a folder of your own."
        )
