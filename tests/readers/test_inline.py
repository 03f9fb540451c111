"""Inline content as Markdown."""

from __future__ import annotations

import pytest

from chapterverse.readers.dom import parse
from chapterverse.readers.inline import Inline, code_span


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("a <strong>b</strong> <em>c</em> <del>d</del>", "a **b** *c* ~~d~~"),
        ("a<b> b </b>c", "a **b** c"),
        ("<b><strong>x</strong></b>", "**x**"),
        ("<b></b>x<i> </i>y", "x y"),
        ("use <code>a\n  b</code>", "use `a b`"),
        ("<code>a `b` c</code>", "``a `b` c``"),
        ("<code>`</code>", "`` ` ``"),
        ("<code><b>x</b>_<i>y</i></code>", "`x_y`"),
        ('see <a href="guide/">the guide</a>', "see the guide"),
        ('<a href="https://a.example">https://a.example</a>', "https://a.example"),
        ("one<br>two<br/>\nthree", "one\ntwo\nthree"),
        ('<img src="x.png" alt="A  chart">', "A chart"),
        ('<img alt="🚀" class="twemoji" title=":rocket:">', "🚀"),
        ("x<sup>2</sup> and H<sub>2</sub>O", "x^2 and H2O"),
        ("<kbd>Ctrl</kbd>+<kbd>C</kbd>", "Ctrl+C"),
        ('<abbr title="Hyper Text">HTML</abbr>', "HTML"),
        ("<q>so</q>", "“so”"),
        ('<input type="checkbox" checked> done', "[x] done"),
        ('<input type="checkbox"> open', "[ ] open"),
        ('<span class="arithmatex">\\(a^2\\)</span>', "\\(a^2\\)"),
        ("<math><mi>x</mi><annotation>x_1</annotation></math>", "$x_1$"),
        ("a\u200bb&shy;c&#8203;d", "abcd"),
        ("co<wbr>operate", "cooperate"),
    ],
)
def test_markdown(html: str, expected: str) -> None:
    assert Inline().markdown(parse(html).children) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>a</p><p>b</p>", "a b"),
        ("<ul><li>a</li><li>b</li></ul>", "a; b"),
        ("Either:<ul><li>a</li><li>b</li></ul>or", "Either: a; b or"),
        ("a<br>b", "a b"),
        ("x<pre>y\nz</pre>", "x`y z`"),
    ],
)
def test_one_line(html: str, expected: str) -> None:
    assert Inline().one_line(parse(html).children) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('Setup<a class="headerlink" href="#setup">¶</a>', "Setup"),
        ('Setup <a class="header-anchor" href="#setup">\u200b</a>', "Setup"),
        ('<a class="header-anchor" href="#setup"><span>Setup</span></a>', "Setup"),
        ('<a class="anchor" href="#setup">#</a>Setup', "Setup"),
        ('Link<a class="headerlink" href="#setup">anchor</a>', "Link"),
        ('A <code>b_c</code> &amp; <em>d</em> <a href="x">e</a>', "A b_c & d e"),
        ('🚀 <img alt=":rocket:" src=x>', "🚀 :rocket:"),
        ("<div>a</div><div>b</div>", "a b"),
    ],
)
def test_heading(html: str, expected: str) -> None:
    assert Inline().heading(parse(html).children) == expected


def test_footnote_references_are_marked_and_noted() -> None:
    inline = Inline({"fn:1"})
    html = 'a<sup id="fnref:1"><a class="footnote-ref" href="#fn:1">[1]</a></sup> <a href="#other">b</a>'
    assert inline.markdown(parse(html).children) == "a[^1] b"
    assert inline.take_notes() == ["fn:1"]
    assert inline.take_notes() == []


def test_code_span_of_nothing() -> None:
    assert code_span(" ") == ""


def test_deeply_nested_marks_do_not_exhaust_the_stack() -> None:
    html = "<b><i><a href=x><sup>" * 3000 + "x"
    assert "x" in Inline().markdown(parse(html).children)
