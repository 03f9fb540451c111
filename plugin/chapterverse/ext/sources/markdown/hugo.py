"""Computes which files of Hugo become pages, and at which addresses, as Hugo 0.168 does.

Front matter, cascades of sections, bundles and the configuration decide it; templates are not needed for that.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from chapterverse.ext.sources.markdown.front_matter import FrontMatter
from chapterverse.model import stated_date
from chapterverse.readers.urls import quote_path

#: Characters of a path besides letters, digits and marks.
_ALLOWED = frozenset("./\\_#+~-@")
_TOKEN = re.compile(r":(\w+)(?:\[[^\]]*\])?")
_FOLDER_END = re.compile(r"/|(?<!\A)\Z")
_GLOB_SIGN = re.compile(r"(\*\*|\*|\?|\{[^{}]*\})")

#: Front matter is a stranger's: more cascades of one section, and longer globs, are not followed.
_MAX_CASCADES, _MAX_GLOB = 100, 500


@dataclass(slots=True)
class HugoAddresses:
    """The rules of one content folder. Ask for all `_index.md` first, outer folders before inner ones.

    Attributes:
        config: of the site, as in hugo.toml; keys in lower case.
        bundles: folders that are one page, whose other files are none.
        unknown: number of pages whose address the files don't tell.
    """

    config: Mapping[str, Any]
    bundles: frozenset[str] = frozenset()
    unknown: int = 0
    _cascades: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    _slugs: dict[str, str] = field(default_factory=dict)
    _now: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"))

    @classmethod
    def of(cls, files: Iterable[str], config: Mapping[str, Any]) -> HugoAddresses:
        """Return the rules for the files of a folder."""
        rules = cls({**config, "languages": lower_keys(config.get("languages"))})
        rules.bundles = frozenset(folder for folder, name, _ in map(rules._parts, files) if name.lower() == "index")
        return rules

    def path(self, file_path: str, matter: FrontMatter) -> str | None:
        """Return the percent-encoded path of a file's page on the site; None for a file that becomes no page."""
        values = lower_keys(matter.values)
        self._note_section(file_path, values)
        path = self._path(file_path, values)
        return None if path is None else quote_path(path)

    def _note_section(self, file_path: str, values: Mapping[str, Any]) -> None:
        """Note what an `_index.md` says of the pages below it."""
        folder, name, _ = self._parts(file_path)
        if name.lower() != "_index":
            return
        stated = values.get("cascade")
        cascades = stated if isinstance(stated, list) else [stated]
        self._cascades[folder.lower()] = [lower_keys(each) for each in cascades[:_MAX_CASCADES]]
        # A translation without one leaves that of the section.
        if slug := str(values.get("slug") or ""):
            self._slugs[folder.lower()] = slug

    def _path(self, file_path: str, values: Mapping[str, Any]) -> str | None:
        folder, name, language = self._parts(file_path)
        kind = "page" if name.lower() != "_index" else "section" if folder else "home"
        bundle = next((above for above in _ancestors(folder) if above and above in self.bundles), None)
        if bundle is not None and (bundle != folder or name.lower() != "index"):
            return None
        logical = folder if name.lower() in ("index", "_index") else f"{folder}/{name}".strip("/")
        values = self._with_cascades(folder, f"/{self._sanitize(logical)}".lower(), kind, language, values)
        if not self._is_published(values):
            return None
        prefix = f"{language}/" if language and self._is_in_subfolder(language) else ""
        url = str(values.get("url") or "")
        if pattern := url or self._permalink(folder, kind):
            path = self._expand(pattern, folder, logical, values)
            if path is None:
                self.unknown += 1
                return None
            # A `url` is never ugly, and one from the root names its language itself.
            if url:
                return self._with_ending(path.lstrip("/"), "" if url.startswith("/") else prefix, "")
            return self._with_ending(path.strip("/"), prefix, kind)
        parent, _, last = logical.rpartition("/")
        slug = str(values.get("slug") or "")
        path = "/".join(filter(None, (*self._folders(parent), self._sanitize(slug or last))))
        return self._with_ending(path if self.config.get("disablepathtolower") is True else path.lower(), prefix, kind)

    def _parts(self, file_path: str) -> tuple[str, str, str]:
        """Return folder, name and language of a file; the language is in its name if the site has several."""
        folder, _, name = file_path.rpartition(".")[0].rpartition("/")
        stem, _, language = name.rpartition(".")
        if stem and language.lower() in self.config.get("languages", {}):
            return folder, stem, language.lower()
        return folder, name, ""

    def _with_cascades(
        self, folder: str, logical: str, kind: str, language: str, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the front matter with what the sections above hand down; inner ones outrank outer ones."""
        merged: dict[str, Any] = {}
        for section in _ancestors(folder.lower()):
            for cascade in self._cascades.get(section, ()):
                target = lower_keys(cascade.get("target") or cascade.get("_target"))
                if _is_target(target, logical, kind, language):
                    _merge(merged, lower_keys(cascade.get("params")))
                    _merge(merged, {key: value for key, value in cascade.items() if "target" not in key})
        _merge(merged, values)
        return merged

    def _is_published(self, values: Mapping[str, Any]) -> bool:
        build = lower_keys(values.get("build") or values.get("_build"))
        outputs = values.get("outputs")
        if values.get("draft") is True or values.get("headless") is True:
            return False
        if str(build.get("render", "always")).lower() in ("never", "false", "link"):
            return False
        if isinstance(outputs, list) and "html" not in (str(output).lower() for output in outputs):
            return False
        published = stated_date(values.get("publishdate") or values.get("date")) or ""
        expires = stated_date(values.get("expirydate"))
        return published <= self._now and (expires is None or expires > self._now)

    def _is_in_subfolder(self, language: str) -> bool:
        default = str(self.config.get("defaultcontentlanguage") or "en").lower()
        return language != default or self.config.get("defaultcontentlanguageinsubdir") is True

    def _permalink(self, folder: str, kind: str) -> str | None:
        """Return the pattern of a page's section, None without one."""
        patterns = lower_keys(self.config.get("permalinks"))
        of_kind = patterns.get(kind)
        patterns = lower_keys(of_kind) if isinstance(of_kind, dict) else patterns
        section = folder.partition("/")[0].lower()
        pattern = patterns.get(section) if kind == "page" or isinstance(of_kind, dict) else None
        return pattern if isinstance(pattern, str) else None

    def _expand(self, pattern: str, folder: str, logical: str, values: Mapping[str, Any]) -> str | None:
        """Return a pattern with its tokens filled in; None if the files don't tell the value of one."""
        name = logical.rpartition("/")[2]
        slug, title = str(values.get("slug") or ""), str(values.get("title") or "")
        # A page without a date has that of Go's zero time.
        date = datetime.fromisoformat(stated_date(values.get("date")) or "0001-01-01")
        replacements = {
            "slug": slug or title, "title": title, "filename": name, "contentbasename": name,
            "slugorfilename": slug or name, "slugorcontentbasename": slug or name,
            "section": folder.partition("/")[0],
            "year": f"{date.year}", "month": f"{date.month:02}", "day": f"{date.day:02}",
            "sections": "/".join(each.rpartition("/")[2] for each in _ancestors(folder) if self._is_section(each)),
        }  # fmt: skip

        def fill(token: re.Match[str]) -> str:
            value = "" if "[" in token[0] else replacements.get(token[1].lower(), "")
            return self._sanitize(value).lower() or "\0"

        path = _TOKEN.sub(fill, pattern)
        return None if "\0" in path else path

    def _is_section(self, folder: str) -> bool:
        return bool(folder) and ("/" not in folder or folder.lower() in self._cascades)

    def _folders(self, folder: str) -> list[str]:
        """Return the names of a folder and of those above it, which may be slugs of their sections."""
        folders = filter(None, _ancestors(folder))
        return [self._sanitize(self._slugs.get(above.lower()) or above.rpartition("/")[2]) for above in folders]

    def _sanitize(self, path: str) -> str:
        return "".join(c for c in path.replace(" ", "-") if c in _ALLOWED or unicodedata.category(c)[0] in "LMN")

    def _with_ending(self, path: str, prefix: str, kind: str) -> str:
        """Return a path with the ending of a page's address."""
        path = prefix + path
        if ".." in path:
            # No page is outside of the site.
            path = posixpath.normpath(f"/{path}").lstrip("/") + "/" * path.endswith("/")
        if not path or path.endswith("/") or path.lower().endswith((".html", ".htm")):
            return path
        return f"{path}.html" if kind == "page" and self.config.get("uglyurls") is True else f"{path}/"


def lower_keys(values: object) -> dict[str, Any]:
    """Return a mapping with keys in lower case, as Hugo compares them; empty for anything else."""
    return {str(key).lower(): value for key, value in values.items()} if isinstance(values, dict) else {}


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        both = isinstance(value, dict) and isinstance(into.get(key), dict)
        into[key] = {**into[key], **value} if both else value


def _ancestors(folder: str) -> Iterator[str]:
    """Yield the root "", each folder above, and the folder itself."""
    yield ""
    yield from (folder[: slash.start()] for slash in _FOLDER_END.finditer(folder))


def _is_target(target: Mapping[str, Any], logical: str, kind: str, language: str) -> bool:
    """Whether a cascade is meant for a page."""
    stated = {"kind": kind, "lang": language, "environment": "production"}
    if any(key in target and not _matches(str(target[key]), value) for key, value in stated.items()):
        return False
    return "path" not in target or _matches(str(target["path"]).lower(), logical)


def _matches(glob: str, text: str) -> bool:
    """Whether a text matches a glob with `*`, `**`, `?` and `{a,b}`. Takes time linear in both lengths."""
    if len(glob) > _MAX_GLOB:
        return False
    ends = {0}
    for part in filter(None, _GLOB_SIGN.split(glob)):
        ends = _ends(part, text, ends)
    return len(text) in ends


def _ends(part: str, text: str, starts: set[int]) -> set[int]:
    """Return where a part of a glob may end in a text, given where it may start."""
    if part == "**":
        return set(range(min(starts, default=len(text) + 1), len(text) + 1))
    if part == "*":
        ends: set[int] = set()
        for at in range(len(text) + 1):
            if at in starts or (at - 1 in ends and text[at - 1] != "/"):
                ends.add(at)
        return ends
    if part == "?":
        return {at + 1 for at in starts if at < len(text) and text[at] != "/"}
    words = part[1:-1].split(",") if part.startswith("{") and part.endswith("}") else [part]
    return {at + len(word) for word in words for at in starts if text.startswith(word, at)}
