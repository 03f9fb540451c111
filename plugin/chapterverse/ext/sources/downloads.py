"""Caches downloads between builds, so that an unchanged document is not sent again and a failed fetch loses none.

A file for each address, in the folder of the local state: a line of JSON with the headers that matter, then the body.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chapterverse.errors import FetchFailed, UnreadablePage
from chapterverse.ext.net.fetch import Download, Fetcher
from chapterverse.ext.net.robots import Robots
from chapterverse.project import make_folder
from chapterverse.settings import Settings

#: Seconds without use after which a download is removed.
_MAX_UNUSED_SECONDS = 90 * 24 * 3600


@dataclass(frozen=True, slots=True)
class StoredDownload:
    """The content of an address at its last fetch.

    Attributes:
        content_hash: the SHA-256 of the body in hex.
        noindex: whether the server asks not to index it.
    """

    url: str
    content_hash: str
    content_type: str = ""
    etag: str = ""
    last_modified: str = ""
    noindex: bool = False

    @classmethod
    def of(cls, url: str, download: Download) -> StoredDownload:
        headers = download.headers
        robots = {word.strip() for word in headers.get("x-robots-tag", "").lower().split(",")}
        return cls(
            url,
            hashlib.sha256(download.body).hexdigest(),
            headers.get("content-type", ""),
            headers.get("etag", ""),
            headers.get("last-modified", ""),
            not robots.isdisjoint(("noindex", "none")),
        )


class Downloads:
    """Fetches addresses, and returns the cached content if nothing changed. Safe to share between threads."""

    def __init__(self, folder: Path, fetcher: Fetcher) -> None:
        self._folder = folder
        self._fetcher = fetcher
        self._robots = Robots(fetcher)

    @classmethod
    def of(cls, settings: Settings) -> Downloads:
        """Return the downloads of a store; raises `ConfigurationError` for a malformed setting."""
        return cls(settings.local_folder / "downloads", Fetcher(allow_private=settings.allow_private))

    def get(self, url: str, seconds: float) -> StoredDownload:
        """Return the current content of an address.

        Raises:
            FetchFailed: it may not be fetched, or could not be; `find` may have the content of the last fetch.
        """
        self._robots.require(url)
        stored = self.find(url)
        download = self._fetcher.get(url, _validators(stored), seconds=seconds)
        if download.status == 304 and stored:
            # It is in use, see `prune`.
            with contextlib.suppress(OSError):
                os.utime(self._file(url))
            return stored
        if download.status != 200:
            raise FetchFailed(f"its server answered with status {download.status}.")
        stored = StoredDownload.of(url, download)
        self._write(stored, download.body)
        return stored

    def find(self, url: str) -> StoredDownload | None:
        """Return the content of an address at its last fetch, None if it is not cached or damaged."""
        return self._load(url)[0]

    def read(self, download: StoredDownload) -> bytes:
        """Return a body.

        Raises:
            UnreadablePage: it was changed or removed since.
        """
        now, body = self._load(download.url)
        if now is None or now.content_hash != download.content_hash:
            raise UnreadablePage(f"{download.url} changed while it was being indexed: run again.")
        return body

    def prune(self) -> None:
        """Remove the downloads that no build has used for a long time."""
        with contextlib.suppress(OSError):
            for file in self._folder.iterdir():
                if file.stat().st_mtime < time.time() - _MAX_UNUSED_SECONDS:
                    file.unlink()

    def _load(self, url: str) -> tuple[StoredDownload | None, bytes]:
        try:
            head, _, body = self._file(url).read_bytes().partition(b"\n")
            about: dict[str, Any] = json.loads(head)
            stored = StoredDownload(**about)
        except (OSError, ValueError, TypeError):
            return None, b""
        # A file that was cut or edited is fetched again.
        intact = stored.url == url and hashlib.sha256(body).hexdigest() == stored.content_hash
        return (stored, body) if intact else (None, b"")

    def _write(self, download: StoredDownload, body: bytes) -> None:
        make_folder(self._folder)
        file = self._file(download.url)
        part = file.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(json.dumps(asdict(download)).encode() + b"\n" + body)
        part.replace(file)

    def _file(self, url: str) -> Path:
        return self._folder / hashlib.sha256(url.encode(errors="surrogatepass")).hexdigest()


def _validators(download: StoredDownload | None) -> dict[str, str]:
    if download is None:
        return {}
    headers = {"If-None-Match": download.etag, "If-Modified-Since": download.last_modified}
    # Skip values that can't be sent as a header; a valid response never had them.
    return {name: value for name, value in headers.items() if value and value.isascii() and value.isprintable()}
