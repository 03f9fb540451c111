"""Downloads what a site's `robots.txt` allows us (RFC 9309), and caches it between builds.

So an unchanged document is not sent again, and a failed fetch loses none. A file for each address is in the folder of
the local state: a line of JSON with the headers that matter, then the body.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from chapterverse.errors import FetchFailed, UnreadablePage
from chapterverse.ext.net.address import request_target
from chapterverse.ext.net.fetch import USER_AGENT, Download, Fetcher
from chapterverse.project import make_folder

#: Seconds without use after which a download is removed.
_MAX_UNUSED_SECONDS = 90 * 24 * 3600
#: RFC 9309 requires crawlers to read at least this much. The rest of a larger file is ignored.
_MAX_ROBOTS_BYTES = 500 * 1024

_AGENT_NAME = re.compile(r"[a-zA-Z_-]+")
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")


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
        # By the origin of each site, or why they can't be read; read once.
        self._rules: dict[str, Rules | str] = {}

    def get(self, url: str, seconds: float) -> StoredDownload:
        """Return the current content of an address.

        Raises:
            FetchFailed: it may not be fetched, or could not be; `find` may have the content of the last fetch.
        """
        self._require_allowed(url)
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

    def _require_allowed(self, url: str) -> None:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._rules:
            self._rules[origin] = self._read_rules(origin)
        rules = self._rules[origin]
        if isinstance(rules, str):
            raise FetchFailed(rules)
        if not rules.allow(request_target(parts)):
            raise FetchFailed(f"{parts.hostname} forbids it in its robots.txt.")

    def _read_rules(self, origin: str) -> Rules | str:
        try:
            reply = self._fetcher.get(f"{origin}/robots.txt")
        except FetchFailed as error:
            return str(error)
        if reply.status >= 500 or reply.status == 429:
            return f"{urlsplit(origin).hostname} answered its robots.txt with status {reply.status}."
        # Any other status means that there are no rules.
        text = reply.body[:_MAX_ROBOTS_BYTES].decode("utf-8", "replace") if reply.status == 200 else ""
        return Rules.parse(text.removeprefix("\ufeff"))

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


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern of paths. In it `*` matches any characters, and `$` at its end the end of the path."""

    pattern: str
    allows: bool

    def matches(self, path: str) -> bool:
        pattern = self.pattern[:-1] if self.pattern.endswith("$") else f"{self.pattern}*"
        if "*" not in pattern:
            return path == pattern
        first, *parts, last = pattern.split("*")
        at = len(first)
        # The leftmost match of each part leaves the most for the next, so no other one need be tried.
        for part in parts:
            start = path.find(part, at)
            if start < 0:
                return False
            at = start + len(part)
        return path.startswith(first) and path.endswith(last) and len(path) - len(last) >= at


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for us: those of the groups that name us, or if there are none, those for everyone."""

    rules: tuple[_Rule, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Rules:
        """Return the rules in a `robots.txt`. Never fails, and takes time linear in the length."""
        groups: dict[str, list[_Rule]] = {}
        agents: list[str] = []
        in_rules = False
        for line in text.splitlines():
            name, _, value = line.partition("#")[0].partition(":")
            name, value = name.strip().lower(), value.strip()
            if name == "user-agent":
                # Several names in a row share the rules below them.
                agents = [] if in_rules else agents
                match = _AGENT_NAME.match(value)
                agents.append("*" if value.startswith("*") else match.group().lower() if match else "")
                groups.setdefault(agents[-1], [])
                in_rules = False
            elif name in ("allow", "disallow"):
                in_rules = True
                # A rule without a path forbids nothing.
                for group in agents if value else ():
                    groups[group].append(_Rule(_normalize(value), name == "allow"))
        return cls(tuple(groups.get(USER_AGENT, groups.get("*", ()))))

    def allow(self, path: str) -> bool:
        """Return whether a path with its query may be fetched. The longest rule that matches decides."""
        path = _normalize(path)
        matching = [rule for rule in self.rules if rule.matches(path)]
        return not matching or max(matching, key=lambda rule: (len(rule.pattern), rule.allows)).allows


def _normalize(path: str) -> str:
    """Return a path or a pattern in one form: encoded, except characters that need no encoding."""
    encoded = quote(path, safe="/%:@!$&'()*+,;=~-._?[]")
    return _ESCAPE.sub(lambda match: match.group().upper(), encoded)
