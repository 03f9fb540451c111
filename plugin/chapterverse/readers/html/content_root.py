"""Finds where the content of a page is: by the element that holds it, as generators and HTML call it.

Where no element holds it alone, by the text that most pages of the site repeat around their own.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from chapterverse.readers.html.dom import ATTRIBUTES, BLOCKS, parse_attributes
from chapterverse.readers.html.visible_text import collapse, unescape

#: Fewer pages show no habit of a site; the share of the pages that repeat a text.
_LEAST_PAGES, _LEAST_SHARE = 5, 0.8
#: Pieces at the beginning and at the end of a page that are compared.
_MAX_FIRST, _MAX_LAST = 400, 100
#: After so many pages, texts of fewer than a fifth of them are forgotten.
_FORGET_EVERY, _FORGET_BELOW = 1000, 0.2

# What is never text of a page, the tags of blocks, other tags, text.
_PIECE_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|svg|nav|template|noscript)(?=[\s/>]).*?(?:</\1[^>]*+>|\Z)"
    r"|</?([a-z][a-z0-9-]*+)[^>]*+>?|<|[^<]++",
    re.DOTALL | re.IGNORECASE,
)
_END_TAGS = re.compile(r"(?>(?:\s++|</[^<>]*+>|<!--.*?(?:-->|\Z))*)", re.DOTALL)


class Piece(NamedTuple):
    """A text between the tags of blocks, and its place, in characters."""

    text: str
    start: int
    end: int


class RepeatedText:
    """Counts the texts at both ends of pages; `note` each page, then ask what is `around` each page's own."""

    def __init__(self) -> None:
        self.pages = 0
        self._texts: Counter[int] = Counter()

    def note(self, html: str) -> None:
        """Count a page."""
        self.pages += 1
        pieces = list(_pieces(html))
        self._texts.update({hash(piece.text) for piece in (*pieces[:_MAX_FIRST], *pieces[-_MAX_LAST:])})
        if not self.pages % _FORGET_EVERY:
            least = self.pages * _FORGET_BELOW
            self._texts = Counter({text: count for text, count in self._texts.items() if count >= least})

    def around(self, html: str) -> tuple[int, int]:
        """Return how many characters at the beginning and at the end of a page aren't its own; none if nothing is."""
        pieces = list(_pieces(html)) if self.pages >= _LEAST_PAGES else []
        mine = [i for i, piece in enumerate(pieces) if not self._is_repeated(piece)]
        if not mine:
            return 0, 0
        first, last = mine[0], mine[-1]
        before = _behind(html, pieces[first - 1].end) if first else 0
        return before, 0 if last == len(pieces) - 1 else len(html) - _behind(html, pieces[last].end)

    def _is_repeated(self, piece: Piece) -> bool:
        return self._texts[hash(piece.text)] >= self.pages * _LEAST_SHARE


def _pieces(html: str) -> Iterator[Piece]:
    parts: list[str] = []
    start = end = 0
    for token in _PIECE_TOKEN.finditer(html):
        name = token[2]
        if name is None and not token[0].startswith("<"):
            if not token[0].isspace():
                start = start if parts else token.start()
                end = token.end()
            if parts or not token[0].isspace():
                parts.append(token[0])
        elif parts and name is not None and name.lower() in BLOCKS:
            yield Piece(collapse(unescape("".join(parts))), start, end)
            parts = []
    if parts:
        yield Piece(collapse(unescape("".join(parts))), start, end)


def _behind(html: str, position: int) -> int:
    """Return the position of the first start tag or text from `position` on."""
    match = _END_TAGS.match(html, position)
    return match.end() if match else position


@dataclass(slots=True)
class Content:
    """The bounds of an element's inner HTML, in characters, and its name; "" for a page without any."""

    name: str
    start: int
    end: int

    @property
    def is_guess(self) -> bool:
        """Whether all of a page is taken for its content."""
        return self.name in ("", "body")


def find_content(html: str, body: int) -> Content:
    """Return where the content of a page is; `body` is where its body begins.

    It is what a generator marks, else the only article, else what is marked as `main`, else all of the body.
    """
    if marked := next(filter(None, (_find_marked(html, body, *mark) for mark in _MARKS)), None):
        return marked
    landmarks = _landmarks(html, body)
    named = {element.name: element for element in reversed(landmarks)}
    found = _find_article(html, landmarks) or _find_marked(html, body, "role", "main") or named.get("main")
    if found or "body" not in named:
        return found or Content("", 0, len(html))
    return Content("body", named["body"].start, _end_without_footer(html, named["body"]))


def _end_without_footer(html: str, body: Content) -> int:
    """Return where a body ends without a last footer outside of sections and quotes, which is that of the site."""
    start = html.rfind("<footer", body.start, body.end)
    end = html.find("</footer", max(start, 0), body.end)
    behind = html[end : body.end]
    is_last = min(start, end) >= 0 and not _SECTION_END.search(behind)
    return start if is_last and not _TAG.sub("", _SCRIPTS.sub("", behind)).strip() else body.end


def _find_marked(html: str, start: int, attribute: str, word: str) -> Content | None:
    """Return the first element with a word in an attribute."""
    if html.find(word, start) < 0:
        return None
    for tag in _start_tags_with(word).finditer(html, start):
        name, raw = tag.groups()
        if name and word in parse_attributes(raw).get(attribute, "").split():
            return Content(name.lower(), tag.end(), _content_end(html, name, tag.end()))
    return None


def _find_article(html: str, landmarks: list[Content]) -> Content | None:
    """Return the article that is the page; several are a listing, and one may be a part of the page."""
    article = next((element for element in landmarks if element.name == "article"), None)
    if article is None:
        return None
    around = None
    for element in landmarks:
        if element.name == "article" and element.start > article.end:
            return None
        if element.name == "main" and article.start < element.start < article.end:
            # Beside it the article holds things of the theme.
            return element
        if element.name != "article" and element.start < article.start < element.end:
            around = element
    return None if around and _is_part(html, article, around) else article


def _is_part(html: str, article: Content, around: Content) -> bool:
    """Return whether `main` holds the page's title, or more of its text, besides an article; the body, the title."""
    is_titled = _TITLE.search(html, article.start, article.end) is not None
    if around.name == "body":
        # Its header is that of the site.
        before = "" if is_titled else _BANNER.sub("", html[around.start : article.start])
        return any(map(_TITLE.match, _prose(before, 0, len(before))))
    outside = _prose(html, around.start, article.start) + _prose(html, article.end, around.end)
    if not is_titled and any(map(_TITLE.match, outside)):
        return True
    return bool(outside) and _length(outside) > _length(_prose(html, article.start, article.end))


def _prose(html: str, start: int, end: int) -> list[str]:
    """Return the headings and paragraphs of a part of a page, without those that a theme sets around the content."""
    if not _ANY_PROSE.search(html, start, end):
        return []
    return [match.group() for match in _PROSE.finditer(html, start, end) if match.lastindex]


def _length(prose: list[str]) -> int:
    return sum(len("".join(_TAG.sub("", text).split())) for text in prose)


def _landmarks(html: str, start: int) -> list[Content]:
    """Return the articles, the `main` and the body of a page in the order of their start tags."""
    found: list[Content] = []
    still_open: dict[str, list[Content]] = {name: [] for name in _LANDMARKS}
    position = start
    while tag := _LANDMARK.search(html, position):
        word, position = tag[1], tag.end()
        name = word.lstrip("/").lower()
        if aside_end := _ASIDE_ENDS.get(word):
            end = html.find(aside_end, position)
            position = end if end >= 0 else len(html)
        elif not word.startswith("/"):
            rest = _TAG_END.match(html, tag.start())
            position = rest.end() if rest else len(html)
            found.append(Content(name, position, len(html)))
            still_open[name].append(found[-1])
        elif still_open[name]:
            still_open[name].pop().end = tag.start()
    return found


def _content_end(html: str, name: str, start: int) -> int:
    depth = 1
    for tag in _tags_of(name).finditer(html, start):
        if tag.lastindex:
            depth += -1 if tag.group(1) else 1
            if not depth:
                return tag.start()
    return len(html)


@functools.cache
def _start_tags_with(word: str) -> re.Pattern[str]:
    return re.compile(rf"{_ASIDES}|<([a-zA-Z][\w-]*+)(?=[^<>]*?{word})({ATTRIBUTES})(?:>|\Z)", re.DOTALL)


@functools.cache
def _tags_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"{_ASIDES}|<(/?){_any_case(name.lower())}(?=[\s/>])", re.DOTALL)


def _any_case(name: str) -> str:
    """Return a pattern of the name of an element; four times as fast as the flag, which searches without a "<"."""
    return "".join(f"[{letter}{letter.upper()}]" for letter in name)


#: The attribute and the word by which generators mark the content, in the order of preference.
_MARKS = (("itemprop", "articleBody"), ("class", "theme-doc-markdown"), ("class", "vp-doc"))
_LANDMARKS = ("article", "main", "body")
# Comments and scripts are taken whole, so that tags written in them don't count; neither may run past the end.
_ASIDES = r"<!--.*?(?:-->|\Z)|<[sS][cC][rR][iI][pP][tT]\b.*?(?:</[sS][cC][rR][iI][pP][tT]|\Z)"
_ASIDE_ENDS = {"!--": "-->", "script": "</script", "SCRIPT": "</SCRIPT"}
_TAG_END = re.compile(rf"<{ATTRIBUTES}(?:>|\Z)")
# Every "<" of a page is looked at: words whose first letters the pattern knows are found twice as fast.
_LANDMARK_WORDS = [f"{slash}{word}" for name in _LANDMARKS for word in (name, name.upper()) for slash in ("", "/")]
_LANDMARK = re.compile(rf"<(!--|(?:{'|'.join(('script', 'SCRIPT', *_LANDMARK_WORDS))})(?=[\s/>]))")
_PROSE = re.compile(
    rf"{_ASIDES}|<nav\b.*?(?:</nav|\Z)|<aside\b.*?(?:</aside|\Z)|<footer\b.*?(?:</footer|\Z)"
    r"|(<h[1-6]\b[^<]*+(?><(?!/h)[^<]*+)*|<p\b[^<]*+(?><(?!/p)[^<]*+)*)",
    re.DOTALL | re.IGNORECASE,
)
_BANNER = re.compile(r"<header\b.*?(?:</header|\Z)", re.DOTALL | re.IGNORECASE)
# Most themes have none beside the article, which this finds out five times as fast.
_ANY_PROSE = re.compile(r"<(?:[hH][1-6]|[pP])[\s>]")
_TITLE = re.compile("<h1", re.IGNORECASE)
_SCRIPTS = re.compile(rf"(?:{_ASIDES})>?", re.DOTALL)
_SECTION_END = re.compile("</(?:article|aside|blockquote|details|figure|li|main|nav|section|td)", re.IGNORECASE)
_TAG = re.compile("<[^<>]*+>")
