"""Makes the folders of what a build keeps for the next one."""

from __future__ import annotations

import contextlib
from pathlib import Path

#: The default place of the index and of all that is kept beside it, for which Git must not ask.
_CACHE = Path(".cache/plugin")


def make_folder(folder: Path) -> None:
    """Make a folder with those above it. The default place ignores itself in Git.

    Raises:
        OSError: the folder can't be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cache = next((place for place in (folder, *folder.parents) if place.parts[-2:] == _CACHE.parts), None)
    if cache is None or (cache / ".gitignore").exists():
        return
    # The index does not depend on it.
    with contextlib.suppress(OSError):
        (cache / ".gitignore").write_text("*\n", encoding="utf-8")
