"""The pages of a build: which are indexed, what is written into each, and the address below which they are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

from chapterverse.errors import ConfigurationError
from chapterverse.indexing.plugins.index_run import Log
from chapterverse.model import stated_date
from chapterverse.page_kinds import EXCLUDED, OPTED_OUT, known_content_type, unknown_content_type
from chapterverse.project import leads_out
from chapterverse.readers.folder import PageGlobs
from chapterverse.readers.front_matter import tag_values, text_value
from chapterverse.readers.html.dom import Edit, apply_edits
from chapterverse.readers.html.page_mark import PageMark, mark_content, seal
from chapterverse.readers.urls import clean_base


@dataclass(slots=True)
class BuildPages:
    """The pages of a build, which is given each once for every language.

    Attributes:
        base: address of the site, with a slash at its end; "" if it has none.
        globs: the pages that the site's configuration leaves out and keeps.
        documents: paths of files that the index has as documents beside the pages.
        paths: source of each page to index by the path of the built page, relative to the site.
        outside: pages whose files are links out of the project.
        excluded: why other pages are not indexed, by source.
        first_built: the first built page of each source.
    """

    base: str
    globs: PageGlobs
    documents: frozenset[str]
    paths: dict[str, str] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)
    excluded: dict[str, str] = field(default_factory=dict)
    first_built: dict[str, str] = field(default_factory=dict)

    def shut_out(self, path: str, file: str | None, folder: str | None) -> bool:
        """Leave a page out whose file is a link out of the project. Return whether it is one that was not known yet.

        A generated page has no file.
        """
        if path in self.outside or file is None or folder is None or not leads_out(file, folder):
            return False
        self.outside.add(path)
        return True

    def mark(
        self, path: str, built_path: str, title: str, language: str, meta: Mapping[str, Any], *, is_draft: bool
    ) -> PageMark:
        """Note a page that the build writes, and return its mark.

        Args:
            path: of its source.
            built_path: of the built page, relative to the site.
            meta: its front matter.
            is_draft: only a preview shows it.
        """
        # A translation plugin builds an untranslated page once for each language; the first one counts.
        is_first = self.first_built.setdefault(path, built_path) == built_path
        reason = self._reason_to_exclude(path, built_path, meta, is_draft=is_draft)
        if reason:
            self.excluded[path] = reason
        elif is_first:
            self.paths[built_path] = path
        else:
            reason = "in place of a translation"
        return PageMark(
            path=path,
            built=built_path,
            base=self.base,
            title=title,
            language=language,
            include=self.globs.includes(path, built_path),
            exclude=reason,
            description=text_value(meta.get("description")),
            tags=tag_values(meta.get("tags")),
            date=stated_date(meta.get("date")) or "",
            type=known_content_type(_stated_type(meta)),
            template=text_value(meta.get("template")),
        )

    def _reason_to_exclude(self, path: str, built_path: str, meta: Mapping[str, Any], *, is_draft: bool) -> str:
        """Return why a page is not indexed, "" if it is."""
        if is_draft:
            return "draft"
        if any(isinstance(m, dict) and m.get("exclude") for m in map(meta.get, ("search", "chapterverse"))):
            return OPTED_OUT
        if path in self.outside:
            return "a link out of the project"
        if path in self.documents:
            return "knowledge"
        return EXCLUDED if self.globs.excludes(path, built_path) else ""


def render_content(html: str, mark: PageMark, meta: Mapping[str, Any], log: Log) -> str:
    """Return a page's content with its marks and its starter questions; warn of a wrong `meta`."""
    content = mark_content(html, mark)
    try:
        content += _render_starters(meta)
    except ConfigurationError as error:
        log.warning(f"{mark.path}: {error}")
    return content


def seal_page(page: str, edits: list[Edit]) -> str:
    """Return a page as it is written: with its marks as comments, and with further edits."""
    return apply_edits(page, seal(page) + edits)


def theme_language(theme: Mapping[str, Any]) -> str:
    """Return the language of the theme's interface, as a BCP 47 tag."""
    return str(theme.get("language") or theme.get("locale") or "en").replace("_", "-")


def docs_version() -> str | None:
    """Return the docs version that mike is deploying, None without one."""
    return os.environ.get("MIKE_DOCS_VERSION")


def site_address(site_url: str | None, canonical_version: str | None) -> str:
    """Return the address of the site that is being built, with a slash at its end; "" if it has none.

    Args:
        site_url: as other plugins left it. With a canonical version mike puts that one in place of the version that it
            deploys, so that search engines prefer it.
        canonical_version: of mike's configuration.
    """
    address, version = site_url or "", docs_version()
    if address and version and canonical_version:
        address = urljoin(address.rstrip("/"), version)
    return clean_base(address) or ""


def _render_starters(meta: Mapping[str, Any]) -> str:
    """Return a hidden HTML element with the starter questions of a page's front matter, "" if it has none.

    Raises:
        ConfigurationError: they are not a list of questions, or it states an unknown content type.
    """
    content_type = _stated_type(meta)
    if content_type is not None and not known_content_type(content_type):
        raise ConfigurationError(unknown_content_type(content_type))
    chapterverse_meta = meta.get("chapterverse")
    if not isinstance(chapterverse_meta, dict) or chapterverse_meta.get("starters") is None:
        return ""
    from chapterverse.widget.options import starters_element

    return starters_element(chapterverse_meta["starters"], "chapterverse.")


def _stated_type(meta: Mapping[str, Any]) -> object:
    """Return the content type that a page's front matter states, None without one."""
    chapterverse_meta = meta.get("chapterverse")
    return chapterverse_meta.get("content_type") if isinstance(chapterverse_meta, dict) else None
