"""Finds where to begin reading: pages whose heading is made of words of a beginning, and the home page."""

from __future__ import annotations

from collections.abc import Iterator

from chapterverse.filters import In
from chapterverse.model import Chunk
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse_api import phrases

#: Pages that are named, and search results that are looked through for them.
MAX_FIRST_PAGES, _MAX_HITS = 3, 50


def find_first_pages(snapshot: Snapshot, language: str) -> list[Chunk]:
    """Return the first chunk of what to read first, best first; the docs' main language if they have none of this."""
    languages = snapshot.head.languages
    spoken = next((tag for tag in languages if lexical.primary_subtag(tag) == lexical.primary_subtag(language)), None)
    spoken = spoken or snapshot.head.main_language
    pages: dict[str, Chunk] = {}
    for chunk in (*_find_beginnings(snapshot, spoken), *snapshot.page("home", "content_type")):
        if chunk.url and (len(languages) < 2 or chunk.language == spoken):
            pages.setdefault(chunk.source_file_path, chunk)
    return list(pages.values())[:MAX_FIRST_PAGES]


def _find_beginnings(snapshot: Snapshot, language: str) -> Iterator[Chunk]:
    """Yield chunks by their headings: titles of pages before headings on other pages."""
    words = phrases.for_language(language).beginning
    terms = lexical.terms_of(lexical.words(words, language))
    name = lexical.terms_of(lexical.words(snapshot.head.site.replace("-", " "), language))
    only = In("language", (language,)) if len(snapshot.head.languages) > 1 else None
    hits = snapshot.search_lexical(lexical.query_vector(words, (language,)), _MAX_HITS, only)

    def begins(heading: str | None) -> bool:
        own = lexical.terms_of(lexical.words(heading or "", language))
        # "Installing Quill" is a beginning in the docs of Quill.
        return bool(own & terms) and own <= terms | name

    chunks = [hit.chunk for hit in hits]
    for chunk in chunks:
        if begins(chunk.chapter_title):
            yield snapshot.page(chunk.source_file_path)[0]
    yield from (chunk for chunk in chunks if begins(chunk.section_heading))
