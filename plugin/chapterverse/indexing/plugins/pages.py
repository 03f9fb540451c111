"""The pages of a build that a plugin collects for the index."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from chapterverse.errors import ConfigurationError
from chapterverse.model import Page, Source, stated_date
from chapterverse.page_globs import PageGlobs
from chapterverse.page_kinds import (
    EXCLUDED,
    OPTED_OUT,
    PageFacts,
    content_type,
    known_content_type,
    listing_kind,
    unknown_content_type,
)
from chapterverse.project import leads_out


def page_source(
    file_path: str, url: str, title: str, html: str, tags: Iterable[str] = (), **about: str | None
) -> Source:
    """Return a page as a source of the index.

    Args:
        html: the rendered content without the theme; parsed only if it changed.
        about: further fields of `model.Page`.
    """

    def read() -> Page:
        from chapterverse.readers.html.structured_data import read_structured_data
        from chapterverse.readers.sections.html_page import read_fragment

        fields: dict[str, Any] = {**about, "tags": tuple(tags), "structured_data": read_structured_data(html)}
        return Page(file_path, url, title, sections=read_fragment(html, title), **fields)

    context = json.dumps([url, title, [*tags], about], ensure_ascii=False, sort_keys=True)
    content_hash = hashlib.sha256(html.encode()).hexdigest()
    return Source(file_path, content_hash, context, read, url=url, language=about.get("language") or "")


@dataclass(slots=True)
class PageCollection:
    """The pages of a build that are to be indexed.

    Attributes:
        globs: the pages that the site's configuration leaves out and keeps.
        documents: paths of files that the index has as documents beside the pages.
        outside: pages whose files are links out of the project.
        sources: the collected pages by path.
        left_out: a reason for each page that is not indexed although no setting excludes it: one of
            `page_kinds.LISTINGS`, or that its text is not shown.
        excluded: a reason for each page that its author or a setting excludes at one address at least.
    """

    globs: PageGlobs
    documents: frozenset[str] = frozenset()
    outside: set[str] = field(default_factory=set)
    sources: dict[str, Source] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    excluded: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, exclude: Iterable[str], include: Iterable[str], documents: frozenset[str] = frozenset()
    ) -> PageCollection:
        """Return an empty collection by .gitignore patterns."""
        return cls(PageGlobs.of(exclude, include), documents)

    def shut_out(self, path: str, file: str | None, folder: str | None) -> bool:
        """Leave a page out whose file is a link out of the project. Return whether it is one that was not known yet."""
        if path in self.outside or not _leaves(file, folder):
            return False
        self.outside.add(path)
        return True

    def takes(self, path: str, address: str, meta: Mapping[str, Any], html: str) -> bool:
        """Return whether a page is indexed: its author didn't opt out, and it is no listing.

        Args:
            path: of its source.
            address: of the built page, relative to the site.
        """
        if path in self.documents:
            return False
        if reason := self._exclusion(path, address, meta):
            self.excluded[path] = reason
            return False
        kind = listing_kind(_facts(address, meta, html))
        if kind and not self.globs.includes(path, address):
            self.left_out[path] = kind
        return path not in self.left_out

    def _exclusion(self, path: str, address: str, meta: Mapping[str, Any]) -> str:
        if path in self.outside:
            return "a link out of the project"
        if any(isinstance(m, dict) and m.get("exclude") for m in map(meta.get, ("search", "chapterverse"))):
            return OPTED_OUT
        return EXCLUDED if self.globs.excludes(path, address) else ""

    @property
    def reasons(self) -> dict[str, str]:
        """The pages that are not indexed at any address, each with the reason."""
        reasons = {**self.excluded, **self.left_out}
        return {path: reason for path, reason in reasons.items() if path not in self.sources}

    def add(self, source: Source) -> str:
        """Collect a page and return its content hash, "" if the path was collected before."""
        # The fallback of an untranslated page comes once for each language; the first one counts.
        return source.content_hash if self.sources.setdefault(source.file_path, source) is source else ""

    def confirm(self, path: str, content: str, page: str) -> bool:
        """Return whether a page is indexed. Give it up if it doesn't show its content, which a plugin may encrypt.

        JSON-LD that the theme wrote around the content counts as the page's.

        Args:
            content: of the page, as `page_marks.mark_content` returns it.
            page: HTML of the whole page.
        """
        source = self.sources.get(path)
        if not source or source.content_hash not in content:
            return False
        if source.content_hash not in page:
            del self.sources[path]
            self.left_out[path] = "its page doesn't show its text"
        elif "ld+json" in page:
            self.sources[path] = _with_structured_data(source, page)
        return path in self.sources


def page_fields(meta: Mapping[str, Any], theme: Mapping[str, Any], address: str, html: str) -> dict[str, Any]:
    """Return the keyword arguments for `page_source` that a page's front matter and the theme state."""
    tags = meta.get("tags")
    return {
        "tags": [str(tag) for tag in tags] if isinstance(tags, list) else [],
        "language": theme_language(theme),
        "content_type": content_type(_facts(address, meta, html, theme_language(theme)), _stated_type(meta)),
        "created_at": stated_date(meta.get("date")),
    }


def theme_language(theme: Mapping[str, Any]) -> str:
    """Return the language of the theme's interface, as a BCP 47 tag."""
    return str(theme.get("language") or theme.get("locale") or "en").replace("_", "-")


def _with_structured_data(source: Source, html: str) -> Source:
    """Return a source with the JSON-LD of its whole page."""
    from chapterverse.readers.html.structured_data import read_structured_data

    data = read_structured_data(html)

    def read() -> Page:
        return replace(source.read(), structured_data=data)

    return replace(source, context=json.dumps([source.context, data]), read=read) if data else source


def _facts(address: str, meta: Mapping[str, Any], html: str, language: str = "") -> PageFacts:
    return PageFacts(address, str(meta.get("template") or ""), html, language)


def _leaves(path: str | None, folder: str | None) -> bool:
    """Whether a file's real path is outside of its project. False for a generated file, which has none."""
    return path is not None and folder is not None and leads_out(path, folder)


def _stated_type(meta: Mapping[str, Any]) -> object:
    chapterverse_meta = meta.get("chapterverse")
    return chapterverse_meta.get("content_type") if isinstance(chapterverse_meta, dict) else None


def check_content_type(meta: Mapping[str, Any]) -> None:
    """Check the content type that a page's front matter states.

    Raises:
        ConfigurationError: there is no such type.
    """
    declared_type = _stated_type(meta)
    if declared_type is not None and not known_content_type(declared_type):
        raise ConfigurationError(unknown_content_type(declared_type))
