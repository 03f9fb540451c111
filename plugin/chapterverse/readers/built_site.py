"""Reads a built site: lists and hashes all pages at once, parses each when it is needed.

A build that changes nothing parses nothing. The addresses that a site states are used as far as they agree
with each other; a template that writes one address into every page must not make one page of a site.
"""

from __future__ import annotations

import os.path
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from chapterverse.errors import InputError
from chapterverse.page_kinds import EXCLUDED, NO_PAGE, OPTED_OUT
from chapterverse.readers.folder import PageGlobs, list_files
from chapterverse.readers.html.content_root import RepeatedText
from chapterverse.readers.html.metadata import PageMetadata, is_page, json_ld_scripts, read_metadata
from chapterverse.readers.page_rules import PageFacts
from chapterverse.readers.site_pages import (
    BuiltPage,
    DecodedFile,
    SitePages,
    SitePagesDraft,
    finish_reading,
    sha256,
)
from chapterverse.readers.urls import clean_url, page_paths, parse_base_url, read_sitemap, site_base

#: So many pages with one stated address are copies of one another; more are a template's mistake.
_MAX_COPIES = 2


def read_site(
    folder: Path, base_url: str | None = None, *, include: Iterable[str] = (), exclude: Iterable[str] = ()
) -> SitePages:
    """Return the pages of a built site.

    Where a build marked its pages, only these are read, and others by `include`. The address of a page follows from
    its path where the site's address is known: from `base_url`, else from the marks. Else it is the canonical link,
    else the entry in `sitemap.xml`; where some pages state an address, those that don't are placed beside them.
    `content_hash` covers the HTML of the content. Pages that only list others are left out (see `page_rules`). A page
    that states the file that it was written in has that file's path, any other page its own.

    Args:
        include: patterns in the style of .gitignore; a listing whose path they match stays.
        exclude: patterns of pages to leave out.

    Raises:
        InputError: no folder, no pages, or no address for a page; `base_url` is no address.
    """
    base = parse_base_url(base_url)
    listing = list_files(folder, (".html", ".htm"))
    pages = SitePagesDraft(folder, [*listing.warnings], globs=PageGlobs.of(include=include, exclude=exclude))
    built = _with_languages(_take_marked(pages, dict(_read_pages(pages, listing.files, base))))
    if not built:
        missing = "no HTML page to index: is it the folder that the build writes? Markdown needs --source"
        raise pages.empty_error(missing)
    sitemap = _sitemap(pages)
    built = _without_wrong_addresses(built, pages.warnings)
    stated = base or _marked_base(built)
    base = stated or _site_address(built, sitemap, pages.warnings)
    reading = finish_reading(pages, built, base, set(sitemap), is_stated=bool(stated))
    return replace(reading, is_base_stated=bool(stated))


def _read_pages(pages: SitePagesDraft, paths: Iterable[str], base: str | None) -> Iterator[tuple[str, BuiltPage]]:
    """Yield the pages to index by path; the draft notes the others."""
    repeated, guessed = RepeatedText(), list[str]()
    for file in pages.read_files(pages.choose(paths)):
        metadata = read_metadata(file.text)
        pages.has_marks = pages.has_marks or metadata.mark is not None
        reason = reason_to_leave_out(pages, file, metadata)
        if reason:
            pages.left_out[file.path] = reason
        elif metadata.is_guess:
            guessed.append(file.path)
            repeated.note(file.text[metadata.content_start : metadata.content_end])
        elif page := page_to_index(pages, file, metadata, base):
            yield file.path, page
    cut = 0
    for file in pages.read_files(guessed):
        metadata = read_metadata(file.text)
        content = file.text[metadata.content_start : metadata.content_end]
        before, after = repeated.around(content)
        part = (before, len(content) - after)
        cut += before + after > 0
        metadata.narrow(*part)
        if page := page_to_index(pages, file, metadata, base):
            yield file.path, replace(page, part=part)
    if cut and not pages.has_marks:
        pages.warnings.append(
            f"Pages such as {guessed[0]} ({cut:,} in all) have no <main> and no <article> around their content: what"
            " most pages of the site repeat at their beginnings and ends is left out as a guess."
        )


def page_to_index(
    pages: SitePagesDraft, file: DecodedFile, metadata: PageMetadata, base: str | None
) -> BuiltPage | None:
    """Return a page; None for a listing, which the draft notes."""
    mark, content = metadata.mark, metadata.content(file.text)
    page = PageFacts(file.path, mark.template if mark else metadata.marks, content, metadata.language)
    is_included = mark is not None and mark.include
    # A pattern may mean the file that the page was written in.
    content_type = pages.content_type(
        page, metadata.content_type, metadata.source or file.path, is_included=is_included
    )
    return _built_page(file, content, metadata, content_type, base) if content_type else None


def reason_to_leave_out(
    pages: SitePagesDraft, file: DecodedFile, metadata: PageMetadata, *, must_be_marked: bool = False
) -> str:
    """Return why a page is not indexed whatever its content is, "" if it may be."""
    mark = metadata.mark
    if must_be_marked and mark is None:
        return "its page doesn't show its text"
    if mark and mark.exclude:
        return mark.exclude
    if not is_page(file.text):
        return NO_PAGE
    if metadata.noindex:
        return "redirect" if "redirect" in metadata.marks.split() else OPTED_OUT
    return EXCLUDED if metadata.source and pages.globs.excludes(file.path, metadata.source) else ""


def _built_page(
    file: DecodedFile, content: str, metadata: PageMetadata, content_type: str, base: str | None
) -> BuiltPage:
    canonical, mark = None, metadata.mark
    if metadata.canonical:
        here = urljoin(base + page_paths(file.path)[0] if base else "", metadata.base)
        canonical = clean_url(metadata.canonical, here)
    title = mark.title if mark else metadata.title
    facts = (title, metadata.language, metadata.created_at, content_type, *metadata.tags)
    # The content need not hold them.
    facts += tuple(map(sha256, json_ld_scripts(file.text)))
    page = BuiltPage(sha256(content), facts, content_type, canonical, metadata.source)
    if mark is None:
        return page
    if mark.built != file.path:
        return replace(page, source="", is_marked=True, is_copy=True)
    return replace(page, base=mark.base, is_marked=True)


def _take_marked(pages: SitePagesDraft, built: dict[str, BuiltPage]) -> dict[str, BuiltPage]:
    """Return the pages that a build marked and those that `include` names; all pages if none is marked.

    Copies from other builds, such as older versions that are kept as files, are no pages of it.
    """
    if not pages.has_marks:
        return built
    has_copies_only = all(page.is_copy for page in built.values() if page.is_marked)
    taken = {}
    for path, page in built.items():
        if (page.is_marked and (has_copies_only or not page.is_copy)) or pages.globs.includes(path):
            taken[path] = page
        else:
            pages.left_out[path] = "a page of another build" if page.is_marked else NO_PAGE
    return taken


def _marked_base(built: Mapping[str, BuiltPage]) -> str:
    """Return the address of the site that most marks state, "" if none does."""
    bases = Counter(page.base for page in built.values() if page.base)
    return parse_base_url(max(bases, key=bases.__getitem__, default="")) or ""


def _with_languages(built: dict[str, BuiltPage]) -> dict[str, BuiltPage]:
    """Return the pages with a language each: where neither a page nor its text tells, that of most of the site."""
    known = Counter(page.facts[1] for page in built.values() if page.facts[1])
    usual = known.most_common(1)[0][0] if known else "en"
    return {
        path: page if page.facts[1] else replace(page, facts=(page.facts[0], usual, *page.facts[2:]))
        for path, page in built.items()
    }


def _without_wrong_addresses(built: Mapping[str, BuiltPage], warnings: list[str]) -> dict[str, BuiltPage]:
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


def _site_address(built: Mapping[str, BuiltPage], sitemap: list[str], warnings: list[str]) -> str:
    stated = [page.canonical for page in built.values() if page.canonical]
    from_sitemap = site_base(sitemap, built)
    if sitemap and not from_sitemap:
        warnings.append("sitemap.xml names no page of this folder: it is left out.")
    address = from_sitemap or site_base(stated, built)
    if address:
        return address
    unplaced = next((path for path, page in built.items() if page.canonical is None), None)
    if unplaced:
        raise InputError(f"{unplaced} states no address and the site has no sitemap.xml: pass --base-url.")
    # Every page states an address, and none of them follows from its path, so they share only the host.
    return urljoin(stated[0], "/")


def _sitemap(pages: SitePagesDraft) -> list[str]:
    if not os.path.lexists(pages.folder / "sitemap.xml"):
        return []
    reading = SitePagesDraft(pages.folder, pages.warnings)
    urls = [url for file in reading.read_files(["sitemap.xml"]) for url in read_sitemap(file.text)]
    pages.warnings.extend(map(str, reading.failed.values()))
    return urls
