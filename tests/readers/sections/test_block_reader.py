"""Each kind of element, one trap at a time."""

from __future__ import annotations

import re

import pytest

from chapterverse.model import Block, BlockKind
from chapterverse.readers.sections.html_page import read_fragment, read_with_links


def blocks(html: str) -> tuple[Block, ...]:
    """Return the blocks of a fragment that has one section."""
    (section,) = read_fragment(html, "T")
    return section.blocks


def texts(html: str) -> list[str]:
    return [block.text for block in blocks(html)]


def by_heading(html: str) -> dict[str | None, list[str]]:
    return {s.heading: [b.text for b in s.blocks] for s in read_fragment(html, "T")}


def test_runs_of_inline_content_between_blocks_are_paragraphs() -> None:
    assert texts("a <b>b</b><div>c<p>d</p>e</div><span>f</span>") == ["a **b**", "c", "d", "e", "f"]


def test_a_block_inside_an_inline_element_is_a_block() -> None:
    assert texts('<a href="x"><div>Card</div><p>Text</p></a>') == ["Card", "Text"]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<ul><li>a</li><li><p>b</p></li></ul>", ["- a", "- b"]),
        ('<ol start="9"><li>a<li>b<li value="20">c</ol>', ["9. a", "10. b", "20. c"]),
        ("<ul><li>a<ul><li>b<li>c</ul></ul>", ["- a\n  - b\n  - c"]),
        ("<ol><li><p>a</p><pre>x\n  y</pre></ol>", ["1. a\n\n   ```\n   x\n     y\n   ```"]),
        ('<ul><li class="task-list-item"><label><input type="checkbox" checked></label> a</ul>', ["- [x] a"]),
        ('<ul><li><input type="checkbox" disabled>a</ul>', ["- [ ] a"]),
        ("<ul><li></li><li>a</li></ul>", ["- a"]),
        ("<ul>stray<li>a</ul>", ["stray", "- a"]),
        ("<ul><ul><li>a</ul></ul>", ["- a"]),
        ("<ol start='x'><li>a</ol>", ["1. a"]),
    ],
)
def test_lists(html: str, expected: list[str]) -> None:
    assert texts(html) == expected


def test_a_list_item_that_is_cut_keeps_its_marker() -> None:
    (item,) = blocks("<ol start=3><li><p>Do</p><pre>x</pre><p>Then</p></ol>")
    assert item.kind is BlockKind.LIST_ITEM
    assert [part.text for part in item.parts] == ["3. Do", "```\nx\n```", "Then"]


@pytest.mark.parametrize(
    ("html", "head"),
    [
        ('<div class="admonition warning"><p class="admonition-title">Careful</p>{}</div>', "**Warning: Careful**"),
        ('<div class="admonition warning"><p class="admonition-title">Warning</p>{}</div>', "**Warning**"),
        ('<div class="admonition note inline end">{}</div>', "**Note**"),
        ('<div class="admonition seealso"><p class="admonition-title">See also</p>{}</div>', "**See also**"),
        ('<div class="admonition seealso">{}</div>', "**See also**"),
        ('<div class="admonition pied-piper"><p class="admonition-title">Hi</p>{}</div>', "**Hi**"),
        (
            (
                '<div class="admonition admonition-my-title docutils"><p class="admonition-title">My '
                "<b>title</b></p>{}</div>"
            ),
            "**My title**",
        ),
        ('<details class="note"><summary>Collapsed</summary>{}</details>', "**Note: Collapsed**"),
        ('<details class="details_x alert alert--info"><summary>More</summary>{}</details>', "**More**"),
        (
            (
                '<div class="theme-admonition theme-admonition-tip admonition_x alert"><div '
                'class="admonitionHeading_y">'
                '<span><svg></svg></span>tip</div><div class="admonitionContent_z">{}</div></div>'
            ),
            "**Tip**",
        ),
        ('<div class="danger custom-block"><p class="custom-block-title">STOP</p>{}</div>', "**Danger: STOP**"),
        ('<div class="info custom-block"><p class="custom-block-title">INFO</p>{}</div>', "**Info**"),
        ('<details class="details custom-block"><summary>Click</summary>{}</details>', "**Click**"),
        (
            (
                '<div class="markdown-alert markdown-alert-important"><p '
                'class="markdown-alert-title">Important</p>{}</div>'
            ),
            "**Important**",
        ),
        ('<aside class="topic"><p class="topic-title">Aside</p>{}</aside>', "**Aside**"),
    ],
)
def test_admonitions_of_every_generator(html: str, head: str) -> None:
    (block,) = blocks(html.format("<p>One.</p><p>Two.</p>"))
    assert (block.kind, block.head, block.text) == (BlockKind.ADMONITION, head, f"{head}\n\nOne.\n\nTwo.")
    assert [part.text for part in block.parts] == ["One.", "Two."]


def test_an_admonition_with_a_title_alone_keeps_it() -> None:
    assert texts('<div class="admonition note"><p class="admonition-title">Only this</p></div>') == [
        "**Note: Only this**"
    ]


@pytest.mark.parametrize(
    "listed",
    [
        '<nav class="contents local" role="doc-toc"><ul><li><a href="#run">Run it</a></li></ul></nav>',
        '<div class="contents topic"><p class="topic-title">Contents</p><p><a href="#run">Run it</a></p></div>',
        '<aside class="local topic contents"><ul><li><a href="#run">Run it</a></li></ul></aside>',
    ],
)
def test_a_heading_that_a_list_of_contents_names_keeps_its_text(listed: str) -> None:
    heading = '<h2><a class="toc-backref" href="#id1" role="doc-backlink">Run <code>it</code></a></h2>'
    assert by_heading(f"{listed}{heading}<p>So.</p>") == {"Run it": ["So."]}


PYMDOWNX = (
    '<div class="tabbed-set tabbed-alternate"><input type="radio"><input type="radio"><div class="tabbed-labels">'
    '<label>Linux</label><label>macOS</label></div><div class="tabbed-content"><div class="tabbed-block">{}</div>'
    '<div class="tabbed-block">{}</div></div></div>'
)
TABS = {
    "pymdownx": PYMDOWNX,
    "pymdownx, default style": '<div class="tabbed-set"><input type="radio"><label>Linux</label><div '
    'class="tabbed-content">'
    '{}</div><input type="radio"><label>macOS</label><div class="tabbed-content">{}</div></div>',
    "sphinx-design": '<div class="sd-tab-set"><input type="radio"><label '
    'class="sd-tab-label">\nLinux</label><div class='
    '"sd-tab-content">{}</div><input type="radio"><label class="sd-tab-label">macOS</label><div '
    'class="sd-tab-content">{}'
    "</div></div>",
    "sphinx-tabs": '<div class="sphinx-tabs"><div role="tablist"><button role="tab">Linux</button><button '
    'role="tab">macOS'
    '</button></div><div role="tabpanel">{}</div><div role="tabpanel" hidden="true">{}</div></div>',
    "sphinx-inline-tabs": '<div class="tab-set"><input class="tab-input" type="radio"><label class="tab-label">Linux'
    '</label><div class="tab-content">{}</div><input class="tab-input" type="radio"><label class="tab-label">macOS'
    '</label><div class="tab-content">{}</div></div>',
    "sphinx-code-tabs": '<div class="tabs docutils container"><ul class="tabbar"><li class="tabbutton selected">\nLinux'
    '</li><li class="tabbutton">\nmacOS</li></ul><div class="tab codetab selected">{}</div><div class="tab codetab">{}'
    "</div></div>",
    "Docusaurus": '<div class="theme-tabs-container tabs-container"><ul role="tablist"><li role="tab">Linux</li><li '
    'role="tab">macOS</li></ul><div><div role="tabpanel">{}</div><div role="tabpanel" hidden="">{}</div></div></div>',
    "VitePress": '<div class="vp-code-group"><div class="tabs"><input type="radio"><label>Linux</label><input '
    'type="radio">'
    '<label>macOS</label></div><div class="blocks"><div class="language-sh active">{}</div><div class="language-sh">{}'
    "</div></div></div>",
}


@pytest.mark.parametrize("html", TABS.values(), ids=TABS)
def test_tabs_of_every_generator(html: str) -> None:
    linux, mac = blocks(html.format("<p>Use apt.</p>", "<p>Use brew.</p>"))
    assert (linux.kind, linux.head, linux.text) == (BlockKind.TAB, "**Linux**", "**Linux**\n\nUse apt.")
    assert (mac.head, [part.text for part in mac.parts]) == ("**macOS**", ["Use brew."])


def test_tabs_without_a_panel_or_a_label_lose_nothing() -> None:
    html = '<div class="tabbed-set"><label>A</label><label>B</label><div class="tabbed-block">x</div>stray</div>'
    assert texts(html) == ["B", "**A**\n\nx", "stray"]
    assert texts('<div class="tabbed-set"><div class="tabbed-block">x</div></div>') == ["x"]


def test_tabs_in_tabs() -> None:
    inner = PYMDOWNX.format("<p>a</p>", "<p>b</p>")
    assert texts(PYMDOWNX.format(inner, "<p>c</p>")) == [
        "**Linux**\n\n**Linux**\n\na\n\n**macOS**\n\nb",
        "**macOS**\n\nc",
    ]


def test_a_heading_in_a_tab_rules_that_tab_alone() -> None:
    html = (
        "<h2>Install</h2>"
        + PYMDOWNX.format('<h3 id="l">Linux</h3><p>Use apt.</p>', "<p>Use brew.</p>")
        + "<p>Done.</p>"
    )
    assert by_heading(html) == {
        "Install": ["**macOS**\n\nUse brew.", "Done."],
        "Linux": ["**Linux**\n\nUse apt."],
    }


def test_a_heading_in_an_admonition_splits_it_under_one_title() -> None:
    html = (
        '<h2>A</h2><div class="admonition note"><p '
        'class="admonition-title">N</p><p>before</p><h3>B</h3><p>under</p></div>'
        "<p>after</p>"
    )
    assert by_heading(html) == {"A": ["**Note: N**\n\nbefore", "after"], "B": ["**Note: N**\n\nunder"]}
    paths = {s.heading: s.path for s in read_fragment(html, "T")}
    assert paths["B"] == ("T", "A", "B")


@pytest.mark.parametrize(
    "html",
    [
        "<ul><li><p>one</p><h3 id=x>H</h3><p>two</p></li></ul>",
        "<blockquote><p>one</p><h3 id=x>H</h3><p>two</p></blockquote>",
        "<table><tr><td><p>one</p><h3 id=x>H</h3><p>two</p></td></tr></table>",
        "<details><summary>one<h3 id=x>H</h3></summary><p>two</p></details>",
        "<dl><dt>one</dt><dd><h3 id=x>H</h3><p>two</p></dd></dl>",
        "<dl><dt>one<h3 id=x>H</h3></dt><dd>two</dd></dl>",
        "<section><p>one</p><h3 id=x>H</h3><p>two</p></section>",
        "<a><p>one</p><h3 id=x>H</h3><p>two</p></a>",
    ],
)
def test_a_heading_is_found_wherever_it_stands(html: str) -> None:
    sections = {s.heading: (s.anchor, " ".join(b.text for b in s.blocks)) for s in read_fragment(html, "T")}
    assert "one" in sections[None][1]
    assert sections["H"][0] == "x"
    assert "two" in sections["H"][1]


def test_definitions() -> None:
    (one, two) = blocks(
        "<dl><dt>a</dt><dt><code>b</code></dt><dd><p>x</p><p>y</p></dd><dd>z</dd><div><dt>c<dd>d</div></dl>"
    )
    assert (one.kind, one.head) == (BlockKind.DEFINITION, "**a**\n**`b`**")
    assert one.text == "**a**\n**`b`**\n\nx\n\ny\n\nz"
    assert two.text == "**c**\n\nd"
    assert texts("<dl><dd>alone</dd></dl>") == ["alone"]
    assert texts("<dl><dt>alone</dt></dl>") == ["**alone**"]


def test_a_documented_name_is_a_section() -> None:
    html = (
        '<h2 id="api">API</h2><dl><dt class="sig" id="m.C">class <b>C</b>(x)<a class="headerlink" '
        'href="#m.C">¶</a></dt><dd>'
        '<p>A class.</p><dl><dt class="sig" id="m.C.f">f()</dt><dd><p>A method.</p></dd></dl></dd></dl><p>After.</p>'
    )
    found = [(s.heading, s.level, s.anchor, s.path[1:], [b.text for b in s.blocks]) for s in read_fragment(html, "T")]
    assert found == [
        ("API", 2, "api", ("API",), ["After."]),
        ("class C(x)", 3, "m.C", ("API", "class C(x)"), ["A class."]),
        ("f()", 4, "m.C.f", ("API", "class C(x)", "f()"), ["A method."]),
    ]


FOOTNOTES = {
    "AsciiDoc": (
        '<sup class="footnote">[<a id="r" class="footnote" href="#d" title="View footnote.">1</a>]</sup>',
        '<div id="footnotes"><hr><div class="footnote" id="d"><a href="#r">1</a>. The note.</div></div>',
    ),
    "mdBook": (
        '<sup class="footnote-reference" id="fr-a-1"><a href="#footnote-a">1</a></sup>',
        ('<ol class="footnote-definition"><li id="footnote-a"><p>The note. <a href="#fr-a-1">↩</a></p></li></ol>'),
    ),
    "Python-Markdown": (
        '<sup id="fnref:1"><a class="footnote-ref" href="#fn:1">1</a></sup>',
        (
            '<div class="footnote"><hr><ol><li id="fn:1"><p>The note.&#160;<a class="footnote-backref" '
            'href="#fnref:1">↩</a></p>'
            "</li></ol></div>"
        ),
    ),
    "markdown-it": (
        '<sup class="footnote-ref"><a href="#fn1" id="fnref1">[1]</a></sup>',
        (
            '<section class="footnotes"><ol class="footnotes-list"><li id="fn1" class="footnote-item"><p>The '
            "note. <a href="
            '"#fnref1" class="footnote-backref">↩︎</a></p></li></ol></section>'
        ),
    ),
    "Docusaurus": (
        '<sup><a href="#user-content-fn-1-x" data-footnote-ref="true">1</a></sup>',
        (
            '<section data-footnotes="true" class="footnotes"><h2 class="sr-only" '
            'id="footnote-label">Footnotes</h2><ol><li '
            'id="user-content-fn-1-x"><p>The note. <a data-footnote-backref="" '
            'class="data-footnote-backref">↩</a></p></li></ol>'
            "</section>"
        ),
    ),
    "Sphinx": (
        (
            '<a class="footnote-reference brackets" href="#id2" id="id1" role="doc-noteref"><span '
            'class="fn-bracket">[</span>1'
            '<span class="fn-bracket">]</span></a>'
        ),
        (
            '<aside class="footnote-list brackets"><aside class="footnote brackets" id="id2" '
            'role="doc-footnote"><span class='
            '"label"><span class="fn-bracket">[</span><a role="doc-backlink" '
            'href="#id1">1</a><span>]</span></span><p>The note.'
            "</p></aside></aside>"
        ),
    ),
}


@pytest.mark.parametrize(("reference", "pile"), FOOTNOTES.values(), ids=FOOTNOTES)
def test_a_footnote_moves_to_the_section_that_refers_to_it(reference: str, pile: str) -> None:
    html = f"<h2>A</h2><p>Text{reference}.</p><h2>B</h2><p>Else.</p>{pile}"
    assert by_heading(html) == {"A": ["Text.", "The note."], "B": ["Else."]}
    linked = read_with_links(html, "T", "https://docs.example/")
    assert [block.text for block in linked[0].blocks] == ["Text[^1].", "[^1]: The note."]


def test_a_footnote_that_nothing_refers_to_stays() -> None:
    assert by_heading(f"<h2>A</h2><h2>B</h2>{FOOTNOTES['Python-Markdown'][1]}")["B"] == ["The note."]


def test_footnotes_in_tables_and_headings() -> None:
    reference, pile = FOOTNOTES["Python-Markdown"]
    html = f"<h2>A{reference}</h2><table><tr><td>x{reference}</table><h2>B</h2>{pile}"
    assert by_heading(html)["A"] == ["|  |\n| --- |\n| x |", "The note."]


def test_source_dumps_are_dropped() -> None:
    html = '<p>Doc.</p><details class="{}"><summary>Source code in <code>a.py</code></summary><pre>x</pre></details>'
    assert texts(html.format("mkdocstrings-source")) == texts(html.format("quote")) == ["Doc."]


@pytest.mark.parametrize(
    "html",
    [
        "<ul>Q1<li>Q2</li></ul>",
        "<dl>Q1<dt>Q2</dt><p>Q3</p><dd>Q4</dd></dl>",
        "<table>Q1<tr>Q2<td>Q3</td><p>Q4</p></tr></table>",
        '<div class="tabbed-set">Q1<label>Q2</label><p>Q3</p></div>',
        '<div class="admonition">Q1</div>',
        '<sup><a href="#fn:1">1</a></sup><div class="footnotes">Q1<ol><li>Q2</li>Q3<li id="fn:1">Q4</li></ol></div>',
        '<div class="highlight">Q1<pre>Q2</pre>Q3</div>',
        "<figure>Q1<figcaption>Q2</figcaption></figure>",
    ],
)
def test_slips_of_markup_lose_nothing(html: str) -> None:
    words = re.findall(r"Q\d", html)
    assert sorted(re.findall(r"Q\d", " ".join(texts(html)))) == words


def test_quotes() -> None:
    (block,) = blocks("<blockquote><p>a</p><p>b</p></blockquote>")
    assert (block.kind, block.text) == (BlockKind.QUOTE, "> a\n>\n> b")
    assert texts("<blockquote><blockquote>a</blockquote></blockquote>") == ["> > a"]


def test_a_caption_stands_before_its_table() -> None:
    assert texts("<table><caption>Cap</caption><tr><th>A</th></tr></table>") == ["Cap", "| A |\n| --- |"]


def test_formulas_and_figures_keep_their_text() -> None:
    assert texts('<div class="arithmatex">\\[a^2\\]</div>') == ["\\[a^2\\]"]
    assert texts('<figure><img alt="A chart"><figcaption>Fig. 1</figcaption></figure>') == ["A chart", "Fig. 1"]


def test_nesting_without_end_keeps_its_text_and_its_size() -> None:
    html = "<blockquote>" * 5000 + "deep" + "</blockquote>" * 5000
    (text,) = texts(html)
    assert text.endswith("deep")
    assert len(text) < 100


def test_titles_at_any_depth_survive() -> None:
    open_box = '<div class="admonition note"><p class="admonition-title">T{}</p>'
    html = "".join(open_box.format(i) for i in range(30)) + "x" + "</div>" * 30
    joined = "\n".join(texts(html))
    assert all(f"**Note: T{i}**" in joined for i in range(30))
