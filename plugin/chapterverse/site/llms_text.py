"""`llms.txt`, the list of a site's pages for agents (llmstxt.org), and `llms-full.txt`, their whole text.

Both have a limit. Pages beyond it are named by their number or by their addresses, and never left out in silence.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from chapterverse.readers.urls import SAFE
from chapterverse.site.markdown_page import PageFile

#: Most characters of `llms.txt`; Mintlify has the same limit.
MAX_LIST_CHARS = 100_000
#: Most bytes of the pages in `llms-full.txt`: about a million tokens, the largest context that models have.
MAX_FULL_BYTES = 4_000_000

#: The last line of both files, by which a later run knows them.
MARK = "<!-- generator: chapterverse -->"


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What the files say about the site.

    Attributes:
        base_url: its address, with a slash at its end.
        version: of its docs, "" if they have none.
        endpoint: the API of its chat: an address, "/" for the site's own origin, "" for none.
    """

    name: str
    base_url: str
    description: str = ""
    version: str = ""
    endpoint: str = ""

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}".strip()

    def address(self, path: str) -> str:
        """Return the address of a file of the site."""
        return self.base_url + quote(path, safe=SAFE.replace("%", ""))


@dataclass(frozen=True, slots=True)
class PageGroup:
    """The pages of one language, in the order of their addresses, with the paths of their two files."""

    language: str
    pages: tuple[PageFile, ...]
    list_path: str
    full_path: str


def page_groups(pages: Iterable[PageFile]) -> list[PageGroup]:
    """Return the pages by language; the language of the home page, else of most pages, comes first.

    Its files are at the site's root; those of another language are in the folder of its pages. Where that folder has
    such files already, the language is in their names.
    """
    by_language: dict[str, list[PageFile]] = {}
    for page in sorted(pages, key=_order):
        by_language.setdefault(page.language, []).append(page)
    sizes = Counter({language: len(group) for language, group in by_language.items()})
    home = next((p.language for group in by_language.values() for p in group if p.path == "index.md"), "")
    groups: list[PageGroup] = []
    folders: set[str] = set()
    for language in sorted(by_language, key=lambda each: (each != home, -sizes[each], each)):
        group = by_language[language]
        folder = _common_folder(group) if groups else ""
        suffix = f".{quote(language, safe='')}" if folder in folders else ""
        folders.add(folder)
        names = (posixpath.join(folder, f"{name}{suffix}.txt") for name in ("llms", "llms-full"))
        groups.append(PageGroup(language, tuple(group), *names))
    return groups


def llms_txt(
    site: SiteFacts, group: PageGroup, other_groups: Sequence[PageGroup], *, markdown: bool, full: bool
) -> str:
    """Return the list of a language's pages.

    Args:
        other_groups: groups of other languages, whose lists it names.
        markdown: link to the Markdown of pages and not to the pages.
        full: `llms-full.txt` is there as well.
    """
    more = [f"- [All pages as one file]({site.address(group.full_path)})"] if full else []
    more += [f"- [Pages in {_label(other.language)}]({site.address(other.list_path)})" for other in other_groups]
    tail = "".join(f"\n{part}" for part in (["## More\n", *more, ""] if more else [])) + f"\n{MARK}\n"
    room = MAX_LIST_CHARS - len(_head(site)) - len(tail) - 200
    sections = _sections(group.pages)
    entries = [(name, _entry(site, page, markdown, described=True)) for name, page in sections]
    if sum(len(entry) for _, entry in entries) + sum(len(name) + 6 for name in {name for name, _ in entries}) > room:
        entries = [(name, _entry(site, page, markdown, described=False)) for name, page in sections]
    listed, by_section = 0, dict[str, list[str]]()
    for name, entry in entries:
        room -= len(entry) + (0 if name in by_section else len(name) + 6)
        if room < 0:
            break
        by_section.setdefault(name, []).append(entry)
        listed += 1
    body = "".join(f"\n## {name}\n\n{''.join(lines)}" for name, lines in by_section.items())
    rest = len(entries) - listed
    body += f"\n{rest:,} more pages don't fit into this list.\n" if rest else ""
    return _head(site) + body + tail


def llms_full_txt(site: SiteFacts, group: PageGroup) -> str:
    """Return the text of a language's pages, each behind its address."""
    parts, left_out, room = [], [], MAX_FULL_BYTES
    for page in group.pages:
        part = f"\n---\n\nSource: {page.url}\n\n{page.body}"
        size = len(part.encode())
        if size <= room:
            parts.append(part)
            room -= size
        else:
            left_out.append(f"- [{_label(page.title)}]({page.url})\n")
    if left_out:
        note = f"\n---\n\nThis file holds at most {MAX_FULL_BYTES:,} bytes of pages. These pages don't fit:\n\n"
        parts += [note, *left_out]
    return f"{_head(site)}{''.join(parts)}\n{MARK}\n"


def _head(site: SiteFacts) -> str:
    return f"# {_label(site.title)}\n" + (f"\n> {_label(site.description)}\n" if site.description else "")


def _entry(site: SiteFacts, page: PageFile, markdown: bool, *, described: bool) -> str:
    address = site.address(page.path) if markdown else page.url
    description = f": {page.description}" if described and page.description else ""
    return f"- [{_label(page.title)}]({address}){description}\n"


def _label(text: str) -> str:
    return text.replace("[", "\\[").replace("]", "\\]").replace("\n", " ")


def _order(page: PageFile) -> tuple[str, ...]:
    """Return a page's place: home first, then pages of the folder, then folders, each index before its pages."""
    *folders, name = page.path.split("/")
    return (*(f"1{folder}" for folder in folders), "" if name.lower() == "index.md" else f"0{name}")


def _common_folder(pages: Sequence[PageFile]) -> str:
    folders = [page.path.split("/")[:-1] for page in pages]
    common = folders[0]
    for parts in folders[1:]:
        while parts[: len(common)] != common:
            common = common[:-1]
    return "/".join(common)


def _sections(pages: Sequence[PageFile]) -> list[tuple[str, PageFile]]:
    """Return each page with the heading that it is listed under: its folder, below the folder that all pages share."""
    shared = _common_folder(pages)
    below = [page.path.removeprefix(f"{shared}/" if shared else "").split("/") for page in pages]
    sizes = Counter(parts[0] for parts in below if len(parts) > 1)
    # In sites with a folder for each page, `a/index.md` is page `a` unless more pages are below.
    folders = [
        parts[0] if len(parts) > 1 and (sizes[parts[0]] > 1 or parts[1:] != ["index.md"]) else "" for parts in below
    ]
    return [(_folder_name(folder), page) for folder, page in zip(folders, pages, strict=True)]


def _folder_name(folder: str) -> str:
    name = " ".join(folder.replace("-", " ").replace("_", " ").split())
    return _label(name[:1].upper() + name[1:]) or "Pages"
