"""Finds the documents beside the pages (persona, FAQ, memory) and hashes them; each is read when it changed."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urljoin

from chapterverse.errors import ConfigurationError, InputError, UnreadablePage
from chapterverse.indexing.additions import KNOWLEDGE_FOLDER, PERSONA_FILE, Documents
from chapterverse.model import FAQ, MEMORY, PAGE, PERSONA, Page, Source, main_language
from chapterverse.settings import Settings

if TYPE_CHECKING:
    from chapterverse.readers.folder import Listing

_FILE_TYPES = (PERSONA, FAQ, MEMORY)


@dataclass(frozen=True, slots=True)
class KnowledgeFiles(Documents):
    """The persona of a site, and the folder of its FAQ and memory files.

    Attributes:
        disabled: types that are not indexed; their files are still no pages.
    """

    persona: Path | None = None
    folder: Path | None = None
    disabled: frozenset[str] = frozenset()

    @classmethod
    def find(cls, settings: Settings, docs: Path | None, beside: Path) -> Self:
        """Return the files of a site. The arguments and errors are those of `find_documents`."""
        folder = _folder(settings.knowledge, docs)
        personas = [folder / PERSONA / name for name in _files(folder, PERSONA)] if folder else []
        persona = find_persona(settings.persona, docs, beside, personas)
        return cls(docs, persona, folder, settings.disabled_types)

    @property
    def entries(self) -> frozenset[str]:
        """The paths of the FAQ and memory files."""
        if self.folder is None:
            return frozenset()
        return frozenset(self._path(kind, name) for kind in (FAQ, MEMORY) for name in _files(self.folder, kind))

    def hidden_paths(self, nav: object) -> frozenset[str]:
        """Return the paths of all of these files, and `persona.md` in any case, but for entries in the navigation."""
        persona = no_pages(self.persona, self.docs) if self.docs else frozenset[str]()
        return persona | (self.entries - _navigation(nav))

    def sources(self, pages: Iterable[Source], base_url: str) -> tuple[list[Source], list[str]]:
        """Return the files as sources of the index, and warnings: a bad name, an unknown page."""
        persona = None if PERSONA in self.disabled else self.persona
        sources = [persona_source(persona, base_url, self.docs)] if persona else []
        warnings: list[str] = []
        if self.folder is None:
            return sources, warnings
        site_pages = [page for page in pages if page.type == PAGE]
        language = main_language(site_pages)
        addresses = {page.file_path: page.url for page in site_pages if page.url}
        for kind in (FAQ, MEMORY):
            if kind in self.disabled:
                continue
            listing = _listing(self.folder, kind)
            warnings += [f"{self._path(kind, '')}{warning}" for warning in listing.warnings]
            for name in listing.files:
                path = self._path(kind, name)
                content_hash, reference = _hash_and_page(self.folder / kind, name, path)
                url = _address(reference, addresses, base_url) if reference else ""
                if reference and not url:
                    warnings.append(
                        f"{path} names the page {reference[:100]!a}, which the site does not have: it is shown without "
                        "a link."
                    )
                read = functools.partial(
                    _read,
                    self.folder / kind,
                    name,
                    kind=kind,
                    content_hash=content_hash,
                    path=path,
                    url=url,
                    language=language,
                )
                sources.append(Source(path, content_hash, json.dumps([kind, url, language]), read, kind))
        return sources, warnings

    def _path(self, kind: str, name: str) -> str:
        """Return a file's path relative to `docs`; outside it the folder's own name hides this machine's folders."""
        real, root = (self.folder or Path()).resolve(), self.docs.resolve() if self.docs else None
        inside = real.relative_to(root).as_posix() if root and real.is_relative_to(root) else real.name
        return f"{inside}/{kind}/{name}"


def _navigation(nav: object) -> set[str]:
    if isinstance(nav, str):
        return {nav}
    parts = nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ()
    return {path for part in parts for path in _navigation(part)}


def _folder(setting: str, docs: Path | None) -> Path | None:
    if setting:
        if not Path(setting).is_dir():
            raise ConfigurationError(f"There is no folder {setting} with knowledge: name one that is there, or none.")
        return Path(setting)
    folder = docs / KNOWLEDGE_FOLDER if docs else None
    return folder if folder and any(os.path.lexists(folder / kind) for kind in _FILE_TYPES) else None


def _files(folder: Path, kind: str) -> list[str]:
    return _listing(folder, kind).files


def _listing(folder: Path, kind: str) -> Listing:
    from chapterverse.readers.folder import Listing, list_files

    # A link that leads nowhere is an error, or all of its documents would leave the index. What is no file fails
    # alone, when it is read.
    return list_files(folder / kind, (".md",), folders_too=True) if os.path.lexists(folder / kind) else Listing()


def _hash_and_page(folder: Path, name: str, path: str) -> tuple[str, str]:
    """Return a file's SHA-256 and the page that its front matter names; reading it raises its errors later."""
    from chapterverse.readers.folder import decode_page, read_page
    from chapterverse.readers.front_matter import split_values

    try:
        content = read_page(folder, name)
    except InputError:
        return "", ""
    content_hash = hashlib.sha256(content).hexdigest()
    try:
        values, _ = split_values(decode_page(path, content), path)
    except UnreadablePage:
        values = None
    reference = (values or {}).get("page")
    return content_hash, reference if isinstance(reference, str) else ""


def _address(reference: str, addresses: Mapping[str, str], base_url: str) -> str:
    """Return the address of the page that a path or an address names, with its anchor; "" if the site has none."""
    place, sharp, anchor = reference.partition("#")
    base = f"{base_url.rstrip('/')}/"
    bare = place.removeprefix("/").removesuffix(".md")
    folder = bare.removesuffix("index").removesuffix("README")
    candidates = [addresses.get(place.removeprefix("/")), place, urljoin(base, place.removeprefix("/"))]
    # A path of a source whose built page was indexed.
    candidates += [f"{base}{bare}/", f"{base}{bare}.html", f"{base}{folder}"]
    url_by_address = {url.rstrip("/"): url for url in addresses.values()}
    url = next((url_by_address[c.rstrip("/")] for c in candidates if c and c.rstrip("/") in url_by_address), "")
    return f"{url}{sharp}{anchor}" if url else ""


def _read(folder: Path, name: str, **place: str) -> Page:
    # Imported here: a build without changes needs no models.
    from chapterverse.ext.knowledge.documents import read_knowledge

    return read_knowledge(folder, name, **place)


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
        functools.partial(_read_persona, file, content_hash, path, url),
        PERSONA,
    )


def _hash(file: Path) -> str:
    """Return the SHA-256 of a file in hex, "" for a file that reading will reject."""
    with contextlib.suppress(OSError):
        return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
    return ""


def _read_persona(file: Path, content_hash: str, path: str, url: str) -> Page:
    # Imported here, as in `_read`.
    from chapterverse.ext.knowledge.documents import read_persona_page

    return read_persona_page(file, content_hash, path, url)


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
