"""Compares an index with its site: its citations, and whether its pages are up to date.

The ledger of an index made from the built folder has every page's hash. An index made by a plugin, or with its ledger
elsewhere, is compared by text: a page is stale if its words differ from those of its chunks.
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

#: Up to 40 characters, because the chunker may cut a longer word in two.
_WORD = re.compile(r"(?<!\w)\w{1,40}(?!\w)")


@dataclass(slots=True)
class IndexedPages:
    """The pages of a site in its index.

    Attributes:
        base: the site's address in citations, with a slash at its end.
        cited: cited anchors by page address relative to `base`.
        files: source file by page address.
        outdated: state of each file that is not up to date; None if the ledger can't tell.
        anchored: the index cites anchors, so it was made from HTML.
    """

    head: Head
    snapshot: Snapshot
    base: str
    cited: dict[str, set[str]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    outdated: Mapping[str, State] | None = None
    anchored: bool = False

    def state(self, address: str, path: str, page: str) -> State:
        """Return the state of a page, given its HTML."""
        if self.outdated is not None:
            return self.outdated.get(path, "Indexed")
        sections = read_document(page).sections
        if address not in self.files:
            return "Unindexed" if any(section.blocks for section in sections) else "Indexed"
        # An index without anchors was made from Markdown, to whose words a generator may have added.
        return "Indexed" if not self.anchored or self._has_same_words(address, sections) else "Stale"

    def _has_same_words(self, address: str, sections: tuple[Section, ...]) -> bool:
        """Whether a page's chunks have the words of the page."""
        chunks = self.snapshot.page(self.files[address])
        stored = _words(chunk.text for chunk in chunks)
        headings = _words(chain.from_iterable(chunk.heading_path for chunk in chunks))
        shown = _words(join_blocks(section.blocks) for section in sections)
        own = _words(chain.from_iterable(section.path for section in sections))
        # Tolerate words that a theme adds at the start and end of a page (a date, an edit link), and sections that the
        # author kept out of the index, which the built page doesn't mark.
        cited = self.cited[address]
        body = _words(join_blocks(section.blocks) for section in sections[:-1] if section.anchor in cited)
        return stored <= shown | own and body <= stored | headings


def open_index(settings: Settings, base: str, sources: Iterable[Source]) -> IndexedPages:
    """Return the index that the settings name; without a name, the one of the site at `base`.

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
            # The site doesn't contain it, so its state can't be derived from the site.
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
    # Rows rebuilt from the index have no hash of the pages.
    hashed = described and UNREAD not in {r.content_hash for r in ledger.records(head.scope).values()}
    if hashed and not offered.keys().isdisjoint(index.files.values()):
        files = status.derive(store, ledger, head.scope, offered.values()).files
        index.outdated = {
            file.file_path: file.state for file in files if file.state != "Indexed" and file.file_path not in others
        }
    return index


def _words(texts: Iterable[str]) -> set[str]:
    return set(chain.from_iterable(map(_WORD.findall, texts)))
