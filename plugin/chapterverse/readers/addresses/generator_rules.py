"""Computes the address at which each generator publishes a Markdown file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from chapterverse.readers.addresses.generator_config import config_switch, hugo_config
from chapterverse.readers.addresses.hugo import HugoAddresses
from chapterverse.readers.addresses.urls import quote_path
from chapterverse.readers.markdown.front_matter import FrontMatter
from chapterverse.readers.markdown.slugs import SiteGenerator

#: Docusaurus orders files by such a number and leaves it out of their addresses; a date or a version is none.
_NUMBER = re.compile(r"[0-9]+\s*[-_.]+\s*(?=[^-_.\s])")
_NO_NUMBER = re.compile(r"(?:[0-9]{2}|[0-9]{4})[-_.][0-9]{2}(?:[-_.]|$)|[0-9]+[-_.][0-9]+")


class AddressRule(Protocol):
    """The rule by which a generator makes pages of the files of a folder."""

    def path(self, file_path: str, matter: FrontMatter) -> str | None:
        """Return the percent-encoded path of a file's page on the site; None for a file that becomes no page."""
        ...

    def warnings(self) -> list[str]:
        """Return a sentence for each thing that the files don't tell, with the number of pages."""
        return []


def address_rule(generator: SiteGenerator, folder: Path, files: Sequence[str]) -> AddressRule:
    """Return the rule for a folder's files, with the settings of the configuration beside it or above it.

    Args:
        files: paths of all source files, relative to `folder`.
    """
    if generator is SiteGenerator.HUGO:
        return HugoAddresses.of(files, hugo_config(folder))
    ending, numbered = "/", True
    if generator is SiteGenerator.DOCUSAURUS:
        ending = "" if config_switch(folder, generator, "trailingSlash") is False else "/"
        numbered = config_switch(folder, generator, "numberPrefixParser") is not False
    elif generator is SiteGenerator.VITEPRESS:
        ending = "" if config_switch(folder, generator, "cleanUrls") else ".html"
    elif generator is SiteGenerator.SPHINX:
        ending = ".html"
    elif generator is SiteGenerator.MKDOCS:
        ending = ".html" if config_switch(folder, generator, "use_directory_urls") is False else "/"
    return _PathRule(generator, ending, numbered)


@dataclass(frozen=True, slots=True)
class ListedAddresses(AddressRule):
    """Addresses that the generator itself has stated, relative to the site, by file."""

    paths: Mapping[str, str]

    def path(self, file_path: str, matter: FrontMatter) -> str | None:  # noqa: ARG002 (others read it)
        return self.paths.get(file_path)


@dataclass(frozen=True, slots=True)
class _PathRule(AddressRule):
    """Addresses that follow from a file's own path and front matter.

    "guide/setup.md" is at "guide/setup/", an index at its folder; VitePress and Sphinx write "guide/setup.html". Under
    the rules of Docusaurus its front matter counts: a `slug` from the root or the file's folder, an `id` for the name.

    Attributes:
        ending: of a page's address: "/", ".html" or "".
        numbered: whether numbers before a name are no part of the address, in Docusaurus.
    """

    generator: SiteGenerator
    ending: str
    numbered: bool

    def path(self, file_path: str, matter: FrontMatter) -> str | None:
        if self._is_partial(file_path):
            return None
        folder, _, name = file_path.rpartition(".")[0].rpartition("/")
        # Docusaurus compares the names with their numbers.
        is_index = self._is_index(folder, name)
        if self.generator.is_docusaurus:
            if matter.values.get("unlisted") is True:
                return None
            if self.numbered:
                folder, name = "/".join(map(_strip_number, folder.split("/"))), _strip_number(name)
            if matter.slug:
                placed = posixpath.normpath(posixpath.join("/", folder, matter.slug)).strip("/")
                return quote_path(f"{placed}{self.ending}") if placed else ""
            name = matter.id.rpartition("/")[2] or name
        if is_index:
            # Without slashes at the end, Docusaurus writes "guide.html" for the index of a folder, too.
            return quote_path(f"{folder}{self.ending if self.generator.is_docusaurus else '/'}") if folder else ""
        return quote_path(f"{folder}/{name}{self.ending}" if folder else f"{name}{self.ending}")

    def _is_partial(self, file_path: str) -> bool:
        """Return whether a file is only there for others to import, or to make pages of.

        Docusaurus marks such files and folders with "_"; VitePress makes pages of "[name].md".
        """
        parts = file_path.split("/")
        if self.generator.is_docusaurus:
            return any(part.startswith("_") for part in parts)
        return self.generator is SiteGenerator.VITEPRESS and any("[" in part and "]" in part for part in parts)

    def _is_index(self, folder: str, name: str) -> bool:
        if self.generator in (SiteGenerator.VITEPRESS, SiteGenerator.SPHINX):
            return name == "index"
        parent = folder.rpartition("/")[2].lower() if self.generator.is_docusaurus else ""
        return name.lower() in ("index", "readme", parent or "index")


def built_path(path: str) -> str:
    """Return the path of the built page at an address relative to the site: "guide/index.html" for "guide/"."""
    name = path.rpartition("/")[2]
    return f"{path}index.html" if not name else path if name.endswith((".html", ".htm")) else f"{path}.html"


def _strip_number(part: str) -> str:
    number = None if _NO_NUMBER.match(part) else _NUMBER.match(part)
    return part[number.end() :] if number else part
