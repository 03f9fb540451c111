"""Maps addresses of the index to those of the site that the reader is on, and back."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chapterverse.errors import InputError
from chapterverse.model import Head

if TYPE_CHECKING:
    from chapterverse.store import Snapshot

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


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


def check_page(url: str | None, homes: Collection[str]) -> None:
    """Reject a page of another site, because its reader's answer would cite pages elsewhere.

    Args:
        homes: addresses of the site; any page passes if none of them has a host.

    Raises:
        InputError: the page is on another host.
    """
    hosts = {host for home in homes if (host := parse_host(home))}
    host = parse_host(url or "")
    # Authors preview a site on their own machine, by any of its names.
    if host and hosts and host not in hosts | _LOOPBACK:
        raise InputError("page_url is on another site: send that of a page of this documentation.", field="page_url")


def parse_host(url: str) -> str:
    """Return a URL's host without the port, "" if it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _between(addresses: Sequence[str | int], first: str, end: str) -> Sequence[str | int]:
    """Return the range from `first` to `end`, exclusive. Bisects, because a site has too many addresses to scan."""
    return addresses[bisect_left(addresses, first, key=str) : bisect_left(addresses, end, key=str)]


def _below(url: str, base: str) -> bool:
    return url.startswith(_folder(base))


def _folder(url: str) -> str:
    return url.rstrip("/") + "/"
