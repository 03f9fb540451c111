"""The rules of a `robots.txt`, by the examples of RFC 9309 and by a server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chapterverse.errors import FetchFailed
from chapterverse.ext.net.fetch import Fetcher
from chapterverse.ext.sources.downloads import Downloads, Rules
from ext.net.test_fetch import Site
from fakes.loopback import LONG, Answer
from growth import assert_linear


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("", "/any", True),
        ("User-agent: *\nDisallow:", "/any", True),
        ("User-agent: *\nDisallow: /", "/any", False),
        ("User-agent: other\nDisallow: /", "/any", True),
        ("user-agent: ChapterVerse/2.0\nDISALLOW: /a # b", "/a/c", False),
        # Our own group counts alone, also where it is divided.
        ("User-agent: *\nDisallow: /\n\nUser-agent: chapterverse\nDisallow: /b", "/a", True),
        ("User-agent: chapterverse\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: chapterverse\nDisallow: /b",
         "/b", False),
        ("User-agent: x\nUser-agent: chapterverse\nSitemap: https://a\nDisallow: /a", "/a", False),
        # The longest rule decides, and of two the one that allows.
        ("User-agent: *\nAllow: /a/b\nDisallow: /a", "/a/b/c", True),
        ("User-agent: *\nDisallow: /page\nAllow: /page", "/page", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf?x", True),
        ("User-agent: *\nDisallow: /a$", "/a", False),
        ("User-agent: *\nDisallow: /a$", "/ab", True),
        ("User-agent: *\nDisallow: /a*b*c$", "/axbxbc", False),
        ("User-agent: *\nDisallow: /a*b*bc$", "/abc", True),
        ("User-agent: *\nDisallow: *private", "/x/private/y", False),
        ("User-agent: *\nDisallow: /?q=", "/?q=1", False),
        ("User-agent: *\nDisallow: /caf%c3%a9", "/café", False),
        ("Disallow: /", "/any", True),
    ],
)  # fmt: skip
def test_rules(text: str, path: str, allowed: bool) -> None:
    assert Rules.parse(text).allow(path) is allowed


def test_a_pattern_takes_linear_time() -> None:
    def match(size: int) -> None:
        Rules.parse(f"User-agent: *\nDisallow: /{'a*' * size}b").allow("/" + "a" * size * 3)

    assert_linear(match, 10_000, 100_000)


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        yield running


def downloads(site: Site, folder: Path) -> Downloads:
    return Downloads(folder, Fetcher(allow_private=site.place))


def test_a_site_is_asked_once(site: Site, tmp_path: Path) -> None:
    site.pages["/robots.txt"] = Answer(200, b"\xef\xbb\xbfUser-agent: *\nDisallow: /private")
    site.pages["/public?x=/private"] = Answer(200, b"shown")
    downloading = downloads(site, tmp_path)
    assert downloading.read(downloading.get(f"{site.url}/public?x=/private", LONG)) == b"shown"
    with pytest.raises(FetchFailed, match=r"127\.0\.0\.1 forbids it in its robots\.txt\."):
        downloading.get(f"{site.url}/private/page", LONG)
    assert [request.path for request in site.history] == ["/robots.txt", "/public?x=/private"]


def test_a_site_without_rules_allows_everything_and_one_that_is_ill_nothing(site: Site, tmp_path: Path) -> None:
    assert downloads(site, tmp_path).get(f"{site.url}/", LONG).content_type == "text/plain"
    for status in (500, 503, 429):
        site.pages["/robots.txt"] = Answer(status, b"")
        with pytest.raises(FetchFailed, match=f"answered its robots.txt with status {status}"):
            downloads(site, tmp_path).get(f"{site.url}/", LONG)
    with pytest.raises(FetchFailed, match="use https"):
        Downloads(tmp_path, Fetcher()).get(f"{site.url}/", LONG)
