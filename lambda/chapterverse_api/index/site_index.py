"""One site's index for readers: its docs versions, the chat's persona, and its addresses on the site they are on."""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence

from chapterverse.errors import ChapterVerseError, InputError
from chapterverse.extensions import load_part
from chapterverse.model import PERSONA, Chunk, Head, Persona, Scope
from chapterverse.settings import Settings
from chapterverse.store import Snapshot, Store, only_head
from chapterverse.text.hosts import parse_host
from chapterverse_api.index.live_index import LiveIndex

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class SiteIndex:
    """Finds the generation that answers a reader. Thread-safe.

    Attributes:
        disabled_types: of documents that no answer is made with.

    Args:
        store: holds the generations of this site, and possibly of others.
        settings: `site`, `docs_version` and `base_url` select the index that is served, and its address.
        check: raises `IndexMismatch` for a head whose vectors are of another embedder.
    """

    def __init__(self, store: Store, settings: Settings, check: Callable[[Head], None]) -> None:
        self._site, self._place = settings.site, settings.store
        self._version, self._base_url = settings.docs_version, settings.base_url
        self.disabled_types = settings.disabled_types
        pinned = Scope(self._site, self._version) if self._site and self._version is not None else None
        self._live = LiveIndex(store, check, pinned, self._site)
        self._personas: dict[Scope, tuple[int, Persona]] = {}

    @property
    def address(self) -> str:
        """Address of the documentation opened last, "" before."""
        latest = self._live.latest
        return latest.head.base_url if latest else ""

    @property
    def key_refused(self) -> bool:
        """Whether the store rejects our key, which may have been replaced."""
        return self._live.key_refused

    def live_heads(self) -> list[Head]:
        """Return the heads of this site that answer now.

        Raises:
            IndexFault, ConfigurationError: the store can't be read, and nothing is open yet.
        """
        return self._of_site(self._live.live_heads())

    def intact(self, heads: Sequence[Head]) -> bool:
        """Whether the store holds these generations undamaged, and they are what serves."""
        with contextlib.suppress(ChapterVerseError):
            return self._live.intact(heads) and self._live.trouble is None and not self._live.is_skipped
        return False

    def snapshot(self, version: str | None = None, page_url: str | None = None) -> Snapshot:
        """Return the published snapshot; a generation is opened once and stays open until the head moves.

        If neither the reader nor the settings name a version, the reader's page decides.

        Raises:
            InputError: there is no such version of these docs.
            IndexMissing: nothing was published.
            IndexMismatch: the index is of another embedder.
        """
        heads = self._live.heads(version)
        if version is not None:
            self._check_version(version, heads)
        requested = version if version is not None else self._version
        at = version_at(page_url, self._of_site(heads)) if page_url else None
        head = at if requested is None and at else only_head(heads, self._site, requested, place=self._place)
        return self._live.snapshot(head)

    def uses(self, kind: str, snapshot: Snapshot) -> bool:
        """Whether answers are made with documents of a type: there are some, and they are not switched off."""
        return kind not in self.disabled_types and kind in snapshot.values("type")

    def persona(self, snapshot: Snapshot | None) -> Persona:
        """Return the owner's persona, read once per generation; an empty one without."""
        if snapshot is None or not self.uses(PERSONA, snapshot):
            return Persona()
        head = snapshot.head
        generation, persona = self._personas.get(head.scope, (None, Persona()))
        if generation != head.generation:
            persona = load_part("persona")(snapshot)
            self._personas[head.scope] = head.generation, persona
        return persona

    def public_url(self, chunk: Chunk, head: Head) -> str:
        """Return a chunk's address for readers: on the site's own address, or on the one that serves it here."""
        return self.public(chunk.url, head)

    def public(self, url: str, head: Head) -> str:
        """Return an index address as the reader sees it."""
        return move(url, head.base_url, self._base_url)

    def published_url(self, page_url: str, head: Head) -> str:
        """Return the reader's address as the index has it."""
        return move(page_url, self._base_url, head.base_url)

    def check_page(self, page_url: str | None, head: Head, origins: Collection[str] = ()) -> None:
        """Reject a page of another site, because its reader's answer would cite pages elsewhere.

        Args:
            origins: further addresses of the site; any page passes if the site has no address with a host.

        Raises:
            InputError: the page is on another host.
        """
        homes = (head.base_url, self._base_url, *origins)
        hosts = {host for home in homes if (host := parse_host(home))}
        host = parse_host(page_url or "")
        # Authors preview a site on their own machine, by any of its names.
        if host and hosts and host not in hosts | _LOOPBACK:
            raise InputError(
                "page_url is on another site: send that of a page of this documentation.", field="page_url"
            )

    def _of_site(self, heads: Sequence[Head]) -> list[Head]:
        return [h for h in heads if self._site in ("", h.site)]

    def _check_version(self, version: str, heads: Sequence[Head]) -> None:
        versions = {h.version for h in self._of_site(heads)}
        if versions and version not in versions:
            names = ", ".join(sorted(filter(None, versions))) or "none by name"
            raise InputError(f"These docs have no such version; there are {names}.", field="version")


def move(url: str, old: str, new: str) -> str:
    """Return an address below `old` as it is below `new`, where another address serves the site; others unchanged."""
    return f"{new.rstrip('/')}/{url.removeprefix(_folder(old))}" if old and new and _below(url, old) else url


def page_of(url: str) -> str:
    """Return the common prefix of all addresses of one page."""
    # No URL parser: it takes 50 ms for 10,000 addresses, and raises for invalid ones.
    return url.partition("#")[0].partition("?")[0].removesuffix("index.html").rstrip("/")


def on_page(url: str, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the index's addresses of a page and its sections, empty for an unknown page."""
    page, urls = page_of(url), snapshot.values("url")
    return tuple(
        str(address)
        for form in (page, f"{page}/", f"{page}/index.html")
        for address in (*_between(urls, form, f"{form}\0"), *_between(urls, f"{form}#", f"{form}$"))
    )


def version_at(url: str, heads: Sequence[Head]) -> Head | None:
    """Return the head of the docs version that a page belongs to, the one with the longest address above it.

    A translation is in a folder of its language, above that of its version: `fr/1.0/` belongs to `1.0/`. None if
    several heads have that address.
    """
    page = page_of(url) + "/"
    forms = {page, *(_without_language(page, head) for head in heads if head.base_url)}
    above = [h for h in heads if h.base_url and any(_below(form, h.base_url) for form in forms)]
    longest = max((_folder(h.base_url) for h in above), key=len, default="")
    nearest = [h for h in above if _folder(h.base_url) == longest]
    return nearest[0] if len(nearest) == 1 else None


def _without_language(page: str, head: Head) -> str:
    """Return a page's address without the folder of a version's language, if it is in one."""
    folder = _folder(head.base_url)
    language, _, rest = page.removeprefix(folder).partition("/")
    is_translation = page.startswith(folder) and language.lower() in (tag.lower() for tag in head.languages)
    return folder + rest if is_translation else page


def _between(addresses: Sequence[str | int], first: str, end: str) -> Sequence[str | int]:
    """Return the range from `first` to `end`, exclusive. Bisects, because a site has too many addresses to scan."""
    return addresses[bisect_left(addresses, first, key=str) : bisect_left(addresses, end, key=str)]


def _below(url: str, base: str) -> bool:
    return url.startswith(_folder(base))


def _folder(url: str) -> str:
    return url.rstrip("/") + "/"
