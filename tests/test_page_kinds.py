"""Kinds of pages: listings that are left out, content types, and pages that only look like either by their address."""

from __future__ import annotations

from pathlib import Path

import pytest

from chapterverse.ext.sources.markdown_folder import read_markdown_folder
from chapterverse.page_kinds import CONTENT_TYPES, LISTINGS
from chapterverse.readers.built_site import read_site
from chapterverse.readers.page_rules import PageFacts, content_type, listing_kind
from chapterverse.readers.urls import SiteGenerator
from growth import assert_linear
from readers.golden import SITES

PROSE = "<h1>Tags</h1><p>" + "A tag is a word that groups pages about one subject, as an author chose it. " * 8 + "</p>"
LINKS = '<h1>Posts</h1><article><h2><a href="/blog/a/">A</a></h2><p>The first words of it.</p></article>' * 3


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (PageFacts("404.html"), "not-found page"),
        (PageFacts("de/404.html"), "not-found page"),
        (PageFacts("genindex-A.html"), "index of names"),
        (PageFacts("py-modindex.html"), "index of names"),
        (PageFacts("functions_vars.html", "Doxygen"), "index of names"),
        (PageFacts("undoccedSummary.html", "pydoctor"), "index of names"),
        (
            PageFacts("lib_a.js.html", "", "<h1>Source: a.js</h1><pre>" + "const a = 1;\n" * 9 + "</pre>"),
            "source listing",
        ),
        (PageFacts("src/a/b.rs.html", "rustdoc", "<pre>" + "let a = 1;\n" * 9 + "</pre>"), "source listing"),
        (PageFacts("a_8h_source.html", "Doxygen", '<div class="fragment">x</div>'), "source listing"),
        # Docusaurus names its pages on <html>.
        (PageFacts("docs/tags/index.html", "docs-wrapper plugin-docs docs-tags-list-page"), "tag listing"),
        (PageFacts("docs/tags/api/index.html", "docs-wrapper docs-tags-doc-list-page"), "tag listing"),
        (PageFacts("blog/index.html", "blog-wrapper blog-list-page"), "archive"),
        (PageFacts("blog/authors/index.html", "blog-wrapper blog-authors-list-page"), "author listing"),
        (PageFacts("docs/category/x/index.html", "", '<div class="generatedIndexPage_vN6x">'), "category listing"),
        (PageFacts("blog/archive/index.html", "blog-wrapper", LINKS), "archive"),
        # Material: templates in a build, and only HTML afterwards.
        (PageFacts("blog/archive/2024/index.html", "blog.html", "<h1>2024</h1>"), "archive"),
        (PageFacts("blog/category/news/index.html", "blog.html", "<h1>News</h1>"), "category listing"),
        (PageFacts("blog/page/2/index.html", "mkdocs-1.6", LINKS), "archive"),
        (PageFacts("tags/index.html", "", '<h1>Tags</h1><h2 id="tag:a">a</h2>'), "tag listing"),
        # Hugo, Jekyll and Starlight's blog.
        (PageFacts("tags/setup/index.html", "Hugo", LINKS), "tag listing"),
        (
            PageFacts("categories/index.html", "Hugo", '<ul><li><a href="/categories/a/">a</a></li></ul>'),
            "category listing",
        ),
        (PageFacts("posts/page/3/index.html", "Hugo", LINKS), "archive"),
        (PageFacts("year/index.html", "layout--archive"), "archive"),
        (PageFacts("tags/x.html", "td-term"), "tag listing"),
        (PageFacts("search/index.html", "", "<h1>Search</h1><form><input></form>"), "search page"),
        # Markdown that was never built.
        (PageFacts("tags.md", "", "# Tags\n\n<!-- material/tags -->\n"), "tag listing"),
        (PageFacts("archive.md", "archive", "All posts.\n"), "archive"),
        (PageFacts("old.md", "redirect", ""), "redirect"),
    ],
)
def test_listings(facts: PageFacts, kind: str) -> None:
    assert listing_kind(facts) == kind
    assert content_type(facts) == LISTINGS[kind]


@pytest.mark.parametrize(
    "facts",
    [
        PageFacts("reference/values.yaml/index.html", "", "<h1>Values</h1><pre>" + "replicas: 1\n" * 9 + "</pre>"),
        PageFacts("release-1.x.html", "", "<h1>Changes</h1><pre>" + "a.b = 1\n" * 9 + "</pre>"),
        PageFacts("docs/tags/index.html", "", PROSE),
        PageFacts("tags.html", "", "<h1>Tags</h1><p>A tag groups pages.</p>"),
        PageFacts("authors.md", "", "# Authors\n\nWho writes here.\n"),
        PageFacts("search.html", "", "<h1>Search</h1><h2>Syntax</h2><p>Quote words.</p><input>"),
        PageFacts("vue.config.js.html", "", PROSE + "<pre>a = 1</pre>"),
        PageFacts("files.html", "Hugo", PROSE),
        PageFacts("guide/search.html", "", PROSE * 2),
        PageFacts("search/index.html", "", PROSE * 2 + "<form><input></form>"),
        PageFacts("guide/search.md", "", "# Search\n\nPress a key.\n"),
        PageFacts("errors/status/404.html", "", PROSE),
        PageFacts("methods/category/ByCount.md", "", "Returns the terms by count.\n"),
        PageFacts("setup/tags.md", "", PROSE + "\n```\n<!-- material/tags -->\n```\n"),
        PageFacts("authors/style.md", "", PROSE),
        # Links within the page are no listing.
        PageFacts("tags/x/index.html", "", '<ul><li><a href="#a">a</a></li></ul><h2>a</h2>' + PROSE),
        PageFacts("plugins/blog/index.html", "", PROSE),
        PageFacts("guides/releases/managing.md", "", PROSE),
        PageFacts("web/api/history.html", "", PROSE),
        PageFacts("docs/blog/index.html", "docs-wrapper docs-doc-page", PROSE),
        PageFacts("releases.md", "", "# Releases\n\nHow to make one.\n"),
    ],
)
def test_pages_that_say_something_are_documentation(facts: PageFacts) -> None:
    assert listing_kind(facts) == ""
    assert content_type(facts) == "documentation"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (PageFacts("index.html"), "home"),
        (PageFacts("README.md"), "home"),
        (PageFacts("_index.md"), "home"),
        (PageFacts("fr/index.html", language="fr"), "home"),
        (PageFacts("pt-br/index.md", language="pt-BR"), "home"),
        (PageFacts("is/index.html", language="en"), "documentation"),
        (
            PageFacts(
                "changelog.md", content="# Changes\n\n## [1.1.0] - 2026-02-03\n\n- a\n\n## [1.0.0] - 2026-01-02\n"
            ),
            "news",
        ),
        (
            PageFacts("about/x/index.html", content="<h2 id=a>9.5.0 <small>May 3, 2026</small></h2><h3>Added</h3>"),
            "news",
        ),
        (PageFacts("versionen.html", content="<h2>Tea 2.0.0</h2><p>Released 2026-01-02</p><h2>Tea 1.9</h2>"), "news"),
        (PageFacts("c.html", content="<h2>1.1.0<a>&para;</a></h2><h2>1.0.0<a>&para;</a></h2>"), "news"),
        (PageFacts("docs/release_notes/v2.html"), "news"),
        # The name of a file tells nothing.
        (PageFacts("changelog.md", content="# Changelog\n\nHow to write one.\n\n## Entries\n"), "documentation"),
        (PageFacts("a.md", content="# A\n\n## 1.1 Install\n\nSince 2024.\n\n## 1.2 Configure\n"), "documentation"),
        (PageFacts("b.md", content="# B\n\n## Python 3.11\n\nx\n\n## Linux\n\nx\n\n## macOS\n"), "documentation"),
        (PageFacts("whatsnew/3.14.html"), "news"),
        (PageFacts("changes.html", content="<h1>Changes</h1><h2>Version 3.1.0<a>¶</a></h2><p>2026-01-02</p>"), "news"),
        (PageFacts("HISTORY.md", content="# History\n\n## 1.2.0 (2026-01-02)\n"), "news"),
        (PageFacts("releases/1.2.md"), "news"),
        (PageFacts("blog/2026/03/01/a/index.html"), "news"),
        (PageFacts("de/blog/a.html"), "news"),
        (PageFacts("notes/a.html", "blog-wrapper blog-post-page"), "news"),
        (PageFacts("faq.md"), "faq"),
        (PageFacts("help/faqs/install.html"), "faq"),
        (PageFacts("frequently-asked-questions/index.html"), "faq"),
        (PageFacts("std/vec.html", "rustdoc"), "api"),
        (PageFacts("_autosummary/a.b.html"), "api"),
        (PageFacts("api.html", content='<dt class="sig sig-object py" id="a.B"></dt><h2>B</h2>'), "api"),
        (PageFacts("api/x/index.html", content='<h2 id="a.b" class="doc doc-heading">b</h2>'), "api"),
        (PageFacts("api/x.md", content="# X\n\n::: a.b\n    options: {}\n"), "api"),
        (PageFacts("api.md", content="# X\n\n```{automodule} a\n```\n"), "api"),
        (PageFacts("config.html", content='<dt class="sig sig-object py" id="DEBUG"></dt><h2>a</h2>'), "documentation"),
        (
            PageFacts("x.html", content='<dt class="sig sig-object py" id="a.b"></dt>' + "<h2>a</h2>" * 3),
            "documentation",
        ),
        (PageFacts("x.md", content="# X\n\n::: tip\nText.\n:::\n"), "documentation"),
    ],
)
def test_content_types_by_rule(facts: PageFacts, expected: str) -> None:
    assert content_type(facts) == expected


def test_a_stated_content_type_counts_before_any_rule() -> None:
    changes = PageFacts("changes.md", content="## 1.1.0\n\n## 1.0.0\n")
    for stated in CONTENT_TYPES:
        assert content_type(changes, f" {stated.upper()} ") == stated
    for unknown in ("tutorial", "", None, 3, ["api"]):
        assert content_type(changes, unknown) == "news"


@pytest.mark.parametrize("site", ["sphinx-book", "sphinx-alabaster", "mkdocs-material"])
def test_generated_reference_of_captured_sites(site: str) -> None:
    types = {
        source.file_path: source.read().content_type for source in read_site(SITES / site, "https://a.example/").sources
    }
    assert types["index.html"] == "home"
    assert {types.get("api.html"), types.get("api/index.html")} == {"api", None}


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def page(body: str, head: str = "", classes: str = "") -> str:
    return (
        f'<!doctype html><html lang="en" class="{classes}"><head>{head}</head><body><main>{body}</main></body></html>'
    )


BUILT = {
    "index.html": page("<h1>Tea</h1><p>Welcome.</p>"),
    "brew/index.html": page(
        "<h1>Brew</h1><p>Hot water.</p>", '<meta name="chapterverse:content_type" content="Product">'
    ),
    "odd/index.html": page("<h1>Odd</h1><p>Cup.</p>", '<meta name="chapterverse:content_type" content="tutorial">'),
    "changelog/index.html": page("<h1>Changes</h1><h2>1.1</h2><p>New cups.</p><h2>1.0</h2>"),
    "tags/index.html": page("<h1>Tags</h1><a href='/tags/a/'>a</a>", classes="docs-wrapper docs-tags-list-page"),
    "tags/a/index.html": page("<h1>a</h1><a href='/brew/'>Brew</a>"),
    "old/index.html": page("", '<meta http-equiv="refresh" content="0; url=/brew/">'),
    "quiet/index.html": page("<h1>Quiet</h1>", '<meta name="robots" content="noindex">'),
}


def test_listings_of_a_built_site_are_named_and_left_out(tmp_path: Path) -> None:
    reading = read_site(write(tmp_path, BUILT), "https://tea.example/")
    assert {source.file_path: source.read().content_type for source in reading.sources} == {
        "index.html": "home",
        "brew/index.html": "product",
        "odd/index.html": "documentation",
        "changelog/index.html": "news",
    }
    assert reading.listings == {
        "tags/index.html": "tag listing",
        "tags/a/index.html": "tag listing",
        "old/index.html": "redirect",
    }
    assert reading.left_out == {**reading.listings, "quiet/index.html": "asks not to be indexed"}
    (warning,) = reading.warnings
    assert warning.startswith(
        "odd/index.html: content_type 'tutorial' is unknown and not used; it may be documentation,"
    )


def test_a_pattern_brings_listings_back(tmp_path: Path) -> None:
    reading = read_site(write(tmp_path, BUILT), "https://tea.example/", include=["tags/*", "!tags/a/"])
    assert reading.listings == {"tags/a/index.html": "tag listing", "old/index.html": "redirect"}
    kept = next(source for source in reading.sources if source.file_path == "tags/index.html")
    assert kept.read().content_type == "category"


def test_a_folder_of_markdown(tmp_path: Path) -> None:
    files = {
        "index.md": "# Tea\n\nWelcome.\n",
        "brew.md": "---\nchapterverse:\n  content_type: article\n---\n# Brew\n\nHot water.\n",
        "odd.md": "---\nchapterverse:\n  content_type: [x]\n---\n# Odd\n\nCup.\n",
        "blog/first.md": "# First\n\nA post.\n",
        "tags.md": "# Tags\n\n[TAGS]\n",
        "old.md": "---\nredirect_to: /brew/\n---\n",
    }
    reading = read_markdown_folder(
        write(tmp_path, files), "https://tea.example/", generator=SiteGenerator.MKDOCS, include=["tags.md"]
    )
    assert {source.file_path: source.read().content_type for source in reading.sources} == {
        "index.md": "home",
        "brew.md": "article",
        "odd.md": "documentation",
        "blog/first.md": "news",
        "tags.md": "category",
    }
    assert reading.listings == {"old.md": "redirect"}
    assert [warning.partition(":")[0] for warning in reading.warnings] == ["odd.md"]


def test_another_content_type_is_another_source(tmp_path: Path) -> None:
    (before,) = read_markdown_folder(write(tmp_path, {"a.md": "# A\n\nText.\n"}), "https://a.example/").sources
    (tmp_path / "blog").mkdir()
    (tmp_path / "blog/changelog.md").write_text("# A\n\nText.\n", encoding="utf-8")
    (tmp_path / "a.md").unlink()
    (after,) = read_markdown_folder(tmp_path, "https://a.example/").sources
    assert (before.content_hash, "news" in after.context) == (after.content_hash, True)


@pytest.mark.parametrize(
    "piece", ["<a href=x>", "<", "<a ", "<h2>", "<script>", "# a\n", "::: a.b\n", "<h2 a\n", "<h2"]
)
def test_hostile_pages_take_linear_time(piece: str) -> None:
    def work(count: int) -> None:
        for path in ("tags/index.html", "changes.html", "api.md"):
            content_type(PageFacts(path, "", piece * count))

    assert_linear(work, 5_000, 40_000)
