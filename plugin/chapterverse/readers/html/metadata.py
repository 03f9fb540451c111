"""Finds the metadata of a built page: the facts in its head, and where its content begins and ends.

It costs little beside the content, and a build that changes nothing reads nothing else.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from chapterverse.model import stated_date
from chapterverse.readers.html.ciphertext import cut_ciphertext
from chapterverse.readers.html.page_mark import PageMark, find_content, is_source_path
from chapterverse.readers.html.tokenizer import ATTRIBUTES, parse_attributes, start_tags
from chapterverse.readers.html.visible_text import collapse, strip_invisible, unescape


@dataclass(slots=True)
class PageMetadata:
    """Facts from the head of a page, and the bounds of its content root's inner HTML, in characters.

    Attributes:
        title: of the `<title>` element.
        base: of `<base href>`, where relative addresses start.
        language: BCP 47 tag that the page states; where it states none, that of its text.
        created_at: the date of publication that the page states (Open Graph), ISO 8601 UTC.
        tags: its subjects, stated there too.
        marks: words by which its generator says what it is: classes of `<html>` and `<body>`, the generator's name.
        content_type: as `<meta name="chapterverse:content_type">` has it.
        source: path of the file that the page was written in, as `<meta name="chapterverse:source">` has it.
        description: of the page in a sentence, as its author wrote it.
        mark: of the build that wrote the page, None without one; what it says outranks the head.
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
    mark: PageMark | None = None

    def content(self, html: str) -> str:
        """Return the HTML of the page's content without what only a password opens."""
        return cut_ciphertext(html[self.content_start : self.content_end])


# Comments and scripts are taken whole, so that tags written in them don't count; neither may run past the end.
_ASIDES = r"<!--.*?(?:-->|\Z)|<script\b.*?(?:</script|\Z)"


@dataclass(frozen=True, slots=True)
class _Root:
    """A kind of content root: any element with that `word` in that attribute, or any with that name.

    Attributes:
        unique: a page with several such elements is a listing; none of them is the page.
    """

    word: str
    attribute: str = ""
    unique: bool = False

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
    _Root("body"),
)


@functools.cache
def _start_tags_with(word: str, as_attribute: bool) -> re.Pattern[str]:
    tag = rf"<([a-zA-Z][\w-]*+)(?=[^<>]*?{word})" if as_attribute else rf"<({word})(?=[\s/>])"
    return re.compile(rf"{_ASIDES}|{tag}({ATTRIBUTES})(?:>|\Z)", re.DOTALL | re.IGNORECASE)


def read_metadata(html: str) -> PageMetadata:
    """Return the metadata of a whole page. Never fails.

    Its content is what a build marked, else what is in its content root, else all of it.
    """
    metadata, body = _read_head(html)
    if marked := find_content(html):
        metadata.content_start, metadata.content_end = marked.start, marked.end
        _note_mark(metadata, marked.mark)
    else:
        _find_root(metadata, html, body)
    metadata.language = metadata.language or _text_language(html[metadata.content_start : metadata.content_end])
    return metadata


def _find_root(metadata: PageMetadata, html: str, body: int) -> None:
    for root in _ROOTS:
        opening = root.find(html, body)
        if not opening:
            continue
        end, after_end_tag = _content_end(html, *opening)
        if not (root.unique and root.find(html, after_end_tag)):
            metadata.content_start, metadata.content_end = opening[1], end
            break


def _note_mark(metadata: PageMetadata, mark: PageMark) -> None:
    metadata.mark = mark
    metadata.language = mark.language or metadata.language
    metadata.created_at, metadata.tags = mark.date or None, mark.tags
    metadata.content_type, metadata.source, metadata.description = mark.type, mark.path, mark.description


def asks_for_no_index(html: str) -> bool:
    """Return whether a whole page asks not to be indexed, or only redirects."""
    return _read_head(html)[0].noindex


def _read_head(html: str) -> tuple[PageMetadata, int]:
    """Return what the head of a page says, and where its body begins."""
    metadata = PageMetadata(content_end=len(html))
    body = 0
    for name, raw, end in start_tags(html):
        if name not in _HEAD:
            if name == "body" and "class" in raw:
                _note_marks(metadata, parse_attributes(raw).get("class", ""))
            break
        body = end
        _note(metadata, name, raw, html[end : end + _MAX_TITLE_CHARS])
    return metadata, body


def _text_language(html: str) -> str:
    """Return the language of a page's text by its function words; "en" for a short text or one in none of ours."""
    # Most pages state their language.
    from chapterverse.text import lexical

    text = _MARKUP.sub(" ", html[:_JUDGED_HTML])[:_JUDGED_TEXT]
    language = (
        lexical.language_of(unescape(text), lexical.LANGUAGES)
        if sum(map(str.isalpha, text)) >= _LEAST_LETTERS
        else None
    )
    return language or "en"


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
    return re.compile(rf"{_ASIDES}|<(/?){name}(?=[\s/>])", re.DOTALL | re.IGNORECASE)


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
    if name == "robots" and _NOINDEX.search(content):
        metadata.noindex = True
    elif attributes.get("http-equiv", "").lower() == "refresh":
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


# What is no prose: comments, scripts, styles and code, then every tag.
_MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|pre|code|svg)\b.*?(?:</\1|\Z)|</?[a-z][^<>]*>?", re.DOTALL | re.IGNORECASE
)
#: Characters of HTML and of text by which a language is judged, and how many letters these must hold.
_JUDGED_HTML, _JUDGED_TEXT, _LEAST_LETTERS = 40_000, 3_000, 100
_NOINDEX = re.compile(r"\b(?:noindex|none)\b", re.IGNORECASE)
_MAX_TITLE_CHARS = 2000
_MAX_TAGS = 50
_MAX_MARK_CHARS = 1000
_HEAD = frozenset("html head base link meta noscript script style template title".split())
