"""A project: the files that a build may read, the command that builds its site, and the folder kept for later builds.

A docs repository takes contributions from strangers. A link named `guide.md`, or an entry of `also`, that leads to
another file of the machine would publish it. The project is the git repository that holds the folder that is read;
without one, the working directory that holds it, where a command's configuration is, or else only the folder.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

#: What the kernel shows as files: environments of processes, memory, devices.
_KERNEL = ("/proc", "/sys", "/dev")
#: A folder in memory, for files like any other.
_MEMORY = "/dev/shm"  # noqa: S108 nothing is written there

#: Files of a configuration, as patterns, and the command. The first that is there counts.
_COMMANDS = (
    ("mkdocs.y*ml", "`mkdocs build` with the plugin"),
    ("zensical.toml", "`zensical build`, then `chapterverse index site`"),
    ("docusaurus.config.*", "`npm run build` with the plugin"),
    ("astro.config.*", "`npm run build` with the plugin"),
    (".vitepress", "`vitepress build` with the plugin"),
    ("docs/.vitepress", "`vitepress build docs` with the plugin"),
    ("conf.py", "`sphinx-build` with the extension"),
    ("docs/conf.py", "`sphinx-build` with the extension"),
    ("docs/source/conf.py", "`sphinx-build` with the extension"),
    ("source/conf.py", "`sphinx-build` with the extension"),
    ("hugo.*", "`hugo`, then `chapterverse index public`"),
    ("_config.yml", "`jekyll build`, then `chapterverse index _site`"),
)
#: The default place of the index and of all that is kept beside it, for which Git must not ask.
_CACHE = Path(".cache/plugin")


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


def build_command(folder: Path) -> str:
    """Return the command of the generator that a folder is configured for, else that for a built site."""
    named = (command for pattern, command in _COMMANDS if any(folder.glob(pattern)))
    return next(named, "`chapterverse index SITE_DIR` on the built site")


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
