"""Inline content as Markdown."""

from __future__ import annotations

import pytest

from chapterverse.readers.html.parser import parse_html
from chapterverse.readers.sections.inline import Inline, code_span


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
        ('a <img alt="🚀" class="twemoji" title=":rocket:">', "a"),
        ('<img alt="✅" src="yes.png"> yes', "✅ yes"),
        ('a <img alt=":rocket:" src="rocket.png">', "a"),
        ('<a href="https://ci.example"><img alt="build passing" src="https://ci.example/app/badge.svg"></a> a', "a"),
        ('<img alt="PyPI version" src="https://img.shields.io/pypi/v/x.svg">', ""),
        ('<img alt="Coverage" src="//codecov.io/gh/a/b/graph.svg">', ""),
        ('<img alt="How a badge looks" src="images/badge.png">', "How a badge looks"),
        ('<img alt="_images/flow.png" src="_images/flow.png">', ""),
        ('<img alt="Slack icon" width="16">', ""),
        ('<img alt="A wave" role="presentation"><img alt="A wave" aria-hidden="true">', ""),
        ("x<sup>2</sup> and H<sub>2</sub>O", "x^2 and H2O"),
        ("<kbd>Ctrl</kbd>+<kbd>C</kbd>", "Ctrl+C"),
        ('<abbr title="Hyper Text">HTML</abbr>', "HTML"),
        ("<q>so</q>", "“so”"),
        ('<input type="checkbox" checked disabled> done', "[x] done"),
        ('<input type="checkbox" disabled> open', "[ ] open"),
        ('<input type="checkbox" id="t"> a toggle', "a toggle"),
        ("Press <button>Save</button>.", "Press Save."),
        ("<b>**kwargs</b> and <b>*args</b>", "`**kwargs` and `*args`"),
        ("Press<button>Save</button><button>Close</button>", "Press Save Close"),
        # What only a style sheet sets apart.
        ('<b>n</b><span class="classifier">int, default=1</span>', "**n** : int, default=1"),
        ('n<span class="signature-attributes">opt</span>, m', "n opt, m"),
        ('word<span class="tooltip">its meaning</span>', "word its meaning"),
        ('<a class="x" href="a">One</a><a class="x" href="b">Two</a>', "One Two"),
        ('<a href="a"><span class="std-term">term</span></a>s and <code>int</code>s', "terms and `int`s"),
        ('<span class="arithmatex">\\(a^2\\)</span>', "\\(a^2\\)"),
        ("<math><mi>x</mi><annotation>x_1</annotation></math>", "$x_1$"),
        ("a\u200bb&shy;c&#8203;d", "abcd"),
        ("co<wbr>operate", "cooperate"),
    ],
)
def test_markdown(html: str, expected: str) -> None:
    assert Inline().markdown(parse_html(html).children) == expected


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
    assert Inline().one_line(parse_html(html).children) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('Setup<a class="headerlink" href="#setup">¶</a>', "Setup"),
        ('Setup <a class="header-anchor" href="#setup">\u200b</a>', "Setup"),
        ('<a class="header-anchor" href="#setup"><span>Setup</span></a>', "Setup"),
        ('<a class="anchor" href="#setup">#</a>Setup', "Setup"),
        ('Link<a class="headerlink" href="#setup">anchor</a>', "Link"),
        ('A <code>b_c</code> &amp; <em>d</em> <a href="x">e</a>', "A b_c & d e"),
        ('🚀 <img alt=":rocket:" src=x>', "🚀"),
        ('Setup <img alt="Compass rose" src="rose.png">', "Setup"),
        ('<img alt="Compass rose" src="rose.png"><a class="headerlink" href="#s">¶</a>', "Compass rose"),
        ('Setup <span class="VPBadge tip">beta</span>', "Setup"),
        ('<span class="badge">Beta</span>', "Beta"),
        (
            'timeout <span class="doc doc-labels"><small><code>module-attribute</code></small></span>',
            "timeout",
        ),
        (
            'Setup <a class="sl-anchor-link" href="#setup"><span class="sr-only">Section titled “Setup”</span></a>',
            "Setup",
        ),
        (
            'dump(obj)<a href="_modules/a.html"><span class="viewcode-link"><span>[source]</span></span></a>',
            "dump(obj)",
        ),
        ("<div>a</div><div>b</div>", "a b"),
        ('<span class="badge">GET</span> /pets', "GET /pets"),
        ("<button>Question</button>", "Question"),
        ("Struct Vec <button>Copy path</button>", "Struct Vec"),
    ],
)
def test_heading(html: str, expected: str) -> None:
    assert Inline().heading(parse_html(html).children) == expected


def test_footnote_references_are_marked_and_noted() -> None:
    inline = Inline({"fn:1"})
    html = 'a<sup id="fnref:1"><a class="footnote-ref" href="#fn:1">[1]</a></sup> <a href="#other">b</a>'
    assert inline.markdown(parse_html(html).children) == "a b"
    assert inline.notes == ["fn:1"]


def test_code_span_of_nothing() -> None:
    assert code_span(" ") == ""


def test_deeply_nested_marks_do_not_exhaust_the_stack() -> None:
    html = "<b><i><a href=x><sup>" * 3000 + "x"
    assert "x" in Inline().markdown(parse_html(html).children)
