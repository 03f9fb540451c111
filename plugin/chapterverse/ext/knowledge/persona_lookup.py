"""Finds a site's persona file, hashes it, and reads it when it changed."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from chapterverse.errors import ConfigurationError
from chapterverse.indexing.additions import PERSONA_FILE
from chapterverse.model import PERSONA, Page, Source


def find_persona(setting: str, docs: Path | None, beside: Path, other_files: Sequence[Path] = ()) -> Path | None:
    """Return the persona file, None if there is none. `persona_source` reads it.

    Args:
        setting: the file that a setting names; empty looks for `persona.md` in both folders.
        docs: the folder of the documentation's sources, if available.
        beside: the folder of the site's configuration, or the working directory.
        other_files: the persona files of the folder of knowledge.

    Raises:
        ConfigurationError: a setting names a missing file, or there are two files.
    """
    if setting:
        if not Path(setting).exists():
            raise ConfigurationError(f"There is no persona file {setting}: name one that is there, or none.")
        return Path(setting)
    places = [folder / PERSONA_FILE for folder in (docs, beside) if folder is not None]
    first = next((file for file in places if file.is_symlink() or file.exists()), None)
    files = [*([first] if first else []), *other_files]
    if len(files) > 1:
        raise ConfigurationError(f"{files[0]} and {files[1]} are both a persona: keep one.")
    return files[0] if files else None


def persona_source(file: Path, base_url: str, docs: Path | None = None) -> Source:
    """Return the persona as a source of the index. It is read only if it changed, and errors are raised then.

    Args:
        base_url: address of the site. The persona's address adds a query, which no page has.
        docs: the folder that the source's path is relative to.
    """
    path, url = persona_path(file, docs), f"{base_url.rstrip('/')}/?{PERSONA}"
    content_hash = _hash(file)
    return Source(
        path,
        content_hash,
        json.dumps([url, PERSONA]),
        functools.partial(_read, file, content_hash, path, url),
        PERSONA,
    )


def _hash(file: Path) -> str:
    """Return the SHA-256 of a file in hex, "" for a file that reading will reject."""
    with contextlib.suppress(OSError):
        return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
    return ""


def _read(file: Path, content_hash: str, path: str, url: str) -> Page:
    # Imported here: neither the query path nor a build without changes needs readers.
    from chapterverse.ext.knowledge.persona_file import read_source

    return read_source(file, content_hash, path, url)


def persona_path(persona: Path, docs: Path | None) -> str:
    """Return the persona's path relative to `docs`; outside it "../NAME", which hides this machine's folders."""
    if docs is None:
        return persona.name
    # Resolve only the folder: a symbolic link counts as a file of its own folder.
    real, root = persona.parent.resolve() / persona.name, docs.resolve()
    return real.relative_to(root).as_posix() if real.is_relative_to(root) else f"../{persona.name}"


def no_pages(persona: Path | None, docs: Path) -> frozenset[str]:
    """Return the paths below `docs` that are not pages: the persona, and `persona.md` in any case."""
    return frozenset((PERSONA_FILE, persona_path(persona, docs)) if persona else (PERSONA_FILE,))
