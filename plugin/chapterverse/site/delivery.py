"""Writes the widget's files into a static folder or a built site."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from chapterverse import __version__
from chapterverse.errors import InputError
from chapterverse.readers.addresses import clean_url
from chapterverse.widget import assets

#: What every release of the launcher holds, and no other script does.
_SIGN = b"chapter-verse"
_LAUNCHER = "launcher.js"

#: The API takes no question with a longer one.
_LONGEST_VERSION = 64


def widget_files(
    endpoint: str, options: Mapping[str, Any] = MappingProxyType({}), version: str = ""
) -> dict[str, bytes]:
    """Return the widget's modules by path, configured to ask `endpoint`: "/" is the site's own origin.

    Args:
        options: what a site decides, as `WidgetOptions.config` returns it.
        version: the site's version of the documentation, "" if it has none.

    Raises:
        InputError: `endpoint` is no address of an API, or `version` no name of a version.
    """
    if len(version) > _LONGEST_VERSION or not version.isprintable():
        raise InputError(f"The docs version must be a text of at most {_LONGEST_VERSION} characters.")
    return assets({"endpoint": clean_endpoint(endpoint), **options, "version": version})


def clean_endpoint(endpoint: str) -> str:
    """Return an API's address as the widget wants it: without a slash at the end, "" for the site's own origin.

    Raises:
        InputError: it is no http(s) address, or says more than an address should.
    """
    if endpoint.strip() == "/":
        return ""
    url = clean_url(endpoint)
    if url is None:
        raise InputError("The endpoint must be an address like https://api.example.com, or / for the site's own.")
    parts = urlsplit(endpoint.strip())
    if "@" in parts.netloc:
        # Not repeated: what stands before the "@" is a secret, and every reader of the site would get it.
        raise InputError("The endpoint holds a user name or password, which every reader would see: leave it out.")
    if parts.query or parts.fragment:
        raise InputError("The endpoint must be an address without a query: everything behind its path is left out.")
    if url.rstrip("/").endswith("/v1"):
        raise InputError("The endpoint must be the API's address without /v1, which the widget adds.")
    return url.rstrip("/")


def stamp(files: Mapping[str, bytes]) -> str:
    """Return the name of a folder for exactly these files, so that no browser mixes them with others it remembers."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"{__version__}-{digest.hexdigest()[:8]}"


def deliver(folder: Path, files: Mapping[str, bytes]) -> int:
    """Write files below a folder, made if need be; return how many were not there as they are.

    Raises:
        InputError: a file of that name is there and is not the widget's.
    """
    _refuse_foreign(folder, files)
    written = 0
    # The launcher first, by which a later run knows the folder again even if this one is killed.
    for name, content in sorted(files.items(), key=lambda file: file[0] != _LAUNCHER):
        path = folder / name
        if not path.is_symlink() and path.is_file() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, content)
        written += 1
    return written


def replace(path: Path, content: bytes) -> None:
    """Make a file hold `content` at once: whoever reads it meanwhile gets all of the old or all of the new one."""
    handle, name = tempfile.mkstemp(prefix=".chapterverse-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _refuse_foreign(folder: Path, files: Mapping[str, bytes]) -> None:
    launcher = folder / _LAUNCHER
    if launcher.is_file() and _SIGN in launcher.read_bytes():
        return
    for name in sorted(files):
        if os.path.lexists(folder / name):
            raise InputError(f"{folder / name} is there already and not the widget's: name a folder of its own.")


def _umask() -> int:
    # The system tells it only to whoever sets it.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
