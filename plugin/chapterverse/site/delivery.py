"""Writes the widget's files into a static folder or a built site."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chapterverse.errors import InputError
from chapterverse.version import __version__
from chapterverse.widget.bundle import assets
from chapterverse.widget.endpoint import clean_endpoint

#: A string in every release of the launcher and in no other script.
_SIGN = b"chapter-verse"
_LAUNCHER = "launcher.js"

#: Below the site's root.
FOLDER = "assets/chapterverse"

#: The API rejects longer versions.
_MAX_VERSION_CHARS = 64


def widget_files(
    endpoint: str, options: Mapping[str, Any] = MappingProxyType({}), version: str = ""
) -> dict[str, bytes]:
    """Return the widget's modules by path, configured for the API at `endpoint`; "/" is the site's own origin.

    Args:
        options: as `WidgetOptions.config` returns them.
        version: docs version of the site, "" if it has none.

    Raises:
        ConfigurationError: `endpoint` is not an API's address.
        InputError: `version` is too long or not printable.
    """
    if len(version) > _MAX_VERSION_CHARS or not version.isprintable():
        raise InputError(f"The docs version must be a text of at most {_MAX_VERSION_CHARS} characters.")
    return assets({"endpoint": clean_endpoint(endpoint), **options, "version": version})


def stamp(files: Mapping[str, bytes]) -> str:
    """Return the folder name that `inject` gives to exactly these files: the release and their digest."""
    return f"{__version__}-{_digest(files)}"


def is_ours(address: str) -> bool:
    """Return whether a file of a build, by its path from the site's root, is one of the widget's."""
    return address.startswith(f"{FOLDER}/")


def build_folder(files: Mapping[str, bytes]) -> str:
    """Return the path that a build, which writes every page, gives to exactly these files below the site's root.

    The digest keeps browsers from mixing them with cached ones. The form differs from `stamp`, because `inject` removes
    the folders of its earlier runs and must leave those of a build.
    """
    return f"{FOLDER}/{__version__}/{_digest(files)}"


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:8]


def deliver(folder: Path, files: Mapping[str, bytes]) -> int:
    """Write files below a folder and return the number of changed files. Creates the folder.

    Raises:
        InputError: a file of that name exists and is not the widget's.
    """
    _refuse_foreign(folder, files)
    written = 0
    # The launcher first: a later run recognizes the folder by it, even if this run is killed.
    for name, content in sorted(files.items(), key=lambda file: file[0] != _LAUNCHER):
        path = folder / name
        if not path.is_symlink() and path.is_file() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
        written += 1
    return written


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file's content atomically: readers get the old or the new content, never a part."""
    # An unchanged build spends more time here than anywhere else, so no `Path` is made.
    name = f"{path.parent}/.chapterverse-{os.urandom(8).hex()}"
    try:
        with open(name, "xb") as file:  # noqa: PTH123
            with contextlib.suppress(OSError):
                os.chmod(name, os.stat(path).st_mode & 0o7777)  # noqa: PTH101, PTH116
            file.write(content)
        os.replace(name, path)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise


def _refuse_foreign(folder: Path, files: Mapping[str, bytes]) -> None:
    launcher = folder / _LAUNCHER
    if launcher.is_file() and _SIGN in launcher.read_bytes():
        return
    for name in sorted(files):
        if os.path.lexists(folder / name):
            raise InputError(f"{folder / name} is there already and not the widget's: name a folder of its own.")
