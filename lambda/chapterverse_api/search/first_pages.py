"""Finds where to begin reading: pages titled as a beginning, and the home page; without either, sections so headed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chapterverse.filters import In
from chapterverse.model import Chunk
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse_api import phrases

#: Pages that are named, and search results that are looked through for them.
_MAX_FIRST_PAGES, _MAX_HITS = 3, 50
#: A title with more words beside such a phrase is of something else. None of 28 documentations depends on it.
_MAX_OTHER_WORDS = 2


def find_first_pages(snapshot: Snapshot, language: str) -> list[Chunk]:
    """Return where to begin on each page, best first; in the docs' main language if they have none of this."""
    languages = snapshot.head.languages
    spoken = next((tag for tag in languages if lexical.primary_subtag(tag) == lexical.primary_subtag(language)), None)
    spoken = spoken or snapshot.head.main_language
    chunks = _search(snapshot, spoken)
    titled = [snapshot.page(chunk.source_file_path)[0] for chunk in _find_headed(chunks, "chapter_title", spoken)]
    home = _one_a_page((c for c in snapshot.page("home", "content_type") if c.language == spoken), 1)
    # The home page has a place, even behind many others.
    paths = {chunk.source_file_path for chunk in home}
    pages = _one_a_page((c for c in titled if c.source_file_path not in paths), _MAX_FIRST_PAGES - len(home))
    return [*pages, *home] or _one_a_page(_find_headed(chunks, "section_heading", spoken), _MAX_FIRST_PAGES)


def _search(snapshot: Snapshot, language: str) -> list[Chunk]:
    words = phrases.for_language(language).beginning
    only = In("language", (language,)) if len(snapshot.head.languages) > 1 else None
    hits = snapshot.search_lexical(lexical.query_vector(words, (language,)), _MAX_HITS, only)
    return [hit.chunk for hit in hits]


def _find_headed(chunks: Iterable[Chunk], heading: str, language: str) -> list[Chunk]:
    """Return the chunks headed as a beginning with as few other words in this heading as any.

    So "Installation guide" counts where no title is "Installation". On 28 documentations those so titled are where to
    begin, but on one. Of the titles with more words than these a half are not.
    """
    beginnings = [_words(phrase) for phrase in phrases.for_language(language).beginning.split("; ")]
    headings = ((_words(getattr(chunk, heading) or ""), chunk) for chunk in chunks)
    headed = [(len(words) - length, chunk) for words, chunk in headings if (length := _length(words, beginnings))]
    fewest = min((count for count, _ in headed), default=0)
    return [chunk for count, chunk in headed if count == fewest <= _MAX_OTHER_WORDS]


def _length(words: Sequence[str], beginnings: Iterable[Sequence[str]]) -> int:
    """Return how many words the longest beginning in a heading has; 0 without one."""
    found = (b for b in beginnings if any(words[at : at + len(b)] == b for at in range(len(words))))
    return max(map(len, found), default=0)


def _words(text: str) -> list[str]:
    """Return all words, as no language's function words are left out: "getting" of "getting started" is one."""
    return [word.surface for word in lexical.words(text, "")]


def _one_a_page(chunks: Iterable[Chunk], limit: int) -> list[Chunk]:
    """Return the first chunk of each page, and of each title, as these lead to the same for all a reader can tell."""
    pages: dict[str, Chunk] = {}
    for chunk in chunks:
        if chunk.url:
            pages.setdefault(chunk.chapter_title.casefold(), chunk)
    return list(pages.values())[:limit]
