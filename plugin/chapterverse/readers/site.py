"""Folders to pages: a built site of HTML, or a folder of Markdown.

Both are listed and hashed at once and parsed page by page, so that a build that changes nothing parses nothing.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os.path
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

from chapterverse.errors import InputError, UnreadablePage
from chapterverse.model import Page, Source
from chapterverse.readers.addresses import clean_base, clean_url, page_paths, read_sitemap, site_base, source_path
from chapterverse.readers.envelope import Envelope, open_envelope
from chapterverse.readers.folder import decode, list_files, read_page
from chapterverse.readers.front_matter import split_front_matter
from chapterverse.readers.html import read_document
from chapterverse.readers.markdown import name_of, read_markdown
from chapterverse.readers.slugs import SlugRule

#: Pages that generators write for their own use, by name; Sphinx splits a large index by letter.
_GENERATED = ("404.html", "search.html", "genindex", "py-modindex.html", "http-routingtable.html")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a folder offers.

    Attributes:
        sources: its pages, sorted by path; one that can't be read says so when it is read.
        warnings: one sentence for every other file that should have been a page and isn't.
        skipped: paths left out on purpose: pages that ask for it, drafts, error, search and index pages.
        base_url: address of the site, with a slash at its end.
    """

    sources: tuple[Source, ...]
    base_url: str
    warnings: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def site(self) -> str:
        """What tells the site from others: its address without the scheme, "example.com/docs"."""
        return self.base_url.partition("://")[2].strip("/")


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    content: bytes
    text: str


@dataclass(frozen=True, slots=True)
class _Built:
    """What is kept of a built page until its address is known: not its text, a site may have 100,000."""

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
    warnings, skipped, failed = list(listing.warnings), list[str](), dict[str, UnreadablePage]()
    built: dict[str, _Built] = {}
    for file in _open(folder, listing.files, failed):
        envelope = open_envelope(file.text)
        if envelope.noindex or file.path.rpartition("/")[2].lower().startswith(_GENERATED):
            skipped.append(file.path)
            continue
        canonical = clean_url(envelope.canonical, base) if envelope.canonical else None
        built[file.path] = _Built(_fragment_hash(envelope, file.text), envelope.title, envelope.language, canonical)
    if not built:
        what = "no HTML page to index: is it the folder that the build writes?"
        raise InputError(_nothing(folder, what, [*map(str, failed.values()), *warnings]))
    sitemap = _sitemap(folder, warnings)
    base = _site_address(built, sitemap, base)
    urls = _addresses(built, set(sitemap), base)
    sources = [(url, _built_source(folder, path, built[path], url)) for path, url in urls]
    offered = [*_one_for_each_address(sources, warnings), *_unreadable(failed)]
    return Reading(_sorted(offered), base, tuple(warnings), tuple(skipped))


def read_sources(folder: Path, base_url: str | None = None, slugs: SlugRule = SlugRule.MKDOCS) -> Reading:
    """Return the pages of a folder of Markdown; `content_hash` covers a file's bytes.

    "guide/setup.md" is expected at `base_url` + "guide/setup/", "guide/index.md" at "guide/"; sections carry the
    anchors that `slugs` computes, marked as not verified. MDX is refused with a warning.

    Raises:
        InputError: no folder, no Markdown in it, no `base_url`.
        UnsafePath: a file leads out of the folder.
    """
    base = _base(base_url)
    if base is None:
        raise InputError("Markdown files don't say where they will be published: pass --base-url.")
    listing = list_files(folder, (".md", ".markdown", ".mdx"))
    warnings, skipped, failed = list(listing.warnings), list[str](), dict[str, UnreadablePage]()
    markdown = [path for path in listing.files if not path.lower().endswith(".mdx")]
    if len(markdown) < len(listing.files):
        warnings.append(_mdx_refused([path for path in listing.files if path.lower().endswith(".mdx")]))
    sources: list[tuple[str, Source]] = []
    for file in _open(folder, markdown, failed):
        try:
            front_matter, _ = split_front_matter(file.text, file.path)
        except UnreadablePage as error:
            failed[file.path] = error
            continue
        if front_matter.excluded:
            skipped.append(file.path)
            continue
        url = base + source_path(file.path)
        content_hash = hashlib.sha256(file.content).hexdigest()
        read = functools.partial(_read_markdown, folder, file.path, content_hash, url, slugs)
        sources.append((url, Source(file.path, content_hash, json.dumps([url, slugs]), read)))
    if not sources:
        raise InputError(_nothing(folder, "no Markdown file to index.", [*map(str, failed.values()), *warnings]))
    offered = [*_one_for_each_address(sources, warnings), *_unreadable(failed)]
    return Reading(_sorted(offered), base, tuple(warnings), tuple(skipped))


def _open(folder: Path, paths: Iterable[str], failed: dict[str, UnreadablePage]) -> Iterator[_File]:
    for path in paths:
        try:
            content = read_page(folder, path)
            yield _File(path, content, decode(path, content))
        except UnreadablePage as error:
            failed[path] = error


def _unreadable(failed: Mapping[str, UnreadablePage]) -> Iterator[Source]:
    """Yield sources that say so when they are read: the index keeps the last good version of such a page."""
    for path, error in failed.items():
        yield Source(path, "", "", functools.partial(_refuse, error))


def _sorted(sources: Iterable[Source]) -> tuple[Source, ...]:
    return tuple(sorted(sources, key=lambda source: source.file_path))


def _refuse(error: UnreadablePage) -> Page:
    raise error


def _built_source(folder: Path, path: str, page: _Built, url: str) -> Source:
    read = functools.partial(_read_built, folder, path, page.content_hash, url)
    return Source(path, page.content_hash, json.dumps([url, page.title, page.language]), read)


def _read_built(folder: Path, path: str, content_hash: str, url: str) -> Page:
    html = decode(path, read_page(folder, path))
    document = read_document(html)
    _unchanged(path, content_hash, _sha256(document.fragment))
    return Page(path, url, document.title or name_of(path), document.language, document.sections)


def _read_markdown(folder: Path, path: str, content_hash: str, url: str, slugs: SlugRule) -> Page:
    content = read_page(folder, path)
    _unchanged(path, content_hash, hashlib.sha256(content).hexdigest())
    page = read_markdown(decode(path, content), path, slug=slugs)
    matter = page.front_matter
    return Page(path, url, page.title, "en", page.sections, tags=matter.tags, created_at=matter.created_at)


def _unchanged(path: str, listed: str, read: str) -> None:
    if listed != read:
        raise UnreadablePage(f"{path} changed while it was being indexed: run again when the build is done.")


def _site_address(built: Mapping[str, _Built], sitemap: list[str], base: str | None) -> str:
    stated = [page.canonical for page in built.values() if page.canonical]
    found = site_base(sitemap, built) or base or site_base(stated, built)
    if found:
        return found
    silent = next((path for path, page in built.items() if page.canonical is None), None)
    if silent:
        raise InputError(f"{silent} states no address and the site has no sitemap.xml: pass --base-url.")
    # Every page has an address, and none of them follows from its path: what they share is the host.
    return urljoin(stated[0], "/")


def _addresses(built: Mapping[str, _Built], known: set[str], base: str) -> Iterator[tuple[str, str]]:
    for path, page in built.items():
        ways = page_paths(path)
        placed = next((base + way for way in ways if base + way in known), base + ways[0])
        yield path, page.canonical or placed


def _sitemap(folder: Path, warnings: list[str]) -> list[str]:
    if not os.path.lexists(folder / "sitemap.xml"):
        return []
    failed: dict[str, UnreadablePage] = {}
    urls = [url for file in _open(folder, ["sitemap.xml"], failed) for url in read_sitemap(file.text)]
    warnings.extend(map(str, failed.values()))
    return urls


def _one_for_each_address(sources: Iterable[tuple[str, Source]], warnings: list[str]) -> tuple[Source, ...]:
    kept: dict[str, Source] = {}
    for url, source in sources:
        other = kept.setdefault(url, source)
        if other is not source:
            warnings.append(f"{source.file_path} is skipped: it has the address of {other.file_path}, {url}.")
    return tuple(kept.values())


def _base(base_url: str | None) -> str | None:
    base = clean_base(base_url) if base_url else None
    if base_url and base is None:
        raise InputError("The base URL must be an address like https://example.com/docs/.")
    return base


def _nothing(folder: Path, what: str, warnings: list[str]) -> str:
    return f"{folder} holds {what}" + (f" ({warnings[0]})" if warnings else "")


def _mdx_refused(paths: list[str]) -> str:
    others = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{others}: MDX can't be read from source yet, index the built site instead."


def _fragment_hash(envelope: Envelope, html: str) -> str:
    return _sha256(html[envelope.start : envelope.end])


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
