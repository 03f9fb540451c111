"""The facts of a built page, and the sources that follow from them.

It loads nothing that reads a page, as most builds change few of them.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from chapterverse.model import Page, Source
from chapterverse.readers.addresses.urls import page_address
from chapterverse.readers.sources.encoding import decode_page
from chapterverse.readers.sources.folder import read_page
from chapterverse.readers.sources.site_pages import SitePages, SitePagesDraft, require_unchanged


@dataclass(frozen=True, slots=True)
class BuiltPage:
    """The facts of a built page, kept until its address is known; not its text, as a site may have 100,000 pages.

    Attributes:
        source: path of the file that it was written in, "" if it doesn't say so.
        part: of the content that is the page's own, in characters from its beginning; None is all of it.
        base: address of the site by its mark.
        is_marked: a build marked its content.
        is_copy: the mark was made for another place, such as a folder of docs versions.
    """

    content_hash: str
    facts: tuple[str | None, ...]
    content_type: str
    canonical: str | None
    source: str
    part: tuple[int, int] | None = None
    base: str = ""
    is_marked: bool = False
    is_copy: bool = False


def finish_reading(
    pages: SitePagesDraft, built: Mapping[str, BuiltPage], base: str, listed: set[str], *, is_stated: bool
) -> SitePages:
    """Return the pages with their names and addresses; `listed` are the addresses of the sitemap."""
    names = _source_names(built)
    sources = []
    for path, page in built.items():
        url = page_address(path, base, page.canonical, listed, is_stated=is_stated)
        sources.append((url, _built_source(pages.folder, path, page, url, names.get(path, path))))
    parts = {path: page.part for path, page in built.items() if page.part}
    return replace(pages.finish(sources, base), built={name: path for path, name in names.items()}, parts=parts)


def _source_names(built: Mapping[str, BuiltPage]) -> dict[str, str]:
    """Return the file that each page was written in, by path.

    Of several pages of one file, such as those that stand in for a translation, the one with the shortest path has it.
    """
    names: dict[str, str] = {}
    used_names = set(built)
    for path in sorted(built, key=lambda path: (len(path), path)):
        source = built[path].source
        if source and source not in used_names:
            used_names.add(source)
            names[path] = source
    return names


def _built_source(folder: Path, path: str, page: BuiltPage, url: str, name: str) -> Source:
    read = functools.partial(_read_page, folder, path, page, url, name)
    return Source(name, page.content_hash, json.dumps([url, *page.facts]), read, url=url, language=page.facts[1] or "")


def _read_page(folder: Path, path: str, built: BuiltPage, url: str, name: str, text: str | None = None) -> Page:
    # Loaded only if a page changed.
    from chapterverse.readers.sections.html_page import read_document
    from chapterverse.readers.sections.outline import title_from_path

    document = read_document(decode_page(path, read_page(folder, path)) if text is None else text, built.part)
    require_unchanged(path, built.content_hash, sha256(document.fragment))
    return Page(
        name,
        url,
        document.title or title_from_path(path),
        built.facts[1] or document.language,
        document.sections,
        content_type=built.content_type,
        tags=document.tags,
        created_at=document.created_at,
        structured_data=document.structured_data,
    )


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
