"""The DOM: ends of elements, dropped content, and the cost of hostile markup."""

from __future__ import annotations

import pytest

from chapterverse.readers.html.dom import Node
from chapterverse.readers.html.parser import MAX_DEPTH, parse_html
from growth import assert_linear


def outline(html: str) -> str:
    """Return the tree as `name(children)`."""

    def show(node: Node) -> str:
        inner = ",".join(c.strip() if isinstance(c, str) else show(c) for c in node.children if not _blank(c))
        return f"{node.name}({inner})" if inner else node.name

    return show(parse_html(html))


def _blank(child: object) -> bool:
    return isinstance(child, str) and not child.strip()


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>a<p>b", "(p(a),p(b))"),
        ("<p>a<div>b</div>", "(p(a),div(b))"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "(ul(li(a),li(b,ul(li(c))),li(d)))"),
        ("<dl><dt>a<dd>b<dt>c</dl>", "(dl(dt(a),dd(b),dt(c)))"),
        ("<table><tr><td>a<td>b<tr><td>c</table>d", "(table(tr(td(a),td(b)),tr(td(c))),d)"),
        ("<table><thead><tr><th>a<tbody><tr><td>b</table>", "(table(thead(tr(th(a))),tbody(tr(td(b)))))"),
        ("<h2>a<h3>b</h3>", "(h2(a),h3(b))"),
        ("<div><b>a</div>b", "(div(b(a)),b)"),
        ("<div><span>a</span></span>b</div>c", "(div(span(a),b),c)"),
        ("<table><tr><td>a</div>b</table>", "(table(tr(td(a,b))))"),
        ("<p>a<br>b<img src=x>c</p>", "(p(a,br,b,img,c))"),
        ("a < b && c <3", "(a,<,b && c,<,3)"),
        ("<!-- <p>no</p> --><p>yes</p><!doctype x><?php no ?>", "(p(yes))"),
        ("<!--><p>yes</p>", "(p(yes))"),
        ("</p>a</table></li>", "(a)"),
        ('<div title="a > b">c</div>', "(div(c))"),
        ("<DIV>a</Div>", "(div(a))"),
        ("<p>a<unknown-tag>b</unknown-tag></p>", "(p(a,unknown-tag(b)))"),
    ],
)
def test_elements_end_as_in_a_browser(html: str, expected: str) -> None:
    assert outline(html) == expected


@pytest.mark.parametrize(
    "html",
    [
        "<script>if (a < b) { '</p>' }</script>",
        "<style>p > a {}</style>",
        "<svg><title>x</title><path/></svg>",
        "<nav><ul><li>x</li></ul></nav>",
        "<template><p>x</p></template>",
        "<noscript>x</noscript>",
        "<textarea>x</textarea>",
        '<input type="checkbox">',
        '<div role="dialog"><h2>x</h2></div>',
        "<div role=menu>x</div>",
        '<form role="search">x</form>',
        "<iframe src=x>x</iframe>",
        "<div hidden>x</div>",
        '<p style="color: red; display : none">x</p>',
        "<div data-search-exclude><p>x</p></div>",
        "<div data-pagefind-ignore=all>x</div>",
        '<span class="visually-hidden">x</span>',
        '<span class="lang">js</span>',
        '<div role="navigation">x</div>',
        "<select><option>x</select>",
    ],
)
def test_what_is_not_content_is_left_out(html: str) -> None:
    assert outline(f"<p>a</p>{html}<p>b</p>") == "(p(a),p(b))"


@pytest.mark.parametrize("html", ['<div role="tabpanel" hidden>x</div>', "<div hidden=until-found>x</div>"])
def test_what_a_reader_can_unfold_stays(html: str) -> None:
    assert outline(html) == "(div(x))"


@pytest.mark.parametrize(
    "html",
    [
        '<button aria-controls="a">Q</button><div id="a" hidden>x</div>',
        '<div id="a" hidden>x</div><button aria-controls="b a">Q</button>',
        '<button data-bs-target="#a">Q</button><div id="a" style="display: none">x</div>',
        '<a href="#a" aria-expanded="false">Q</a><div id="a" hidden>x</div>',
        '<h3><a aria-expanded="false">Q</a></h3><div hidden>x</div>',
        '<button id="q">Q</button><div role="region" aria-labelledby="q" hidden>x</div>',
        # A panel in a panel.
        '<div id="a" hidden><b aria-controls="b">x</b></div><div id="b" hidden>y</div><button aria-controls=a>Q',
    ],
)
def test_what_a_visible_control_opens_stays(html: str) -> None:
    assert "x" in parse_html(html).text()


@pytest.mark.parametrize(
    "html",
    [
        '<a href="#a">Q</a><div id="a" hidden>x</div>',
        '<div hidden><button aria-controls="a">Q</button></div><div id="a" hidden>x</div>',
        '<div id="a" hidden><button aria-controls="a">Q</button>x</div>',
        '<button aria-controls="a">Q</button><div id="a" hidden data-search-exclude>x</div>',
        '<a aria-expanded="false">Q</a><p>between</p><div hidden>x</div>',
    ],
)
def test_what_nothing_visible_opens_is_left_out(html: str) -> None:
    assert "x" not in parse_html(html).text()


def test_raw_elements_that_never_end() -> None:
    assert outline("<p>a</p><svg><p>b</p>") == "(p(a),p(b))"
    assert outline("<p>a</p><script>no <p>b</p>") == "(p(a))"


def test_attributes() -> None:
    node = parse_html("<a HREF='x &amp; y' class=\"a  b\" data-n=1 hidden=until-found href=no>t</a>").elements()[0]
    assert (node.get("href"), node.classes, node.get("data-n"), node.get("none")) == ("x & y", ["a", "b"], "1", None)


def test_plain_code_is_taken_whole_and_equal_to_the_slow_way() -> None:
    code = '<pre><span></span><code class="language-py"><a id="l-1" href="#l-1"></a><b>if</b> a &lt; b:\n  c'
    code = code.replace("<b>", '<span class="k">').replace("</b>", "</span>")
    plain = parse_html(f"{code}</code></pre>")
    slow = parse_html(f"{code}<i></i></code></pre>")
    assert plain.text() == slow.text() == "if a < b:\n  c"
    assert plain.elements()[0].elements()[0].classes == ["language-py"]


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        ('<span title="a > b">x</span>', "x"),
        ("<span title='a > b'>x</span>", "x"),
        ("<span hidden>x</span>y", "y"),
        ('<a id="hidden" href="#hidden">x</a>', "x"),
        ('<span class="lineno">1</span>x', "x"),
        ("<span <span>x</span>", "x"),
        ('<span class="k" style="display: none">x</span>y', "y"),
        ("a < b<span>c</span>", "a < bc"),
    ],
)
def test_code_reads_the_same_whatever_its_tags_hold(inner: str, text: str) -> None:
    assert parse_html(f"<pre>{inner}</pre>").text() == parse_html(f"<pre>{inner}<i></i></pre>").text() == text


def test_a_block_inside_marks_what_is_around_it() -> None:
    link = parse_html("<a href=x><span><h3>t</h3></span></a>").elements()[0]
    assert link.block
    assert link.headed
    hidden = parse_html("<a href=x><span hidden><h3>t</h3></span></a>").elements()[0]
    assert not hidden.block
    assert not hidden.headed


def test_depth_is_bounded_and_text_survives() -> None:
    tree = parse_html("<div>" * 10_000 + "deep" + "</div>" * 10_000 + "<p>after</p>")
    depth, node = 0, tree
    while node.elements():
        depth, node = depth + 1, node.elements()[0]
    assert depth == MAX_DEPTH
    assert tree.text() == "deepafter"
    assert outline("<div>" * 10_000 + "deep" + "</div>" * 10_000 + "<p>after</p>").endswith(",p(after))")


@pytest.mark.parametrize(
    "piece",
    ["<a ", "<!--", "<![CDATA[", "</a ", '<a b="', "<div>", "<b></i>", "<svg>", "<pre>", "<p>", "<li>", "<td></div>",
     "&#9", "<script ", "<x a='", "<textarea", "<pre><b>", "<a =", "<a = ", "<a =''"],
)  # fmt: skip
def test_hostile_markup_takes_linear_time(piece: str) -> None:
    assert_linear(lambda count: parse_html(piece * count), 5_000, 40_000)
