"""Folders of built pages and of Markdown."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from chapterverse import sync
from chapterverse.errors import InputError, UnreadablePage, UnsafePath
from chapterverse.ledger import open_ledger
from chapterverse.model import Scope
from chapterverse.readers import SlugRule, read_document, read_site, read_sources
from chapterverse.readers.site import Reading
from chapterverse.settings import Settings
from chapterverse.store import open_store
from readers.golden import SITES


def page(body: str, head: str = "") -> str:
    return f"<!doctype html><html lang=de><head><title>W</title>{head}</head><body><main>{body}</main></body></html>"


def write(folder: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_html", ".html").replace("_md", ".md").replace("_xml", ".xml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.mark.parametrize(
    ("site", "urls", "skipped"),
    [
        (
            "mkdocs-material",
            [
                "https://example.com/sub/api/",
                "https://example.com/sub/guide/advanced/",
                "https://example.com/sub/hidden/",
                "https://example.com/sub/",
            ],
            ("404.html",),
        ),
        ("docusaurus", ["https://example.com/d/docs/intro"], ("404.html",)),
        ("vitepress", ["https://example.com/v/"], ("404.html",)),
        (
            "sphinx",
            ["https://example.com/s/index.html", "https://example.com/s/page.html"],
            ("genindex.html", "search.html"),
        ),
    ],
)
def test_captured_sites(site: str, urls: list[str], skipped: tuple[str, ...]) -> None:
    reading = read_site(SITES / site)
    assert [source.read().url for source in reading.sources] == urls
    assert (reading.skipped, reading.warnings) == (skipped, ())


def test_a_source_is_what_its_fragment_is(tmp_path: Path) -> None:
    html = page("<h1>Title</h1><p>text</p>")
    (source,) = read_site(write(tmp_path, guide__index_html=html), "https://e.com/docs").sources
    assert source.file_path == "guide/index.html"
    assert source.content_hash == hashlib.sha256(b"<h1>Title</h1><p>text</p>").hexdigest()
    read = source.read()
    assert (read.url, read.title, read.language, read.file_path) == (
        "https://e.com/docs/guide/",
        "Title",
        "de",
        "guide/index.html",
    )
    assert read.sections == read_document(html).sections


def test_the_hash_covers_the_content_and_the_context_the_rest(tmp_path: Path) -> None:
    def sources(html: str) -> tuple[str, str]:
        (source,) = read_site(write(tmp_path, a_html=html), "https://e.com/").sources
        return source.content_hash, source.context

    before = sources(page("x"))
    assert sources(page("x", "<meta name=build content=2026>")) == before
    assert sources(page("y")) == (hashlib.sha256(b"y").hexdigest(), before[1])
    moved = sources(page("x", "<link rel=canonical href=https://e.com/b/>"))
    assert moved[0] == before[0]
    assert moved[1] != before[1]


def test_addresses_canonical_then_sitemap_then_base_url(tmp_path: Path) -> None:
    write(
        tmp_path,
        index_html=page("1"),
        a_html=page("2"),
        b_html=page("3", "<link rel=canonical href=https://e.com/docs/bee>"),
        sitemap_xml="<loc>https://e.com/docs/</loc><loc>https://e.com/docs/a</loc>",
    )
    urls = {s.file_path: s.read().url for s in read_site(tmp_path, "https://ignored.example/").sources}
    assert urls == {
        "index.html": "https://e.com/docs/",
        "a.html": "https://e.com/docs/a",
        "b.html": "https://e.com/docs/bee",
    }


def test_the_address_of_the_site(tmp_path: Path) -> None:
    assert read_site(SITES / "docusaurus").base_url == "https://example.com/d/"
    assert read_site(SITES / "sphinx").site == "example.com/s"
    write(tmp_path, a_html=page("1", "<link rel=canonical href=https://e.com/other/place>"), a_md="x")
    assert read_site(tmp_path).base_url == "https://e.com/"
    assert read_sources(tmp_path, "https://e.com/docs").site == "e.com/docs"


def test_a_sitemap_that_lies_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, a_html=page("1"), sitemap_xml="<loc>https://other.example/x/</loc>")
    assert read_site(tmp_path, "https://e.com/").sources[0].read().url == "https://e.com/a.html"
    with pytest.raises(InputError, match="pass --base-url"):
        read_site(tmp_path)


def test_a_page_without_an_address_stands_beside_those_with_one(tmp_path: Path) -> None:
    write(tmp_path, a__index_html=page("1", "<link rel=canonical href=https://e.com/d/a/>"), b__index_html=page("2"))
    assert [s.read().url for s in read_site(tmp_path).sources] == ["https://e.com/d/a/", "https://e.com/d/b/"]


def test_two_pages_with_one_address(tmp_path: Path) -> None:
    link = "<link rel=canonical href=https://e.com/a/>"
    reading = read_site(write(tmp_path, a_html=page("1", link), b_html=page("2", link)))
    assert [s.file_path for s in reading.sources] == ["a.html"]
    assert reading.warnings == ("b.html is skipped: it has the address of a.html, https://e.com/a/.",)


def test_pages_that_ask_not_to_be_indexed(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_html=page("1"),
        b_html=page("2", "<meta name=robots content=noindex>"),
        old__index_html=page("", '<meta http-equiv=refresh content="0; url=/a">'),
        fr__404_html=page("3"),
    )
    assert read_site(tmp_path, "https://e.com/").skipped == ("b.html", "fr/404.html", "old/index.html")


def complaints(reading: Reading) -> dict[str, str]:
    """Read every source and return what those say that can't be read."""
    said = {}
    for source in reading.sources:
        try:
            source.read()
        except UnreadablePage as error:
            said[source.file_path] = str(error)
    return said


def test_a_bad_file_says_so_and_the_others_are_read(tmp_path: Path) -> None:
    write(tmp_path, a_html=page("1"), b_html=b"PK\x00\x01", c_html=b"\xff\xfe", d_html=page("4"))
    reading = read_site(tmp_path, "https://e.com/")
    assert [s.file_path for s in reading.sources] == ["a.html", "b.html", "c.html", "d.html"]
    assert complaints(reading) == {"b.html": "b.html is not a text file.", "c.html": "c.html is not encoded in UTF-8."}
    assert reading.warnings == ()


def test_a_page_that_turns_bad_keeps_its_last_good_version(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    write(site, a_html=page("<h1>A</h1><p>Anchors are weighed at dawn.</p>"), b_html=page("<h1>B</h1><p>Other.</p>"))
    store = open_store(Settings(store=f"edge:{tmp_path / 'index'}"))
    target = sync.Target(
        Scope("s"), store, open_ledger(Settings(store=f"edge:{tmp_path / 'index'}")), base_url="https://e.com/"
    )
    sync.index(read_site(site, "https://e.com/").sources, target)
    (site / "a.html").write_bytes(b"\x00\x01")
    report = sync.index(read_site(site, "https://e.com/").sources, target)
    assert report.warnings == ("a.html is not a text file.",)
    assert {c.source_file_path for c in store.snapshot(Scope("s")).page("a.html")} == {"a.html"}


def test_a_link_to_secrets_stops_everything(tmp_path: Path) -> None:
    write(tmp_path, a_html=page("1"), b_md="x")
    (tmp_path / "leak.html").symlink_to("/proc/self/environ")
    with pytest.raises(UnsafePath, match=r"^leak\.html"):
        read_site(tmp_path, "https://e.com/")
    (tmp_path / "leak.html").rename(tmp_path / "leak.md")
    with pytest.raises(UnsafePath, match=r"^leak\.md"):
        read_sources(tmp_path, "https://e.com/")
    (tmp_path / "leak.md").rename(tmp_path / "sitemap.xml")
    with pytest.raises(UnsafePath, match=r"^sitemap\.xml"):
        read_site(tmp_path, "https://e.com/")


@pytest.mark.parametrize("files", [{}, {"b_html": b"\x00"}, {"404_html": "x"}, {"readme_txt": "x"}])
def test_no_pages(tmp_path: Path, files: dict[str, str | bytes]) -> None:
    write(tmp_path, **files)
    with pytest.raises(InputError, match="holds no HTML page to index"):
        read_site(tmp_path, "https://e.com/")
    with pytest.raises(InputError, match="holds no Markdown file to index"):
        read_sources(tmp_path, "https://e.com/")


def test_no_address(tmp_path: Path) -> None:
    write(tmp_path, a_html=page("1"), a_md="x")
    with pytest.raises(
        InputError, match=r"^a\.html states no address and the site has no sitemap\.xml: pass --base-url\.$"
    ):
        read_site(tmp_path)
    with pytest.raises(InputError, match="pass --base-url"):
        read_sources(tmp_path)
    with pytest.raises(InputError, match="must be an address"):
        read_site(tmp_path, "docs")


def test_a_page_that_changes_between_listing_and_reading(tmp_path: Path) -> None:
    write(tmp_path, a_html=page("1"), a_md="x")
    sources = (*read_site(tmp_path, "https://e.com/").sources, *read_sources(tmp_path, "https://e.com/").sources)
    write(tmp_path, a_html=page("2"), a_md="y")
    for source in sources:
        with pytest.raises(UnreadablePage, match="changed while it was being indexed"):
            source.read()


def test_pages_without_heading_title_or_content(tmp_path: Path) -> None:
    write(tmp_path, a_html="<p>text</p>", **{"first-page.html": "<html></html>"})
    pages = [s.read() for s in read_site(tmp_path, "https://e.com/").sources]
    assert [(p.title, len(p.sections)) for p in pages] == [("A", 1), ("First page", 0)]


def test_markdown_folder(tmp_path: Path) -> None:
    write(
        tmp_path,
        index_md="# Home\n",
        guide__setup_md="---\ntags: [a]\ndate: 2024-01-02\n---\n# Set up\n\n## Über\n\ntext\n",
        draft_md="---\ndraft: true\n---\nx",
        broken_md="---\na: [\n---\nx",
        **{"page.mdx": "x", "more.mdx": "y"},
    )
    reading = read_sources(tmp_path, "https://e.com/docs", SlugRule.VITEPRESS)
    assert reading.skipped == ("draft.md",)
    assert reading.warnings == (
        "more.mdx and 1 more: MDX can't be read from source yet, index the built site instead.",
    )
    assert complaints(reading) == {"broken.md": "The front matter of broken.md is not valid YAML."}
    _, setup, home = reading.sources
    assert setup.content_hash == hashlib.sha256((tmp_path / "guide/setup.md").read_bytes()).hexdigest()
    read = setup.read()
    assert (read.url, read.title, read.tags, read.created_at) == (
        "https://e.com/docs/guide/setup/", "Set up", ("a",), "2024-01-02T00:00:00Z",
    )  # fmt: skip
    assert [(s.anchor, s.anchor_verified) for s in read.sections] == [("set-up", False), ("uber", False)]
    assert home.read().url == "https://e.com/docs/"
