"""Offers the configured sources beyond the site to the index, at each build.

Each build offers all of them, so the index drops a source that is no longer listed. A failed fetch loses no document:
the last download is offered again. Without a download the index keeps its version.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote, urldefrag, urljoin, urlsplit

from chapterverse.errors import FetchFailed, UnreadablePage
from chapterverse.ext.net.fetch import FETCH_SECONDS, MAX_DOWNLOAD_BYTES, Fetcher
from chapterverse.ext.net.messages import DamagedBody, unpack_body
from chapterverse.ext.sources.downloads import Downloads, StoredDownload
from chapterverse.ext.sources.entries import ExternalEntry, require_file
from chapterverse.ext.sources.external import Media, read_external
from chapterverse.indexing.additions import ExternalSources
from chapterverse.model import PAGE, Page, Source, main_language
from chapterverse.page_kinds import OPTED_OUT
from chapterverse.progress import map_in_threads
from chapterverse.readers.folder import read_page
from chapterverse.readers.site_pages import require_unchanged
from chapterverse.readers.urls import SAFE, is_web_address, read_locations
from chapterverse.settings import Settings

#: Most pages of one sitemap, and seconds for all fetches of a build.
_MAX_PAGES = 1000
_ALL_SECONDS = 600.0
#: Fetches at a time.
_CONCURRENT_DOWNLOADS = 4

_SITEMAP = re.compile(rb"<(?:\w{1,20}:)?(urlset|sitemapindex)\b")
_GZIP = b"\x1f\x8b"


def collect_external(settings: Settings, pages: Iterable[Source], base_url: str, docs: Path | None) -> ExternalSources:
    """Return the sources of `settings.also`.

    Args:
        pages: of the site: their addresses and paths are taken, and most of them set the language of the others.
        base_url: of the site; a file of the docs is published below it.
        docs: the folder of the documentation's sources, if available.

    Raises:
        ConfigurationError: `settings.allow_private` is malformed, or a file is not there.
        UnsafePath: a file is a link out of its folder, a pipe or a device.
    """
    run = _CollectionRun.of(settings, [page for page in pages if page.type == PAGE])
    for entry in settings.also:
        if entry.kind == "file":
            run.add_file(entry, base_url, docs)
    run.add_addresses([entry for entry in settings.also if entry.kind != "file"])
    return run.result


@dataclass(slots=True)
class _CollectionRun:
    downloads: Downloads
    language: str
    paths: set[str]
    addresses: set[str]
    until: float
    result: ExternalSources = field(default_factory=ExternalSources)
    hosts: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, settings: Settings, pages: Sequence[Source]) -> _CollectionRun:
        paths, addresses = {page.file_path for page in pages}, {page.url.rstrip("/") for page in pages}
        downloads = Downloads(settings.local_folder / "downloads", Fetcher(allow_private=settings.allow_private))
        return cls(downloads, main_language(pages), paths, addresses, time.monotonic() + _ALL_SECONDS)

    def add_file(self, entry: ExternalEntry, base_url: str, docs: Path | None) -> None:
        path, name = Path(entry.place), entry.name
        require_file(path, name)
        if docs and path.resolve().is_relative_to(docs.resolve()):
            name = path.resolve().relative_to(docs.resolve()).as_posix()
        url = entry.url or urljoin(base_url, quote(name, safe=SAFE.replace("%", "")))
        if name in self.paths:
            self.result.warnings.append(f"{name} of `also` is a page of the site already.")
            return
        if not entry.url and name == entry.name and docs is not None:
            self.result.warnings.append(
                f"{name} is no file of the docs, so its citations lead to {url} only if you publish it there: name its "
                "address with `url`."
            )
        self.paths.add(name)
        try:
            content = read_page(path.parent, path.name)
            media = Media.of("", name, content)
        except UnreadablePage as error:
            self._refuse(name, str(error))
            return
        content_hash = hashlib.sha256(content).hexdigest()
        read = functools.partial(_read_file, path, content_hash, media, name, url, self.language)
        self._add(name, content_hash, media, url, read)

    def add_addresses(self, entries: Sequence[ExternalEntry]) -> None:
        by_url: dict[str, StoredDownload | None] = {}
        for entry in entries:
            for url, stored in self._entry(entry):
                # A page of a sitemap may be listed by itself, too.
                if url.rstrip("/") not in self.addresses and by_url.get(url) is None:
                    by_url[url] = stored
        missing = [url for url, stored in by_url.items() if stored is None]
        by_url.update(zip(missing, map_in_threads(self._get, missing, _CONCURRENT_DOWNLOADS), strict=True))
        for url, stored in by_url.items():
            if stored:
                self._add_download(url, stored)
        self.downloads.prune()
        hosts = tuple(self.hosts)
        if hosts:
            self.result.keep = lambda path: path.startswith(hosts)

    def _entry(self, entry: ExternalEntry) -> list[tuple[str, StoredDownload | None]]:
        """Return the pages of an address or a sitemap, with their downloads if they were fetched already."""
        # Without a download only the name tells whether the address is a sitemap.
        named = urlsplit(entry.place).path.lower().endswith((".xml", ".xml.gz"))
        stored = self._get(entry.place, is_listing=named or entry.kind == "sitemap")
        content = self.downloads.read(stored) if stored else b""
        if stored and (entry.kind == "sitemap" or _SITEMAP.search(content[:1000]) or content.startswith(_GZIP)):
            return [(url, None) for url in self._list_links(entry.place, content, entry.depth)]
        return [(entry.place, stored)] if stored else []

    def _list_links(self, url: str, content: bytes, depth: int) -> list[str]:
        """Return the pages of a sitemap and of those that it lists, only of its own host."""
        pages: dict[str, None] = {}
        foreign = left_out = 0
        queue, queued_urls = [(url, content, depth)], {url}
        host = urlsplit(url).netloc
        while queue:
            place, content, depth = queue.pop(0)
            try:
                kind, locations = _locations(content)
            except UnreadablePage as error:
                self._refuse_listing(place, str(error))
                continue
            same_host = [each for each in locations if urlsplit(each).netloc == host]
            foreign += len(locations) - len(same_host)
            if kind == "urlset":
                pages.update(dict.fromkeys(same_host))
                continue
            for each in same_host:
                if each in queued_urls or len(queued_urls) > _MAX_PAGES:
                    continue
                queued_urls.add(each)
                if depth <= 1:
                    left_out += 1
                elif stored := self._get(each, is_listing=True):
                    queue.append((each, self.downloads.read(stored), depth - 1))
        if foreign:
            self.result.warnings.append(f"{url} lists {foreign} addresses on other hosts, which are left out.")
        if left_out:
            self.result.warnings.append(f"{url} lists {left_out} sitemaps below its depth, which are left out.")
        if len(pages) > _MAX_PAGES:
            self.result.warnings.append(f"{url} lists {len(pages):,} pages: the first {_MAX_PAGES:,} are taken.")
        return [*pages][:_MAX_PAGES]

    def _get(self, url: str, *, is_listing: bool = False) -> StoredDownload | None:
        """Return the current content of an address, or that of its last fetch."""
        try:
            seconds = min(FETCH_SECONDS, self.until - time.monotonic())
            if seconds <= 0:
                raise FetchFailed(f"the fetches of this build took longer than {_ALL_SECONDS:g} seconds.")
            return self.downloads.get(url, seconds)
        except FetchFailed as error:
            stored, reason = self.downloads.find(url), str(error)
        sentence = f"{url} was not fetched, so what the index has of it stays: {reason}"
        if stored:
            self.result.warnings.append(sentence)
        elif is_listing:
            self._refuse_listing(url, reason)
        else:
            self._refuse(url, sentence)
        return stored

    def _add_download(self, url: str, download: StoredDownload) -> None:
        try:
            content = self.downloads.read(download)
            media = Media.of(download.content_type, url, content)
        except UnreadablePage as error:
            self.result.left_out[url] = str(error)
            self.result.warnings.append(str(error))
            return
        if download.noindex or media.asks_not_to_be_indexed(content):
            self.result.left_out[url] = OPTED_OUT
            self.result.warnings.append(f"{url} asks not to be indexed, so it is left out.")
            return
        read = functools.partial(_read_download, self.downloads, download, media, url, self.language)
        self._add(url, download.content_hash, media, url, read)

    def _add(self, path: str, content_hash: str, media: Media, url: str, read: functools.partial[Page]) -> None:
        context = json.dumps([url, media.format, media.charset, self.language])
        self.result.sources.append(Source(path, content_hash, context, read, url=url, language=self.language))

    def _refuse(self, path: str, sentence: str) -> None:
        """Offer a source that can't be read: the index keeps the last good version of such a page, and says so."""
        self.result.sources.append(Source(path, "", "", functools.partial(_unreadable, sentence)))

    def _refuse_listing(self, url: str, reason: str) -> None:
        parts = urlsplit(url)
        self.hosts.add(f"{parts.scheme}://{parts.netloc}/")
        self.result.warnings.append(f"{url} was not read, so what the index has of {parts.netloc} stays: {reason}")


def _locations(content: bytes) -> tuple[str, list[str]]:
    """Return "urlset" or "sitemapindex", and the addresses in it; entities of its own are not expanded.

    Raises:
        UnreadablePage: it is no sitemap, or unpacks to too much.
    """
    with suppress(DamagedBody):
        content = unpack_body(content, "gzip", MAX_DOWNLOAD_BYTES)
    if len(content) > MAX_DOWNLOAD_BYTES:
        raise UnreadablePage(f"it unpacks to more than {MAX_DOWNLOAD_BYTES:,} bytes.")
    kind = _SITEMAP.search(content)
    if not kind:
        raise UnreadablePage("it is no sitemap.")
    text = content.decode("utf-8", "replace")
    urls = (urldefrag(location)[0] for location in read_locations(text))
    return kind[1].decode(), [url for url in urls if is_web_address(url)]


def _read_file(path: Path, content_hash: str, media: Media, name: str, url: str, language: str) -> Page:
    content = read_page(path.parent, path.name)
    require_unchanged(name, content_hash, hashlib.sha256(content).hexdigest())
    return read_external(content, media, name, url, language)


def _read_download(downloads: Downloads, download: StoredDownload, media: Media, url: str, language: str) -> Page:
    return read_external(downloads.read(download), media, url, url, language)


def _unreadable(sentence: str) -> NoReturn:
    raise UnreadablePage(sentence)
