"""The pages that a folder offers to the index, in any format."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from chapterverse.errors import InputError, UnreadablePage
from chapterverse.model import Page, Source
from chapterverse.page_globs import PageGlobs
from chapterverse.page_kinds import EXCLUDED, LISTINGS, known_content_type, unknown_content_type
from chapterverse.readers.sources.encoding import decode_page, nul_warning
from chapterverse.readers.sources.folder import read_page

if TYPE_CHECKING:
    from chapterverse.readers.page_rules import PageFacts


@dataclass(frozen=True, slots=True)
class SitePages:
    """The pages of a folder.

    Attributes:
        sources: its pages, sorted by path; an unreadable one raises its error when it is read.
        warnings: one sentence for everything that the owner may want to correct.
        left_out: the reason for each file that was read and is no page of the index; of a listing, its kind (see
            `page_kinds.LISTINGS`).
        base_url: address of the site, with a slash at its end.
        built: the built page of each source that is named after the file that it was written in.
        parts: what of the content of a built page is its own, in characters from its beginning; of others all is.
        is_base_stated: `base_url` was stated by the owner or by the build, and not found in the pages.
    """

    sources: tuple[Source, ...]
    base_url: str
    warnings: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    built: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    is_base_stated: bool = True

    @property
    def listings(self) -> dict[str, str]:
        """The pages left out as listings, each with its kind."""
        return {path: reason for path, reason in self.left_out.items() if reason in LISTINGS}

    @property
    def addresses(self) -> dict[str, str]:
        """The addresses of the pages by the paths of their built files. One that can't be read has none."""
        return {self.built.get(s.file_path, s.file_path): s.url for s in self.sources if s.url}

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
    """A reading in progress: warnings about files that are no pages, and the errors of unreadable ones.

    Attributes:
        has_marks: a build marked one of the pages at least.
    """

    folder: Path
    warnings: list[str]
    read: Callable[[Path, str], bytes] = read_page
    left_out: dict[str, str] = field(default_factory=dict)
    failed: dict[str, UnreadablePage] = field(default_factory=dict)
    globs: PageGlobs = field(default_factory=PageGlobs.of)
    has_marks: bool = False

    def content_type(self, page: PageFacts, stated: object, *paths: str, is_included: bool = False) -> str:
        """Return the content type of a page, "" for a listing, which is left out unless it is included.

        Args:
            paths: further names of the page in the globs, besides its path.
            is_included: the build includes it, whatever the globs say.
        """
        # Loaded only if a page changed.
        from chapterverse.readers.page_rules import content_type, listing_kind

        kind = listing_kind(page)
        if kind and not (is_included or self.globs.includes(page.path, *paths)):
            self.left_out[page.path] = kind
            return ""
        if stated and not known_content_type(stated):
            self.warnings.append(f"{page.path}: {unknown_content_type(stated)}")
        return content_type(page, stated, kind)

    def choose(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the paths that the globs don't exclude, and note the others as left out."""
        for path in paths:
            if self.globs.excludes(path):
                self.left_out[path] = EXCLUDED
            else:
                yield path

    def read_files(self, paths: Iterable[str]) -> Iterator[DecodedFile]:
        """Yield the readable files, and keep the errors of the others in `failed`."""
        for path, content in self.read_contents(paths):
            if file := self.decode(path, content):
                yield file

    def read_contents(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the paths and bytes of the files that can be read, and keep the errors of the others in `failed`."""
        for path in paths:
            try:
                yield path, self.read(self.folder, path)
            except UnreadablePage as error:
                self.failed[path] = error

    def decode(self, path: str, content: bytes) -> DecodedFile | None:
        """Return a file with its text; None if it has none, with the error in `failed`."""
        try:
            text = decode_page(path, content)
        except UnreadablePage as error:
            self.failed[path] = error
            return None
        if (warning := nul_warning(path, content)) and warning not in self.warnings:
            self.warnings.append(warning)
        return DecodedFile(path, content, text)

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
        return SitePages(tuple(read), base, tuple(self.warnings), dict(self.left_out))

    def _one_for_each_address(self, sources: Iterable[tuple[str, Source]]) -> Sequence[Source]:
        by_address: dict[str, Source] = {}
        for url, source in sources:
            other = by_address.setdefault(url, source)
            if other is not source:
                self.left_out[source.file_path] = f"has the address of {other.file_path}"
                self.warnings.append(f"{source.file_path} is skipped: it has the address of {other.file_path}, {url}.")
        return list(by_address.values())


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
