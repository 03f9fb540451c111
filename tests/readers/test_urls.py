"""Addresses of pages."""

from __future__ import annotations

import pytest

from chapterverse.readers.urls import clean_base, clean_url, page_paths, read_sitemap, site_base


@pytest.mark.parametrize(
    ("url", "base", "expected"),
    [
        ("https://e.com/a/", None, "https://e.com/a/"),
        (" https://e.com/ä b/?q=1#frag ", None, "https://e.com/%C3%A4%20b/"),
        ("https://e.com/%C3%A4/", None, "https://e.com/%C3%A4/"),
        ("https://e.com", None, "https://e.com/"),
        (r"https:\\e.com\docs\a", None, "https://e.com/docs/a"),
        ("https://e.com/docs//a///b/", None, "https://e.com/docs/a/b/"),
        ("https://bücher.example/", None, "https://xn--bcher-kva.example/"),
        ("/a/", "https://e.com/docs/", "https://e.com/a/"),
        ("/a/", None, None),
        ("javascript:alert(1)", None, None),
        ("file:///etc/passwd", "https://e.com/", None),
        ("https://", None, None),
        ("https://[::1", None, None),
    ],
)
def test_clean_url(url: str, base: str | None, expected: str | None) -> None:
    assert clean_url(url, base) == expected


def test_a_base_ends_with_a_slash() -> None:
    assert clean_base("https://e.com/docs") == clean_base("https://e.com/docs/") == "https://e.com/docs/"
    assert clean_base("docs") is None


def test_page_paths() -> None:
    assert page_paths("index.html") == ("", "index.html")
    assert page_paths("a b/index.html") == ("a%20b/", "a%20b/index.html", "a%20b")
    assert page_paths("a/100%.html") == ("a/100%25.html", "a/100%25", "a/100%25/")


def test_a_sitemap_is_read_literally() -> None:
    xml = (
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><urlset><url><loc>\nhttps://e.com/a/?x\n</loc>'
        "</url><url><loc>&e;</loc></url><url><loc>https://e.com/b&amp;c/</loc></url><url><loc>nonsense</loc></url></urlset>"
    )
    assert read_sitemap(xml) == ["https://e.com/a/", "https://e.com/b&c/"]


@pytest.mark.parametrize(
    ("urls", "files", "expected"),
    [
        (["https://e.com/s/", "https://e.com/s/a/"], ["index.html", "a/index.html"], "https://e.com/s/"),
        (["https://e.com/d/docs/intro"], ["docs/intro.html", "404.html"], "https://e.com/d/"),
        (["https://e.com/x.html"], ["x.html"], "https://e.com/"),
        (["https://e.com/other/"], ["x.html"], None),
        (["https://e.com/", "https://lies.example/"], ["index.html", "a.html"], None),
        ([], ["x.html"], None),
    ],
)
def test_site_base(urls: list[str], files: list[str], expected: str | None) -> None:
    assert site_base(urls, files) == expected
