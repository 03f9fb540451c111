"""Finds where to begin reading: pages titled as a beginning, and the home page; without either, sections so headed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chapterverse.filters import In
from chapterverse.model import Chunk
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse_api import phrases

#: Pages that are named, and search results that are looked through for them.
MAX_FIRST_PAGES, _MAX_HITS = 3, 50
#: Words that a title may have beside such a phrase: "Installation guide". On 30 documentations two add eleven pages, of
#: which five are where to begin, and one adds four with two such.
_MAX_OTHER_WORDS = 2


def find_first_pages(snapshot: Snapshot, language: str) -> list[Chunk]:
    """Return where to begin on each page, best first; in the docs' main language if they have none of this."""
    languages = snapshot.head.languages
    spoken = next((tag for tag in languages if lexical.primary_subtag(tag) == lexical.primary_subtag(language)), None)
    spoken = spoken or snapshot.head.main_language
    vector = lexical.query_vector(phrases.for_language(spoken).beginning, (spoken,))
    only = In("language", (spoken,)) if len(languages) > 1 else None
    chunks = [hit.chunk for hit in snapshot.search_lexical(vector, _MAX_HITS, only)]
    titled = [snapshot.page(chunk.source_file_path)[0] for chunk in _sort(chunks, "chapter_title", spoken)]
    home = _one_a_page((c for c in snapshot.page("home", "content_type") if c.language == spoken), 1)
    # The home page has a place, even behind many others.
    paths = {chunk.source_file_path for chunk in home}
    pages = _one_a_page((c for c in titled if c.source_file_path not in paths), MAX_FIRST_PAGES - len(home))
    return [*pages, *home] or _one_a_page(_sort(chunks, "section_heading", spoken), MAX_FIRST_PAGES)


def _sort(chunks: Iterable[Chunk], heading: str, language: str) -> list[Chunk]:
    """Return the chunks headed as a beginning, those with the fewest other words in this heading first."""
    beginnings = [_words(phrase) for phrase in phrases.for_language(language).beginning.split("; ")]
    others = [(_other_words(_words(getattr(chunk, heading) or ""), beginnings), chunk) for chunk in chunks]
    return [chunk for count, chunk in sorted(others, key=lambda pair: pair[0]) if count <= _MAX_OTHER_WORDS]


def _other_words(words: Sequence[str], beginnings: Iterable[Sequence[str]]) -> int:
    """Return how many words of a heading are not of the longest beginning in it; more than may be without one."""
    lengths = [
        len(beginning)
        for beginning in beginnings
        if any(words[at : at + len(beginning)] == beginning for at in range(len(words)))
    ]
    return len(words) - max(lengths) if lengths else _MAX_OTHER_WORDS + 1


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
