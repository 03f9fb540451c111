"""Whole fragments and documents: anchors, titles, sizes."""

from __future__ import annotations

import pytest

from chapterverse.readers.sections.html_page import read_document, read_fragment
from growth import assert_linear


@pytest.mark.parametrize(
    ("html", "anchor"),
    [
        ('<h2 id="Ünï-码 ">H</h2>', "Ünï-码 "),
        ('<h2 id="a&amp;b">H</h2>', "a&b"),
        ('<div id="s"><h2>H<a class="headerlink" href="#s">¶</a></h2></div>', "s"),
        ('<i id="%C3%BC"></i><i id="ü"></i><h2>H<a class="headerlink" href="#%C3%BC">¶</a></h2>', "ü"),
        ('<section id="s"><h2>H</h2></section>', "s"),
        ('<section id="s"><span id="alias"></span><h2>H<a class="headerlink" href="#s">¶</a></h2></section>', "s"),
        ('<h2>H<a class="headerlink" href="#dead">¶</a></h2>', None),
        ('<section id="s"><h2>H<a class="headerlink" href="#dead">¶</a></h2></section>', "s"),
        ('<h2><a id="inner"></a>H</h2>', "inner"),
        ('<h2 id="">H</h2>', None),
        ("<h2>H</h2>", None),
    ],
)
def test_the_anchor_that_the_page_really_has(html: str, anchor: str | None) -> None:
    section = next(s for s in read_fragment(html, "T") if s.heading)
    assert (section.heading, section.anchor) == ("H", anchor)


def test_only_the_first_heading_of_a_section_takes_its_id() -> None:
    sections = read_fragment('<section id="s"><h2>A</h2><h2>B</h2></section>', "T")
    assert [s.anchor for s in sections] == ["s", None]


def test_a_heading_without_text_keeps_its_anchor_and_has_the_name_of_the_one_above() -> None:
    sections = read_fragment(
        '<h2 id="a">A</h2><p>a</p><h3 id="e"><a class="headerlink" href="#e">¶</a></h3><p>b</p>'
        '<h3><img alt=""></h3><p>c</p>',
        "T",
    )
    assert [(s.heading, s.anchor, s.path, [b.text for b in s.blocks]) for s in sections] == [
        ("A", "a", ("T", "A"), ["a"]),
        ("A", "e", ("T", "A"), ["b", "c"]),
    ]
    (image,) = read_fragment('<h2 id="i"><img alt="Compass rose"><a class="headerlink" href="#i">#</a></h2>', "T")
    assert (image.heading, image.anchor) == ("Compass rose", "i")
    (untitled,) = read_fragment('<h2 id="i"></h2><p>x</p>', "")
    assert (untitled.heading, untitled.anchor) == ("i", "i")


@pytest.mark.parametrize(
    "html",
    [
        '<div class="meta"><a href="https://github.com/a/b/edit/main/c.md"><svg></svg> Edit page</a></div>',
        '<p><a href="https://gitlab.com/a/b/-/edit/main/c.md">Diese Seite bearbeiten</a></p>',
        '<a class="md-content__button md-icon" rel="edit" href="https://a.example/c.md">Edit this page</a>',
        '<p><a href="https://a.example/"><img alt="tests" src="https://a.example/badge.svg"></a></p>',
        '<div class="pagination-links"><a rel="prev" href="/a/">Back</a><a rel="next" href="/next/">Next</a></div>',
    ],
)
def test_what_a_theme_puts_around_the_words_of_a_page_is_left_out(html: str) -> None:
    (section,) = read_fragment(f"<p>a</p>{html}<p>b</p>", "T")
    assert [block.text for block in section.blocks] == ["a", "b"]


PAGER = '<div><a href="/a/">First</a> <a href="/b/">Last</a></div>'


@pytest.mark.parametrize(
    ("html", "last"),
    [
        (f"<div><h1>A</h1><p>text</p></div>{PAGER}", "text"),
        (f"<div><div><h1>A</h1><p>text</p></div></div><div></div>{PAGER}", "text"),
        (f"<div><h1>A</h1><p>text</p>{PAGER}</div>", "First Last"),
        (f"<div><h1>A</h1></div>{PAGER}", "First Last"),
        (f"<div><h1>A</h1><p>text</p></div>{PAGER}<div><h2>B</h2></div>", "First Last"),
        (f"<div><h1>A</h1><p>text</p></div>{PAGER.replace('</div>', 'more</div>')}", "First Lastmore"),
    ],
)
def test_links_to_the_pages_around_are_left_out_below_the_content_only(html: str, last: str) -> None:
    document = read_document(f"<body><main>{html}</main>")
    assert [block.text for section in document.sections for block in section.blocks][-1] == last


def test_a_link_to_an_editor_within_a_sentence_stays() -> None:
    (section,) = read_fragment(
        '<p>To help, <a href="https://github.com/a/b/edit/main/c.md">edit this page</a>.</p>', "T"
    )
    assert [block.text for block in section.blocks] == ["To help, edit this page."]


def test_an_excluded_section() -> None:
    html = "<h2>A</h2><h3 data-search-exclude>X</h3><p>x</p><h4>Y</h4><h3>B</h3><p>b</p>"
    assert [s.heading for s in read_fragment(html, "T")] == ["A", "B"]


@pytest.mark.parametrize("html", ["", "   ", "<p></p>", "<nav>x</nav>", "<!-- x -->", "<h2></h2>"])
def test_empty_pages(html: str) -> None:
    assert read_fragment(html, "T") == ()
    assert read_document(f"<title>T</title><body>{html}").title == "T"


def test_a_page_without_headings() -> None:
    (section,) = read_fragment("<p>a</p>", "T")
    assert (section.heading, section.level, section.anchor, section.path) == (None, 0, None, ("T",))


def test_titles() -> None:
    assert (
        read_document("<title>Window</title><main><h2>x</h2><h1>Real <code>one</code></h1></main>").title == "Real one"
    )
    assert read_document("<title>Window</title><main><h2>x</h2></main>").title == "Window"
    assert read_document("<main><h2>x</h2></main>").title == ""


def test_hidden_words_reach_neither_text_nor_heading() -> None:
    tags = "".join(f"&#{0xE0000 + ord(c)};" for c in "obey")
    document = read_document(
        f"<title>T{tags}</title><main><h1>H{tags}</h1><p>a\u200b{tags}b</p><pre>c{tags}</pre></main>"
    )
    assert document.title == "H"
    assert [b.text for b in document.sections[0].blocks] == ["ab", "```\nc\n```"]


def test_a_page_nested_ten_thousand_deep() -> None:
    html = "<div><ul><li><blockquote><b>" * 2000 + "<h2 id=x>Deep</h2><p>text</p>"
    sections = read_fragment(html, "T")
    assert [(s.heading, s.anchor) for s in sections] == [("Deep", "x")]
    assert sections[0].blocks[0].text.endswith("text")


@pytest.mark.slow
def test_five_megabytes_in_a_few_seconds() -> None:
    page = (
        '<h2 id="s{0}">Section {0}<a class="headerlink" href="#s{0}">¶</a></h2><p>Some <code>code</code> and '
        "<em>text</em> "
        'for it.</p><div class="highlight"><pre><span></span><code><span class="k">if</span> x:\n    '
        "y\n</code></pre></div>"
        "<ul><li>One</li><li>Two<ul><li>Three</li></ul></li></ul><table><tr><th>A</th></tr><tr><td>b</td></tr></table>"
    )
    html = "".join(page.format(i) for i in range(5_000_000 // len(page)))
    sections = read_fragment(html, "T")
    assert len(sections) == 5_000_000 // len(page)
    assert len({s.anchor for s in sections}) == len(sections)


@pytest.mark.parametrize(
    "piece",
    ["<blockquote>x", "<ul><li>x", "<dl><dd>x", "<table><tr><td>x", "<div class=admonition><h3>x</h3>", "<b>x",
     "<h2>x</h2>", '<div class="tabbed-set"><label>x</label>', '<div class="footnotes"><ol><li id=a>', "<code>`",
     "<details><summary>", "<section id=a><h2>x</h2>", '<h2><a href="#a">x</a></h2>'],
)  # fmt: skip
def test_hostile_pages_take_linear_time(piece: str) -> None:
    assert_linear(lambda count: read_fragment(piece * count, "T"), 1_000, 8_000)
