"""Writes the files of a built site for agents: the Markdown of pages, `llms.txt`, `llms-full.txt`, a skill, its index.

A file is written if it changed, and never over a foreign one. A file of an earlier run that this run doesn't write is
removed, so no file of an excluded page remains.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin

from chapterverse.build_cache import BuildCache
from chapterverse.errors import PageTooLarge, UnreadablePage, UnsafePath
from chapterverse.readers.folder import decode_page, read_page, real_path
from chapterverse.readers.html.dom import Edit, apply_edits
from chapterverse.readers.urls import SAFE, clean_base
from chapterverse.settings import Settings
from chapterverse.site import overview
from chapterverse.site.delivery import SecretFilter, replace_file, walk
from chapterverse.site.markdown_page import PAGE_MARK, PageFile, RenderedPage, digest, markdown_page, markdown_path
from chapterverse.site.overview import SKILL_INDEX, AgentOptions, SiteFacts, page_groups
from chapterverse.site.tags import open_frame, put, put_link
from chapterverse.text.json_text import parse_json

if TYPE_CHECKING:
    from chapterverse.readers.html.metadata import PageMetadata
    from chapterverse.readers.marked_pages import MarkedFile
    from chapterverse.readers.site_pages import SitePages

#: Bytes of pages' text that are kept for `llms-full.txt` in all languages; a site may have 100,000 pages.
_MAX_KEPT_BYTES = 16 * overview.MAX_FULL_BYTES
#: A mark is in so many bytes at the start or at the end of a file.
_MARK_WINDOW_BYTES = 4096


@dataclass(frozen=True, slots=True)
class AgentFilesResult:
    """The result of a run.

    Attributes:
        written: number of files that changed, and `removed` of those that were removed.
        warnings: a sentence for each page without the file that it should have.
        notes: a sentence about files that were left because they are not ours.
    """

    written: int
    removed: int
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    def log(self, log: logging.Logger | logging.LoggerAdapter[logging.Logger], prefix: str = "") -> None:
        for warning in self.warnings:
            log.warning("%s%s", prefix, warning)
        for note in self.notes:
            log.info("%s%s", prefix, note)


@dataclass(slots=True)
class AgentFiles:
    """The files of one build: `add` each page, then `finish`.

    Attributes:
        cache: the Markdown of pages of earlier builds; a page that did not change is not parsed again.
    """

    site: Path
    options: AgentOptions
    facts: SiteFacts
    cache: BuildCache
    secrets: SecretFilter
    _pages: dict[str, PageFile] = field(default_factory=dict)
    _written_paths: set[str] = field(default_factory=set)
    _foreign: list[str] = field(default_factory=list)
    _warnings: list[str] = field(default_factory=list)
    _linked: dict[str, str] = field(default_factory=dict)
    _text_chars: int = 0
    _written: int = 0

    @classmethod
    def open(
        cls,
        site: str | Path,
        options: AgentOptions,
        settings: Settings,
        name: str,
        base_url: str,
        description: str = "",
        *,
        keep: bool = False,
    ) -> AgentFiles:
        """Return the files of a build by its settings.

        Args:
            base_url: address of the site; without one nothing is written.
            keep: whether the folder for what the next build needs may be made.
        """
        version = settings.docs_version or ""
        facts = SiteFacts(name, clean_base(base_url) or "", description, version, settings.endpoint)
        cache = BuildCache.open(settings.local_folder, make=keep and bool(facts.base_url))
        return cls(Path(site), options, facts, cache, SecretFilter(None, settings.secrets))

    def add(self, page: RenderedPage) -> str:
        """Write the Markdown of a page and return the address for its link, "" if it has none."""
        return self._add(page.path, digest(page, self.facts.version), lambda: page) if self._is_on else ""

    @property
    def _is_on(self) -> bool:
        return self.options.any and bool(self.facts.base_url)

    def _add(self, page_path: str, page_digest: str, read: Callable[[], RenderedPage]) -> str:
        """Write the Markdown of a page, which is read only if its Markdown is not known yet."""
        path = markdown_path(page_path, self._pages)
        if path in self._pages:
            self._warnings.append(f"{page_path} got no Markdown: {path} is the name of another page's.")
            return ""
        markdown = self._markdown(path, page_digest, read)
        if markdown is None:
            return ""
        self._text_chars += len(markdown.body)
        is_kept = self.options.llms_full_txt and self._text_chars <= _MAX_KEPT_BYTES
        self._pages[path] = markdown if is_kept else replace(markdown, body="", text="")
        return _href(path) if self.options.markdown and self._write(path, markdown.text) else ""

    def link(self, path: str, page: str) -> list[Edit]:
        """Return how a page that is about to be written gets the link that it will need if it gets its Markdown.

        `add_file` then need not write it again, and `finish` removes the link where no Markdown was added.
        """
        if not (self.options.markdown and self.facts.base_url):
            return []
        self._linked[path] = _href(markdown_path(path))
        return put_link(page, self._linked[path])

    def add_built_pages(self, reading: SitePages) -> None:
        """Write the Markdown of the pages of a built site, and the links into the pages."""
        for path, url in reading.addresses.items():
            page = rendered_page(self.site, path, url, reading.parts.get(path))
            if page is not None:
                self._put_link(path, (self.site / path).read_bytes(), self.add(page))

    def add_marked(self, file: MarkedFile) -> str:
        """Write the Markdown of a page that a build marked, and the link to it; nothing without an address.

        Return what `file.noted` must be for the page to need no reading.
        """
        if not (file.url and self._is_on):
            return ""
        read = functools.cache(lambda: _rendered_page(file.path, file.url, *file.read()))
        page_digest = file.noted or digest(read(), self.facts.version)
        href = self._add(file.path, page_digest, read)
        if self._linked.pop(file.path, None) != href:
            self._put_link(file.path, file.content, href)
        return page_digest

    def finish(self, *, remove: bool = True) -> AgentFilesResult:
        """Write the files about all pages, and remove those of earlier runs that were not made again.

        Args:
            remove: false if other builds write into the same folder.
        """
        for path in self._linked:
            with contextlib.suppress(FileNotFoundError):
                self._put_link(path, (self.site / path).read_bytes(), "")
        groups, facts, options = page_groups(self._pages.values()), self.facts, self.options
        for group in groups:
            if options.llms_txt:
                other_groups = [other for other in groups if other is not group]
                self._write(group.list_path, overview.llms_txt(facts, group, other_groups, options))
            if options.llms_full_txt:
                self._write(group.full_path, overview.llms_full_txt(facts, group))
        if options.skill and groups:
            path, text, index = overview.skill_files(facts, groups, options)
            if self._write(path, text):
                self._write(SKILL_INDEX, index)
        removed = self._remove_earlier() if remove else 0
        self.cache.finish()
        return AgentFilesResult(self._written, removed, tuple(self._warnings), _warn_of_foreign(self._foreign))

    def _markdown(self, path: str, page_digest: str, read: Callable[[], RenderedPage]) -> PageFile | None:
        """Return the Markdown of a page, as an earlier build kept it if it is the same page; None with a warning."""
        key = f"{path} {page_digest}"
        known = self.cache.read(key, PageFile.from_json)
        try:
            markdown = known or markdown_page(read(), path, self.facts.version)
        except PageTooLarge as error:
            self._warnings.append(f"{read().path} {error}")
            return None
        # What is kept has no key of a known shape; the values of this build's secrets may be others than before.
        if self.secrets.scrub(markdown.text, with_shapes=not known) != markdown.text:
            says = f"{read().path} got no Markdown, because it holds a secret: see `chapterverse check`."
            self._warnings.append(says)
            return None
        if not known:
            self.cache.write(key, markdown.to_json())
        return markdown

    def _put_link(self, path: str, content: bytes, href: str) -> None:
        # In every encoding of the web tags are ASCII.
        text = content.decode("latin-1")
        if edits := put_link(text, href):
            replace_file(self.site / path, apply_edits(text, edits).encode("latin-1"))

    def _write(self, path: str, text: str) -> bool:
        """Write a file of the site, and return whether it is ours."""
        file, content = self.site / path, text.encode("utf-8", "replace")
        try:
            real_path(self.site, posixpath.dirname(path))
        except UnsafePath as error:
            self._warnings.append(str(error))
            return False
        there = os.path.lexists(file)
        is_foreign = there and (file.is_dir() or not (self.options.overwrite or _is_ours(self.site, path)))
        if not (is_foreign or os.path.isdir(file.parent)):  # noqa: PTH112
            try:
                file.parent.mkdir(parents=True)
            except OSError:
                # A file has the name of the folder.
                is_foreign = True
        if is_foreign:
            self._foreign.append(path)
            return False
        if not there or file.is_symlink() or not file.is_file() or file.read_bytes() != content:
            replace_file(file, content)
            self._written += 1
        self._written_paths.add(path)
        return True

    def _remove_earlier(self) -> int:
        """Remove the files of earlier runs that this one did not write, and return their number."""
        gone = [path for path in walk(self.site) if _may_be_ours(path) and path not in self._written_paths]
        removed = 0
        # The index first: `_is_ours` knows it by the skill that it names.
        for path in sorted(gone, key=lambda path: path != SKILL_INDEX):
            if _is_ours(self.site, path):
                (self.site / path).unlink()
                removed += 1
        return removed


def rendered_page(site: Path, path: str, url: str, part: tuple[int, int] | None = None) -> RenderedPage | None:
    """Return a page of a built site, None if it can't be read; `part` as `SitePages.parts` has it."""
    # Loaded only where a page is read.
    from chapterverse.readers.html.metadata import read_metadata

    try:
        page = decode_page(path, read_page(site, path))
    except UnreadablePage:
        return None
    metadata = read_metadata(page)
    if metadata.mark is None:
        # Without the tag of an earlier run, so that a second one changes nothing.
        page = put(page, open_frame(page), None)
        metadata = read_metadata(page)
    if part:
        metadata.narrow(*part)
    return _rendered_page(path, url, page, metadata)


def _href(path: str) -> str:
    return quote(posixpath.basename(path), safe=SAFE.replace("%", "").replace("/", ""))


def _rendered_page(path: str, url: str, page: str, metadata: PageMetadata) -> RenderedPage:
    base = urljoin(url, metadata.base) if metadata.base else ""
    title, content = metadata.mark.title if metadata.mark else "", metadata.content(page)
    return RenderedPage(path, url, title, metadata.language, content, metadata.title, base, metadata.description)


def _may_be_ours(path: str) -> bool:
    name = posixpath.basename(path)
    return name.endswith(".md") or (name.startswith("llms") and name.endswith(".txt")) or path == SKILL_INDEX


def _is_ours(site: Path, path: str) -> bool:
    """Whether an earlier run wrote a file; a link is not ours."""
    file = site / path
    if file.is_symlink() or not file.is_file():
        return False
    if path == SKILL_INDEX:
        return _is_our_index(site)
    with file.open("rb") as opened:
        start = opened.read(_MARK_WINDOW_BYTES)
        opened.seek(max(0, file.stat().st_size - _MARK_WINDOW_BYTES))
        end = opened.read()
    if path.endswith(".txt"):
        return end.rstrip().endswith(overview.OVERVIEW_MARK.encode())
    head = start.partition(b"\n---\n")[0].split(b"\n")
    return head[0] == b"---" and PAGE_MARK.encode() in (line.strip() for line in head)


def _is_our_index(site: Path) -> bool:
    """Whether each skill of the index is ours: the format has no room for a mark."""
    try:
        skills: list[dict[str, Any]] = parse_json((site / SKILL_INDEX).read_bytes())["skills"]
        names = [str(entry["name"]) for entry in skills]
    except (ValueError, KeyError, TypeError):
        return False
    return bool(names) and all(
        "/" not in name and _is_ours(site, f"{overview.SKILLS}/{name}/SKILL.md") for name in names
    )


def _warn_of_foreign(paths: list[str]) -> tuple[str, ...]:
    if not paths:
        return ()
    more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
    are, them = ("are", "they") if more else ("is", "it")
    says = f"{paths[0]}{more} {are} there already and not made by Chapter & Verse, so {them} stayed"
    return (f"{says}: set `overwrite` to replace what is there.",)
