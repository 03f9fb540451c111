"""What a reader of a built page sees, by a browser's layout: the oracle for the words of the index.

Nothing is shared with the reader under test. A script opens every `details`, tab and panel that a control names; two
words are apart where the browser sets them apart (see `sight.js`).
"""

from __future__ import annotations

import mimetypes
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from chapterverse.model import Page as IndexedPage
from chapterverse.readers.built_site import read_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

_SCRIPT = Path(__file__).with_name("sight.js").read_text("utf-8")
_ADD_SHEET = "sheet => document.head.append(Object.assign(document.createElement('style'), {textContent: sheet}))"
_ORIGIN = "http://seen.example/"
_WORD = re.compile(r"\w+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_FENCE = re.compile(r'[ >]*(`{3,})(?:[^`]*?title="(.*)"|[^`]*)$')
#: The browser makes the numbers of a list and the boxes of tasks, too, but no text of them.
_NUMBER = re.compile(r"^[ >]*(?:\d+[.)] )?(?:- )?(?:\[x\] )?")


@dataclass
class Sight:
    """The words of pages: how many are seen, missing from the index, or only in the index, and which are glued.

    Attributes:
        words: how many words readers see.
        headings: how many headings readers see; `lost` has those that no section has.
        glued: words of the index that are two seen ones without a space.
    """

    pages: int = 0
    words: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    glued: Counter[str] = field(default_factory=Counter)
    headings: int = 0
    lost: list[str] = field(default_factory=list)

    @property
    def present(self) -> float:
        return 1 - self.missing.total() / max(1, self.words)

    @property
    def foreign(self) -> float:
        return self.others.total() / max(1, self.words)

    def add(self, name: str, seen: dict[str, object], page: IndexedPage) -> None:
        self.pages += 1
        shown = words(str(seen["text"]))
        found = words("\n".join(_text(page)))
        missing, others = Counter(shown) - Counter(found), Counter(found) - Counter(shown)
        others -= Counter(words(str(seen["alt"])))
        pairs = {a + b for a, b in pairwise(shown)}
        self.words += len(shown)
        self.missing += missing
        self.others += others
        self.glued += Counter({word: n for word, n in others.items() if word in pairs})
        headings = [" ".join(words(text)) for text in seen["headings"]]  # type: ignore[attr-defined]
        known = {" ".join(words(s.heading or "")) for s in page.sections} | {" ".join(words(page.title))}
        self.headings += len(headings)
        self.lost += [f"{name}: {text}" for text in headings if text not in known]


def words(text: str) -> list[str]:
    return _WORD.findall(_INVISIBLE.sub("", text).casefold())


def _text(page: IndexedPage) -> Iterator[str]:
    if page.sections and page.title not in {s.heading for s in page.sections}:
        yield page.title
    for section in page.sections:
        yield section.heading or ""
        for block in section.blocks:
            yield from _shown(block.text)


def _shown(markdown: str) -> Iterator[str]:
    """Yield the lines of a block without what only Markdown needs: the info of a fence but its title, and numbers."""
    ticks = ""
    for line in markdown.split("\n"):
        fence = _FENCE.match(line)
        if fence and not ticks:
            ticks = fence[1]
            yield fence[2] or ""
        else:
            ticks = "" if fence and fence[1] == ticks else ticks
            yield _NUMBER.sub("", line)


@contextmanager
def browse(chromium: Browser, site: Path) -> Iterator[Page]:
    """Open a page of which every request is answered from a folder, and no script of a page runs."""

    def answer(route: Route) -> None:
        path = site / route.request.url.removeprefix(_ORIGIN).partition("?")[0].partition("#")[0]
        path = path / "index.html" if path.is_dir() else path
        if not route.request.url.startswith(_ORIGIN) or not path.is_file():
            route.fulfill(status=404, body="")
            return
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        route.fulfill(body=path.read_bytes(), content_type=kind)

    context = chromium.new_context(viewport={"width": 2400, "height": 1200}, java_script_enabled=False)
    context.route("**/*", answer)
    yield context.new_page()
    context.close()


def look(page: Page, site: Path, paths: list[str], content: str, without: str = "", sheet: str = "") -> Sight:
    """Compare pages of a site with the index.

    Args:
        content: CSS selector of a page's content.
        without: CSS selector of what the theme adds there.
        sheet: the rules that matter of the theme's style sheet, for pages that stand without it.
    """
    sight, reading = Sight(), read_site(site, _ORIGIN)
    sources = {reading.built.get(source.file_path, source.file_path): source for source in reading.sources}
    for path in filter(sources.__contains__, paths):
        page.goto(_ORIGIN + path)
        page.evaluate(_ADD_SHEET, sheet)
        sight.add(path, page.evaluate(_SCRIPT, [content, without]), sources[path].read())
    return sight
