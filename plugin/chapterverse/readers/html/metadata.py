"""Finds the metadata of a built page: the facts in its head, and where its content begins and ends.

It costs little beside the content, and a build that changes nothing reads nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from chapterverse.model import stated_date
from chapterverse.readers.html.content_root import find_content
from chapterverse.readers.html.page_mark import PageMark, find_marked_content, is_source_path
from chapterverse.readers.html.tokenizer import HEAD_ELEMENTS, after_raw, parse_attributes, start_tags
from chapterverse.readers.html.visible_text import collapse, strip_invisible, unescape


@dataclass(slots=True)
class PageMetadata:
    """Facts from the head of a page, and the bounds of its content root's inner HTML, in characters.

    Attributes:
        title: of the `<title>` element.
        base: of `<base href>`, where relative addresses start.
        language: BCP 47 tag that the page states; where it states none, that of its text; "" where that doesn't tell.
        created_at: the date of publication that the page states (Open Graph), ISO 8601 UTC.
        tags: its subjects, stated there too.
        marks: words by which its generator says what it is: classes of `<html>` and `<body>`, the generator's name.
        content_type: as `<meta name="chapterverse:content_type">` has it.
        source: path of the file that the page was written in, as `<meta name="chapterverse:source">` has it.
        description: of the page in a sentence, as its author wrote it.
        mark: of the build that wrote the page, None without one; what it says outranks the head.
        is_guess: no element holds the content alone, so all of the page is taken for it.
    """

    title: str = ""
    language: str = ""
    canonical: str | None = None
    noindex: bool = False
    content_start: int = 0
    content_end: int = 0
    base: str = ""
    created_at: str | None = None
    tags: tuple[str, ...] = ()
    marks: str = ""
    content_type: str = ""
    source: str = ""
    description: str = ""
    is_guess: bool = False
    mark: PageMark | None = None

    def narrow(self, start: int, end: int) -> None:
        """Keep only a part of the content, given from its beginning."""
        self.content_end = self.content_start + end
        self.content_start += start

    def content(self, html: str) -> str:
        """Return the HTML of the page's content without what only a password opens."""
        return cut_ciphertext(html[self.content_start : self.content_end])


def cut_ciphertext(content: str) -> str:
    """Return the content of a page without encrypted parts and, if it has any, without scripts, which have their keys.

    A page whose ciphertext differs at each build is the same page. Takes time linear in the length of `content`.
    """
    if "none" not in content and "hidden" not in content:
        return content
    cut = _CIPHERTEXT.sub(lambda element: "" if _HIDDEN.search(element[2]) else element[0], content)
    return content if cut == content else _SCRIPT.sub("", cut)


def read_metadata(html: str) -> PageMetadata:
    """Return the metadata of a whole page. Never fails.

    Its content is what a build marked, else what is in its content root, else all of it.
    """
    metadata, body = _read_head(html)
    if marked := find_marked_content(html):
        metadata.content_start, metadata.content_end = marked.start, marked.end
        _note_mark(metadata, marked.mark)
    else:
        root = find_content(html, body)
        metadata.content_start, metadata.content_end, metadata.is_guess = root.start, root.end, root.is_guess
    metadata.language = metadata.language or _text_language(html[metadata.content_start : metadata.content_end])
    return metadata


def _note_mark(metadata: PageMetadata, mark: PageMark) -> None:
    metadata.mark = mark
    metadata.language = mark.language or metadata.language
    metadata.created_at, metadata.tags = mark.date or None, mark.tags
    metadata.content_type, metadata.source, metadata.description = mark.type, mark.path, mark.description


def is_page(html: str) -> bool:
    """Return whether a file is a page; a piece of a template, which another file includes, has no frame."""
    return _DOCTYPE.match(html) is not None or any(name in _FRAME for name, _, _ in start_tags(html))


def asks_for_no_index(html: str) -> bool:
    """Return whether a whole page asks not to be indexed, or only redirects."""
    return _read_head(html)[0].noindex


def _read_head(html: str) -> tuple[PageMetadata, int]:
    """Return what the head of a page says, and where its body begins."""
    metadata = PageMetadata(content_end=len(html))
    body = 0
    unseen = 0
    for name, raw, end in start_tags(html):
        if name == "noscript":
            # What stands in it is for readers without scripts, such as a way to another page.
            unseen = after_raw(html, name, end) or end
        if body <= end < unseen:
            continue
        if name not in HEAD_ELEMENTS:
            if name == "body" and "class" in raw:
                _note_marks(metadata, parse_attributes(raw).get("class", ""))
            break
        body = end
        _note(metadata, name, raw, html[end : end + _MAX_TITLE_CHARS])
    return metadata, body


def _text_language(html: str) -> str:
    """Return the language of a page's text by its function words; "" for a short text or one that doesn't tell."""
    # Most pages state their language.
    from chapterverse.text import lexical

    text = _MARKUP.sub(" ", html[:_JUDGED_HTML])[:_JUDGED_TEXT]
    is_long = sum(map(str.isalpha, text)) >= _LEAST_LETTERS
    return (lexical.prose_language(unescape(text), lexical.LANGUAGES) if is_long else None) or ""


def _note(metadata: PageMetadata, name: str, raw: str, text: str) -> None:
    """Note the facts of one element of the head; `text` is the text behind it."""
    if name == "title":
        metadata.title = metadata.title or collapse(strip_invisible(unescape(text.partition("<")[0])))
        return
    attributes = parse_attributes(raw)
    if name == "html":
        # The stock theme of MkDocs writes "pt_BR", as its translations are named.
        metadata.language = attributes.get("lang", "").strip().replace("_", "-") or metadata.language
        _note_marks(metadata, attributes.get("class", ""))
    elif name == "link" and "canonical" in attributes.get("rel", "").lower().split():
        metadata.canonical = metadata.canonical or attributes.get("href", "").strip() or None
    elif name == "base":
        metadata.base = metadata.base or attributes.get("href", "").strip()
    elif name == "meta":
        _note_meta(metadata, attributes)


def _note_marks(metadata: PageMetadata, words: str) -> None:
    metadata.marks = f"{metadata.marks} {collapse(strip_invisible(words))}"[:_MAX_MARK_CHARS].strip()


def _note_meta(metadata: PageMetadata, attributes: dict[str, str]) -> None:
    name = (attributes.get("name") or attributes.get("property", "")).lower()
    content = attributes.get("content", "")
    if name == "robots" and any(map(_is_no_index, content.lower().split(","))):
        metadata.noindex = True
    elif attributes.get("http-equiv", "").lower() == "refresh" and _leads_elsewhere(content, metadata.canonical):
        # A page that only sends its reader elsewhere is no page either.
        metadata.noindex = True
        _note_marks(metadata, "redirect")
    elif name == "generator":
        _note_marks(metadata, content.replace("/", " ").partition(" ")[0])
    elif name == "chapterverse:content_type":
        metadata.content_type = metadata.content_type or content.strip()
    elif name == "chapterverse:source":
        metadata.source = metadata.source or (content if is_source_path(content) else "")
    elif name == "description":
        metadata.description = metadata.description or collapse(strip_invisible(content))[:_MAX_TITLE_CHARS]
    elif name == "article:published_time":
        metadata.created_at = metadata.created_at or stated_date(content.strip())
    elif name == "article:tag" and len(metadata.tags) < _MAX_TAGS:
        tag = collapse(strip_invisible(content))
        metadata.tags += (tag,) if tag and tag not in metadata.tags else ()


def _is_no_index(rule: str) -> bool:
    # "max-image-preview: none" is about images.
    return ":" not in rule and not _NOINDEX.isdisjoint(rule.split())


def _leads_elsewhere(refresh: str, canonical: str | None) -> bool:
    """Return whether a refresh leads to another page than the one that asks for it."""
    address = _REFRESH_ADDRESS.search(refresh)
    if address is None or address[1] in (".", "./") or address[1].startswith("#"):
        return False
    # A page that leads elsewhere at once names the other one as canonical too.
    return address[1] != canonical or refresh.lstrip().startswith("0")


# What is no prose: comments, scripts, styles and code, then every tag.
_MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|pre|code|svg)\b.*?(?:</\1|\Z)|</?[a-z][^<>]*>?", re.DOTALL | re.IGNORECASE
)
#: Characters of HTML and of text by which a language is judged, and how many letters these must hold.
_JUDGED_HTML, _JUDGED_TEXT, _LEAST_LETTERS = 40_000, 3_000, 100
_NOINDEX = frozenset(("noindex", "none"))
_REFRESH_ADDRESS = re.compile(r"""\burl\s*+=\s*+(?:['"]\s*+)?([^\s'"]++)""", re.IGNORECASE)
_MAX_TITLE_CHARS = 2000
_MAX_TAGS = 50
_MAX_MARK_CHARS = 1000
_FRAME = frozenset(("html", "head", "body", "main", "title"))
_DOCTYPE = re.compile(r"(?>(?:\s|<!--.*?-->)*)<!doctype", re.IGNORECASE | re.DOTALL)
#: An element that has one long word of Base64, or several joined by a separator, and nothing else.
_CIPHERTEXT = re.compile(
    r"<([a-zA-Z][a-zA-Z0-9-]*+)([^<>]*+)>"
    r"\s*+[A-Za-z0-9+/=_-]{16,}+(?>(?:[;:,.|][A-Za-z0-9+/=_-]++)*)\s*+</\1\s*+>"
)
_HIDDEN = re.compile(r"\shidden|display\s*:\s*none", re.IGNORECASE)
_SCRIPT = re.compile(r"<script\b.*?(?:</script\s*>|\Z)", re.DOTALL | re.IGNORECASE)
