"""Folders of built pages and of Markdown."""

from __future__ import annotations

import hashlib
import pickle
import re
from pathlib import Path

import pytest

from chapterverse.errors import InputError, UnreadablePage, UnsafePath
from chapterverse.ext.sources.markdown_folder import read_markdown_folder
from chapterverse.indexing import sync
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.model import Scope, Source
from chapterverse.readers.built_site import read_site
from chapterverse.readers.sections.html_page import read_document
from chapterverse.readers.site_pages import SitePages
from chapterverse.settings import Settings
from chapterverse.store import open_store
from readers.golden import SITES


def page(body: str, head: str = "") -> str:
    return f"<!doctype html><html lang=de><head><title>W</title>{head}</head><body><main>{body}</main></body></html>"


def write(folder: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = folder / re.sub("_(html|mdx|md|xml)$", r".\1", name.replace("__", "/"))
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
    assert (tuple(reading.left_out), reading.warnings) == (skipped, ())


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
    for base in (None, "https://e.com/docs/"):
        urls = {s.file_path: s.read().url for s in read_site(tmp_path, base).sources}
        assert urls == {
            "index.html": "https://e.com/docs/",
            "a.html": "https://e.com/docs/a",
            "b.html": "https://e.com/docs/bee",
        }


def test_what_a_page_says_of_its_address_never_leads_out_of_a_stated_one(tmp_path: Path) -> None:
    link = "<link rel=canonical href=https://e.com/latest/a/>"
    write(tmp_path, a__index_html=page("1", link), sitemap_xml="<loc>https://e.com/latest/a/</loc>")
    assert urls(read_site(tmp_path, "https://e.com/1.0/")) == ["https://e.com/1.0/a/"]
    assert urls(read_site(tmp_path)) == ["https://e.com/latest/a/"]


def test_the_address_of_the_site(tmp_path: Path) -> None:
    assert read_site(SITES / "docusaurus").base_url == "https://example.com/d/"
    assert read_site(SITES / "sphinx").site == "example.com/s"
    write(tmp_path, a_html=page("1", "<link rel=canonical href=https://e.com/other/place>"), a_md="x")
    assert read_site(tmp_path).base_url == "https://e.com/"
    assert read_markdown_folder(tmp_path, "https://e.com/docs").site == "e.com/docs"


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
    assert tuple(read_site(tmp_path, "https://e.com/").left_out) == ("b.html", "fr/404.html", "old/index.html")


def complaints(reading: SitePages) -> dict[str, str]:
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


RUSSIAN = "<meta charset=utf-8><main><p>Грейте</p></main>".encode("cp1251")
ODD_SITES: dict[str, tuple[dict[str, str | bytes], dict[str, str]]] = {
    "one form": (
        {"a_html": "<body><form><h1>Order</h1><p>Choose a pot.<input><select><option>red</select></form>"},
        {"a.html": "Order: Choose a pot."},
    ),
    "one table": (
        {"a_html": "<body><table><tr><td><h1>Cones</h1><td>How hot.<tr><td>6<td>1222</table>"},
        {"a.html": "Cones: How hot. 6 1222"},
    ),
    "one dialog": ({"a_html": "<body><div role=dialog><h1>Cookies</h1>Take one?</div>"}, {"a.html": ""}),
    "one script": ({"a_html": "<body><script>document.write('<p>x</p>')</script>"}, {"a.html": ""}),
    "a long address": (
        {"a_html": page(f'<p>Words.</p><img src="n{"/" * 5_000_000}.png" alt="A pot on a shelf">')},
        {"a.html": "Words. A pot on a shelf"},
    ),
    "many long addresses": (
        {"a_html": page("<p>Words.</p>" + f'<img src="n{"/" * 1_000}.png" alt="A pot on a shelf">' * 5_000)},
        {"a.html": "Words. " + " ".join(["A pot on a shelf"] * 5_000)},
    ),
    "ten thousand elements deep": (
        {"a_html": page("<div><b>" * 5_000 + "deep" + "</b></div>" * 5_000 + "<p>after")},
        {"a.html": "**deep** after"},
    ),
    "one text": (
        {f"p{i}_html": "<body><div><h1>Same</h1><p>On each page.</p></div>" for i in range(8)},
        {f"p{i}.html": "Same: On each page." for i in range(8)},
    ),
    "two generators": (
        {
            "guide__index_html": "<body><main><div class=vp-doc><h1>Guide</h1><p>By hand.</div></main>",
            "api__index_html": "<body><div class=body role=main><section id=a><h1>API</h1><p>By code.</section></div>",
        },
        {"guide/index.html": "Guide: By hand.", "api/index.html": "API: By code."},
    ),
    "a wrong encoding": ({"a_html": RUSSIAN}, {"a.html": "a.html is not encoded in UTF-8."}),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_SITES)
def test_an_odd_page_is_read_or_named_and_costs_no_other(name: str, tmp_path: Path) -> None:
    files, expected = ODD_SITES[name]
    reading = read_site(write(tmp_path, **files, z_html=page("<p>Heat it slowly.</p>")), "https://e.com/")
    assert {source.file_path: texts(source) for source in reading.sources} == {**expected, "z.html": "Heat it slowly."}


def texts(source: Source) -> str:
    """Return what a page says, each section behind its heading, or why it can't be read."""
    try:
        sections = source.read().sections
    except UnreadablePage as error:
        return str(error)
    said = [f"{s.heading}: " * bool(s.heading) + " ".join(block.text for block in s.blocks) for s in sections]
    return " ".join(said)


def test_a_page_that_turns_bad_keeps_its_last_good_version(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    write(site, a_html=page("<h1>A</h1><p>Anchors are weighed at dawn.</p>"), b_html=page("<h1>B</h1><p>Other.</p>"))
    store = open_store(Settings(store=f"edge:{tmp_path / 'index'}"))
    target = Target(
        Scope("s"), store, open_ledger(Settings(store=f"edge:{tmp_path / 'index'}")), base_url="https://e.com/"
    )
    sync.index(read_site(site, "https://e.com/").sources, target)
    (site / "a.html").write_bytes(b"\x00\x01")
    report = sync.index(read_site(site, "https://e.com/").sources, target)
    assert report.warnings == ("a.html is not a text file.",)
    assert {c.source_file_path for c in store.snapshot(Scope("s")).page("a.html")} == {"a.html"}


def test_a_link_to_secrets_is_never_read_and_costs_no_other_page(tmp_path: Path) -> None:
    write(tmp_path, a_html=page("1"), b_md="x")
    for name, read, other in (("leak.html", read_site, "a.html"), ("leak.md", read_markdown_folder, "b.md")):
        (tmp_path / name).symlink_to("/proc/self/environ")
        sources = {source.file_path: source for source in read(tmp_path, "https://e.com/").sources}
        assert sources.keys() == {name, other}
        with pytest.raises(UnsafePath, match=rf"^{name} leads out of the project"):
            sources[name].read()
        (tmp_path / name).unlink()
    (tmp_path / "sitemap.xml").symlink_to("/proc/self/environ")
    (warning,) = read_site(tmp_path, "https://e.com/").warnings
    assert warning.startswith("sitemap.xml leads out of the project")


@pytest.mark.parametrize("files", [{}, {"b_html": b"\x00"}, {"404_html": "x"}, {"readme_txt": "x"}])
def test_no_pages(tmp_path: Path, files: dict[str, str | bytes]) -> None:
    write(tmp_path, **files)
    with pytest.raises(InputError, match="holds no HTML page to index"):
        read_site(tmp_path, "https://e.com/")
    with pytest.raises(InputError, match="holds no Markdown file to index"):
        read_markdown_folder(tmp_path, "https://e.com/")


def test_no_address(tmp_path: Path) -> None:
    write(tmp_path, a_html=page("1"), a_md="x")
    with pytest.raises(
        InputError, match=r"^a\.html states no address and the site has no sitemap\.xml: pass --base-url\.$"
    ):
        read_site(tmp_path)
    with pytest.raises(InputError, match="pass --base-url"):
        read_markdown_folder(tmp_path)
    with pytest.raises(InputError, match="must be an address"):
        read_site(tmp_path, "docs")


def test_a_page_that_changes_between_listing_and_reading(tmp_path: Path) -> None:
    write(tmp_path, a_html=page("1"), a_md="x")
    sources = (
        *read_site(tmp_path, "https://e.com/").sources,
        *read_markdown_folder(tmp_path, "https://e.com/").sources,
    )
    write(tmp_path, a_html=page("2"), a_md="y")
    for source in sources:
        with pytest.raises(UnreadablePage, match="changed while it was being indexed"):
            source.read()


def test_pages_without_heading_title_or_content(tmp_path: Path) -> None:
    write(tmp_path, a_html="<html><p>text</p>", **{"first-page.html": "<html></html>"})
    pages = [s.read() for s in read_site(tmp_path, "https://e.com/").sources]
    assert [(p.title, len(p.sections)) for p in pages] == [("A", 1), ("First page", 0)]


def test_a_piece_of_a_template_is_no_page(tmp_path: Path) -> None:
    pieces = {
        "toc.html": '{% extends "base.html" %}\n<li><a href="{{ item.url }}">{{ item.title }}</a></li>',
        "note.html": "<!-- a note --><p>Text.</p>",
    }
    write(tmp_path, a_html=page("<h1>A</h1>"), b_html="<!doctype html><p>b", **pieces)
    reading = read_site(tmp_path, "https://e.com/")
    assert [source.file_path for source in reading.sources] == ["a.html", "b.html"]
    assert (set(reading.left_out), reading.warnings) == (set(pieces), ())


def test_what_a_page_says_about_its_publication(tmp_path: Path) -> None:
    head = (
        "<meta property=article:published_time content=2024-01-02T03:04:05+01:00>"
        "<meta property=article:tag content=ropes><meta property=article:tag content=tides>"
    )
    (source,) = read_site(write(tmp_path, a_html=page("x", head)), "https://e.com/").sources
    assert (source.read().created_at, source.read().tags) == ("2024-01-02T02:04:05Z", ("ropes", "tides"))
    (bare,) = read_site(write(tmp_path, a_html=page("x")), "https://e.com/").sources
    assert bare.content_hash == source.content_hash
    assert bare.context != source.context


def test_sources_survive_the_way_to_another_process(tmp_path: Path) -> None:
    write(tmp_path, a_html=page("<h1>A</h1>x"), b_html=b"\x00", a_md="# A", b_mdx="x")
    for reading in (read_site(tmp_path, "https://e.com/"), read_markdown_folder(tmp_path, "https://e.com/")):
        sent = pickle.loads(pickle.dumps(reading.sources))
        assert sent[0].read() == reading.sources[0].read()
        assert [s.file_path for s in sent] == [s.file_path for s in reading.sources]


# Sites that lie


def urls(reading: SitePages) -> list[str]:
    return [source.read().url for source in reading.sources]


@pytest.mark.parametrize("told", ["https://e.com/", "https://elsewhere.example/", "https://e.com/docs/a/"])
def test_one_address_on_every_page_does_not_make_one_page_of_the_site(tmp_path: Path, told: str) -> None:
    link = f"<link rel=canonical href={told}>"
    write(tmp_path, **{f"{name}__index_html": page(name, link) for name in "abcd"})
    reading = read_site(tmp_path, "https://e.com/docs/")
    assert urls(reading) == [f"https://e.com/docs/{name}/" for name in "abcd"]
    assert reading.warnings == (f"4 pages state one address, {told}: they are placed by their paths instead.",)


def test_one_page_on_a_foreign_host(tmp_path: Path) -> None:
    write(
        tmp_path,
        **{f"{n}_html": page(n, f"<link rel=canonical href=https://e.com/{n}.html>") for n in "abc"},
        d_html=page("d", "<link rel=canonical href=https://bad.example/d.html>"),
    )
    reading = read_site(tmp_path)
    assert urls(reading) == [f"https://e.com/{n}.html" for n in "abcd"]
    assert reading.warnings == (
        "A page states an address on another host than the rest, https://bad.example/d.html: it is placed by its path.",
    )


@pytest.mark.parametrize(
    "xml",
    [
        "<loc>https://other.example/x/</loc>",
        "<loc>/a.html</loc><loc>a.html</loc><loc>//</loc>",
        '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><loc>&b;</loc>',
        "<loc>" * 100_000,
        "not xml \\ at all",
        "",
    ],
)
def test_a_sitemap_without_this_site_changes_nothing(tmp_path: Path, xml: str) -> None:
    reading = read_site(write(tmp_path, a_html=page("1"), sitemap_xml=xml), "https://e.com/")
    assert urls(reading) == ["https://e.com/a.html"]
    assert reading.warnings in ((), ("sitemap.xml names no page of this folder: it is left out.",))


def test_a_sitemap_that_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, a_html=page("1"), sitemap_xml=b"\x00")
    assert read_site(tmp_path, "https://e.com/").warnings == ("sitemap.xml is not a text file.",)
    with (tmp_path / "sitemap.xml").open("wb") as file:
        file.truncate(50_000_001)
    (said,) = read_site(tmp_path, "https://e.com/").warnings
    assert said == "sitemap.xml is larger than 50 MB, too large for a page."


@pytest.mark.parametrize(
    ("head", "url"),
    [
        ('<base href="https://e.com/docs/v2/"><link rel=canonical href="a/">', "https://e.com/docs/v2/a/"),
        ('<base href="/docs/v3/"><link rel=canonical href="a/">', "https://e.com/docs/v3/a/"),
        ('<base href="/v4/"><link rel=canonical href="a/">', "https://e.com/docs/guide/a.html"),
        ("<link rel=canonical href=../up/>", "https://e.com/docs/up/"),
        ("<link rel=canonical href=javascript:alert(1)>", "https://e.com/docs/guide/a.html"),
        (r"<link rel=canonical href=https:\\e.com\docs\\a>", "https://e.com/docs/a"),
    ],
)
def test_relative_and_odd_canonical_links(tmp_path: Path, head: str, url: str) -> None:
    write(tmp_path, guide__a_html=page("1", head))
    assert urls(read_site(tmp_path, "https://e.com/docs/")) == [url]


def test_odd_bytes_in_pages(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_html=b"<html><head><meta charset=windows-1252></head><body><main>gr\xfc\xdfe</main></body>",
        b_html=page("&#xD800;&#0;x\u202e<p>" + "y" * 100_000),
        c_html="<html>" + "<div>" * 10_000 + "deep" + "</div>" * 10_000,
    )
    texts = [
        "".join(b.text for s in p.read().sections for b in s.blocks)
        for p in read_site(tmp_path, "https://e.com/").sources
    ]
    assert texts[0] == "grüße"
    assert texts[1].startswith("\ufffd\ufffdx")
    assert "\u202e" not in texts[1]
    assert texts[2] == "deep"


def stating(source: str) -> str:
    return f'<meta name="chapterverse:source" content="{source}">'


def test_a_page_is_named_after_the_file_that_it_was_written_in(tmp_path: Path) -> None:
    write(
        tmp_path,
        a__index_html=page("<h1 id=a>A</h1><p>x</p>", stating("docs/a &amp; b.mdx")),
        b_html=page("<h1 id=b>B</h1><p>x</p>"),
        # It stands in for a translation of the first.
        fr__a__index_html=page("<h1 id=a>A</h1><p>x</p>", stating("docs/a &amp; b.mdx")),
        # The name of another page.
        taken_html=page("<h1 id=c>C</h1><p>x</p>", stating("b.html")),
    )
    reading = read_site(tmp_path, "https://e.com/")
    names = {source.file_path: source.read().url.removeprefix("https://e.com/") for source in reading.sources}
    assert names == {"docs/a & b.mdx": "a/", "b.html": "b.html", "fr/a/index.html": "fr/a/", "taken.html": "taken.html"}
    assert {source.read().file_path for source in reading.sources} == set(names)
    assert reading.built == {"docs/a & b.mdx": "a/index.html"}


@pytest.mark.parametrize(
    "source", ["", "/etc/passwd", "../x.md", "a/../b.md", "./a.md", "a/", "a\\b.md", "a\nb", "x" * 513]
)
def test_what_is_no_path_of_a_project_names_no_page(tmp_path: Path, source: str) -> None:
    write(tmp_path, a_html=page("<h1 id=a>A</h1><p>x</p>", stating(source)))
    assert [source.file_path for source in read_site(tmp_path, "https://e.com/").sources] == ["a.html"]


def test_patterns_mean_the_file_that_a_page_was_written_in_as_well(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_html=page("<h1 id=a>A</h1><p>x</p>", stating("docs/in/a.mdx")),
        b_html=page("<h1 id=b>B</h1><p>x</p>"),
        tags_html=page("<h1>Tags</h1><a href='x'>x</a>", stating("docs/tags.md")),
    )
    reading = read_site(tmp_path, "https://e.com/", exclude=["in/"])
    assert ([s.file_path for s in reading.sources], tuple(reading.left_out)) == (["b.html"], ("a.html", "tags.html"))
    reading = read_site(tmp_path, "https://e.com/", include=["/docs/tags.md"])
    assert [s.file_path for s in reading.sources] == ["b.html", "docs/in/a.mdx", "docs/tags.md"]
