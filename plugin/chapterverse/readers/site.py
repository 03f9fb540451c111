"""Folders to pages: a built site of HTML, or a folder of Markdown.

Both are listed and hashed at once and read page by page, so that a build that changes nothing parses nothing.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chapterverse.errors import InputError, UnreadablePage
from chapterverse.model import Page, Source
from chapterverse.readers.addresses import clean_base, clean_url, page_paths, read_sitemap, site_base, source_path
from chapterverse.readers.envelope import Envelope, open_envelope
from chapterverse.readers.folder import decode, list_files, read_page
from chapterverse.readers.front_matter import split_front_matter
from chapterverse.readers.html import read_document
from chapterverse.readers.markdown import name_of, read_markdown
from chapterverse.readers.slugs import SlugRule

#: Pages that generators write for their own use.
_GENERATED = frozenset(
    ("404.html", "search.html", "genindex.html", "py-modindex.html", "http-index.html", "modindex.html")
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a folder offers.

    Attributes:
        sources: its pages, sorted by path.
        warnings: one sentence for every file that should have been a page and isn't.
        skipped: paths left out on purpose: pages that ask for it, error, search and index pages.
    """

    sources: tuple[Source, ...]
    warnings: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _BuiltPage:
    path: str
    content_hash: str
    title: str
    language: str
    canonical: str | None


def read_site(folder: Path, base_url: str | None = None) -> Reading:
    """Return the pages of a built site.

    A page's address is its canonical link, else its entry in `sitemap.xml`, else `base_url` and its path; where some
    pages state an address, those that don't are placed beside them. `content_hash` covers the HTML in the content root.

    Raises:
        InputError: no folder, no pages, or no address for a page; `base_url` is no address.
        UnsafePath: a file leads out of the folder.
    """
    base = _base(base_url)
    listing = list_files(folder, (".html", ".htm"))
    warnings, skipped, pages = list(listing.warnings), list[str](), list[_BuiltPage]()
    for path in listing.files:
        try:
            envelope, content_hash = _examine(folder, path)
        except UnreadablePage as error:
            warnings.append(str(error))
            continue
        if envelope.noindex or path.rpartition("/")[2].lower() in _GENERATED or path.startswith("genindex-"):
            skipped.append(path)
        else:
            canonical = clean_url(envelope.canonical, base) if envelope.canonical else None
            pages.append(_BuiltPage(path, content_hash, envelope.title, envelope.language, canonical))
    if not pages:
        raise InputError(_nothing(folder, "HTML page to index: is it the folder that the build writes?", warnings))
    sources = tuple(_built_sources(folder, pages, base, warnings))
    return Reading(sources, tuple(warnings), tuple(skipped))


def read_sources(folder: Path, base_url: str | None = None, slugs: SlugRule = SlugRule.MKDOCS) -> Reading:
    """Return the pages of a folder of Markdown; `content_hash` covers a file's bytes.

    "guide/setup.md" is expected at `base_url` + "guide/setup/", "guide/index.md" at "guide/"; sections carry the anchors
    that `slugs` computes, marked as not verified.

    Raises:
        InputError: no folder, no Markdown in it, no `base_url`.
        UnsafePath: a file leads out of the folder.
    """
    base = _base(base_url)
    if base is None:
        raise InputError("Markdown files don't say where they will be published: pass --base-url.")
    listing = list_files(folder, (".md", ".markdown", ".mdx"))
    warnings, skipped, sources = list(listing.warnings), list[str](), list[Source]()
    mdx = [path for path in listing.files if path.lower().endswith(".mdx")]
    if mdx:
        warnings.append(
            f"{mdx[0]} and {len(mdx) - 1} more are MDX, which can't be read from source yet: index the built site instead."
            if len(mdx) > 1
            else f"{mdx[0]} is MDX, which can't be read from source yet: index the built site instead."
        )
    for path in listing.files:
        if path in set(mdx[:0]) or path.lower().endswith(".mdx"):
            continue
        try:
            content = read_page(folder, path)
            front_matter, _ = split_front_matter(decode(path, content), path)
        except UnreadablePage as error:
            warnings.append(str(error))
            continue
        if front_matter.excluded:
            skipped.append(path)
            continue
        url = base + source_path(path)
        digest = hashlib.sha256(content).hexdigest()
        read = functools.partial(_read_markdown, folder, path, digest, url, slugs)
        sources.append(Source(path, digest, json.dumps([url, slugs]), read))
    if not sources:
        raise InputError(_nothing(folder, "Markdown file to index.", warnings))
    return Reading(tuple(sources), tuple(warnings), tuple(skipped))
