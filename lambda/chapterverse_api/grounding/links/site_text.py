"""Looks for an address in the whole site, when the sources of an answer don't hold it."""

from __future__ import annotations

from collections.abc import Iterator

from chapterverse.errors import IndexFault
from chapterverse.store import Snapshot
from chapterverse.text import lexical

#: Searches of one answer, and results of each whose text is read. A word that repeats a page is found in the results of
#: the words before it, so that true answers need few.
MAX_SEARCHES, MAX_RESULTS = 32, 8
#: Characters of a text that are searched for.
MAX_CHARS = 300


class SiteText:
    """The texts of an index that may hold an address; none without an index or after it failed.

    The index hashes its words, and a hash can be forged. So a search only says which texts to read.
    """

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self._snapshot = snapshot
        self._searches = MAX_SEARCHES if snapshot else 0

    def search(self, text: str) -> Iterator[str]:
        """Yield the texts, headings and addresses of the sections that share the most words with a text."""
        if self._snapshot is None or not self._searches or not text:
            return
        self._searches -= 1
        try:
            vector = lexical.query_vector(text[:MAX_CHARS], self._snapshot.head.languages)
            hits = self._snapshot.search_lexical(vector, MAX_RESULTS) if vector.indices else []
        except IndexFault:
            self._searches = 0
            return
        for hit in hits:
            yield from (hit.chunk.text, *hit.chunk.heading_path, hit.chunk.url)
