"""Tells whether an address, or a piece of code, is in the sources of an answer or on the site."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from chapterverse.errors import IndexFault
from chapterverse.store import Snapshot
from chapterverse.text import lexical

#: Characters that may follow an address in a sentence, or close a link around it.
CLOSING = ".,;:!?)]}*_|"
#: Scripts without spaces: each of their characters is a word.
WIDE = "\u3000-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\U00020000-\U0003ffff"  # noqa: E501
# What a text may hold behind an address that ends there: behind a path the end of the word, behind a host its path.
_END = re.compile(rf"[{re.escape(CLOSING)}]*+(?:[\s<>\"'`\[(|{WIDE}]|\Z)|\\[\"'nt]|&(?!\w+=)")
_HOST_END = re.compile(rf"(?=[{WIDE}])|(?![\w-]|\.\w)")
_AUTHORITY = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?(?://)?[^/?#\\]*", re.IGNORECASE)
_WITHIN = re.compile(rf"(?![{WIDE}])[^\W_]|(?<=\w)[.-]")

#: Searches of one answer, and results of each whose text is read. A word that repeats a page is found in the results of
#: the words before it, so that true answers need few.
MAX_TEXT_SEARCHES, _MAX_RESULTS = 32, 8
#: Characters of a text that are searched for.
_MAX_KNOWN_CHARS = 300


class SiteText:
    """The texts of an index that may hold an address; none without an index or after it failed.

    The index hashes its words, and a hash can be forged. So a search only says which texts to read.
    """

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self._snapshot = snapshot
        self._searches = MAX_TEXT_SEARCHES

    def search(self, text: str) -> Iterator[str]:
        """Yield the texts, headings and addresses of the sections that share the most words with a text."""
        if self._snapshot is None or not self._searches or not text:
            return
        self._searches -= 1
        try:
            vector = lexical.query_vector(text[:_MAX_KNOWN_CHARS], self._snapshot.head.languages)
            hits = self._snapshot.search_lexical(vector, _MAX_RESULTS) if vector.indices else []
        except IndexFault:
            self._searches = 0
            return
        for hit in hits:
            yield from (hit.chunk.text, *hit.chunk.heading_path, hit.chunk.url)


class KnownText:
    """The texts of the sources, and those of the site that hold what was asked for.

    Args:
        texts: of the sources.
        site: the rest of the site.

    Attributes:
        sentence: the sentence of the answer that is read. The site's index has the words around the address of a link,
            and not the address.
    """

    def __init__(self, texts: Iterable[str], site: SiteText) -> None:
        # Each with its lower case, because hosts have none.
        self._texts = {text: text.lower() for text in texts if text}
        self._site = site
        self.sentence = ""
        self._known: dict[str, bool] = {}

    def holds_address(self, address: str) -> bool:
        """Whether a text has this address: all of it, or without a path at least the host."""
        key = f"\0{address}"
        if key not in self._known:
            is_host = _AUTHORITY.fullmatch(address) is not None
            end, wanted = (_HOST_END, address.lower()) if is_host else (_END, address)
            texts = self._read(address)
            self._known[key] = any(_has(self._texts[text] if is_host else text, wanted, end) for text in texts)
        return self._known[key]

    def holds(self, text: str) -> bool:
        """Whether a text has this one verbatim, between the same words."""
        if text not in self._known:
            self._known[text] = any(_has(one, text, _HOST_END) for one in self._read(text))
        return self._known[text]

    def _read(self, text: str) -> Iterator[str]:
        """Yield the known texts, and then those that the site has for this one."""
        yield from self._texts
        sentence, self.sentence = self.sentence, ""
        for query in (sentence, text):
            for found in self._site.search(query):
                if found not in self._texts:
                    self._texts[found] = found.lower()
                    yield found


def _has(text: str, address: str, end: re.Pattern[str]) -> bool:
    """Whether a text has an address, or code, that begins there and ends as `end` says."""
    at = text.find(address)
    while at >= 0:
        if not (at and _WITHIN.match(text, at - 1)) and end.match(text, at + len(address)):
            return True
        at = text.find(address, at + 1)
    return False
