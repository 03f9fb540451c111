"""Injects the widget into a built site: its files, and one script tag in every page.

Only the tag's bytes of a page change. The files' folder is named by their content, so a page loads exactly the files it
was built with and caches of older releases do no harm.
"""

from __future__ import annotations

import codecs
import contextlib
import posixpath
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from chapterverse.errors import InputError, UnreadablePage
from chapterverse.progress import Progress, track
from chapterverse.readers.folder import is_binary, list_files, read_page, real_path
from chapterverse.readers.html.dom import apply_edits
from chapterverse.readers.html.metadata import read_metadata
from chapterverse.readers.site_pages import SitePages
from chapterverse.readers.urls import clean_url, read_sitemap, site_base
from chapterverse.site.agent_files import AgentFiles, AgentFilesResult, rendered_page
from chapterverse.site.delivery import FOLDER, deliver, replace_file, stamp
from chapterverse.site.tags import PageFrame, open_frame, put, put_link

_STAMP = re.compile(r"\d[\w.+]*-[0-9a-f]{8}")
_LATIN = "latin-1"
_CODEC_BY_BOM = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True, slots=True)
class Injection:
    """The outcome of an injection: numbers of changed, unchanged and skipped pages.

    Attributes:
        folder: of the widget's files, relative to the site.
        other_widgets: number of skipped pages that load a widget in another way.
        warnings: one for each reason why pages were skipped.
        agents: what became of the files for agents, None if there are none.
    """

    folder: str
    changed: int = 0
    unchanged: int = 0
    skipped: int = 0
    other_widgets: int = 0
    warnings: tuple[str, ...] = ()
    agents: AgentFilesResult | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the document that `inject --json` prints."""
        total = self.changed + self.unchanged + self.skipped
        pages = {"seen": total, "changed": self.changed, "unchanged": self.unchanged, "skipped": self.skipped}
        agents = {"agents": {"written": self.agents.written, "removed": self.agents.removed}} if self.agents else {}
        return {"pages": pages, "folder": self.folder, **agents, "warnings": list(self.warnings)}


def inject(
    site: Path,
    files: Mapping[str, bytes],
    progress: Progress = lambda *_: None,
    agents: AgentFiles | None = None,
    reading: SitePages | None = None,
) -> Injection:
    """Put the widget into every page of a built site, and write files for agents. A second run changes nothing.

    Files for another endpoint or release replace those of earlier runs. Pages that load a widget in another way, for
    example by the plugin, stay as they are, and so do their files for agents.

    Args:
        agents: writes the files for agents.
        reading: the pages that get a file for agents.

    Raises:
        InputError: there is no folder, or no page in it.
        UnsafePath: the folder for the widget's files is a link out of the site.
    """
    listing = list_files(site, (".html", ".htm"))
    if not listing.files:
        raise InputError(f"{site} holds no HTML page to change: is it the folder that the build writes?")
    folder, root = f"{FOLDER}/{stamp(files)}", _root(site, listing.files)
    addresses, parts = (reading.addresses, reading.parts) if reading else ({}, {})
    work = _Work(site, folder, root, list(listing.warnings), agents, addresses, parts)
    real_path(site, FOLDER)
    for path in track(progress, "Changing pages", listing.files):
        work.visit(path, files)
    _remove_others(site / FOLDER, stamp(files) if work.delivered else "")
    return work.done()


@dataclass(slots=True)
class _Work:
    """An injection in progress.

    Attributes:
        root: path of the site's address, such as "/docs/"; None if no page states it.
        others: pages that load a widget in another way.
    """

    site: Path
    folder: str
    root: str | None
    warnings: list[str]
    agents: AgentFiles | None
    addresses: Mapping[str, str]
    parts: Mapping[str, tuple[int, int]]
    changed: int = 0
    unchanged: int = 0
    skipped: int = 0
    others: list[str] = field(default_factory=list)
    delivered: bool = False

    def visit(self, path: str, files: Mapping[str, bytes]) -> None:
        """Put the tag into one page, or note why not."""
        try:
            before, codec = self._read(path)
            html = before.decode(codec, "surrogatepass")
            frame = open_frame(html)
            if not frame.is_page:
                raise UnreadablePage(f"{path} is a piece of HTML and no page, so it got no widget.")
        except (UnreadablePage, UnicodeDecodeError) as error:
            self.skipped += 1
            undecodable = f"{path} is not the UTF-16 that it says it is, so it got no widget."
            self.warnings.append(str(error) if isinstance(error, UnreadablePage) else undecodable)
            return
        src: str | None = self._src(path, frame)
        if not all(launcher.injected for launcher in frame.launchers):
            self.others.append(path)
            src = None
        elif not self.delivered:
            # Before the first page that loads them, and not at all if no page does.
            deliver(self.site / self.folder, files)
            self.delivered = True
        after = self._put_link(path, put(html, frame, src), src).encode(codec, "surrogatepass")
        if after != before:
            replace_file(self.site / path, after)
        if src is not None:
            self.changed += after != before
            self.unchanged += after == before

    def done(self) -> Injection:
        count = len(self.others)
        if count:
            suffix = f" and {count - 1} more" if count > 1 else ""
            self.warnings.append(
                f"{self.others[0]}{suffix}: the widget is there already by another way, so it was left."
            )
        # The plugin of a generator may have written files into the same folder.
        agents = self.agents.finish(remove=not count) if self.agents and self.delivered else None
        warnings = (*self.warnings, *(agents.warnings + agents.notes if agents else ()))
        return Injection(self.folder, self.changed, self.unchanged, self.skipped + count, count, warnings, agents)

    def _put_link(self, path: str, html: str, src: str | None) -> str:
        """Write the Markdown of a page and return the page with the link to it; None leaves another way's page."""
        if self.agents is None or src is None:
            return html
        url = self.addresses.get(path)
        page = rendered_page(self.site, path, url, self.parts.get(path)) if url else None
        return apply_edits(html, put_link(html, self.agents.add(page) if page else ""))

    def _read(self, path: str) -> tuple[bytes, str]:
        """Return a page and an encoding that finds tags and preserves all other bytes."""
        real_path(self.site, path)
        content = read_page(self.site, path)
        if (self.site / path).is_symlink():
            raise UnreadablePage(f"{path} is a link to another page, so only that page got the widget.")
        for mark, codec in _CODEC_BY_BOM:
            if content.startswith(mark):
                return content, codec
        if is_binary(content):
            raise UnreadablePage(f"{path} is not a text file.")
        # In every other encoding of the web tags are ASCII.
        return content, _LATIN

    def _src(self, path: str, frame: PageFrame) -> str:
        """Return the launcher's address relative to the page, so that the site can be moved."""
        launcher = f"{self.folder}/launcher.js"
        if path.rpartition("/")[2].lower() == "404.html" and self.root is not None:
            # A server shows 404.html at any address, so nothing is relative to it.
            return self.root + launcher
        if frame.base is None:
            return "../" * path.count("/") + launcher
        page = urlsplit(urljoin(f"https://site.invalid{self.root or '/'}{path}", frame.base))
        if page.netloc != "site.invalid" or (self.root is None and frame.base.startswith("/")):
            # An absolute base that is on every page is the site's root.
            return launcher
        return posixpath.relpath((self.root or "/") + launcher, posixpath.dirname(page.path) or "/")


def _root(site: Path, pages: list[str]) -> str | None:
    """Return the path that the site says it is published at."""
    base = None
    # Both files are optional; an unreadable page is reported when it is visited.
    with contextlib.suppress(UnreadablePage):
        base = site_base(read_sitemap(read_page(site, "sitemap.xml").decode("utf-8", "replace")), pages)
    with contextlib.suppress(UnreadablePage):
        canonical = read_metadata(read_page(site, "index.html").decode(_LATIN)).canonical
        base = base or (clean_url(canonical) if canonical else None)
    return urlsplit(base).path.rpartition("/")[0] + "/" if base else None


def _remove_others(folder: Path, current: str) -> None:
    """Remove the folders of earlier runs, which no page loads any more."""
    for other in sorted(folder.iterdir()) if folder.is_dir() else []:
        if other.name != current and _STAMP.fullmatch(other.name) and other.is_dir() and not other.is_symlink():
            shutil.rmtree(other)
