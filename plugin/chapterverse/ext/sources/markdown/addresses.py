"""Computes the address at which each generator publishes a Markdown file, by the configuration beside its sources.

Configurations in JavaScript are not run: a setting counts where it is written out.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from chapterverse.ext.sources.markdown.front_matter import FrontMatter
from chapterverse.ext.sources.markdown.hugo import HugoAddresses, lower_keys
from chapterverse.readers.urls import SiteGenerator, quote_path
from chapterverse.text.json_text import parse_json

#: Folders above the sources that may hold the configuration.
_LEVELS = 4
_MAX_BYTES = 1_000_000
_SCRIPTS = ("ts", "mts", "js", "mjs", "cjs")
_CONFIG_NAMES = {
    SiteGenerator.DOCUSAURUS: [f"docusaurus.config.{ending}" for ending in _SCRIPTS],
    SiteGenerator.VITEPRESS: [f".vitepress/config.{ending}" for ending in _SCRIPTS],
    SiteGenerator.MKDOCS: ["mkdocs.yml", "mkdocs.yaml"],
    SiteGenerator.HUGO: [
        f"{folder}{stem}.{ending}"
        for folder in ("", "config/_default/")
        for stem in ("hugo", "config")
        for ending in ("toml", "yaml", "yml", "json")
    ],
}
#: The setting that changes the ending of addresses, its value that does, and the ending with it and without it.
_ENDINGS = {
    SiteGenerator.DOCUSAURUS: ("trailingSlash", "false", "", "/"),
    SiteGenerator.VITEPRESS: ("cleanUrls", "true", "", ".html"),
    SiteGenerator.MKDOCS: ("use_directory_urls", "false", ".html", "/"),
}
#: Docusaurus orders files by such a number and leaves it out of their addresses; a date or a version is none.
_NUMBER = re.compile(r"[0-9]+\s*[-_.]+\s*(?=[^-_.\s])")
_NO_NUMBER = re.compile(r"(?:[0-9]{2}|[0-9]{4})[-_.][0-9]{2}(?:[-_.]|$)|[0-9]+[-_.][0-9]+")


@dataclass(frozen=True, slots=True)
class _PathRule:
    """Addresses that follow from a file's own path and front matter.

    "guide/setup.md" is at "guide/setup/", an index at its folder; VitePress and Sphinx write "guide/setup.html". Under
    the rules of Docusaurus its front matter counts: a `slug` from the root or the file's folder, an `id` for the name.

    Attributes:
        ending: of a page's address: "/", ".html" or "".
        numbered: whether numbers before a name are no part of the address, in Docusaurus.
    """

    generator: SiteGenerator
    ending: str
    numbered: bool = True

    def path(self, file_path: str, matter: FrontMatter) -> str | None:
        """Return the percent-encoded path of a file's page on the site; None for a file that becomes no page."""
        folder, _, name = file_path.rpartition(".")[0].rpartition("/")
        docusaurus = self.generator.is_docusaurus
        if self._is_partial(file_path) or (docusaurus and matter.values.get("unlisted") is True):
            return None
        # Docusaurus compares the names with their numbers.
        is_index = self._is_index(folder, name)
        if docusaurus and self.numbered:
            folder, name = "/".join(map(_strip_number, folder.split("/"))), _strip_number(name)
        if docusaurus and matter.slug:
            placed = posixpath.normpath(posixpath.join("/", folder, matter.slug)).strip("/")
        else:
            name = (docusaurus and matter.id.rpartition("/")[2]) or name
            placed = folder if is_index else f"{folder}/{name}".strip("/")
        # Without slashes at the end, Docusaurus writes "guide.html" for the index of a folder, too.
        ending = "/" if is_index and not docusaurus else self.ending
        return quote_path(f"{placed}{ending}") if placed else ""

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


#: The rule by which a generator makes pages of the files of a folder.
AddressRule: TypeAlias = _PathRule | HugoAddresses


def address_rule(generator: SiteGenerator, folder: Path, files: Sequence[str]) -> AddressRule:
    """Return the rule for a folder's files, with the settings of the configuration beside it or above it.

    Args:
        files: paths of all source files, relative to `folder`.
    """
    if generator is SiteGenerator.HUGO:
        return HugoAddresses.of(files, _hugo_config(folder))
    if generator not in _ENDINGS:
        return _PathRule(generator, ".html" if generator is SiteGenerator.SPHINX else "/")
    setting, value, with_it, without_it = _ENDINGS[generator]
    ending = with_it if _switch(folder, generator, setting) == value else without_it
    docusaurus = generator is SiteGenerator.DOCUSAURUS
    return _PathRule(generator, ending, not docusaurus or _switch(folder, generator, "numberPrefixParser") != "false")


def built_path(path: str) -> str:
    """Return the path of the built page at an address relative to the site: "guide/index.html" for "guide/"."""
    name = path.rpartition("/")[2]
    return f"{path}index.html" if not name else path if name.endswith((".html", ".htm")) else f"{path}.html"


def config_word(folder: Path, generator: SiteGenerator, name: str, words: Iterable[str]) -> str:
    """Return which of these words a key of a generator's configuration has as its value, "" if it has none."""
    pattern = rf"^(?![ \t]*(?://|\*|#))[^\n]*?\b{name}[\"']?[ \t]*:[ \t]*[\"']?({'|'.join(words)})\b"
    text, _ = next(_config_files(folder, generator), ("", ""))
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else ""


def _switch(folder: Path, generator: SiteGenerator, name: str) -> str:
    return config_word(folder, generator, name, ("true", "false"))


def _hugo_config(folder: Path) -> Mapping[str, Any]:
    """Return the configuration of Hugo, its keys in lower case; empty if there is none."""
    for text, name in _config_files(folder, SiteGenerator.HUGO):
        parse = tomllib.loads if name.endswith("toml") else parse_json if name.endswith("json") else yaml.safe_load
        try:
            values = parse(text)
        except (ValueError, yaml.YAMLError, RecursionError):
            continue
        if isinstance(values, dict):
            return lower_keys(values)
    return {}


def _config_files(folder: Path, generator: SiteGenerator) -> Iterator[tuple[str, str]]:
    """Yield text and name of each such file beside the sources or above them, the nearest first."""
    here = folder.resolve()
    for above in (here, *here.parents)[:_LEVELS]:
        for name in _CONFIG_NAMES[generator]:
            file = above / name
            try:
                if file.is_file() and file.stat().st_size <= _MAX_BYTES:
                    yield file.read_text("utf-8", "replace"), name
            except OSError:
                continue


def _strip_number(part: str) -> str:
    number = None if _NO_NUMBER.match(part) else _NUMBER.match(part)
    return part[number.end() :] if number else part
