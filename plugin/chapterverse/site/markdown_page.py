"""One page of a site as a Markdown file for agents: front matter, then what a reader sees, with absolute links."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import astuple, dataclass, replace

from chapterverse.model import BlockKind, join_blocks
from chapterverse.readers.html.visible_text import collapse, strip_invisible
from chapterverse.text.tokens import cut_to_words

#: The line of the front matter by which a later run knows a file of ours.
PAGE_MARK = "generator: chapterverse"

#: Characters of a description that is taken from the text.
_MIN_DESCRIPTION_CHARS, _MAX_DESCRIPTION_CHARS = 40, 200
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")
#: A first paragraph that is none: a list, a table, code, a quote, an image, a title of a box.
_NO_PROSE = re.compile(r"[-*+|>#`~:]|\d+[.)] |!\[|<|\[\^|\\?\|")
_LINK = re.compile(r"!?\[((?>(?:[^\[\]\\]|\\.){0,500}))\]\((?:<[^<>]*>|[^()\s]*)\)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page as a build has it.

    Attributes:
        path: of its file, relative to the site.
        url: its absolute address.
        title: "" takes its first-level heading, and without one `name`.
        html: of its content, without the theme.
        base: where its relative links start; "" is `url`.
        description: of its author, in one sentence; "" takes the first sentences of its text.
    """

    path: str
    url: str
    title: str
    language: str
    html: str
    name: str = ""
    base: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A page as a file for agents.

    Attributes:
        path: of the file, relative to the site.
        text: the whole file.
        body: the text behind the front matter.
    """

    path: str
    url: str
    title: str
    language: str
    description: str
    body: str
    text: str

    def to_json(self) -> str:
        # The text ends with the body.
        return json.dumps([*astuple(replace(self, body="")), len(self.body)], ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> PageFile:
        *facts, _, whole, body_chars = json.loads(text)
        return cls(*[*facts, whole[len(whole) - body_chars :], whole])


def markdown_path(path: str, other_paths: Collection[str] = ()) -> str:
    """Return the path of a page's Markdown: `a/index.md` beside `a/index.html`, `b.htm.md` beside `b.htm`.

    Args:
        other_paths: paths of other pages' files; one whose short name is among them gets the long one.
    """
    stem, _, ending = path.rpartition(".")
    short = f"{stem}.md"
    return f"{path}.md" if ending.lower() != "html" or short in other_paths else short


def digest(page: RenderedPage, version: str) -> str:
    """Return a digest of all that a page's file follows from, but its path."""
    return hashlib.sha256(json.dumps([version, *astuple(page)]).encode()).hexdigest()


def markdown_page(page: RenderedPage, path: str, version: str) -> PageFile:
    """Return the Markdown of a page.

    Args:
        path: of the file, see `markdown_path`.
        version: of the docs, "" if they have none.
    """
    title, body = _read(page)
    description = collapse(strip_invisible(page.description)) or _lead(body)
    facts = {
        "title": title,
        "url": page.url,
        "version": version,
        "language": page.language,
        "description": description,
    }
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in facts.items() if value]
    # The mark first, so that it is near the start however long a title is.
    text = f"---\n{PAGE_MARK}\n{''.join(lines)}---\n\n{body}"
    return PageFile(path, page.url, title, page.language, description, body, text)


def _read(page: RenderedPage) -> tuple[str, str]:
    """Return the title and the text of a page."""
    # Loaded only if a page changed.
    from chapterverse.readers.sections.html_page import read_with_links
    from chapterverse.readers.sections.linked_inline import escape

    sections = read_with_links(page.html, page.title, page.base or page.url)
    heading = next((s.heading for s in sections if s.level == 1 and s.heading), None)
    title = collapse(strip_invisible(page.title)) or (_plain(heading) if heading else page.name) or page.url
    parts = [] if heading else [f"# {escape(title)}"]
    notes: dict[str, None] = {}
    for section in sections:
        if section.level:
            parts.append(f"{'#' * section.level} {section.heading}")
        # A footnote belongs to each section that refers to it, and to a file once.
        notes |= dict.fromkeys(block.text for block in section.blocks if block.kind is BlockKind.FOOTNOTE)
        parts.append(join_blocks([block for block in section.blocks if block.kind is not BlockKind.FOOTNOTE]))
    return title, "\n\n".join(filter(None, [*parts, *notes])) + "\n"


def _plain(markdown: str) -> str:
    """Return the words of a line of our Markdown."""
    line = _LINK.sub(r"\1", _LINK.sub(r"\1", markdown))
    return collapse(_ESCAPE.sub(r"\1", re.sub(r"(?<!\\)[*`]|~~", "", line)))


def _lead(body: str) -> str:
    """Return the first sentences of a page's lead, "" if it begins with anything but prose."""
    for paragraph in body.split("\n\n"):
        if paragraph.startswith("##"):
            return ""
        if not paragraph or _NO_PROSE.match(paragraph):
            continue
        lead = ""
        for sentence in _SENTENCE_END.split(_plain(paragraph)):
            lead = f"{lead} {sentence}".strip()
            if len(lead) >= _MIN_DESCRIPTION_CHARS:
                break
        return lead if len(lead) <= _MAX_DESCRIPTION_CHARS else f"{cut_to_words(lead, _MAX_DESCRIPTION_CHARS)} …"
    return ""
