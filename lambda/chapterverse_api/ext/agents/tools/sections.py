"""Searches the index, and reads its pages and sections as Markdown, in parts of a size that fits a budget of tokens.

Also the arguments and results that several tools of the documentation share.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import Field, StringConstraints

from chapterverse.errors import InputError
from chapterverse.model import PAGE, Chunk, Head
from chapterverse.store import Snapshot
from chapterverse_api import rejections
from chapterverse_api.contract import ChatQuery, ResponseModel
from chapterverse_api.ext.agents.tools.tool import ToolContext
from chapterverse_api.index.site_index import SiteIndex, on_page
from chapterverse_api.log import search_progress
from chapterverse_api.rejections import make_query
from chapterverse_api.request_limits import MAX_LANGUAGE_CHARS, MAX_URL_CHARS, MAX_VERSION_CHARS
from chapterverse_api.search.ranking import section_key
from chapterverse_api.search.results import Retrieval
from chapterverse_api.search.site_search import SearchResources, search_site

#: Tokens around the results of a tool, and around each quote.
OVERHEAD_TOKENS = 80

Url = Annotated[str, StringConstraints(min_length=1, max_length=MAX_URL_CHARS)]
MaxTokens = Annotated[int, Field(ge=200, le=20_000, description="Most cl100k tokens of the result, estimated.")]
VersionArgument = Annotated[
    str | None,
    Field(max_length=MAX_VERSION_CHARS, description="Docs version; the only one, or the default one, if left out."),
]
LanguageArgument = Annotated[
    str | None, Field(max_length=MAX_LANGUAGE_CHARS, description="BCP 47 tag of the pages to search, such as de.")
]
#: Validated by the contract of the API, whose schema of all levels of nesting would fill a model's context.
RawFilters = Annotated[
    dict[str, Any],
    Field(
        description='Conditions on fields, such as {"tags": ["linux"], "url": "https://docs.example/guide/"}. Fields: '
        "url (a prefix), chapter_title, content_type, tags, language, created_at, source_file_path. Operators: $eq, "
        "$in, $prefix, $contains, $gt, $gte, $lt, $lte, $and, $or."
    ),
]
#: ASCII characters of a token, fewer than the 3.6 of prose, since JSON and code have shorter ones.
_ASCII = 3.0
#: Tokens of any other character, such as a Chinese one. A Cyrillic character has fewer.
_OTHER = 1.25
#: Where a text may be cut, best first.
_SEAMS = ("\n\n", "\n", ". ", " ")


class QuotedSection(ResponseModel):
    """A section with words of it. Every result of a tool is made of these."""

    url: Annotated[str, Field(description="Of the section, with its anchor.")]
    chapter: str
    section: str | None
    quote: str
    version: str
    generation: int


def quote_section(url: str, chunk: Chunk, quote: str, head: Head) -> QuotedSection:
    """Return words of a chunk's section."""
    return QuotedSection(
        url=url,
        chapter=chunk.chapter_title,
        section=chunk.section_heading,
        quote=quote,
        version=head.version,
        generation=head.generation,
    )


def make_tool_query(text: str, arguments: Any, **more: Any) -> ChatQuery:
    """Return a query of the API, validated as such."""
    return make_query(query=text, version=arguments.version, language=arguments.language, **more)


@dataclass(frozen=True, slots=True)
class SectionText:
    """A section of a page.

    Attributes:
        url: as readers have it, with the anchor.
        text: Markdown, without the heading.
        first: a chunk of it, for what else is known of it.
    """

    url: str
    text: str
    first: Chunk


def estimate_cl100k_tokens(text: str) -> int:
    """Return an upper estimate of the cl100k tokens of a text; counting them would take longer than a search."""
    ascii_length = len(text.encode("ascii", "ignore"))
    return math.ceil(ascii_length / _ASCII + (len(text) - ascii_length) * _OTHER)


def cut_to(text: str, most: int) -> str:
    """Return the beginning of a text with about so many tokens at most, up to the end of a paragraph, line or word."""
    if estimate_cl100k_tokens(text) <= most:
        return text
    end = bisect_right(range(len(text)), most, key=lambda length: estimate_cl100k_tokens(text[:length])) - 1
    for seam in _SEAMS:
        at = text.rfind(seam, 0, end)
        # A seam near the beginning would leave most of the budget unused.
        if at > end // 2:
            return text[: at + len(seam)].rstrip()
    return text[:end]


def find_page(url: str, index: SiteIndex) -> tuple[Snapshot, list[SectionText]]:
    """Return the sections at an address in order: those of a page, or the one of its anchor with those below it.

    Args:
        url: of a page or a section, as in a citation.

    Raises:
        InputError: the index has no such page, or the page no such section.
        IndexFault: no index can be read.
    """
    snapshot = index.snapshot(None, url)
    published = index.published_url(url, snapshot.head)
    page = _chunks(published, snapshot)
    if not page:
        raise InputError("This documentation has no page at that url: take one from search_docs.", field="url")
    anchor = unquote(published.partition("#")[2])
    chosen = _find_by_anchor(page, anchor) if anchor else page
    if not chosen:
        raise InputError("The page has no such section: leave out the part of url behind #.", field="url")
    return snapshot, list(_sections(chosen, index, snapshot))


def _find_by_anchor(page: Sequence[Chunk], anchor: str) -> list[Chunk]:
    """Return the chunks of the section with an anchor, and of the sections below it."""
    at = next((n for n, chunk in enumerate(page) if unquote(chunk.url.partition("#")[2]) == anchor), len(page))
    return list(takewhile(lambda chunk: _is_within(chunk, page[at]), page[at:]))


def _is_within(chunk: Chunk, first: Chunk) -> bool:
    """Whether a chunk is of the section of another one, or below it."""
    above, path = first.heading_path, chunk.heading_path
    return section_key(chunk) == section_key(first) or (len(path) > len(above) and path[: len(above)] == above)


def _chunks(published: str, snapshot: Snapshot) -> list[Chunk]:
    # FAQ entries may have the address of a page, and are no part of it.
    chunks = (chunk for at in on_page(published, snapshot) for chunk in snapshot.page(at, "url"))
    first = next((chunk for chunk in chunks if chunk.type == PAGE), None)
    return snapshot.page(first.source_file_path) if first else []


def _sections(chunks: Sequence[Chunk], index: SiteIndex, snapshot: Snapshot) -> Iterator[SectionText]:
    groups: dict[object, list[Chunk]] = {}
    for chunk in chunks:
        groups.setdefault(section_key(chunk), []).append(chunk)
    for group in groups.values():
        text = "\n\n".join(chunk.text for chunk in group)
        yield SectionText(index.public_url(group[0], snapshot.head), text, group[0])


def markdown(sections: Iterable[SectionText]) -> str:
    """Return a page as one Markdown text, with all headings that lead to its sections."""
    lines, above = list[str](), tuple[str, ...]()
    for part in sections:
        path = part.first.heading_path
        shared_depth = len([*takewhile(lambda pair: pair[0] == pair[1], zip(path, above, strict=False))])
        lines += [f"{'#' * min(6, depth)} {path[depth - 1]}" for depth in range(shared_depth + 1, len(path) + 1)]
        lines.append(part.text)
        above = path
    return "\n\n".join(lines) + "\n"


def search_within_budget(query: ChatQuery, context: ToolContext) -> tuple[Retrieval, Snapshot]:
    """Search within the day's budget, as for an answer."""
    resources = context.service.resources
    snapshot = resources.index.snapshot(query.docs_version)
    with resources.reserving(query.query or "") as models, search_progress() as progress:
        search = SearchResources(
            index=resources.index,
            settings=resources.settings,
            embedder=models.embedder,
            reranker=models.reranker,
            reading_model=models.reading_model,
            deadline=context.deadline,
            progress=progress,
        )
        retrieval = search_site(query, snapshot, search)
        for part, error in retrieval.failures.items():
            rejections.report(error, part=part, query_id=progress.id)
    return retrieval, snapshot
