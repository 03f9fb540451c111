"""Finds a site's persona file, hashes it, and reads it when it changed."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from chapterverse.errors import ConfigurationError
from chapterverse.model import PERSONA, Page, Source

if TYPE_CHECKING:
    pass


#: What the file is called that nobody names.
NAME = "persona.md"


def find_persona(named: str, docs: Path | None, beside: Path) -> Path | None:
    """Return the file that holds the persona; None where there is none. `readers.persona` reads it.

    Args:
        named: the file that a setting names; empty looks for `persona.md` in both folders.
        docs: the folder of the documentation's sources, where they are at hand.
        beside: the folder of the site's configuration, or the working directory.

    Raises:
        ConfigurationError: a setting names a file that isn't there.
    """
    if named:
        if not Path(named).exists():
            raise ConfigurationError(f"There is no persona file {named}: name one that is there, or none.")
        return Path(named)
    places = [folder / NAME for folder in (docs, beside) if folder is not None]
    return next((file for file in places if file.is_symlink() or file.exists()), None)


def persona_source(file: Path, base_url: str, docs: Path | None = None) -> Source:
    """Return the persona as a source of the index; it is read where it changed, and `sync.index` raises what is wrong.

    Args:
        base_url: address of the site. The chunk's is the same with a query, which no page and no reader's place has.
        docs: the folder of the documentation's sources, which its path is relative to.
    """
    path, url = place_of(file, docs), f"{base_url.rstrip('/')}/?{PERSONA}"
    content_hash = _hash(file)
    return Source(
        path,
        content_hash,
        json.dumps([url, PERSONA]),
        functools.partial(_read, file, content_hash, path, url),
        PERSONA,
    )


def _hash(file: Path) -> str:
    """Return the SHA-256 of a file in hex, "" of what reading will refuse."""
    with contextlib.suppress(OSError):
        return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
    return ""


def _read(file: Path, content_hash: str, path: str, url: str) -> Page:
    # Neither the query path nor a build that changes nothing has a use for readers.
    from chapterverse.knowledge.persona_file import read_source

    return read_source(file, content_hash, path, url)


def place_of(persona: Path, docs: Path | None) -> str:
    """Return its path relative to the docs root; of a file outside, nothing of where this machine keeps it."""
    if docs is None:
        return persona.name
    # Only the folder is resolved: a link is the file that it pretends to be.
    real, root = persona.parent.resolve() / persona.name, docs.resolve()
    return real.relative_to(root).as_posix() if real.is_relative_to(root) else f"../{persona.name}"


def no_pages(persona: Path | None, docs: Path) -> frozenset[str]:
    """Return the paths below `docs` that are no pages: the persona's, and that of one which another takes the place of.

    Nobody who names another file means the first to be published.
    """
    return frozenset((NAME, place_of(persona, docs)) if persona else (NAME,))
