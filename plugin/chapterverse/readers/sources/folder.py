"""Lists and reads the files of a folder, and never leaves it.

A docs repository takes contributions from strangers: a link named `guide.md` that leads to `/proc/self/environ` would
publish the build's secrets. What isn't a regular file inside the folder is never opened, and a page that only pretends
to be one is a loud error.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chapterverse.errors import InputError, UnreadablePage, UnsafePath
from chapterverse.readers.page_bounds import MAX_FILE_BYTES

#: A page's path is its identity in the ledger, whose column is this wide.
_MAX_PATH_CHARS = 512
_SKIPPED_FOLDERS = frozenset(("node_modules", "_static", "_sources", "_modules"))

# Not every platform has these; where it lacks them, the check of the opened file still holds.
_OPEN_FLAGS = os.O_RDONLY | sum(getattr(os, f, 0) for f in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


@dataclass(slots=True)
class Listing:
    """Files below a folder, `/`-separated relative paths in sorted order, and why some of them are missing."""

    files: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def list_files(
    folder: Path, suffixes: tuple[str, ...], without: Collection[str] = (), *, check: bool = True
) -> Listing:
    """Return the files whose names end so, in all folders but hidden ones and those that tools fill.

    A link to a file of the folder is a file; a link to a folder inside is not followed, so that no page has two names.

    Args:
        without: paths that are as if they weren't there.
        check: whether something that is no file is an error; else it is listed, and only `read_page` rejects it.

    Raises:
        InputError: `folder` is no folder, or one below it can't be read.
        UnsafePath: a file is a link that leads out of the folder or in circles, a pipe or a device.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder.")
    listing = Listing()
    root = os.path.realpath(folder)
    folders = [""]
    while folders:
        inside = folders.pop()
        for entry in _entries(root, inside):
            path = f"{inside}{entry.name}"
            if path in without:
                continue
            is_page, is_folder = entry.name.lower().endswith(suffixes), entry.is_dir(follow_symlinks=False)
            if is_folder and not entry.name.startswith(".") and entry.name not in _SKIPPED_FOLDERS:
                folders.append(f"{path}/")
            if not check and is_page:
                _add(path, listing)
            elif not is_folder and (not entry.is_symlink() or _follows(root, path, suffixes, listing)) and is_page:
                _require_regular(root, path)
                _add(path, listing)
    listing.files.sort()
    return listing


def read_page(folder: Path, path: str, display_name: str = "") -> bytes:
    """Return the bytes of a listed file.

    Args:
        display_name: the name of the file in messages, `path` by default.

    Raises:
        UnsafePath: it isn't, or no longer, a regular file inside the folder.
        UnreadablePage: it can't be opened, or is larger than `MAX_FILE_BYTES`.
    """
    display_name = display_name or path
    real = real_path(folder, path, display_name)
    try:
        with open(os.open(real, _OPEN_FLAGS), "rb") as file:  # noqa: PTH123 (flags need a descriptor)
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UnsafePath(_SPECIAL.format(display_name))
            # Asked for 50 MB, Python would allocate them for each page; a file that has just grown is read on.
            content = file.read(min(status.st_size, MAX_FILE_BYTES) + 1)
            if len(content) > status.st_size:
                content += file.read(MAX_FILE_BYTES + 1 - len(content))
    except OSError as error:
        raise _unreadable(display_name, error, is_link=os.path.islink(os.path.join(folder, path))) from None  # noqa: PTH114, PTH118
    if len(content) > MAX_FILE_BYTES:
        raise UnreadablePage(f"{display_name} is larger than {MAX_FILE_BYTES // 1_000_000} MB, too large for a page.")
    return content


def _unreadable(display_name: str, error: OSError, *, is_link: bool) -> InputError:
    if error.errno == errno.ELOOP:
        return UnsafePath(_CIRCLE.format(display_name))
    if error.errno == errno.ENOENT and is_link:
        return UnreadablePage(f"{display_name} is a link that leads nowhere: remove it.")
    # A socket can't even be opened.
    if error.errno in (errno.ENXIO, errno.EISDIR):
        return UnsafePath(_SPECIAL.format(display_name))
    return UnreadablePage(f"{display_name} can't be read: {error.strerror}.")


def real_path(folder: str | Path, path: str, display_name: str = "") -> str:
    """Return where a path of a folder leads.

    Raises:
        UnsafePath: out of the folder.
    """
    root = os.path.realpath(folder)
    real = os.path.realpath(os.path.join(root, path))  # noqa: PTH118 (a Path would lose a trailing dot or space)
    if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
        raise UnsafePath(f"{display_name or path} is a link that leads out of its folder: remove it.")
    return real


_SPECIAL = "{} is a pipe, a device or something else that is no regular file: remove it."
_CIRCLE = "{} is a link that leads in a circle: remove it."


def _entries(root: str, inside: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(os.path.join(root, inside)) as entries:  # noqa: PTH118
            yield from entries
    except OSError as error:
        # Its pages would count as deleted, and leave the index.
        raise InputError(f"The folder {inside or '.'} can't be read: {error.strerror}.") from None


def _follows(root: str, path: str, suffixes: tuple[str, ...], listing: Listing) -> bool:
    """Return whether a link leads to a file that may be read; raise if it is a page that must not be."""
    full = os.path.join(root, path)  # noqa: PTH118
    is_page = path.lower().endswith(suffixes)
    try:
        mode = os.stat(full).st_mode  # noqa: PTH116
    except OSError as error:
        if is_page and error.errno == errno.ELOOP:
            raise UnsafePath(_CIRCLE.format(path)) from None
        mode = 0
    if is_page or stat.S_ISDIR(mode):
        real_path(root, path)
    if stat.S_ISDIR(mode):
        listing.warnings.append(f"{path} is a link to a folder; its pages are read in the folder it leads to.")
    elif is_page and not mode:
        listing.warnings.append(f"{path} is a link that leads nowhere.")
    return bool(mode) and not stat.S_ISDIR(mode)


def _require_regular(root: str, path: str) -> None:
    if not stat.S_ISREG(os.stat(os.path.join(root, path)).st_mode):  # noqa: PTH116, PTH118
        raise UnsafePath(_SPECIAL.format(path))


def _add(path: str, listing: Listing) -> None:
    if len(path) > _MAX_PATH_CHARS:
        listing.warnings.append(f"{path[:60]}… is skipped: its path is longer than {_MAX_PATH_CHARS} characters.")
    elif not path.isprintable():
        listing.warnings.append(f"{path!a} is skipped: its name holds characters that can't stand in an address.")
    else:
        listing.files.append(path)
