from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from api import quill
from chapterverse.model import Head
from chapterverse.store import Snapshot
from chapterverse_api.index.site_index import move, on_page, page_of, version_at

LOCAL = "http://127.0.0.1:8765/"


def head(version: str = "", base: str = quill.BASE) -> Head:
    return Head("quill", version, 1, 1, 1, "", base_url=base)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return quill.service(quill.publish(tmp_path_factory.mktemp("index"))).snapshot()


@pytest.mark.parametrize("base", [LOCAL, LOCAL.rstrip("/")])
@pytest.mark.parametrize("site", [quill.BASE, quill.BASE.rstrip("/")])
def test_an_address_is_moved_and_moved_back(base: str, site: str) -> None:
    url = f"{quill.BASE}cache/#cache-location"
    assert move(url, site, base) == f"{LOCAL}cache/#cache-location"
    assert move(f"{LOCAL}cache/#cache-location", base, site) == url
    assert move(url, site, "") == move(url, "", site) == url


@pytest.mark.parametrize("url", ["https://quill.example.com/docs-old/cache/", "https://evil.example/docs/", "", "x"])
def test_what_is_not_below_the_site_is_left_alone(url: str) -> None:
    assert move(url, head().base_url, LOCAL) == move(url, LOCAL, head().base_url) == url
    assert move(url, "", LOCAL) == url


@pytest.mark.parametrize(
    "end", ["", "/", "/#part", "?q=1#part", "/index.html", "/index.html?q#part", "/#a?b/", "/?a#b"]
)
def test_all_addresses_of_a_page_are_one(end: str) -> None:
    assert page_of(f"{quill.BASE}cache{end}") == f"{quill.BASE}cache"


def test_a_page_is_held_with_all_its_sections(snapshot: Snapshot) -> None:
    held = on_page(f"{quill.BASE}cache/?utm=1#nowhere", snapshot)
    assert {url.partition("#")[2] for url in held} == {"caching", "cache-location", "clearing-the-cache"}
    assert {page_of(url) for url in held} == {f"{quill.BASE}cache"}


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/docs/cache/",
        "https://quill.example.com/docs-old/cache/",
        "https://QUILL.EXAMPLE.COM/docs/cache/",
        f"{quill.BASE}%63ache/",
        f"{quill.BASE}themes/../cache/",
        f"{quill.BASE}cac",
        "http://[#x",
        "javascript:alert(1)",
        "",
        "#",
        "\x00",
        (quill.BASE + "cache/" * 400)[:2048],
    ],
)
def test_of_any_other_page_nothing_is_held(snapshot: Snapshot, url: str) -> None:
    assert on_page(url, snapshot) == ()


OLD, NEW, LATEST = head("1.0", f"{quill.BASE}1.0/"), head("1.10", f"{quill.BASE}1.10"), head("2.0", quill.BASE)


@pytest.mark.parametrize(
    ("url", "version"),
    [
        (f"{quill.BASE}1.0/cache/", "1.0"),
        (f"{quill.BASE}1.0/", "1.0"),
        (f"{quill.BASE}1.0", "1.0"),
        (f"{quill.BASE}1.0?q=1", "1.0"),
        (f"{quill.BASE}1.0/index.html#top", "1.0"),
        (f"{quill.BASE}1.10/cache/", "1.10"),
        (f"{quill.BASE}1.1/cache/", "2.0"),
        (f"{quill.BASE}cache/", "2.0"),
        ("https://quill.example.com/docs-old/1.0/", None),
        ("https://evil.example/docs/1.0/", None),
        (f"https://evil.example/?{quill.BASE}1.0/", None),
        ("http://[#x", None),
        ("", None),
    ],
)
def test_a_page_is_of_the_version_with_the_longest_address_above_it(url: str, version: str | None) -> None:
    for heads in ([OLD, NEW, LATEST], [LATEST, NEW, OLD]):
        at = version_at(url, heads)
        assert (at.version if at else None) == version


def test_a_translation_is_of_the_version_whose_folder_is_below_that_of_its_language() -> None:
    heads = [replace(head, languages=("en", "pt-BR")) for head in (OLD, NEW, LATEST)]
    for path, version in (
        ("pt-br/1.0/cache/", "1.0"),
        ("pt-BR/cache/", "2.0"),
        ("de/1.0/cache/", "2.0"),
        ("en/", "2.0"),
    ):
        at = version_at(quill.BASE + path, heads)
        assert at is not None
        assert at.version == version


def test_where_versions_share_an_address_a_page_says_nothing_of_its_own() -> None:
    same = [head("1.0"), head("2.0", quill.BASE.rstrip("/"))]
    assert version_at(f"{quill.BASE}cache/", same) is None
    assert version_at(f"{quill.BASE}cache/", [head("1.0", ""), head("2.0")]) == head("2.0")
    assert version_at(f"{quill.BASE}cache/", []) is None


def test_the_address_that_serves_the_site_says_nothing_of_a_version(tmp_path: Path) -> None:
    assert version_at(f"{LOCAL}cache/", [OLD, NEW, LATEST]) is None
