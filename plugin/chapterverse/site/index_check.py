"""Compares an index with its site: what it cites, and whether its pages are up to date.

An index that was made from the built folder has the hash of every page in its ledger. One that a plugin made while it
built, or whose ledger is elsewhere, is compared by its text: a page whose words differ from those of its chunks is
stale.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from chapterverse.indexing import status
from chapterverse.ledger import UNREAD, open_ledger
from chapterverse.model import PAGE, Head, Section, Source, join_blocks
from chapterverse.readers.addresses import clean_base
from chapterverse.readers.html import read_document
from chapterverse.settings import Settings
from chapterverse.indexing.status import State
from chapterverse.store import Snapshot, only_head, open_store

#: Longer ones may have been cut in two by the chunker.
_WORD = re.compile(r"(?<!\w)\w{1,40}(?!\w)")


@dataclass(slots=True)
class IndexedPages:
    """What an index says of a site.

    Attributes:
        base: address of the site in the index's citations, with a slash at its end.
        cited: the anchors that it cites, by page address relative to `base`.
        files: the files that it read those pages from.
        known: the state of each file that isn't indexed as it is now; None where the ledger can't tell.
        anchored: it cites anchors, so it was made from HTML.
    """

    head: Head
    snapshot: Snapshot
    base: str
    cited: dict[str, set[str]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    known: Mapping[str, State] | None = None
    anchored: bool = False

    def state(self, address: str, path: str, page: str) -> State:
        """Return the state of one page, given its HTML."""
        if self.known is not None:
            return self.known.get(path, "Indexed")
        sections = read_document(page).sections
        if address not in self.files:
            return "Unindexed" if any(section.blocks for section in sections) else "Indexed"
        # Without any anchor the index was made from Markdown, whose words a generator may have added to.
        return "Indexed" if not self.anchored or self._says(address, sections) else "Stale"

    def _says(self, address: str, sections: tuple[Section, ...]) -> bool:
        """Whether the index says of a page what the page says now."""
        chunks = self.snapshot.page(self.files[address])
        stored = _words(chunk.text for chunk in chunks)
        headings = _words(chain.from_iterable(chunk.heading_path for chunk in chunks))
        shown = _words(join_blocks(section.blocks) for section in sections)
        own = _words(chain.from_iterable(section.path for section in sections))
        # A theme adds to a page's beginning and end what no plugin saw: a date, a link to edit it. And an author may
        # have kept whole sections out of the index, which the built page doesn't tell.
        cited = self.cited[address]
        body = _words(join_blocks(section.blocks) for section in sections[:-1] if section.anchor in cited)
        return stored <= shown | own and body <= stored | headings


def open_index(settings: Settings, base: str, sources: Iterable[Source]) -> IndexedPages:
    """Return the index that the settings name, or of several in a store the one whose site is at `base`.

    Raises:
        IndexFault: there is none, or it can't be read.
        ConfigurationError: there are several, or a setting can't be used.
    """
    store = open_store(settings)
    heads = store.heads()
    here = [head for head in heads if clean_base(head.base_url) == base]
    head = only_head(heads if settings.site or not here else here, settings.site, settings.docs_version)
    index = IndexedPages(head, store.snapshot(head.scope), clean_base(head.base_url) or base)
    others: set[str] = set()
    for point in index.snapshot.points():
        if point.chunk.type != PAGE:
            # The site doesn't hold it, so nothing of the site tells whether it is still there.
            others.add(point.chunk.source_file_path)
        else:
            address, _, anchor = point.chunk.url.partition("#")
            address = address.removeprefix(index.base)
            index.files[address] = point.chunk.source_file_path
            index.cited.setdefault(address, set()).update([anchor] if anchor else [])
            index.anchored = index.anchored or bool(anchor)
    ledger = open_ledger(settings)
    offered = {source.file_path: source for source in sources}
    described = ledger.generation(head.scope) == head.generation and ledger.token(head.scope) == head.token
    # Rows that were made from the index itself say nothing of the pages.
    told = described and UNREAD not in {r.content_hash for r in ledger.records(head.scope).values()}
    if told and not offered.keys().isdisjoint(index.files.values()):
        found = status.derive(store, ledger, head.scope, offered.values()).files
        index.known = {
            file.file_path: file.state for file in found if file.state != "Indexed" and file.file_path not in others
        }
    return index


def _words(texts: Iterable[str]) -> set[str]:
    return set(chain.from_iterable(map(_WORD.findall, texts)))
