"""Computes the address at which each generator publishes a Markdown file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from chapterverse.readers.addresses.generator_config import (
    docusaurus_switch,
    hugo_config,
    mkdocs_switch,
    vitepress_switch,
)
from chapterverse.readers.addresses.hugo import HugoPlaces
from chapterverse.readers.addresses.urls import SAFE
from chapterverse.readers.markdown.front_matter import FrontMatter
from chapterverse.readers.markdown.slugs import SlugRule

#: Docusaurus orders files by such a number and leaves it out of their addresses; a date or a version is none.
_NUMBER = re.compile(r"[0-9]+\s*[-_.]+\s*(?=[^-_.\s])")
_NO_NUMBER = re.compile(r"(?:[0-9]{2}|[0-9]{4})[-_.][0-9]{2}(?:[-_.]|$)|[0-9]+[-_.][0-9]+")


class PlaceRule(Protocol):
    """The rule by which a generator publishes the files of a folder."""

    def path(self, file_path: str, matter: FrontMatter) -> str | None:
        """Return where a file is published, relative to the site; None for one that becomes no page of its own."""
        ...

    def warnings(self) -> list[str]:
        """Return a sentence for each thing that the files don't tell, with the number of pages."""
        ...


def place_rule(rule: SlugRule, folder: Path, files: Sequence[str]) -> PlaceRule:
    """Return the rule for a folder's files, with the settings of the configuration beside it or above it."""
    if rule is SlugRule.HUGO:
        return _Hugo(HugoPlaces.of(files, hugo_config(folder)))
    ending = "/"
    if rule is SlugRule.DOCUSAURUS and docusaurus_switch(folder, "trailingSlash") is False:
        ending = ""
    elif rule is SlugRule.VITEPRESS:
        ending = "" if vitepress_switch(folder, "cleanUrls") else ".html"
    elif rule is SlugRule.SPHINX or (rule is SlugRule.MKDOCS and mkdocs_switch(folder, "use_directory_urls") is False):
        ending = ".html"
    numbered = rule is not SlugRule.DOCUSAURUS or docusaurus_switch(folder, "numberPrefixParser") is not False
    return _ByPath(rule, ending, numbered)


@dataclass(frozen=True, slots=True)
class ListedPlaces:
    """Addresses that the generator itself has stated, relative to the site, by file."""

    paths: Mapping[str, str]

    def path(self, file_path: str, matter: FrontMatter) -> str | None:  # noqa: ARG002 (others read it)
        return self.paths.get(file_path)

    def warnings(self) -> list[str]:
        return []


@dataclass(frozen=True, slots=True)
class _ByPath:
    """Addresses that follow from a file's own path and front matter."""

    rule: SlugRule
    ending: str
    numbered: bool

    def path(self, file_path: str, matter: FrontMatter) -> str | None:
        if is_partial(file_path, self.rule) or (self.rule.is_docusaurus and matter.values.get("unlisted") is True):
            return None
        return source_path(file_path, self.rule, matter.slug, matter.id, self.ending, self.numbered)

    def warnings(self) -> list[str]:
        return []


@dataclass(frozen=True, slots=True)
class _Hugo:
    places: HugoPlaces

    def path(self, file_path: str, matter: FrontMatter) -> str | None:
        self.places.note_section(file_path, matter.values)
        path = self.places.path(file_path, matter.values)
        return None if path is None else _quote(path)

    def warnings(self) -> list[str]:
        if not (count := self.places.unknown):
            return []
        return [f"{count:,} pages are left out, as their files don't tell their `permalinks`: index the built site."]


def is_partial(file_path: str, rule: SlugRule) -> bool:
    """Return whether a file is only there for others to import, or to make pages of.

    Docusaurus marks such files and folders with "_"; VitePress makes pages of "[name].md".
    """
    *folders, name = file_path.split("/")
    if rule.is_docusaurus:
        return any(part.startswith("_") for part in (*folders, name))
    return rule is SlugRule.VITEPRESS and any("[" in part and "]" in part for part in (*folders, name))


def source_path(
    file_path: str,
    rule: SlugRule = SlugRule.MKDOCS,
    slug: str = "",
    page_id: str = "",
    ending: str | None = None,
    numbered: bool = True,
) -> str:
    """Return where a file is published, relative to the site.

    "guide/setup.md" at "guide/setup/", an index at its folder; VitePress and Sphinx write "guide/setup.html". Under
    the rules of Docusaurus its front matter counts: a `slug` from the root or the file's folder, an `id` for the name.

    Args:
        ending: of a page's address: "/", ".html" or ""; None for the generator's default.
        numbered: whether numbers before a name are no part of the address, in Docusaurus.
    """
    if ending is None:
        ending = ".html" if rule in (SlugRule.VITEPRESS, SlugRule.SPHINX) else "/"
    folder, _, name = file_path.rpartition(".")[0].rpartition("/")
    is_index = _is_index(folder, name, rule)
    if rule.is_docusaurus:
        if numbered:
            folder, name = "/".join(_strip_number(part) for part in folder.split("/")), _strip_number(name)
        if slug:
            placed = posixpath.normpath(posixpath.join("/", folder, slug)).strip("/")
            return _quote(f"{placed}{ending}") if placed else ""
        name = page_id.rpartition("/")[2] or name
    if is_index:
        # Without slashes at the end, Docusaurus writes "guide.html" for the index of a folder, too.
        return _quote(f"{folder}{ending if rule.is_docusaurus else '/'}") if folder else ""
    path = f"{folder}/{name}" if folder else name
    return _quote(f"{path}{ending}")


def _is_index(folder: str, name: str, rule: SlugRule) -> bool:
    if rule in (SlugRule.VITEPRESS, SlugRule.SPHINX):
        return name == "index"
    # Docusaurus compares the names with their numbers.
    names = {"index", "readme"} | ({folder.rpartition("/")[2].lower()} if rule.is_docusaurus and folder else set())
    return name.lower() in names


def built_path(path: str) -> str:
    """Return the path of the built page at an address relative to the site: "guide/index.html" for "guide/"."""
    name = path.rpartition("/")[2]
    return f"{path}index.html" if not name else path if name.endswith((".html", ".htm")) else f"{path}.html"


def _strip_number(part: str) -> str:
    return part if _NO_NUMBER.match(part) else _NUMBER.sub("", part, count=1) if _NUMBER.match(part) else part


def _quote(path: str) -> str:
    return quote(path, safe=SAFE.replace("%", ""))
