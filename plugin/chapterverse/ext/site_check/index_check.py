"""Compares an index with its site: its citations, and whether its pages are up to date.

The ledger has the hash of every page. An index whose ledger is elsewhere is compared by text: a page is stale if its
words differ from those of its chunks.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from chapterverse.ext.site_check import status
from chapterverse.ext.site_check.findings import Way
from chapterverse.ext.site_check.status import State
from chapterverse.ledger import UNREAD, Ledger, open_ledger, rows_of
from chapterverse.model import PAGE, Head, Scope, Section, Source, join_blocks
from chapterverse.readers.html.metadata import PageMetadata
from chapterverse.readers.sections.html_page import read_document
from chapterverse.readers.urls import clean_base, clean_url
from chapterverse.settings import Settings
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
        snapshots: where each page's chunks are, by page address.
        outdated: state of each built file that is not up to date; None if the ledger can't tell.
        anchored: the index cites anchors, so it was made from HTML.
        deleted: docs versions whose pages are gone from the site.
    """

    base: str
    cited: dict[str, set[str]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    outdated: Mapping[str, State] | None = None
    anchored: bool = False
    deleted: tuple[Head, ...] = ()

    @property
    def way(self) -> Way:
        """How the index was made, by the files that it names."""
        if any(path.lower().endswith((".html", ".htm")) for path in self.files.values()):
            return "html"
        return "plugin" if self.anchored else "source"

    def state(self, address: str, path: str, page: str, metadata: PageMetadata) -> State:
        """Return the state of a page, given its HTML."""
        if self.outdated is not None:
            return self.outdated.get(path, "Indexed")
        sections = read_document(page).sections
        if address not in self.files:
            return "Unindexed" if any(section.blocks for section in sections) else "Indexed"
        # An index without anchors was made from Markdown, to whose words a generator may have added.
        marked = metadata.mark is not None
        return "Indexed" if not self.anchored or self._has_same_words(address, sections, marked) else "Stale"

    def _has_same_words(self, address: str, sections: tuple[Section, ...], marked: bool) -> bool:
        """Whether a page's chunks have the words of the page.

        Args:
            marked: the sections hold nothing of the theme.
        """
        chunks = self.snapshots[address].page(self.files[address])
        stored = _words(chunk.text for chunk in chunks)
        headings = _words(chain.from_iterable(chunk.heading_path for chunk in chunks))
        site_words = _words(join_blocks(section.blocks) for section in sections)
        site_headings = _words(chain.from_iterable(section.path for section in sections))
        # Tolerate words that a theme adds at the start and end of a page: a date, an edit link, a list of posts.
        cited = [section for section in sections if section.anchor in self.cited[address]]
        body = _words(join_blocks(section.blocks) for section in (cited if marked else cited[:-1]))
        return stored <= site_words | site_headings and body <= stored | headings


def open_index(settings: Settings, base: str, sources: Collection[Source]) -> IndexedPages:
    """Return the index that the settings name; without a name, the one of the site at `base`.

    Raises:
        IndexFault: there is none, or it can't be read.
        ConfigurationError: there are several, or a setting can't be used.
    """
    store = open_store(settings)
    heads = store.heads()
    head = _head(heads, settings, base)
    index, ledger = IndexedPages(clean_base(head.base_url) or base), open_ledger(settings)
    # A build may hold several docs versions, each below an address of its own.
    below = [h for h in heads if settings.docs_version is None and _is_below(h, head)]
    snapshots = {version.scope: store.snapshot(version.scope) for version in (head, *below)}
    urls = {source.url for source in sources}
    index.deleted = tuple(version for version in below if not _has_page(snapshots[version.scope], urls))
    versions = [version for version in (head, *below) if version not in index.deleted]
    extras = [_read_points(index, snapshots[version.scope]) for version in versions]
    by_version, indexed = _by_version(index, versions, sources), {*index.files.values()}
    outdated: dict[str, State] = {}
    for version, extra in zip(versions, extras, strict=True):
        offered = by_version[version.scope]
        if not _has_hashes(ledger, version) or indexed.isdisjoint(source.file_path for source in offered):
            return index
        files = status.derive(store, ledger, version.scope, offered).files
        outdated |= {f.file_path: f.state for f in files if f.state != "Indexed" and f.file_path not in extra}
    index.outdated = outdated
    return index


def no_pages_of(head: Head) -> str:
    """Return the sentence about a docs version whose pages are gone from its site."""
    command = f"chapterverse unpublish --site {shlex.quote(head.site)} --docs-version {shlex.quote(head.version)}"
    return (
        f"The store holds the docs version {head.version!r}, and the site has no page of it: if it is gone, run "
        f"`{command}`."
    )


def _head(heads: Sequence[Head], settings: Settings, base: str) -> Head:
    """Return the head that the settings name; without a name, the one of the site at `base`."""
    here = [
        head for head in heads
        if clean_base(head.base_url) == base and settings.site in ("", head.site)
        and settings.docs_version in (None, head.version)
    ]  # fmt: skip
    return only_head(here or heads, settings.site, settings.docs_version, place=settings.store)


def _has_hashes(ledger: Ledger, version: Head) -> bool:
    """Return whether the ledger has the content hash of each page: it describes this generation and read it itself."""
    hashes = {row.content_hash for row in (rows_of(ledger, version) or {}).values()}
    return bool(hashes) and UNREAD not in hashes


def _by_version(index: IndexedPages, versions: list[Head], sources: Iterable[Source]) -> dict[Scope, list[Source]]:
    """Return the sources of each version: where they are indexed, else by their address."""
    indexed = {file: index.snapshots[address].head.scope for address, file in index.files.items()}
    by_version: dict[Scope, list[Source]] = {version.scope: [] for version in versions}
    for source in sources:
        above = [version for version in versions[1:] if f"{source.url}/".startswith(version.base_url)]
        nearest = max(above, key=lambda version: len(version.base_url), default=versions[0])
        by_version[indexed.get(source.file_path, nearest.scope)].append(source)
    return by_version


def _is_below(version: Head, head: Head) -> bool:
    """Whether a docs version is published below the address of another version of its site."""
    return (
        version.site == head.site and version.base_url != head.base_url and version.base_url.startswith(head.base_url)
    )


def _has_page(version: Snapshot, urls: Collection[str]) -> bool:
    """Whether a site has a page of a docs version: one that it cites, or one at its address."""
    base = version.head.base_url
    cited = (str(url).partition("#")[0] for url in version.values("url"))
    return any(f"{url}/".startswith(base) for url in urls) or any((clean_url(url) or url) in urls for url in cited)


def _read_points(index: IndexedPages, snapshot: Snapshot) -> set[str]:
    """Note the pages of a version. Return the files whose state can't be derived, because the site lacks them."""
    extra_files: set[str] = set()
    for point in snapshot.points():
        if point.chunk.type != PAGE or point.chunk.source == "import":
            # The site doesn't contain it, so its state can't be derived from the site.
            extra_files.add(point.chunk.source_file_path)
        else:
            url, _, anchor = point.chunk.url.partition("#")
            address = (clean_url(url) or url).removeprefix(index.base)
            index.files[address] = point.chunk.source_file_path
            index.snapshots[address] = snapshot
            index.cited.setdefault(address, set()).update([anchor] if anchor else [])
            index.anchored = index.anchored or bool(anchor)
    return extra_files


def _words(texts: Iterable[str]) -> set[str]:
    return set(chain.from_iterable(map(_WORD.findall, texts)))
