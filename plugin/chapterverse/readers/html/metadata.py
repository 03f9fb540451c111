"""What a built page says of itself: the facts in its head, its JSON-LD, and where its content begins and ends.

It costs little beside the content, and a build that changes nothing reads nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chapterverse.model import replace_unstorable, stated_date
from chapterverse.readers.html.content_root import find_content
from chapterverse.readers.html.dom import ATTRIBUTES, HEAD_ELEMENTS, after_raw, parse_attributes, start_tags
from chapterverse.readers.html.page_mark import PageMark, find_marked_content, is_source_path
from chapterverse.readers.html.visible_text import collapse, strip_invisible, unescape
from chapterverse.text.json_text import INTEGERS, parse_json

TYPES = frozenset(("Product", "Service", "FAQPage", "HowTo", "BreadcrumbList"))

_MEDIA_TYPE = "application/ld+json"
#: Most scripts of a page, and characters of one; real pages have one to three of a few thousand.
_MAX_SCRIPTS, _MAX_SCRIPT_CHARS = 20, 200_000
#: Most objects of a page, and characters of their JSON together: each chunk of the page has them.
_MAX_OBJECTS, _MAX_JSON_CHARS = 10, 4_000
#: Most levels of an object, members of an object or a list, and characters of a text.
_MAX_DEPTH, _MAX_MEMBERS, _MAX_TEXT_CHARS = 8, 50, 500
#: Levels and lists in which an object of a known type is looked for.
_MAX_VISITED = 1_000

# Comments and other scripts are taken whole, so that nothing written in them counts.
_SCRIPTS = re.compile(
    rf"<!--.*?(?:-->|\Z)|<script(?=[\s/>])({ATTRIBUTES})>(.*?)(?:</script|\Z)", re.DOTALL | re.IGNORECASE
)

_MARKUP_TAG = re.compile(r"<[^<>]{0,500}>")


def json_ld_scripts(html: str) -> list[str]:
    """Return the text of the JSON-LD scripts of a page or a part of it. Takes time linear in the length of `html`."""
    if "ld+json" not in html:
        return []
    scripts: list[str] = []
    for match in _SCRIPTS.finditer(html):
        if match.group(1) and "ld+json" in match.group(1) and len(scripts) < _MAX_SCRIPTS:
            media_type = parse_attributes(match.group(1)).get("type", "").partition(";")[0].strip().lower()
            if media_type == _MEDIA_TYPE:
                scripts.append(match.group(2))
    return scripts


def read_structured_data(html: str) -> tuple[dict[str, Any], ...]:
    """Return a page's objects of the types in `TYPES`, outermost only, in order. Never fails.

    Of longer texts, lists and objects the beginning is kept. An object that doesn't fit beside those before it is left
    out.
    """
    objects: list[dict[str, Any]] = []
    room = _MAX_JSON_CHARS
    for script in json_ld_scripts(html):
        for item in _objects(_parse(script)):
            pruned = _prune(item, _MAX_DEPTH)
            size = len(json.dumps(pruned, ensure_ascii=False))
            if size <= room and len(objects) < _MAX_OBJECTS and pruned not in objects:
                objects.append(pruned)
                room -= size
    return tuple(objects)


def _parse(script: str) -> Any:
    try:
        return parse_json(script, parse_constant=lambda _: None) if len(script) <= _MAX_SCRIPT_CHARS else None
    # Python refuses integers of more than 4,300 digits by a ValueError.
    except ValueError:
        return None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the outermost objects of a known type, in document order."""
    rest = [value]
    for _ in range(_MAX_VISITED):
        if not rest:
            return
        value = rest.pop()
        if isinstance(value, list):
            rest.extend(reversed(value[:_MAX_VISITED]))
        elif isinstance(value, dict):
            if _type_names(value) & TYPES:
                yield value
            else:
                rest.extend(reversed(list(value.values())[:_MAX_VISITED]))


def _type_names(value: dict[str, Any]) -> set[str]:
    stated = value.get("@type")
    names = stated if isinstance(stated, list) else [stated]
    return {re.split(r"[/#:]", name)[-1] for name in names[:_MAX_MEMBERS] if isinstance(name, str)}


def _prune(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return [_prune(item, depth - 1) for item in value[:_MAX_MEMBERS]] if depth else []
    if isinstance(value, dict):
        members = list(value.items())[:_MAX_MEMBERS] if depth else []
        return {_text(name): _prune(member, depth - 1) for name, member in members}
    if isinstance(value, float) and value not in (float("inf"), float("-inf")):
        return value
    return value if isinstance(value, bool) or (isinstance(value, int) and value in INTEGERS) else None


def _text(value: str) -> str:
    """Return a text without markup, in one line, cut to size: answers of an FAQPage may be HTML."""
    value = value[: 4 * _MAX_TEXT_CHARS]
    return replace_unstorable(collapse(strip_invisible(_MARKUP_TAG.sub(" ", value))))[:_MAX_TEXT_CHARS]


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
