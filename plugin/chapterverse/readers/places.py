"""Computes the address at which each generator publishes a Markdown file."""

from __future__ import annotations

import posixpath
import re
from urllib.parse import quote

from chapterverse.readers.addresses import SAFE
from chapterverse.readers.slugs import SlugRule

#: Docusaurus orders files by such a number and leaves it out of their addresses; a date or a version is none.
_NUMBER = re.compile(r"[0-9]+\s*[-_.]+\s*(?=[^-_.\s])")
_NO_NUMBER = re.compile(r"(?:[0-9]{2}|[0-9]{4})[-_.][0-9]{2}(?:[-_.]|$)|[0-9]+[-_.][0-9]+")


def is_partial(file_path: str, rule: SlugRule) -> bool:
    """Return whether a file is only there for others to import: Docusaurus marks such files and folders with "_"."""
    return rule is SlugRule.GITHUB and any(part.startswith("_") for part in file_path.split("/"))


def source_path(file_path: str, rule: SlugRule = SlugRule.MKDOCS, slug: str = "", page_id: str = "") -> str:
    """Return where a file is published, relative to the site.

    "guide/setup.md" at "guide/setup/", an index at its folder; VitePress and Sphinx write "guide/setup.html". Under
    the GitHub rule Docusaurus' front matter counts: a `slug` from the root or the file's folder, an `id` for the name.
    """
    folder, _, name = file_path.rpartition(".")[0].rpartition("/")
    if rule is SlugRule.GITHUB:
        folder = "/".join(_unnumbered(part) for part in folder.split("/"))
        if slug:
            placed = posixpath.normpath(posixpath.join("/", folder, slug)).strip("/")
            return _quoted(f"{placed}/") if placed else ""
        name = page_id.rpartition("/")[2] or _unnumbered(name)
    if _is_index(folder, name, rule):
        return _quoted(f"{folder}/") if folder else ""
    path = f"{folder}/{name}" if folder else name
    return _quoted(f"{path}.html" if rule in (SlugRule.VITEPRESS, SlugRule.SPHINX) else f"{path}/")


def _is_index(folder: str, name: str, rule: SlugRule) -> bool:
    if rule in (SlugRule.VITEPRESS, SlugRule.SPHINX):
        return name == "index"
    names = {"index", "readme"} | ({folder.rpartition("/")[2].lower()} if rule is SlugRule.GITHUB and folder else set())
    return name.lower() in names


def _unnumbered(part: str) -> str:
    return part if _NO_NUMBER.match(part) else _NUMBER.sub("", part, count=1) if _NUMBER.match(part) else part


def _quoted(path: str) -> str:
    return quote(path, safe=SAFE.replace("%", ""))
