"""The pages that a folder offers to the index, in any format, and the facts of those that are built.

Nothing is loaded that reads a page, as most builds change few of them.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from chapterverse.errors import InputError, UnreadablePage
from chapterverse.model import Page, Source
from chapterverse.page_kinds import EXCLUDED, LISTINGS, known_content_type, unknown_content_type
from chapterverse.readers.folder import PageGlobs, decode_page, nul_warning, read_page
from chapterverse.readers.urls import page_address

if TYPE_CHECKING:
    from chapterverse.readers.page_rules import PageFacts


@dataclass(frozen=True, slots=True)
class SitePages:
    """The pages of a folder.

    Attributes:
        sources: its pages, sorted by path; an unreadable one raises its error when it is read.
        warnings: one sentence for everything that the owner may want to correct.
        left_out: the reason for each file that is no page of the index, read or not; of a listing, its kind (see
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
        by_address: dict[str, Source] = {}
        for url, source in sources:
            other = by_address.setdefault(url, source)
            if other is not source:
                self.left_out[source.file_path] = f"has the address of {other.file_path}"
                self.warnings.append(f"{source.file_path} is skipped: it has the address of {other.file_path}, {url}.")
        # The index keeps the last good version of a page that can't be read.
        unreadable = (Source(path, "", "", functools.partial(_raise, error)) for path, error in self.failed.items())
        read = sorted((*by_address.values(), *unreadable), key=lambda source: source.file_path)
        return SitePages(tuple(read), base, tuple(self.warnings), dict(self.left_out))


def require_unchanged(path: str, listed: str, read: str) -> None:
    """Raise `UnreadablePage` if a page's hash isn't the one it was listed with."""
    if listed != read:
        raise UnreadablePage(f"{path} changed while it was being indexed: run again when the build is done.")


def _raise(error: UnreadablePage) -> Page:
    raise error


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
        url, name = page_address(path, base, page.canonical, listed, is_stated=is_stated), names.get(path, path)
        read = PageReader(pages.folder, path, page, url, name)
        context = json.dumps([url, *page.facts])
        sources.append((url, Source(name, page.content_hash, context, read, url=url, language=page.facts[1] or "")))
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


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads a built page from the text that it holds, else from its file once the page is parsed."""

    folder: Path
    path: str
    built: BuiltPage
    url: str
    name: str
    text: str | None = None

    def __call__(self) -> Page:
        # Loaded only if a page changed.
        from chapterverse.readers.sections.html_page import read_document
        from chapterverse.readers.sections.outline import title_from_path

        document = read_document(self._read_text() if self.text is None else self.text, self.built.part)
        require_unchanged(self.path, self.built.content_hash, sha256(document.fragment))
        return Page(
            self.name,
            self.url,
            document.title or title_from_path(self.path),
            self.built.facts[1] or document.language,
            document.sections,
            content_type=self.built.content_type,
            tags=document.tags,
            created_at=document.created_at,
            structured_data=document.structured_data,
        )

    def hold(self) -> PageReader:
        """Return the reader of the text that the file has now."""
        return replace(self, text=self._read_text())

    def _read_text(self) -> str:
        return decode_page(self.path, read_page(self.folder, self.path))


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
