"""Maps addresses of the index to those of the site that a reader is on, and back."""

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


def public(url: str, head: Head, base: str) -> str:
    """Return an address of the index as the reader has it, where `base` serves the site instead of its own address."""
    return _moved(url, head.base_url, base)


def published(url: str, head: Head, base: str) -> str:
    """Return an address that the reader has as the index has it; the inverse of `public`."""
    return _moved(url, base, head.base_url)


def page_of(url: str) -> str:
    """Return what all addresses of one page have in common."""
    # No parser: it costs an index of 10,000 addresses 50 ms, and raises on what is no address.
    return url.partition("#")[0].partition("?")[0].removesuffix("index.html").rstrip("/")


def on_page(url: str, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the addresses that the index holds of a page and its sections; none where it holds no such page."""
    page, held = page_of(url), snapshot.values("url")
    return tuple(
        str(address)
        for form in (page, f"{page}/", f"{page}/index.html")
        for address in (*_between(held, form, f"{form}\0"), *_between(held, f"{form}#", f"{form}$"))
    )


def version_at(url: str, heads: Sequence[Head]) -> Head | None:
    """Return the index of the docs version that a page belongs to: the one with the longest address above it.

    None where several have that address: then the page says nothing of its version.
    """
    page = page_of(url) + "/"
    above = [h for h in heads if h.base_url and _below(page, h.base_url)]
    longest = max((_folder(h.base_url) for h in above), key=len, default="")
    nearest = [h for h in above if _folder(h.base_url) == longest]
    return nearest[0] if len(nearest) == 1 else None


def check_page(url: str | None, homes: Collection[str]) -> None:
    """Refuse a page of another site: an answer for its reader would rest on pages that they are not on.

    Args:
        homes: addresses of the site, of which one names its host; any page passes where none is known.

    Raises:
        InputError: the page is on a host of its own.
    """
    hosts = {host for home in homes if (host := host_of(home))}
    host = host_of(url or "")
    # A site is built and tried on the author's own machine, at whichever of its names.
    if host and hosts and host not in hosts | _LOOPBACK:
        raise InputError("page_url is on another site: send that of a page of this documentation.", field="page_url")


def host_of(url: str) -> str:
    """Return the host of a URL, without its port; empty where it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _between(ordered: Sequence[str | int], first: str, end: str) -> Sequence[str | int]:
    """Return what lies from `first` up to and without `end`: a site has too many addresses to look at each."""
    return ordered[bisect_left(ordered, first, key=str) : bisect_left(ordered, end, key=str)]


def _moved(url: str, old: str, new: str) -> str:
    return f"{new.rstrip('/')}/{url.removeprefix(_folder(old))}" if old and new and _below(url, old) else url


def _below(url: str, base: str) -> bool:
    return url.startswith(_folder(base))


def _folder(url: str) -> str:
    return url.rstrip("/") + "/"
