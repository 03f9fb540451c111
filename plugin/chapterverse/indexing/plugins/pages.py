"""The pages of a build: which of them are indexed, and where each is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chapterverse.model import stated_date
from chapterverse.page_globs import PageGlobs
from chapterverse.page_kinds import EXCLUDED, OPTED_OUT, known_content_type
from chapterverse.project import leads_out
from chapterverse.readers.html.page_mark import PageMark
from chapterverse.readers.markdown.front_matter import tag_values, text_value


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
        """Leave a page out whose file is a link out of the project. Return whether it is one that was not known yet."""
        if path in self.outside or not _leaves(file, folder):
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
            **_front_matter_fields(meta),
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


def stated_type(meta: Mapping[str, Any]) -> object:
    """Return the content type that a page's front matter states, None without one."""
    chapterverse_meta = meta.get("chapterverse")
    return chapterverse_meta.get("content_type") if isinstance(chapterverse_meta, dict) else None


def theme_language(theme: Mapping[str, Any]) -> str:
    """Return the language of the theme's interface, as a BCP 47 tag."""
    return str(theme.get("language") or theme.get("locale") or "en").replace("_", "-")


def _leaves(path: str | None, folder: str | None) -> bool:
    """Whether a file's real path is outside of its project. False for a generated file, which has none."""
    return path is not None and folder is not None and leads_out(path, folder)


def _front_matter_fields(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a page's mark that its front matter states."""
    return {
        "description": text_value(meta.get("description")),
        "tags": tag_values(meta.get("tags")),
        "date": stated_date(meta.get("date")) or "",
        "type": known_content_type(stated_type(meta)),
        "template": text_value(meta.get("template")),
    }
