"""Reads a built site: lists and hashes all pages at once, parses each when it is needed.

A build that changes nothing parses nothing. The addresses that a site states are used as far as they agree
with each other; a template that writes one address into every page must not make one page of a site.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os.path
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from chapterverse.errors import InputError
from chapterverse.model import Page, Source
from chapterverse.page_globs import PageGlobs
from chapterverse.page_kinds import PageFacts
from chapterverse.readers.addresses.urls import clean_url, page_paths, read_sitemap, site_base
from chapterverse.readers.html.metadata import PageMetadata, is_page, read_metadata
from chapterverse.readers.html.repeated_text import RepeatedText
from chapterverse.readers.html.structured_data import json_ld_scripts
from chapterverse.readers.sections.html_page import read_document
from chapterverse.readers.sections.outline import title_from_path
from chapterverse.readers.sources.encoding import decode_page
from chapterverse.readers.sources.folder import list_files, read_page
from chapterverse.readers.sources.site_pages import (
    DecodedFile,
    SitePages,
    SitePagesDraft,
    parse_base_url,
    require_unchanged,
)

#: So many pages with one stated address are copies of one another; more are a template's mistake.
_MAX_COPIES = 2


@dataclass(frozen=True, slots=True)
class _BuiltPage:
    """The facts of a built page, kept until its address is known; not its text, as a site may have 100,000 pages.

    Attributes:
        left_out: how many characters at the beginning and at the end of its content the site repeats.
    """

    content_hash: str
    facts: tuple[str | None, ...]
    content_type: str
    canonical: str | None
    source: str
    left_out: tuple[int, int]


def read_site(
    folder: Path, base_url: str | None = None, include: Iterable[str] = (), exclude: Iterable[str] = ()
) -> SitePages:
    """Return the pages of a built site.

    A page's address is its canonical link, else its entry in `sitemap.xml`, else `base_url` and its path; where some
    pages state an address, those that don't are placed beside them. `content_hash` covers the HTML in the content root.
    Pages that only list others are left out (see `page_kinds`). A page that states the file that it was written in has
    that file's path, any other page its own.

    Args:
        include: patterns in the style of .gitignore; a listing whose path they match stays.
        exclude: patterns of pages to leave out.

    Raises:
        InputError: no folder, no pages, or no address for a page; `base_url` is no address.
        UnsafePath: a file leads out of the folder.
    """
    base = parse_base_url(base_url)
    listing = list_files(folder, (".html", ".htm"))
    pages = SitePagesDraft(folder, [*listing.warnings], globs=PageGlobs.of(exclude, include))
    built = _read_pages(pages, listing.files, base)
    if not built:
        missing = "no HTML page to index: is it the folder that the build writes? Markdown needs --source"
        raise pages.empty_error(missing)
    sitemap = _sitemap(pages)
    built = _without_wrong_addresses(built, pages.warnings)
    base = _site_address(built, sitemap, base, pages.warnings)
    names = _source_names(built)
    sources = [
        (url, _built_source(folder, path, built[path], url, names.get(path, path)))
        for path, url in _addresses(built, set(sitemap), base)
    ]
    return replace(pages.finish(sources, base), built={name: path for path, name in names.items()})


def _read_pages(pages: SitePagesDraft, paths: Iterable[str], base: str | None) -> dict[str, _BuiltPage]:
    """Return the pages to index, by path; the draft notes the others."""
    built: dict[str, _BuiltPage] = {}
    repeated = RepeatedText()
    guessed: list[str] = []
    for file in pages.read_files(pages.choose(paths)):
        metadata = read_metadata(file.text)
        if not is_page(file.text):
            pages.leave_out(file.path)
        elif metadata.is_guess and not metadata.noindex:
            guessed.append(file.path)
            repeated.note(file.text[metadata.content_start : metadata.content_end])
        else:
            _read_built(pages, built, file, metadata, base)
    cut = 0
    for file in pages.read_files(guessed):
        metadata = read_metadata(file.text)
        content = file.text[metadata.content_start : metadata.content_end]
        left_out = repeated.around(content)
        cut += any(left_out)
        _read_built(pages, built, file, metadata, base, left_out)
    if cut:
        pages.warnings.append(_guess_warning(cut, guessed[0]))
    return _with_languages(built)


def _read_built(
    pages: SitePagesDraft,
    built: dict[str, _BuiltPage],
    file: DecodedFile,
    metadata: PageMetadata,
    base: str | None,
    left_out: tuple[int, int] = (0, 0),
) -> None:
    """Note a page to index, or that it is left out."""
    content = file.text[metadata.content_start + left_out[0] : metadata.content_end - left_out[1]]
    if metadata.noindex:
        pages.leave_out(file.path, "redirect" if "redirect" in metadata.marks.split() else "")
        return
    # A pattern may mean the file that the page was written in.
    if metadata.source and pages.globs.excludes(file.path, metadata.source):
        pages.leave_out(file.path)
        return
    page = PageFacts(file.path, metadata.marks, content, metadata.language)
    content_type = pages.content_type(page, metadata.content_type, *filter(None, [metadata.source]))
    if content_type:
        built[file.path] = _built_page(file, content, metadata, content_type, base, left_out)


def _guess_warning(pages: int, path: str) -> str:
    return (
        f"{pages:,} pages, such as {path}, have no <main> and no <article> around their content: what most pages of the"
        " site repeat at their beginnings and ends is left out as a guess."
    )


def _with_languages(built: dict[str, _BuiltPage]) -> dict[str, _BuiltPage]:
    """Return the pages with a language each: where neither a page nor its text tells, that of most of the site."""
    known = Counter(page.facts[1] for page in built.values() if page.facts[1])
    usual = known.most_common(1)[0][0] if known else "en"
    return {
        path: page if page.facts[1] else replace(page, facts=(page.facts[0], usual, *page.facts[2:]))
        for path, page in built.items()
    }


def _source_names(built: Mapping[str, _BuiltPage]) -> dict[str, str]:
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


def _built_page(
    file: DecodedFile,
    content: str,
    metadata: PageMetadata,
    content_type: str,
    base: str | None,
    left_out: tuple[int, int],
) -> _BuiltPage:
    canonical = None
    if metadata.canonical:
        here = urljoin(base + page_paths(file.path)[0] if base else "", metadata.base)
        canonical = clean_url(metadata.canonical, here)
    facts = (metadata.title, metadata.language, metadata.created_at, content_type, *metadata.tags)
    # The content root need not hold them.
    facts += tuple(map(_sha256, json_ld_scripts(file.text)))
    return _BuiltPage(_sha256(content), facts, content_type, canonical, metadata.source, left_out)


def _built_source(folder: Path, path: str, page: _BuiltPage, url: str, name: str) -> Source:
    read = functools.partial(_read_page, folder, path, page, url, name)
    return Source(name, page.content_hash, json.dumps([url, *page.facts]), read, url=url, language=page.facts[1] or "")


def _read_page(folder: Path, path: str, built: _BuiltPage, url: str, name: str) -> Page:
    document = read_document(decode_page(path, read_page(folder, path)), built.left_out)
    require_unchanged(path, built.content_hash, _sha256(document.fragment))
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


def _without_wrong_addresses(built: Mapping[str, _BuiltPage], warnings: list[str]) -> dict[str, _BuiltPage]:
    """Return the pages without addresses that can't be right: one for most of a site, one on a foreign host."""
    stated = Counter(page.canonical for page in built.values() if page.canonical)
    hosts = Counter(urlsplit(url).netloc for url in stated)
    home = hosts.most_common(1)[0][0] if hosts else ""
    wrong: dict[str, str] = {}
    for url, times in stated.items():
        host = urlsplit(url).netloc
        if times > _MAX_COPIES and times * 2 >= len(built):
            wrong[url] = f"{times} pages state one address, {url}: they are placed by their paths instead."
        elif hosts[host] * 2 < hosts[home]:
            wrong[url] = f"A page states an address on another host than the rest, {url}: it is placed by its path."
    warnings.extend(wrong.values())
    return {path: replace(page, canonical=None) if page.canonical in wrong else page for path, page in built.items()}


def _site_address(built: Mapping[str, _BuiltPage], sitemap: list[str], base: str | None, warnings: list[str]) -> str:
    stated = [page.canonical for page in built.values() if page.canonical]
    from_sitemap = site_base(sitemap, built)
    if sitemap and not from_sitemap:
        warnings.append("sitemap.xml names no page of this folder: it is left out.")
    address = from_sitemap or base or site_base(stated, built)
    if address:
        return address
    unplaced = next((path for path, page in built.items() if page.canonical is None), None)
    if unplaced:
        raise InputError(f"{unplaced} states no address and the site has no sitemap.xml: pass --base-url.")
    # Every page states an address, and none of them follows from its path, so they share only the host.
    return urljoin(stated[0], "/")


def _addresses(built: Mapping[str, _BuiltPage], listed: set[str], base: str) -> Iterator[tuple[str, str]]:
    """Yield path and address of each page; `listed` are the addresses of the sitemap."""
    for path, page in built.items():
        paths = page_paths(path)
        by_path = next((base + each for each in paths if base + each in listed), base + paths[0])
        yield path, page.canonical or by_path


def _sitemap(pages: SitePagesDraft) -> list[str]:
    if not os.path.lexists(pages.folder / "sitemap.xml"):
        return []
    reading = SitePagesDraft(pages.folder, pages.warnings)
    urls = [url for file in reading.read_files(["sitemap.xml"]) for url in read_sitemap(file.text)]
    pages.warnings.extend(map(str, reading.failed.values()))
    return urls


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
