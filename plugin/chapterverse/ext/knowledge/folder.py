"""Finds the documents beside the pages (persona, FAQ, memory) and hashes them; each is read when it changed."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urljoin

from chapterverse.errors import ConfigurationError, InputError, UnreadablePage
from chapterverse.ext.knowledge.persona_lookup import find_persona, no_pages, persona_source
from chapterverse.indexing.additions import KNOWLEDGE_FOLDER, Documents
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
