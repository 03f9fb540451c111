"""The pages that a folder offers to the index, in any format."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chapterverse.errors import InputError, UnreadablePage
from chapterverse.model import Page, Source
from chapterverse.page_globs import PageGlobs
from chapterverse.page_kinds import PageFacts, content_type, known_content_type, listing_kind, unknown_content_type
from chapterverse.readers.addresses.urls import clean_base
from chapterverse.readers.sources.encoding import decode_page, nul_warning
from chapterverse.readers.sources.folder import read_page


@dataclass(frozen=True, slots=True)
class SitePages:
    """The pages of a folder.

    Attributes:
        sources: its pages, sorted by path; an unreadable one raises its error when it is read.
        warnings: one sentence for every other file that should have been a page.
        skipped: paths left out on purpose: pages that ask for it, drafts, and listings.
        listings: kind (see `page_kinds.LISTINGS`) of each page left out as a listing.
        base_url: address of the site, with a slash at its end.
        built: the built page of each source that is named after the file that it was written in.
    """

    sources: tuple[Source, ...]
    base_url: str
    warnings: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    listings: Mapping[str, str] = field(default_factory=dict)
    built: Mapping[str, str] = field(default_factory=dict)

    @property
    def site(self) -> str:
        """The name of the site among others: its address without the scheme, "example.com/docs"."""
        return self.base_url.partition("://")[2].strip("/")


@dataclass(frozen=True, slots=True)
class DecodedFile:
    """A file of the folder: its path, its bytes, and the text that they decode to."""

    path: str
    content: bytes
    text: str


@dataclass(slots=True)
class SitePagesDraft:
    """A reading in progress: warnings about files that are no pages, and the errors of unreadable ones."""

    folder: Path
    warnings: list[str]
    skipped: list[str] = field(default_factory=list)
    failed: dict[str, UnreadablePage] = field(default_factory=dict)
    listings: dict[str, str] = field(default_factory=dict)
    globs: PageGlobs = field(default_factory=PageGlobs.of)

    def content_type(self, page: PageFacts, stated: object, *paths: str) -> str:
        """Return the content type of a page, "" for a listing, which is left out unless the globs include it.

        Args:
            paths: further names of the page in the globs, besides its path.
        """
        kind = listing_kind(page)
        if kind and not self.globs.includes(page.path, *paths):
            self.leave_out(page.path, kind)
            return ""
        if stated and not known_content_type(stated):
            self.warnings.append(f"{page.path}: {unknown_content_type(stated)}")
        return content_type(page, stated, kind)

    def choose(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the paths that the globs don't exclude, and note the others as left out."""
        for path in paths:
            if self.globs.excludes(path):
                self.leave_out(path)
            else:
                yield path

    def leave_out(self, path: str, listing: str = "") -> None:
        """Note a page that is not indexed, and which of `page_kinds.LISTINGS` it is, if any."""
        self.skipped.append(path)
        if listing:
            self.listings[path] = listing

    def read_files(self, paths: Iterable[str]) -> Iterator[DecodedFile]:
        """Yield the readable files, and keep the errors of the others in `failed`."""
        for path in paths:
            try:
                content = read_page(self.folder, path)
                text = decode_page(path, content)
                if (warning := nul_warning(path, content)) and warning not in self.warnings:
                    self.warnings.append(warning)
                yield DecodedFile(path, content, text)
            except UnreadablePage as error:
                self.failed[path] = error

    def empty_error(self, missing: str) -> InputError:
        """Return the error for a folder that holds `missing`, such as "no Markdown", with the first reason known."""
        reason = next(iter([*map(str, self.failed.values()), *self.warnings]), "")
        return InputError(f"{self.folder} holds {missing}" + (f" ({reason})" if reason else ""))

    def finish(self, sources: Iterable[tuple[str, Source]], base: str) -> SitePages:
        """Return the pages: one source for each address, and those that can't be read.

        Args:
            sources: pairs of address and source.
            base: address of the site.
        """
        read = [*self._one_for_each_address(sources), *_unreadable(self.failed)]
        read.sort(key=lambda source: source.file_path)
        return SitePages(tuple(read), base, tuple(self.warnings), tuple(self.skipped), dict(self.listings))

    def _one_for_each_address(self, sources: Iterable[tuple[str, Source]]) -> Sequence[Source]:
        by_address: dict[str, Source] = {}
        for url, source in sources:
            other = by_address.setdefault(url, source)
            if other is not source:
                self.warnings.append(f"{source.file_path} is skipped: it has the address of {other.file_path}, {url}.")
        return list(by_address.values())


def parse_base_url(base_url: str | None) -> str | None:
    """Return the base URL that a user stated, with a slash at its end; None if there is none.

    Raises:
        InputError: it is no address.
    """
    base = clean_base(base_url) if base_url else None
    # No page is below a query.
    if base_url and (base is None or "?" in base_url or "#" in base_url):
        raise InputError("The base URL must be an address like https://example.com/docs/, without a query.")
    return base


def require_unchanged(path: str, listed: str, read: str) -> None:
    """Raise `UnreadablePage` if a page's hash isn't the one it was listed with."""
    if listed != read:
        raise UnreadablePage(f"{path} changed while it was being indexed: run again when the build is done.")


def _unreadable(failed: Mapping[str, UnreadablePage]) -> Iterator[Source]:
    """Yield sources that raise their error when they are read: the index keeps the last good version of such a page."""
    for path, error in failed.items():
        yield Source(path, "", "", functools.partial(_raise, error))


def _raise(error: UnreadablePage) -> Page:
    raise error
