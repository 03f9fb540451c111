"""The marks by which a build says where a page's content is, and what HTML doesn't say of it.

While the page is built, the marks are hidden elements, which plugins that rewrite or minify HTML keep. In the written
page they are comments, because an element would be a first or last child to the theme's style sheets and change how the
page looks. A page with one pair of marks needs no guess of its content root.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from chapterverse.model import stated_date
from chapterverse.readers.html.dom import ATTRIBUTES, Edit, parse_attributes
from chapterverse.text.json_text import parse_json

_ATTRIBUTE = "data-chapterverse-"
_START_ATTRIBUTE, _END_ATTRIBUTE = f"{_ATTRIBUTE}start", f"{_ATTRIBUTE}end"
_START, _END = "<!--chapterverse:start ", "<!--chapterverse:end-->"
_START_ELEMENT = re.compile(rf"<div(?=[^<>]*\s{_START_ATTRIBUTE}=)({ATTRIBUTES})>\s*</div>", re.IGNORECASE)
_END_ELEMENT = re.compile(rf"<div(?=[^<>]*\s{_END_ATTRIBUTE}[\s=/>]){ATTRIBUTES}>\s*</div>", re.IGNORECASE)
#: A mark that the page itself contains: an element or a comment. In a text of the page "<" is a reference.
_OWN = re.compile(rf"(<!--)(chapterverse:)|(<[a-zA-Z][^<>]*\s)({_START_ATTRIBUTE}|{_END_ATTRIBUTE})(?=[\s=/>])")
_EXCLUDED = re.compile(r"(<[a-zA-Z][^<>]*?\s)(data-search-exclude(?=[\s=/>]))")
#: A relative path below the project's folder, as long as the ledger's column is wide.
_PATH = re.compile(r"(?!/)(?!(?:.*/)?\.\.?/)[^\\]{1,512}(?<!/)")
_MAX_TAGS = 50
#: Characters of a mark's tag before its attribute: a plugin may have sorted or indented them.
_MAX_LEAD_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMark:
    """What a build says of a page.

    Attributes:
        path: of the file that the page was written in, relative to the docs folder.
        built: path of the built page, relative to the site.
        base: address of the site, with a slash at its end; "" if it has none.
        title: of the page, as text.
        description: by the page's author, "" without one.
        language: BCP 47 tag.
        tags: as the page's front matter has them.
        date: of the page, ISO 8601 UTC; "" without one.
        type: the content type that its front matter states, "" without one.
        template: of the page, which may say that it is a listing.
        include: whether the page is indexed even if it is a listing.
        exclude: the reason why the page is not indexed; "" if it is.
    """

    path: str
    built: str = ""
    base: str = ""
    title: str = ""
    description: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    date: str = ""
    type: str = ""
    template: str = ""
    include: bool = False
    exclude: str = ""

    def to_json(self) -> str:
        """Return the fields that are not empty, in ASCII."""
        return json.dumps({name: value for name in _FIELDS if (value := getattr(self, name))})

    @classmethod
    def of(cls, text: str) -> PageMark | None:
        """Return the mark of a JSON text, None if it is none: a page may have been written by a stranger."""
        try:
            values = parse_json(text)
        except ValueError:
            return None
        path = values.get("path") if isinstance(values, dict) else None
        if not isinstance(path, str) or not is_source_path(path):
            return None
        return cls(path=path, **_valid(values))


_FIELDS = sorted(field.name for field in fields(PageMark))


@dataclass(frozen=True, slots=True)
class MarkedContent:
    """A page's mark and where its content begins and ends, in characters."""

    mark: PageMark
    start: int
    end: int


def mark_content(content: str, mark: PageMark) -> str:
    """Return a page's content between marks, as elements; marks that it has itself lose their meaning.

    Excluded elements get an attribute of ours, because Material's search strips its own.
    """
    if "chapterverse" in content:
        content = _OWN.sub(r"\1\3x-\2\4", content)
    if "data-search-exclude" in content:
        content = _EXCLUDED.sub(r"\1data-chapterverse-exclude \2", content)
    # A title may be the name of a mark.
    stated = html.escape(mark.to_json().replace("data-chapterverse", "data\\u002dchapterverse"))
    start = f'<div hidden {_START_ATTRIBUTE}="{stated}"></div>'
    return f"{start}{content}<div hidden {_END_ATTRIBUTE}></div>"


def seal(page: str) -> list[Edit]:
    """Return how a page to be written gets its marks as comments; not at all unless it has exactly one pair of them."""
    marks = list(_elements(page))
    if [mark.re for mark in marks] != [_START_ELEMENT, _END_ELEMENT]:
        return []
    start, end = marks
    stated = parse_attributes(start[1]).get(_START_ATTRIBUTE, "")
    # Nothing in a comment may end it.
    stated = stated.replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "-\\u002d")
    return [(*start.span(), f"{_START}{stated}-->"), (*end.span(), _END)]


def _elements(page: str) -> Iterator[re.Match[str]]:
    """Yield the elements that are marks; their attributes are looked for first, as a page has thousands of tags."""
    at = page.find(_ATTRIBUTE)
    while at >= 0:
        element = _START_ELEMENT if page.startswith(_START_ATTRIBUTE, at) else _END_ELEMENT
        start = page.rfind("<", max(0, at - _MAX_LEAD_CHARS), at)
        match = element.match(page, start) if start >= 0 else None
        if match:
            yield match
        at = page.find(_ATTRIBUTE, match.end() if match else at + 1)


def find_marked_content(page: str) -> MarkedContent | None:
    """Return the marked content of a written page; None without exactly one pair of marks."""
    at = page.find(_START)
    if at < 0 or page.find(_START, at + 1) >= 0:
        return None
    start = page.find("-->", at)
    end = page.find(_END, start)
    if min(start, end) < 0 or page.find(_END, end + 1) >= 0:
        return None
    mark = PageMark.of(page[at + len(_START) : start])
    return MarkedContent(mark, start + 3, end) if mark else None


def is_source_path(path: str) -> bool:
    """Whether a text can be the path of a page's source, relative to the project's folder."""
    return _PATH.fullmatch(path) is not None and path.isprintable()


def _valid(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a mark besides its path, without those of a wrong type."""
    tags, texts = values.get("tags"), set(_FIELDS) - {"path", "tags", "date", "include"}
    return {
        **{name: values[name] for name in texts if isinstance(values.get(name), str)},
        "tags": tuple(map(str, tags[:_MAX_TAGS])) if isinstance(tags, list) else (),
        "date": stated_date(values.get("date")) or "",
        "include": values.get("include") is True,
    }
