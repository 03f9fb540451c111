"""Finds the element that holds a page's content, by what generators and HTML call it."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from chapterverse.readers.html.tokenizer import ATTRIBUTES, parse_attributes

# Comments and scripts are taken whole, so that tags written in them don't count; neither may run past the end.
_ASIDES = r"<!--.*?(?:-->|\Z)|<[sS][cC][rR][iI][pP][tT]\b.*?(?:</[sS][cC][rR][iI][pP][tT]|\Z)"


@dataclass(frozen=True, slots=True)
class _Root:
    """A kind of content root: any element with that `word` in that attribute, or any with that name.

    Attributes:
        unique: a page with several such elements is a listing; none of them is the page.
        page: it holds all of the page, so that it is a guess.
    """

    word: str
    attribute: str = ""
    unique: bool = False
    page: bool = False

    def find(self, html: str, start: int) -> tuple[str, int] | None:
        """Return the name of the first such element and the position behind its start tag."""
        # The values of attributes have a case, the names of elements have none.
        if html.find(self.word, start) < 0 and (self.attribute or html.find(self.word.upper(), start) < 0):
            return None
        for tag in _start_tags_with(self.word, bool(self.attribute)).finditer(html, start):
            name, raw = tag.group(1), tag.group(2)
            if name and (not self.attribute or self.word in parse_attributes(raw).get(self.attribute, "").split()):
                return name, tag.end()
        return None


#: In the order of preference.
_ROOTS = (
    _Root("articleBody", "itemprop"),
    _Root("theme-doc-markdown", "class"),
    _Root("vp-doc", "class"),
    _Root("article", unique=True),
    _Root("main", "role"),
    _Root("main"),
    _Root("body", page=True),
)


@functools.cache
def _start_tags_with(word: str, as_attribute: bool) -> re.Pattern[str]:
    tag = rf"<([a-zA-Z][\w-]*+)(?=[^<>]*?{word})" if as_attribute else rf"<({_any_case(word)})(?=[\s/>])"
    return re.compile(rf"{_ASIDES}|{tag}({ATTRIBUTES})(?:>|\Z)", re.DOTALL)


def _any_case(name: str) -> str:
    """Return a pattern of the name of an element; four times as fast as the flag, which searches without a "<"."""
    return "".join(f"[{letter}{letter.upper()}]" for letter in name)


@dataclass(frozen=True, slots=True)
class Content:
    """The bounds of a content root's inner HTML, in characters; `is_guess` where all of the page is taken for it."""

    start: int
    end: int
    is_guess: bool = False


def find_content(html: str, body: int) -> Content:
    """Return where the content of a page is; `body` is where its body begins."""
    for root in _ROOTS:
        opening = root.find(html, body)
        if not opening:
            continue
        end, after_end_tag = _content_end(html, *opening)
        if root.unique and (main := _MAIN.search(html, opening[1], end)):
            # Beside it the article holds things of the theme.
            return Content(main.end(), _content_end(html, "main", main.end())[0])
        if root.unique and (root.find(html, after_end_tag) or _is_part(html, opening[1], end)):
            continue
        return Content(opening[1], end, root.page)
    return Content(0, len(html), True)


def _is_part(html: str, start: int, end: int) -> bool:
    """Return whether an article is only a part of the page: `main` holds its title, or more of its text, besides."""
    main = html.rfind("<main", 0, start)
    if main < 0 or html.find("</main", main, start) >= 0:
        return False
    main_end = html.find("</main", end)
    outside = _prose(html, main, start) + _prose(html, end, main_end if main_end >= 0 else len(html))
    if not outside:
        return False
    inside = _prose(html, start, end)
    is_titled = any(map(_TITLE.match, outside)) and not any(map(_TITLE.match, inside))
    return is_titled or _length(outside) > _length(inside)


def _prose(html: str, start: int, end: int) -> list[str]:
    """Return the headings and paragraphs of a part of a page, without those that a theme sets around the content."""
    if not _ANY_PROSE.search(html, start, end):
        return []
    return [match.group() for match in _PROSE.finditer(html, start, end) if match.lastindex]


def _length(prose: list[str]) -> int:
    return sum(len("".join(_TAG.sub("", text).split())) for text in prose)


_MAIN = re.compile(rf"<main(?=[\s>]){ATTRIBUTES}(?:>|\Z)")
_PROSE = re.compile(
    rf"{_ASIDES}|<nav\b.*?(?:</nav|\Z)|<aside\b.*?(?:</aside|\Z)|<footer\b.*?(?:</footer|\Z)"
    r"|(<h[1-6]\b[^<]*+(?><(?!/h)[^<]*+)*|<p\b[^<]*+(?><(?!/p)[^<]*+)*)",
    re.DOTALL | re.IGNORECASE,
)
# Most themes have none beside the article, which this finds out five times as fast.
_ANY_PROSE = re.compile(r"<(?:[hH][1-6]|[pP])[\s>]")
_TITLE = re.compile("<h1", re.IGNORECASE)
_TAG = re.compile("<[^>]*+>")


def _content_end(html: str, name: str, start: int) -> tuple[int, int]:
    """Return where the content of the element ends and where its end tag does."""
    depth = 1
    for tag in _tags_of(name).finditer(html, start):
        if tag.lastindex:
            depth += -1 if tag.group(1) else 1
            if not depth:
                return tag.start(), tag.end()
    return len(html), len(html)


@functools.cache
def _tags_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"{_ASIDES}|<(/?){_any_case(name.lower())}(?=[\s/>])", re.DOTALL)
