"""Which kind of page a page is, by what generators write: the rules for every way into the index, in one place.

A page that only lists others, or has no content of its own (tag listings, archives, search pages, 404s), answers no
question, and would rank first for short ones. The words of an address alone prove nothing: a page about tags may be at
`/tags/` too. So an address counts together with the look of a listing: its text is links, or its headings are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import unescape
from itertools import islice

from chapterverse.page_kinds import LISTINGS, known_content_type

#: Words by which a generator says what a page is: templates of MkDocs, layouts of Jekyll and Hugo, classes that
#: Docusaurus, Docsy and Minimal Mistakes set on `<html>` or `<body>`.
_LISTING_MARKS = {
    "tag listing": "tags tag docs-tags-list-page docs-tags-doc-list-page blog-tags-list-page blog-tags-post-list-page"
    " td-taxonomy td-term archive-taxonomy",
    "category listing": "categories category blog-category",
    "author listing": "blog-authors-list-page blog-authors-posts-page",
    "archive": "archive archives blog-archive blog-list-page",
    "search page": "search search-page",
    "not-found page": "404 not-found td-404",
    "redirect": "redirect redirected",
}
_KIND_OF_MARK = {mark: kind for kind, marks in _LISTING_MARKS.items() for mark in marks.split()}
#: Parts of an address, as listings have them; a page there is one if it looks like one.
_LISTING_PARTS = {
    part: _KIND_OF_MARK.get(part, "author listing")
    for part in ("tags", "tag", "categories", "category", "archive", "archives", "authors", "author")
}
_POST_MARKS = frozenset("blog-post-page blog-post post posts td-blog".split())
_API_GENERATORS = frozenset("rustdoc javadoc typedoc pdoc pydoctor doxygen jsdoc phpdocumentor".split())
_DOCUMENTATION_MARK = "docs-doc-page"
#: Material's template of a blog's own page and of its listings, whose entries only the template writes.
_VIEW_MARK = "blog"

#: What only a listing holds: Docusaurus' generated index, the headings of Material's tags, and its marks in Markdown.
_LISTING_CONTENT = {'class="generatedIndexPage_': "category listing", 'id="tag:': "tag listing"}
_TAGS_MARK = re.compile(r"^(?:<!-- material/tags\b.*|\[TAGS\])\s*$", re.MULTILINE)
#: A page named "search" is a search page with one of these and hardly any text; else it explains a search.
_SEARCH_FIELDS = ("<input", "<form", "search-results")
#: Indexes that Sphinx writes; it splits a large one by letter.
_NAME_INDEX = re.compile(r"genindex(?:-.*)?|py-modindex|modindex|http-routingtable")
#: Those of Doxygen, Javadoc, rustdoc and pydoctor; elsewhere such a page may say something.
_API_INDEX = re.compile(
    r"(?:functions|globals|namespacemembers)(?:_\w+)?|annotated|classes|files|hierarchy|inherits|namespaces|dir_[0-9a-f]+"
    r"|index-(?:all|\d+)|all(?:classes|packages)?(?:-index)?|(?:overview|package)-tree|(?:package|class)-use"
    r"|(?:name|module|class)index|undoccedsummary"
)
#: The page of a source file, by its name, as JSDoc and rustdoc have it. One about `values.yaml` may be mostly code too.
_SOURCE_FILE = re.compile(
    r".*\.(?:[cm]?[jt]sx?|vue|svelte|py|rs|go|java|kt|cs|swift|php|rb|[ch](?:pp|xx|c|h)?|m|mm|d|f90)"
)
_MIN_CODE_SHARE = 0.8

_RELEASE_FOLDERS = frozenset("changelog changelogs releases release-notes release_notes whatsnew".split())
_NEWS_FOLDERS = frozenset("blog news posts _posts announcements".split())
_FAQ = re.compile(r"faqs?|frequently[-_]asked[-_]questions")
_API_FOLDERS = frozenset("_autosummary autosummary autoapi apidoc apidocs javadoc typedoc rustdoc".split())
_RELEASE = re.compile(r"v?\d")
#: The level of a heading and its text, in HTML and in Markdown, which may hold HTML; of many the first ones tell.
_HTML_HEADING = re.compile(r"<h([1-6])\b[^>]{0,500}+>(.{0,1000}?)</h\1", re.DOTALL)
_SOURCE_TITLE = re.compile(r"^(#{1,6}) ([^\n]*+)", re.MULTILINE)
_MAX_HEADINGS, _MAX_DATE_CHARS = 60, 600
#: What a release is called: "Version 3.1.0", "[1.2.0] - 2026-01-02", "Tea 2.0 (May 1, 2026)"; never "1.2 Install".
_RELEASE_TITLE = re.compile(
    r"\W*+(?:[^\W\d][\w-]*+\W++)?v?(?>(?:\d++\.)+\d++[\w.+-]*)"
    r"(?:\W*+|\W.*?\b(?:19|20)\d\d\b.*|\W*+(?:unreleased|latest|yanked)\W*+)",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_TAG = re.compile(r"<[^<>]*+>")
_LOCALE = re.compile(r"[a-z]{2}(?:[-_][a-z]{2,4})?")

# What Sphinx takes from Python code has a dotted id; a setting that an author documents in the same form has none.
_SIGNATURE = re.compile(
    r"""class=["']?(?:sig\ sig-object\ (?!py\b|std\b) | sig\ sig-object\ py["']\s+id=["']\w+\. | doc\ doc-heading
    | tsd-signature)""",
    re.VERBOSE,
)
_OTHER_HEADING = re.compile(r"<h[2-6](?![^<>]*\bdoc-heading\b)")
_DIRECTIVE = re.compile(
    r"^(?::::[ \t]+\w++(?:\.\w++)+[ \t]*$|[ \t]*(?:\.\. |`{3,}\{)auto(?:module|class|function|data|doc2?|api)\b)",
    re.MULTILINE,
)
_SOURCE_HEADING = re.compile(r"^#{2,6}\s", re.MULTILINE)
#: Signs of a reference, one of which is in each, its signatures, and the headings that aren't of it.
_IN_HTML = (("sig-object", "doc-heading", "tsd-signature"), _SIGNATURE, _OTHER_HEADING)
_IN_SOURCE = ((":::", "{auto", ".. auto"), _DIRECTIVE, _SOURCE_HEADING)

_TOKEN = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*+)([^>]*+)>?|<[^>]*+>?|[^<]++")
_OUTWARD = re.compile(r"""\bhref\s*=\s*["']?[^"'#\s>]""")
_INDEX_NAMES = frozenset(("index", "_index", "readme"))

#: Characters of text below which a page at the address of a listing, or of a search page, is no more than its title.
_SHORT_LISTING_CHARS, _SHORT_SEARCH_CHARS = 80, 600
_MIN_LINKED_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What the rules look at.

    Attributes:
        path: the path of the file or the address, relative to the site: "blog/tags/news/index.html".
        marks: the words by which the generator says what the page is: template, layout, classes, generator.
        content: the content as HTML or Markdown.
        language: the BCP 47 tag of the page.
    """

    path: str
    marks: str = ""
    content: str = ""
    language: str = ""

    @property
    def is_markdown(self) -> bool:
        return self.path.lower().endswith((".md", ".mdx", ".markdown"))


def listing_kind(page: PageFacts) -> str:
    """Return which of `LISTINGS` a page is, "" for a page that says something itself."""
    parts, _ = _parts(page.path)
    last = parts[-1] if parts else ""
    if last == "404" and (len(parts) == 1 or (len(parts) == 2 and _LOCALE.fullmatch(parts[0]))):
        return "not-found page"
    if _NAME_INDEX.fullmatch(last) or (_API_INDEX.fullmatch(last) and _is_generated_api(page)):
        return "index of names"
    if _is_source_listing(page, last):
        return "source listing"
    marks = map(_KIND_OF_MARK.get, _marks(page.marks))
    if kind := next(filter(None, marks), "") or _kind_of_content(page):
        return kind
    if last == "search":
        return "search page" if _is_search_page(page.content) else ""
    kind = _kind_of_address(parts)
    return kind if kind and _has_listing_form(page, last) else ""


def _kind_of_content(page: PageFacts) -> str:
    if page.is_markdown:
        # A page that explains the mark shows it as code.
        return "tag listing" if "```" not in page.content and _TAGS_MARK.search(page.content) else ""
    return next((kind for sign, kind in _LISTING_CONTENT.items() if sign in page.content), "")


def _is_search_page(content: str) -> bool:
    if not any(sign in content for sign in _SEARCH_FIELDS):
        return False
    shape = _measure_shape(content)
    most = _SHORT_SEARCH_CHARS if _SEARCH_FIELDS[-1] in content else _SHORT_SEARCH_CHARS // 4
    return shape.text < most and not shape.headings


def _is_source_listing(page: PageFacts, last: str) -> bool:
    if _SOURCE_FILE.fullmatch(last):
        shape = _measure_shape(page.content)
        return shape.code > shape.text * _MIN_CODE_SHARE
    # As Doxygen writes it.
    return last.endswith("_source") and 'class="fragment"' in page.content and _is_generated_api(page)


def _is_generated_api(page: PageFacts) -> bool:
    return not _API_GENERATORS.isdisjoint(_marks(page.marks))


def _has_listing_form(page: PageFacts, last: str) -> bool:
    """Return whether a page at the address of a listing is one; `last` is the last part of the address."""
    if _VIEW_MARK in _marks(page.marks):
        return True
    shape = _measure_shape(page.content)
    lines = page.content.split("\n") if page.is_markdown else []
    has_text = shape.paragraphs or any(line.strip() and not line.startswith(tuple("#<[-*")) for line in lines)
    # A short page below /tags/ may have content of its own; /tags/ itself without text is a listing still to be filled.
    return shape.is_listing or (last in _LISTING_PARTS and shape.text < _SHORT_LISTING_CHARS and not has_text)


def content_type(page: PageFacts, stated_type: object = None, listing: str | None = None) -> str:
    """Return the content type of a page: the stated one if it is one of `CONTENT_TYPES`, else by rule.

    Args:
        listing: the `listing_kind` of the page, None if it is not computed yet.
    """
    if declared_type := known_content_type(stated_type):
        return declared_type
    if listing := listing_kind(page) if listing is None else listing:
        return LISTINGS[listing]
    parts, is_index = _parts(page.path)
    if not parts or (is_index and len(parts) == 1 and parts[0].replace("_", "-") == page.language.lower()):
        return "home"
    marks = set(_marks(page.marks))
    if _is_news(page, parts, marks):
        return "news"
    if _is_generated_api(page) or not _API_FOLDERS.isdisjoint(parts[:-1]) or _is_api(page):
        return "api"
    return "faq" if any(map(_FAQ.fullmatch, parts)) else "documentation"


def _parts(path: str) -> tuple[list[str], bool]:
    """Return the parts of an address in lower case, without ending and index, and whether it is that of an index."""
    parts = [part for part in path.lower().split("/") if part]
    if parts and not path.endswith("/"):
        stem, _, ending = parts[-1].rpartition(".")
        if ending in ("html", "htm", "md", "mdx", "markdown"):
            parts[-1] = stem
    is_index = path.endswith("/") or not parts or parts[-1] in _INDEX_NAMES
    if parts and parts[-1] in _INDEX_NAMES:
        parts.pop()
    return parts, is_index


def _marks(marks: str) -> list[str]:
    return [mark.removesuffix(".html").removeprefix("layout--") for mark in marks.lower().split()]


def _kind_of_address(parts: list[str]) -> str:
    """Return what the address of a page says that it lists: ".../tags/", ".../tags/news/", ".../page/2/"."""
    paged = len(parts) > 1 and parts[-2] == "page" and parts[-1].isdecimal()
    *_, outer, last = ("", "", *(parts[:-2] if paged else parts))
    return _LISTING_PARTS.get(last) or _LISTING_PARTS.get(outer) or ("archive" if paged else "")


def _is_news(page: PageFacts, parts: list[str], marks: set[str]) -> bool:
    if not marks.isdisjoint(_POST_MARKS):
        return True
    top = parts[1:] if len(parts) > 1 and _LOCALE.fullmatch(parts[0]) else parts
    if top[0] in _NEWS_FOLDERS and _DOCUMENTATION_MARK not in marks:
        return True
    is_release = not _RELEASE_FOLDERS.isdisjoint(parts[:-1]) and _RELEASE.match(parts[-1]) is not None
    return is_release or _is_changelog(page)


def _is_api(page: PageFacts) -> bool:
    """Return whether a page is mostly signatures that a tool took from code, or will take."""
    signs, signature, heading = _IN_SOURCE if page.is_markdown else _IN_HTML
    signatures = len(signature.findall(page.content)) if any(sign in page.content for sign in signs) else 0
    return signatures > 0 and signatures >= len(heading.findall(page.content))


def _is_changelog(page: PageFacts) -> bool:
    """Return whether the headings of a page name releases: at least half of those of one level, with a date or two."""
    content = page.content
    headings: Iterable[re.Match[str]] = _HTML_HEADING.finditer(content)
    if page.is_markdown:
        headings = sorted((*headings, *_SOURCE_TITLE.finditer(content)), key=re.Match.start)
    levels, releases, dated = Counter[int](), Counter[int](), Counter[int]()
    for heading in islice(headings, _MAX_HEADINGS):
        level = int(heading[1]) if heading[1].isdigit() else len(heading[1])
        title = " ".join(unescape(_TAG.sub("", heading[2])).split())
        levels[level] += 1
        if _RELEASE_TITLE.fullmatch(title):
            after = content[heading.end() : heading.end() + _MAX_DATE_CHARS]
            releases[level] += 1
            dated[level] += _YEAR.search(title) is not None or _YEAR.search(_TAG.sub(" ", after)[:100]) is not None
    return any(
        level > 1 and 2 * releases[level] >= levels[level] and (dated[level] or releases[level] > 1)
        for level in releases
    )


@dataclass(slots=True)
class _PageShape:
    """How much of a page is text, text in links to other pages, code, paragraphs with text outside of links, headings,
    and headings that are such links.
    """

    text: int = 0
    code: int = 0
    paragraphs: int = 0
    linked: int = 0
    headings: int = 0
    linked_headings: int = 0

    @property
    def is_listing(self) -> bool:
        mostly_links = self.linked > 0 and self.linked >= self.text * _MIN_LINKED_SHARE
        return mostly_links or (self.linked_headings > 0 and self.linked_headings * 2 >= self.headings)


def _measure_shape(html: str) -> _PageShape:
    """Count a page's characters and headings, and how many of them are in links; scripts and forms don't count."""
    shape = _PageShape()
    in_link = in_heading = in_code = in_paragraph = False
    skipped = ""
    for token in _TOKEN.finditer(html):
        closing, name, attributes = token.groups()
        name = (name or "").lower()
        if skipped:
            skipped = "" if closing and name == skipped else skipped
        elif name in ("script", "style", "form", "noscript") and not closing:
            skipped = name
        elif name == "a":
            in_link = not closing and _OUTWARD.search(attributes) is not None
            shape.linked_headings += in_link and in_heading
        elif name == "pre":
            in_code = not closing
        elif name == "p":
            in_paragraph = not closing
        elif name[:1] == "h" and name[1:].isdecimal():
            in_heading = not closing
            # A title above all is no entry.
            shape.headings += in_heading and name != "h1"
            shape.linked_headings += in_heading and in_link
        elif not name and not token.group().startswith("<"):
            size = len("".join(token.group().split()))
            shape.text += size
            shape.linked += size if in_link else 0
            shape.code += size if in_code else 0
            shape.paragraphs += size > 0 and in_paragraph and not in_link
    return shape
