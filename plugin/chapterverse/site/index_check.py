"""Compares an index with its site: its citations, and whether its pages are up to date.

The ledger has the hash of every page: of the built page, or of what the plugin read of it, which the page states in its
mark. An index whose ledger is elsewhere is compared by text: a page is stale if its words differ from those of its chunks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from chapterverse.indexing import status
from chapterverse.ledger import UNREAD, open_ledger
from chapterverse.model import PAGE, Head, Section, Source, join_blocks
from chapterverse.readers.addresses import clean_base, clean_url
from chapterverse.readers.html import read_document
from chapterverse.settings import Settings
from chapterverse.indexing.status import State
from chapterverse.site.findings import Way
from chapterverse.site.page import Inspection
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
        hashes: content hash of each source file, as indexed; empty if the ledger is elsewhere.
        outdated: state of each built file that is not up to date; None if the ledger can't tell.
        anchored: the index cites anchors, so it was made from HTML.
    """

    head: Head
    snapshot: Snapshot
    base: str
    cited: dict[str, set[str]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    outdated: Mapping[str, State] | None = None
    anchored: bool = False

    @property
    def way(self) -> Way:
        """How the index was made, by the files that it names."""
        if any(path.lower().endswith((".html", ".htm")) for path in self.files.values()):
            return "html"
        return "plugin" if self.anchored else "source"

    def state(self, address: str, path: str, page: str, inspection: Inspection) -> State:
        """Return the state of a page, given its HTML."""
        if self.outdated is not None:
            return self.outdated.get(path, "Indexed")
        file = self.files.get(address)
        if file is None and inspection.read == "":
            return "Indexed"
        if file is not None and file in self.hashes and inspection.read:
            return "Indexed" if inspection.read == self.hashes[file] else "Stale"
        # Behind the mark is what the theme added.
        marked = inspection.read is not None
        sections = read_document(page[: inspection.read_to] if marked else page).sections
        if file is None:
            return "Unindexed" if any(section.blocks for section in sections) else "Indexed"
        # An index without anchors was made from Markdown, to whose words a generator may have added.
        return "Indexed" if not self.anchored or self._has_same_words(address, sections, marked) else "Stale"

    def _has_same_words(self, address: str, sections: tuple[Section, ...], marked: bool) -> bool:
        """Whether a page's chunks have the words of the page.

        Args:
            marked: the sections end where the plugin stopped to read.
        """
        chunks = self.snapshot.page(self.files[address])
        stored = _words(chunk.text for chunk in chunks)
        headings = _words(chain.from_iterable(chunk.heading_path for chunk in chunks))
        shown = _words(join_blocks(section.blocks) for section in sections)
        own = _words(chain.from_iterable(section.path for section in sections))
        # Tolerate words that a theme adds at the start and end of a page (a date, an edit link, a list of posts), and
        # sections that the author kept out of the index, which the built page doesn't mark.
        cited = [section for section in sections if section.anchor in self.cited[address]]
        body = _words(join_blocks(section.blocks) for section in (cited if marked else cited[:-1]))
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
        if point.chunk.type != PAGE or point.chunk.source == "import":
            # The site doesn't contain it, so its state can't be derived from the site.
            others.add(point.chunk.source_file_path)
        else:
            url, _, anchor = point.chunk.url.partition("#")
            address = (clean_url(url) or url).removeprefix(index.base)
            index.files[address] = point.chunk.source_file_path
            index.cited.setdefault(address, set()).update([anchor] if anchor else [])
            index.anchored = index.anchored or bool(anchor)
    ledger = open_ledger(settings)
    offered = {source.file_path: source for source in sources}
    described = ledger.generation(head.scope) == head.generation and ledger.token(head.scope) == head.token
    # Rows rebuilt from the index have no hash of the pages.
    hashes = {path: row.content_hash for path, row in ledger.records(head.scope).items()} if described else {}
    index.hashes = hashes if UNREAD not in hashes.values() else {}
    if index.hashes and not offered.keys().isdisjoint(index.files.values()):
        files = status.derive(store, ledger, head.scope, offered.values()).files
        index.outdated = {
            file.file_path: file.state for file in files if file.state != "Indexed" and file.file_path not in others
        }
    return index


def _words(texts: Iterable[str]) -> set[str]:
    return set(chain.from_iterable(map(_WORD.findall, texts)))
