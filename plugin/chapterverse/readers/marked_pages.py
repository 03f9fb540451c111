"""Reads the pages that a build has marked: what has the bytes of an earlier build is not parsed again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os.path
from collections.abc import Callable, Mapping, Set
from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from chapterverse.build_cache import BuildCache
from chapterverse.errors import UnreadablePage, UnsafePath
from chapterverse.model import Source
from chapterverse.readers.folder import decode_page
from chapterverse.readers.site_pages import BuiltPage, PageReader, SitePages, SitePagesDraft, finish_reading
from chapterverse.readers.urls import page_address, parse_base_url

if TYPE_CHECKING:
    from chapterverse.readers.html.metadata import PageMetadata

#: What a page is known by: path, content hash and context of its source.
SourceKey: TypeAlias = tuple[str, str, str]


class MarkedFile:
    """A page's file that a build has marked.

    Attributes:
        path: relative to the site.
        url: its address, "" without one.
        noted: what `visit` of `read_marked_pages` returned for the same bytes, "" if it never saw them.
    """

    def __init__(self, path: str, content: bytes, url: str, noted: str) -> None:
        self.path, self.content, self.url, self.noted = path, content, url, noted

    def read(self) -> tuple[str, PageMetadata]:
        """Return the file's text and metadata."""
        from chapterverse.readers.html.metadata import read_metadata

        text = decode_page(self.path, self.content)
        return text, read_metadata(text)


def read_marked_pages(
    folder: Path,
    paths: Mapping[str, str],
    excluded: Mapping[str, str],
    base_url: str,
    cache: BuildCache,
    visit: Callable[[MarkedFile], str],
) -> SitePages:
    """Return the pages that a build has marked, as `read_site` does; those that lost their marks are left out.

    Args:
        paths: source of each page by its built path.
        excluded: why other pages of the build are left out, by source.
        base_url: address of the site; "" if it has none, and its pages then neither.
        cache: what an earlier build found in a file of the same bytes is not looked for again.
        visit: gets each page, so that it is read once, and returns what it wants to get with the same bytes again.
    """
    pages, base, built = SitePagesDraft(folder, []), parse_base_url(base_url) or "", dict[str, BuiltPage]()
    there = [path for path in sorted(paths) if os.path.lexists(folder / path)]
    for path, content in pages.read_contents(there):
        digest = hashlib.blake2b(f"{base} {path}\n".encode(), digest_size=32)
        digest.update(content)
        key = digest.hexdigest()
        known, warnings = cache.read(key, _from_json), len(pages.warnings)
        noted, page = known or ("", _read_marked_page(pages, path, content, base))
        if page is None:
            continue
        built[path] = page
        url = page_address(path, base, page.canonical, (), is_stated=True) if base else ""
        to_note = visit(MarkedFile(path, content, url, noted))
        # A page that is warned of is read again.
        if len(pages.warnings) == warnings and (to_note != noted or not known):
            cache.write(key, json.dumps([to_note, astuple(page)]))
    for path in paths.keys() - set(there):
        pages.left_out[path] = "its page was not written"
    found = finish_reading(pages, built, base, set(), is_stated=True)
    left_out = {paths[path]: reason for path, reason in found.left_out.items()}
    return replace(found, left_out={**left_out, **excluded})


def _read_marked_page(pages: SitePagesDraft, path: str, content: bytes, base: str) -> BuiltPage | None:
    # Loaded only if a page changed.
    from chapterverse.readers.built_site import page_to_index, reason_to_leave_out
    from chapterverse.readers.html.metadata import read_metadata

    file = pages.decode(path, content)
    if file is None:
        return None
    metadata = read_metadata(file.text)
    if reason := reason_to_leave_out(pages, file, metadata, must_be_marked=True):
        pages.left_out[path] = reason
        return None
    return page_to_index(pages, file, metadata, base)


def _from_json(text: str) -> tuple[str, BuiltPage]:
    """Return what `visit` noted, and the page."""
    noted, (content_hash, facts, *others) = json.loads(text)
    return noted, BuiltPage(content_hash, tuple(facts), *others)


def hold_changed(pages: SitePages, known: Set[SourceKey]) -> tuple[frozenset[SourceKey], SitePages]:
    """Return the keys of the pages, and the pages; those without a known key hold their text until they are parsed.

    A page that couldn't be read, or can't be any more, raises its error when it is parsed.
    """
    sources: list[Source] = []
    for source in pages.sources:
        if _key(source) not in known and isinstance(source.read, PageReader):
            with contextlib.suppress(UnreadablePage, UnsafePath):
                source = replace(source, read=source.read.hold())
        sources.append(source)
    return frozenset(map(_key, sources)), replace(pages, sources=tuple(sources))


def _key(source: Source) -> SourceKey:
    return source.file_path, source.content_hash, source.context
