"""The place of the content, and the facts in the head."""

from __future__ import annotations

import pytest

from chapterverse.readers.html.metadata import PageMetadata, read_metadata
from growth import assert_linear


def content(html: str) -> str:
    metadata = read_metadata(html)
    return html[metadata.content_start : metadata.content_end]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<body><main><article>a<div itemprop='articleBody'>yes</div></article></main>", "yes"),
        (
            '<main><article>a<div class="x theme-doc-markdown y">yes<div>1</div></div>b</article></main>',
            "yes<div>1</div>",
        ),
        ('<main><div class="vp-doc _v">yes</div>b</main>', "yes"),
        (
            "<body><header>no</header><article class=x>yes<article>1</article></article>no</body>",
            "yes<article>1</article>",
        ),
        ('<body><div role="main">yes</div></body>', "yes"),
        ("<body>no<main id=x>yes</main></body>", "yes"),
        ("<html><body class=b>yes</body></html>", "yes"),
        ("<p>yes</p>", "<p>yes</p>"),
        ("", ""),
        ("<body><main><article>a</article><article>b</article></main>", "<article>a</article><article>b</article>"),
        ("<body><!-- <article>no</article> --><script>'<article>no'</script><article>yes</article>", "yes"),
        ("<body><article>yes<!-- </article> --><script>'</article>'</script></article>", None),
        ("<body><article>never closed", "never closed"),
        ("<body><div class=vp-docs><main>yes</main></div>", "yes"),
        ("<BODY><ARTICLE>yes</ARTICLE>", "yes"),
        # JSDoc: an article below the title holds the details.
        ("<body><h1>A</h1><article>b</article></body>", "<h1>A</h1><article>b</article>"),
        ("<body><header><h1>Site</h1></header><p>by us</p><article>yes</article></body>", "yes"),
    ],
)
def test_content_root(html: str, expected: str | None) -> None:
    found = content(html)
    assert found == expected if expected is not None else found.startswith("yes<!--") and found.endswith("</script>")


def test_head() -> None:
    html = (
        "<!doctype html><html lang='de-CH'><head><title> A &amp;\n B\u200b </title><link rel='next' href=n>"
        "<link href=' https://e.com/a/ ' rel='x canonical'><meta name=ROBOTS content='NoIndex, follow'></head><body>x"
    )
    assert read_metadata(html) == PageMetadata(
        "A & B", "de-CH", "https://e.com/a/", True, len(html) - 1, len(html), is_guess=True
    )


def test_defaults() -> None:
    metadata = read_metadata("<html lang=''><head></head><body>x</body>")
    assert (metadata.title, metadata.language, metadata.canonical, metadata.noindex) == ("", "", None, False)


def test_a_page_that_redirects_is_no_page() -> None:
    assert read_metadata('<html><head><meta http-equiv="Refresh" content="0; url=/new/"></head>').noindex
    hugo = '<link rel="canonical" href="https://e.com/b/"><meta http-equiv="refresh" content="0; url=https://e.com/b/">'
    assert read_metadata(f"<html><head>{hugo}</head>").noindex


@pytest.mark.parametrize(
    "head",
    [
        '<meta http-equiv="refresh" content="300">',
        '<meta http-equiv="refresh" content="300; url=">',
        "<meta http-equiv=refresh content=\"300; url='#top'\">",
        '<link rel="canonical" href="https://e.com/a/"><meta http-equiv="refresh" content="60; URL=https://e.com/a/">',
        '<noscript><meta http-equiv="refresh" content="0; url=/plain/"></noscript>',
        '<meta name="robots" content="index, max-image-preview:none">',
        '<meta name="robots" content="max-image-preview: none, max-snippet:-1">',
    ],
)
def test_a_page_that_stays_where_it_is_is_a_page(head: str) -> None:
    assert not read_metadata(f"<html><head>{head}</head><body>x").noindex


@pytest.mark.parametrize("rules", ["none", "noindex,nofollow", "max-image-preview:none, NOINDEX", "nofollow noindex"])
def test_a_page_that_asks_not_to_be_indexed(rules: str) -> None:
    assert read_metadata(f'<html><head><meta name="robots" content="{rules}"></head>').noindex


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<main><h1>T</h1><article>card</article></main>", "<h1>T</h1><article>card</article>"),
        (
            "<main><p>Much more.</p><article><p>card</p></article></main>",
            "<p>Much more.</p><article><p>card</p></article>",
        ),
        ("<main><nav><p>Much more.</p></nav><article><p>page</p></article></main>", "<p>page</p>"),
        ("<main><nav><h1>T</h1></nav><article><h1>T</h1>page</article></main>", "<h1>T</h1>page"),
        ("<article><div>toc</div><main>page</main></article>", "page"),
        ("<main>a</main><article>page</article>", "page"),
    ],
)
def test_a_part_of_the_page_is_not_its_root(html: str, expected: str) -> None:
    assert content(f"<html><body>{html}</body>") == expected


def test_what_stands_in_the_body_is_not_believed() -> None:
    html = '<html><body><article><link rel=canonical href="https://evil.example/"><meta name=robots content=noindex>'
    metadata = read_metadata(html)
    assert (metadata.canonical, metadata.noindex) == (None, False)


@pytest.mark.parametrize("piece", ["<article ", "main<a ", "<!--", "<script>", "<article>", "<title>", "<meta name='"])
def test_hostile_pages_take_linear_time(piece: str) -> None:
    assert_linear(lambda count: read_metadata("articleBody main <html><head>" + piece * count), 10_000, 80_000)
