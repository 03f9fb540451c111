"""Checks a built site offline, without changing it.

Every page is read once, and again if other pages link to its headings; in between only its address is kept in memory.
All files, not only pages, are searched for secrets.
"""

from __future__ import annotations

import contextlib
import os.path
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from chapterverse.errors import ChapterVerseError, ConfigurationError, InputError, PageTooLarge, UnreadablePage
from chapterverse.ext.site_check.findings import Findings
from chapterverse.ext.site_check.index_check import IndexedPages, no_pages_of, open_index
from chapterverse.ext.site_check.pages import (
    NOWHERE,
    Inspection,
    InternalLink,
    InternalLinks,
    Places,
    has,
    has_text,
    inspect,
    read_ids,
    read_redirects,
)
from chapterverse.ext.site_check.secret_scan import SecretScanner
from chapterverse.ext.site_check.status import State
from chapterverse.indexing.index_run import read_known_site
from chapterverse.page_kinds import explain_no_text
from chapterverse.progress import Progress, track
from chapterverse.readers.built_site import read_site
from chapterverse.readers.folder import PageGlobs, decode_page, list_files, read_page
from chapterverse.readers.site_pages import SitePages
from chapterverse.readers.urls import clean_url, read_sitemap
from chapterverse.settings import Settings
from chapterverse.site.tags import Launcher
from chapterverse.widget.bundle import CONFIG

#: What the reader's warnings of some kinds have behind the path.
_WARNINGS = {
    ": content_type ": "content_type",
    " holds ": "nul",
    " is skipped: it has the address of ": "two_pages",
    " have no <main> ": "guessed",
}

#: The kind of finding and what it says, by the state of a page in the index.
_STATES: Mapping[State, tuple[str, str]] = {
    "Unindexed": ("unindexed", "is not in the index."),
    "Stale": ("stale", "changed since it was indexed."),
    "Removed": ("stale", "is in the index and no longer in the site, or keeps itself out."),
}
_BEING_INDEXED = ("stale", "is being indexed just now: check again when that is done.")

#: In the generated configuration, which is JSON.
_NO_ENDPOINT = re.compile(r"[\"']?endpoint[\"']?\s*:\s*(?:\"\"|''|null\b)")


def check(
    site: Path,
    settings: Settings,
    *,
    with_index: bool = True,
    exclude: Iterable[str] = (),
    include: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
    progress: Progress = lambda *_: None,
) -> Findings:
    """Return the faults of a built site.

    Args:
        settings: name the index, and the site's address for pages that don't state it.
        with_index: also compare the index with the site; a missing index is a finding.
        exclude: pages to leave out, as .gitignore patterns.
        include: listings that the index keeps, as .gitignore patterns.
        environ: variables whose secrets must not be in any file, besides those of the settings; None is this process's.

    Raises:
        InputError: there is no folder, or no page in it.
        ConfigurationError: the index can't be opened as the settings say.
    """
    findings = Findings()
    globs = PageGlobs.of(include=(include := tuple(include)), exclude=(exclude := tuple(exclude)))
    reading = _read(site, settings, include, exclude, findings, with_index)
    findings.listings = reading.listings
    findings.site = "" if reading.base_url == NOWHERE else reading.base_url
    places = Places(reading.base_url, frozenset(read_sitemap(_text(site, "sitemap.xml"))), reading.is_base_stated)
    offered = {reading.built.get(source.file_path, source.file_path): source.file_path for source in reading.sources}
    run = _Check(site, findings, places, offered, globs, InternalLinks(places))
    pages = list_files(site, (".html", ".htm")).files
    run.note_warnings(reading)
    if with_index:
        run.open_index(settings, reading)
    for path in track(progress, "Reading pages", pages):
        run.visit(path)
    run.note_site()
    run.note_links(progress)
    run.note_index()
    scanner = SecretScanner(environ, settings.secrets)
    scanner.note_files(site, findings, progress)
    # Findings quote addresses and file names, which may contain a secret.
    findings.scrub(lambda text: scanner.scrub(text.replace(NOWHERE, "/")))
    return findings


@dataclass(slots=True)
class _Check:
    """A check in progress.

    Attributes:
        offered: names in the index of the pages that can be indexed, by path.
        index: None if there is none or it is not checked. Compared pages are removed from its `cited`.
        ignored: number of pages of Zensical without a widget.
        silent: number of pages by launcher whose tags name no API.
    """

    site: Path
    findings: Findings
    places: Places
    offered: dict[str, str]
    globs: PageGlobs
    links: InternalLinks
    index: IndexedPages | None = None
    ignored: int = 0
    silent: Counter[Path] = field(default_factory=Counter)

    def _note(self, kind: str, path: str, says: str) -> None:
        self.findings.add(kind, path, f"{path} {says}")

    def note_warnings(self, reading: SitePages) -> None:
        """Sort the reader's warnings. Of two pages with one address the reader names the one that it skips."""
        for warning in reading.warnings:
            sign = next((sign for sign in _WARNINGS if sign in warning), " is skipped")
            path = warning.partition(sign)[0]
            kind = "mixed_address" if " states an address" in warning else "unreadable"
            self.findings.add(_WARNINGS.get(sign, kind), reading.built.get(path, path), warning)

    def open_index(self, settings: Settings, reading: SitePages) -> None:
        base = self.findings.site
        try:
            self.index = open_index(settings, base, reading.sources)
        except ConfigurationError:
            raise
        except ChapterVerseError as error:
            self.findings.add("no_index", "", str(error))
            return
        self.findings.way = self.index.way
        for head in self.index.deleted:
            self.findings.add("old_version", "", no_pages_of(head))
        if base and self.index.base != base:
            self.findings.add("other_address", "", f"The index cites {self.index.base}, and the site is at {base}.")

    def visit(self, path: str) -> None:
        """Read one page and note what can be said of it alone."""
        try:
            page = decode_page(path, read_page(self.site, path))
        except UnreadablePage as error:
            self.findings.add("unreadable", path, str(error))
            # Its ids are unknown, so its citations can't be checked.
            self._take_cited(self.places.place(path, None))
            return
        self.findings.pages += 1
        inspection = inspect(page)
        url = self.places.place(path, inspection.metadata.canonical)
        is_excluded = self.globs.excludes(path, *filter(None, [inspection.metadata.source]))
        if self.index is None and inspection.metadata.mark is not None and not is_excluded:
            self.findings.way = "plugin"
        # A piece of a template is included by another page, and its addresses are that page's.
        if is_excluded or not inspection.frame.is_page:
            self._take_cited(url)
            return
        base = urljoin(url, inspection.frame.base or "")
        self._note_widget(path, base, page, inspection)
        for href in self.links.add(path, base, inspection.links, inspection.ids):
            self._note("dead_anchor", path, f"links to {href}, and has no such id.")
        self.links.add_media(path, base, inspection.media)
        for text in inspection.unresolved:
            self._note("unresolved", path, f"refers to {text!r}, which Sphinx didn't find.")
        if path in self.offered:
            if not has_text(page, inspection):
                self.findings.add("no_text", path, explain_no_text(path))
            self._note_address(path, url, inspection)
            self._compare(path, url, page, inspection)

    def _compare(self, path: str, url: str, page: str, inspection: Inspection) -> None:
        """Note what the index has otherwise than the page."""
        if self.index is None:
            return
        try:
            state = self.index.state(self.places.relative(url), self.offered[path], page, inspection.metadata)
            self._note_state(path, state)
        except PageTooLarge as error:
            self.findings.add("unreadable", path, str(error.of_page(path)))
        for anchor in sorted(self._take_cited(url) - inspection.ids):
            self.findings.add("dead_citation", path, f"The index cites {path}#{anchor}, and the page has no such id.")

    def _take_cited(self, url: str) -> set[str]:
        """Remove a page from the index's citations and return its cited anchors."""
        return self.index.cited.pop(self.places.relative(url), set()) if self.index is not None else set()

    def _note_widget(self, path: str, base: str, page: str, inspection: Inspection) -> None:
        launchers = inspection.frame.launchers
        if not launchers:
            # Readers don't see redirects.
            if not inspection.redirect:
                self._note("no_widget", path, "has no widget.")
                self.ignored += inspection.generator == "zensical"
            return
        if len(launchers) > 1:
            self._note("two_widgets", path, f"loads the widget {len(launchers)} times.")
        for launcher in launchers:
            if not launcher.module:
                says = f'loads {launcher.src} as a plain script, which browsers refuse: add type="module".'
                self._note("broken_widget", path, says)
            elif (file := self._file(launcher, base)) is None:
                continue
            elif not file.is_file():
                self._note("broken_widget", path, f"loads {launcher.src}, which the site doesn't have.")
            elif "data-endpoint" not in page[launcher.start : launcher.end]:
                self.silent[file] += 1

    def _file(self, launcher: Launcher, base: str) -> Path | None:
        """Return the file of a launcher; None if it doesn't belong to the site."""
        url = clean_url(urljoin(base, launcher.src)) or ""
        # Without the site's address a path from the host's root can't be resolved.
        if not url.startswith(self.places.base) or (self.places.base == NOWHERE and launcher.src.startswith("/")):
            return None
        return self.site / unquote(self.places.relative(url))

    def _note_address(self, path: str, url: str, inspection: Inspection) -> None:
        base = self.places.base
        if base == NOWHERE:
            return
        if not url.startswith(base):
            self._note("mixed_address", path, f"says that it is at {url}, outside of {base}.")
        stated = inspection.metadata.canonical or url in self.places.listed or self.places.is_base_stated
        if not stated:
            self._note("no_address", path, "states no address, and the sitemap doesn't list it.")

    def _note_state(self, path: str, state: State) -> None:
        if state != "Indexed":
            kind, says = _STATES.get(state, _BEING_INDEXED)
            self._note(kind, path, says)

    def note_site(self) -> None:
        """Note what only all pages together tell: of Zensical's, of chats without an API, of nearly equal addresses."""
        if self.ignored:
            says = (
                f"{self.ignored:,} of the pages without the widget are Zensical's, which ignores plugins of MkDocs: "
                f"run `chapterverse inject {self.site} --endpoint URL` after each build."
            )
            self.findings.add("ignored_plugin", "", says)
        for launcher, count in self.silent.items():
            config = launcher.with_name(CONFIG)
            # One that can't be read is another finding.
            if config.is_file() and _NO_ENDPOINT.search(config.read_text("utf-8", "replace")):
                path = config.relative_to(self.site).as_posix()
                self._note("no_endpoint", path, f"names no API, so the chat of {count:,} pages can't answer.")
        path_by_url: dict[str, str] = {}
        for path, url in self.places.urls.items():
            if path in self.offered:
                # A server may add or drop these parts.
                other = path_by_url.setdefault(url.removesuffix("/index.html").removesuffix(".html").rstrip("/"), path)
                if other != path:
                    self._note("twin", path, f"and {other} have addresses that differ only in a slash or an ending.")

    def note_links(self, progress: Progress) -> None:
        """Check the pages, files and ids that other pages link to or show."""
        by_file: defaultdict[str, dict[str, InternalLink]] = defaultdict(dict)
        redirects = read_redirects(_text(self.site, "_redirects"))
        for url, file, fragment, link in self.links.resolve(self._built_file):
            if self.places.file(url) is None and redirects.fullmatch(urlsplit(url).path):
                continue
            # Some folders hold pages that are not indexed, such as the source code that Sphinx shows.
            if fragment and file.endswith((".html", ".htm")):
                by_file[file][fragment] = link
            elif not file and fragment is None:
                says = f"{link.origin} shows {link.href}, and the site has no file {url}."
                self.findings.add("dead_image", link.source, says)
            elif not file:
                says = f"{link.origin} links to {link.href}, and the site has no page or file {url}."
                self.findings.add("dead_link", link.source, says)
        for path, fragments in track(progress, "Following links", sorted(by_file.items())):
            # A page that can't be read is another finding, and one outside is none of the site.
            with contextlib.suppress(UnreadablePage):
                ids = read_ids(decode_page(path, read_page(self.site, path)))
                for fragment, link in fragments.items():
                    if not has(ids, fragment):
                        says = f"{link.origin} links to {link.href}, and {path} has no such id."
                        self.findings.add("dead_anchor", link.source, says)

    def _built_file(self, url: str) -> str:
        """Return the file at an address of the site, "" without one."""
        path = unquote(self.places.relative(url))
        # Not `Path.is_file`, which raises for a name that is too long.
        return next((file for file in (path, f"{path}index.html") if os.path.isfile(self.site / file)), "")  # noqa: PTH113

    def note_index(self) -> None:
        """Note pages that the index holds and the site doesn't."""
        if self.index is None:
            return
        for path, state in (self.index.outdated or {}).items():
            if state == "Removed" and not self.globs.excludes(path):
                self._note_state(path, state)
        for address in sorted(self.index.cited):
            url = address if "://" in address else self.index.base + address
            self.findings.add("dead_citation", "", f"The index cites {url}, and the site has no such page for it.")


def _read(
    site: Path, settings: Settings, include: Sequence[str], exclude: Sequence[str], findings: Findings, with_index: bool
) -> SitePages:
    """Read the site's pages. Read a site without an address, also in its index, as if it were at `NOWHERE`."""
    try:
        if with_index:
            return read_known_site(site, settings, include=include, exclude=exclude)
        return read_site(site, settings.base_url or None, include=include, exclude=exclude)
    except InputError as error:
        if settings.base_url:
            raise
        # Any other error is independent of the address and is raised again.
        reading = read_site(site, NOWHERE, include=include, exclude=exclude)
        findings.add("no_address", "", str(error))
        return reading


def _text(site: Path, path: str) -> str:
    """Return a file of the site, "" without one. That it can't be read is another finding."""
    with contextlib.suppress(UnreadablePage):
        return decode_page(path, read_page(site, path))
    return ""
