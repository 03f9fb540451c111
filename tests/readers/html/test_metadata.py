"""The place of the content, and the facts in the head."""

from __future__ import annotations

import pytest

from chapterverse.readers.html.metadata import Envelope, open_envelope
from growth import assert_linear


def content(html: str) -> str:
    envelope = open_envelope(html)
    return html[envelope.start : envelope.end]


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
    assert open_envelope(html) == Envelope("A & B", "de-CH", "https://e.com/a/", True, len(html) - 1, len(html))


def test_defaults() -> None:
    envelope = open_envelope("<html lang=''><head></head><body>x</body>")
    assert (envelope.title, envelope.language, envelope.canonical, envelope.noindex) == ("", "en", None, False)


def test_a_page_that_redirects_is_no_page() -> None:
    assert open_envelope('<html><head><meta http-equiv="Refresh" content="0; url=/new/"></head>').noindex


def test_what_stands_in_the_body_is_not_believed() -> None:
    html = '<html><body><article><link rel=canonical href="https://evil.example/"><meta name=robots content=noindex>'
    envelope = open_envelope(html)
    assert (envelope.canonical, envelope.noindex) == (None, False)


@pytest.mark.parametrize("piece", ["<article ", "main<a ", "<!--", "<script>", "<article>", "<title>", "<meta name='"])
def test_hostile_pages_take_linear_time(piece: str) -> None:
    assert_linear(lambda count: open_envelope("articleBody main <html><head>" + piece * count), 10_000, 80_000)
