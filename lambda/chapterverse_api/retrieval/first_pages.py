"""Finds where to begin reading: pages titled as a beginning, and the home page; without either, sections so headed."""

from __future__ import annotations

from collections.abc import Iterable

from chapterverse.filters import In
from chapterverse.model import Chunk
from chapterverse.store import Hit, Snapshot
from chapterverse.text import lexical
from chapterverse_api import phrases

#: Pages that are named, and search results that are looked through for them.
MAX_FIRST_PAGES, _MAX_HITS = 3, 50


def find_first_pages(snapshot: Snapshot, language: str) -> list[Chunk]:
    """Return where to begin on each page, best first; in the docs' main language if they have none of this."""
    languages = snapshot.head.languages
    spoken = next((tag for tag in languages if lexical.primary_subtag(tag) == lexical.primary_subtag(language)), None)
    spoken = spoken or snapshot.head.main_language
    chunks = [hit.chunk for hit in _search(snapshot, spoken)]
    titled = (chunk.source_file_path for chunk in chunks if _begins(chunk.chapter_title, snapshot, spoken))
    home = (chunk for chunk in snapshot.page("home", "content_type") if chunk.language == spoken)
    pages = _one_a_page((*(snapshot.page(path)[0] for path in titled), *home))
    return pages or _one_a_page(chunk for chunk in chunks if _begins(chunk.section_heading or "", snapshot, spoken))


def _search(snapshot: Snapshot, language: str) -> list[Hit]:
    words = phrases.for_language(language).beginning
    only = In("language", (language,)) if len(snapshot.head.languages) > 1 else None
    return snapshot.search_lexical(lexical.query_vector(words, (language,)), _MAX_HITS, only)


def _begins(heading: str, snapshot: Snapshot, language: str) -> bool:
    """Whether a heading is made of words of a beginning; "Installing Quill" is one in the docs of Quill."""
    own, beginning, name = (
        lexical.terms_of(lexical.words(text, language))
        for text in (heading, phrases.for_language(language).beginning, snapshot.head.site.replace("-", " "))
    )
    return bool(own & beginning) and own <= beginning | name


def _one_a_page(chunks: Iterable[Chunk]) -> list[Chunk]:
    pages: dict[str, Chunk] = {}
    for chunk in chunks:
        if chunk.url:
            pages.setdefault(chunk.source_file_path, chunk)
    return list(pages.values())[:MAX_FIRST_PAGES]
