"""Cleans addresses, reads them from a sitemap, and finds those at which a built file may be."""

from __future__ import annotations

import html
import os.path
import re
from collections.abc import Collection, Iterable
from enum import StrEnum
from urllib.parse import quote, urljoin, urlsplit

from chapterverse.errors import InputError


class SiteGenerator(StrEnum):
    """The static site generator that a folder of Markdown is written for: its rules hold for ids and addresses.

    `mkdocs` is Zensical as well. `github` is Docusaurus without its configuration: both make ids by github-slugger.
    """

    MKDOCS = "mkdocs"
    GITHUB = "github"
    VITEPRESS = "vitepress"
    SPHINX = "sphinx"
    HUGO = "hugo"
    DOCUSAURUS = "docusaurus"

    @property
    def is_docusaurus(self) -> bool:
        return self in (SiteGenerator.GITHUB, SiteGenerator.DOCUSAURUS)


#: Characters that a path may hold unencoded; "%" is one of them, so that nothing is encoded twice.
SAFE = "/~:@!$&'()*+,;=%-._"
# Most addresses need no cleaning, and taking them apart costs more than hashing their pages.
_CLEAN = re.compile(r"https?://[a-z0-9-]+(?:\.[a-z0-9-]+)*(?:/(?!\.{1,2}(?:/|\Z))[\w.~-]+)*/", re.ASCII)
_SLASHES = re.compile("//+")
_LOCATION = re.compile(r"<loc>\s*([^<\s]{1,2000})\s*</loc>")


def clean_url(url: str, base: str | None = None) -> str | None:
    """Return an absolute http(s) address percent-encoded, its host in lower case, without query and fragment.

    None if `url` is none.
    """
    if _CLEAN.fullmatch(url):
        return url
    try:
        # Browsers take a backslash for a slash, and servers two slashes for one.
        parts = urlsplit(urljoin(base or "", url.strip().replace("\\", "/")))
        host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    # A path has a case, a host has none; a user name before the host has one.
    user, at, name = host.rpartition("@")
    return f"{parts.scheme}://{user}{at}{name.lower()}{quote(_SLASHES.sub('/', parts.path) or '/', safe=SAFE)}"


def clean_base(base: str) -> str | None:
    """Return the address of a site with a slash at its end; None if it is none."""
    url = clean_url(base)
    return url and url.rstrip("/") + "/"


def parse_base_url(base_url: str | None) -> str | None:
    """Return the base URL that a user stated, with a slash at its end; None if there is none.

    Raises:
        InputError: it is no address.
    """
    base = clean_base(base_url) if base_url else None
    # No page is below a query.
    if base_url and (base is None or "?" in base_url or "#" in base_url):
        raise InputError("The base URL must be an address like https://example.com/docs/, without a query.")
    return base


def read_locations(xml: str) -> list[str]:
    """Return what stands in a `sitemap.xml` as addresses; entities are not expanded, so none can grow."""
    return [html.unescape(location) for location in _LOCATION.findall(xml)]


def read_sitemap(xml: str) -> list[str]:
    """Return the addresses in a `sitemap.xml`, cleaned."""
    cleaned = map(clean_url, read_locations(xml))
    return [url for url in cleaned if url]


def quote_path(path: str) -> str:
    """Return the path of a file or a page percent-encoded; a "%" in it is a character of its own."""
    return quote(path, safe=SAFE.replace("%", ""))


def page_paths(file_path: str) -> tuple[str, ...]:
    """Return how a built file may be addressed, relative to the site, the likeliest first."""
    quoted = quote_path(file_path)
    folder, _, name = quoted.rpartition("/")
    stem = quoted.rpartition(".")[0]
    if name.lower() in ("index.html", "index.htm"):
        return (f"{folder}/", quoted, folder) if folder else ("", quoted)
    return (quoted, stem, f"{stem}/")


def page_address(file_path: str, base: str, canonical: str | None, listed: Collection[str], *, is_stated: bool) -> str:
    """Return the address of a built file: its canonical link, else its entry in the sitemap, else by its path.

    Args:
        base: address of the site, with a slash at its end.
        canonical: the address that the page states, None if it states none.
        listed: addresses in the sitemap.
        is_stated: the owner stated `base`. Then a link that leads out of it doesn't count: that of an old docs
            version may lead to another version.
    """
    if canonical and (not is_stated or canonical.startswith(base)):
        return canonical
    addresses = [base + path for path in page_paths(file_path)]
    return next((address for address in addresses if address in listed), addresses[0])


def site_base(urls: Collection[str], files: Iterable[str]) -> str | None:
    """Return the address of the folder that explains most of `urls` as addresses of `files`; None if none does."""
    if not urls:
        return None
    addresses = set(urls)
    paths = [page_paths(file) for file in files]
    # Compared as strings: the folders of addresses aren't paths of this machine.
    bases = [os.path.commonprefix(sorted(addresses)).rpartition("/")[0] + "/"]  # noqa: RUF071
    while len(urlsplit(bases[-1]).path) > 1:
        bases.append(bases[-1][:-1].rpartition("/")[0] + "/")
    hits = {base: sum(any(base + path in addresses for path in p) for p in paths) for base in bases if clean_url(base)}
    best = max(hits, key=hits.__getitem__, default=None)
    return best if best and hits[best] else None


def is_web_address(text: str) -> bool:
    """Return whether a text is an address of the web and no path."""
    return text.lower().startswith(("https://", "http://"))
