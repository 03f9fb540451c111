"""The files that a build may read: those of its project.

A docs repository takes contributions from strangers. A link named `guide.md`, or an entry of `also`, that leads to
another file of the machine would publish it. The project is the git repository that holds the folder that is read;
without one, the working directory that holds it, where a command's configuration is, or else only the folder.
"""

from __future__ import annotations

import os
from pathlib import Path

#: What the kernel shows as files: environments of processes, memory, devices.
_KERNEL = ("/proc", "/sys", "/dev")
#: A folder in memory, for files like any other.
_MEMORY = "/dev/shm"  # noqa: S108 nothing is written there


def leads_out(place: str | Path, *folders: str | Path) -> bool:
    """Return whether a file is none of these folders or of their projects, once all links are followed.

    A project's hidden files are never read through a link: `.git/config` holds a token while CI builds.
    """
    return is_outside(os.path.realpath(place), *folders)


def is_outside(real: str, *folders: str | Path) -> bool:
    """Return whether a path without links is of none of these folders or of their projects, as `leads_out`."""
    if any(_is_inside(real, tree) for tree in _KERNEL) and not _is_inside(real, _MEMORY):
        return True
    # A path without links that begins with a folder's needs no look at the folder.
    return not any(_is_inside(real, str(folder)) or _holds(os.path.realpath(folder), real) for folder in folders)


def _holds(folder: str, real: str) -> bool:
    if _is_inside(real, folder):
        return True
    root = _project(folder)
    return _is_inside(real, root) and not _is_hidden(Path(real).relative_to(root))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _project(folder: str) -> str:
    above = [folder, *map(str, Path(folder).parents)]
    root = next((place for place in above if os.path.lexists(f"{place}/.git")), None)
    # The whole machine is no project, and a home holds those of its owner.
    none = (os.sep, os.path.realpath(Path.home()))
    candidates = (place for place in (root, os.getcwd()) if place and place not in none and _is_inside(folder, place))  # noqa: PTH109
    return next(candidates, folder)


def _is_inside(real: str, folder: str) -> bool:
    return real == folder or real.startswith(folder.rstrip(os.sep) + os.sep)
