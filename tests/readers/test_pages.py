"""Pages as readers see them, one public report of a kind at a time: what stands under which heading."""

from __future__ import annotations

from pathlib import Path

import pytest

from chapterverse.errors import PageTooLarge
from chapterverse.readers.built_site import read_site
from chapterverse.readers.sections.html_page import read_document, read_fragment
from growth import assert_linear
from readers.sections.test_block_reader import by_heading

ACCORDIONS = {
    "Bootstrap": '<h2 id="q"><button data-bs-target="#c" aria-expanded="false">Why?</button></h2>'
    '<div id="c" class="collapse"><div>Because.</div></div>',
    "ARIA": '<h3><button aria-expanded="false" aria-controls="s" id="q">Why?</button></h3>'
    '<div id="s" role="region" aria-labelledby="q" hidden><p>Because.</p></div>',
    "button around a heading": '<button aria-expanded="false" aria-controls="s"><h3 id="q">Why?</h3></button>'
    '<div id="s" style="display:none"><p>Because.</p></div>',
}


@pytest.mark.parametrize("html", ACCORDIONS.values(), ids=ACCORDIONS)
def test_an_accordion_is_a_heading_and_its_text(html: str) -> None:
    assert by_heading(html) == {"Why?": ["Because."]}
    assert [section.anchor for section in read_fragment(html, "T")] == ["q"]


@pytest.mark.parametrize("hidden", ["hidden", 'style="display: none"'])
def test_a_control_and_the_box_that_it_opens_are_a_details(hidden: str) -> None:
    html = f'<p>a</p><a href="#" aria-expanded="false">gridProps</a> <div {hidden}><p>The width.</p></div><p>b</p>'
    assert by_heading(html) == {None: ["a", "**gridProps**\n\nThe width.", "b"]}


@pytest.mark.parametrize("name", ['><img alt="Acme" src="a.svg">', ' aria-label="Acme"><svg></svg>'])
def test_a_tab_without_text_has_the_name_that_its_image_or_its_label_gives(name: str) -> None:
    html = f'<div role="tablist"><button role="tab" aria-controls="p"{name}</button></div>'
    assert by_heading(f'{html}<div role="tabpanel" id="p"><p>We use it.</p></div>') == {
        None: ["**Acme**\n\nWe use it."]
    }


@pytest.mark.parametrize("mark", ["p", "h4"])
def test_the_id_of_a_section_is_that_of_its_first_heading(mark: str) -> None:
    link = '<a class="src" href="../src.html">Source</a><a href="#m" class="anchor">§</a>'
    html = (
        f'<section id="m">{link}<h3>new()</h3></section><{mark}>Makes one.</{mark}><section id="n"><p>x</p></section>'
    )
    names = [(section.heading, section.anchor) for section in read_fragment(html, "T") if section.heading]
    assert names == [("new()", "m"), ("Makes one.", None)][: 2 if mark == "h4" else 1]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<section><h2>open()</h2></section><p>Opens.</p>", {"open()": ["Opens."]}),
        ("<article><h2>A</h2></article><p>a</p><article><h2>B</h2></article><p>b</p>", {"A": ["a"], "B": ["b"]}),
        (
            (
                "<details open><summary><section id=new><h4>new()</h4></section></summary><p>Makes one.</p></details>"
                "<p>After.</p>"
            ),
            {None: ["After."], "new()": ["Makes one."]},
        ),
        ("<section><h2>A</h2><p>a</p></section><p>after</p>", {None: ["after"], "A": ["a"]}),
    ],
)
def test_a_section_of_a_heading_alone_owns_what_follows(html: str, expected: dict[str | None, list[str]]) -> None:
    assert by_heading(html) == expected


@pytest.mark.parametrize(
    "html",
    [
        '<a name="x"></a><h2>A</h2>',
        '<p><a id="x"></a></p><h2>A</h2>',
        '<p id="x"></p><h2>A</h2>',
        '<h2><a name="x"></a>A</h2>',
        '<div class="section" id="x"><h2>A</h2></div>',
        '<section id="x"><h2>A</h2></section>',
        '<span id="x"></span>\n<h2>A</h2>',
    ],
)
def test_anchors_beside_headings(html: str) -> None:
    assert [section.anchor for section in read_fragment(html + "<p>text</p>", "T")] == ["x"]


def test_an_anchor_with_text_behind_it_is_not_that_of_the_next_heading() -> None:
    found = read_fragment('<p><a id="x"></a>text</p><h2>A</h2>', "T")
    assert [section.anchor for section in found] == [None, None]


def test_each_term_of_a_group_owns_the_definition() -> None:
    term = '<dt class="sig" id="{0}">{0}<a class="headerlink" href="#{0}">¶</a></dt>'
    names = term.format("AF_UNIX") + term.format("AF_INET")
    assert by_heading(f"<dl>{names}<dd>Families.</dd></dl>") == {"AF_UNIX": ["Families."], "AF_INET": ["Families."]}
    # A further signature of one name has no id.
    overload = '<dt class="sig" id="f">f(a)</dt><dt class="sig">f(b)</dt>'
    assert by_heading(f"<dl>{overload}<dd>Does it.</dd></dl>") == {"f(a)": ["f(b)", "Does it."]}


def test_field_lists() -> None:
    fields = (
        '<dl class="field-list"><dt>Parameters:</dt><dd><ul><li><strong>url</strong> – where.</li>'
        "<li><strong>**kwargs</strong> – more.</li></ul></dd><dt>Returns:</dt><dd><p>a frob</p></dd></dl>"
    )
    assert by_heading(fields)[None] == [
        "**Parameters:**\n\n- **url** – where.\n- `**kwargs` – more.",
        "**Returns:**\n\na frob",
    ]


def test_footnotes_leave_no_marks() -> None:
    html = (
        '<p>Seen<sup id="r"><a href="#n">1</a></sup> in it.</p>'
        '<div class="footnotes"><ol><li id="n"><p>A note. <a href="#r">back</a>'
        "</p></li></ol></div>"
    )
    assert by_heading(html)[None] == ["Seen in it.", "A note."]


TABS = {
    "Docsy": '<ul role="tablist"><li><button role="tab" aria-controls="a">A</button></li><li><button role="tab">B'
    '</button></li></ul><div><div id="a" role="tabpanel"><p>a</p></div><div role="tabpanel"><p>b</p></div></div>',
    "Hextra": '<div><button role="tab">A</button><button role="tab">B</button></div>'
    '<div><div role="tabpanel"><p>a</p></div><div role="tabpanel"><p>b</p></div></div>',
    "DocFX": '<ul role="tablist"><li><a href="#p1" role="tab">A</a></li><li><a href="#p2" role="tab">B</a></li></ul>'
    '<section id="p1" role="tabpanel"><p>a</p></section><section id="p2" role="tabpanel" hidden><p>b</p></section>',
    "Antora": '<div><ul><li id="t1" class="tab"><p>A</p></li><li id="t2" class="tab"><p>B</p></li></ul></div>'
    '<div class="tabpanel" aria-labelledby="t1"><p>a</p></div>'
    '<div class="tabpanel" aria-labelledby="t2"><p>b</p></div>',
    "in another order": '<button role="tab" aria-controls="b">B</button><button role="tab" id="t">A</button>'
    '<div role="tabpanel" aria-labelledby="t"><p>a</p></div><div role="tabpanel" id="b"><p>b</p></div>',
}


@pytest.mark.parametrize("html", TABS.values(), ids=TABS)
def test_tabs_are_paired_by_aria_or_by_order(html: str) -> None:
    assert by_heading(f"<p>Before.</p>{html}<p>After.</p>")[None] == ["Before.", "**A**\n\na", "**B**\n\nb", "After."]


def test_a_set_of_tabs_that_lacks_a_panel_leaves_the_next_set_alone() -> None:
    sets = '<b role="tab">A</b><b role="tab">B</b><div role="tabpanel">a</div><b role="tab">C</b><div role="tabpanel">c'
    assert by_heading(sets)[None] == ["**B**", "**A**\n\na", "**C**\n\nc"]


@pytest.mark.parametrize(
    ("html", "fence"),
    [
        ('<pre data-language="js"><code>a</code></pre>', "```js\na\n```"),
        ('<pre><code data-lang="bash">a</code></pre>', "```bash\na\n```"),
        ('<pre class="sourceCode python with-copy"><code>a</code></pre>', "```python\na\n```"),
        ('<div class="highlight hl-ipython3"><pre>a</pre></div>', "```python\na\n```"),
        (
            '<figure><figcaption><span class="title">a.js</span></figcaption><pre data-language="js">a</pre></figure>',
            '```js title="a.js"\na\n```',
        ),
        (
            (
                '<figure class="highlight js"><table><tr><td class="gutter"><pre>1<br>2</pre></td><td class="code">'
                "<pre><span>// a</span><br><span>b()</span></pre></td></tr></table></figure>"
            ),
            "```js\n// a\nb()\n```",
        ),
        (
            (
                '<pre><code><span class="line">{</span>\n<span class="line diff remove">  80</span>\n'
                '<span class="line diff add">  81</span>\n<span class="line">}</span></code></pre>'
            ),
            "```diff\n {\n-  80\n+  81\n }\n```",
        ),
        (
            (
                '<pre data-language="js"><code><div class="ec-line ins">a()</div><div class="ec-line del">b()</div>'
                "</code></pre>"
            ),
            "```diff\n+a()\n-b()\n```",
        ),
    ],
)
def test_code_of_every_generator(html: str, fence: str) -> None:
    assert by_heading(html)[None] == [fence]


def test_code_in_cells_keeps_its_lines() -> None:
    table = (
        "<table><tr><th>Old</th><th>New</th></tr><tr><td><pre>a\n b</pre></td><td><pre>c\n d</pre></td></tr></table>"
    )
    assert by_heading(table)[None] == ["**Old**\n\n```\na\n b\n```", "**New**\n\n```\nc\n d\n```"]
    cells = "<td><i></i></td><td>Mind:<pre>a\nb</pre></td>"
    box = f'<div class="admonitionblock caution"><table><tr>{cells}</tr></table></div>'
    assert by_heading(box)[None] == ["**Caution**\n\nMind:\n\n```\na\nb\n```"]


def test_a_toggle_is_no_task_and_a_copy_is_no_code() -> None:
    html = '<input type="checkbox" aria-hidden="true" id="t"><label for="t">View source</label><p>Text.</p>'
    cell = '<div class="prompt">In [1]:</div><pre>x</pre><div class="clipboard-copy-txt">x</div>'
    assert by_heading(html + cell)[None] == ["Text.", "```\nx\n```"]


def test_a_module_of_pdoc_has_sections() -> None:
    html = (
        '<section id="C"><input type="checkbox"><div class="attr class"><span class="def">class</span> <span>C</span>:'
        '<label for="v">View Source</label></div><a class="headerlink" href="#C"></a>'
        '<div class="pdoc-code codehilite"><pre>class C: pass</pre></div><div class="docstring"><p>A class.</p>'
        '<div class="pdoc-code codehilite"><pre>C()</pre></div></div><div id="C.f"><div class="attr">f</div>'
        '<a class="headerlink" href="#C.f"></a><div class="docstring"><p>A method.</p></div></div>'
        "<div class=inherited><h5>Inherited Members</h5><dl><dt>D</dt><dd>x</dd></dl></div></section>"
    )
    found = [(s.heading, s.anchor, [b.text for b in s.blocks]) for s in read_fragment(html, "T")]
    assert found == [
        ("class C:", "C", ["A class.", "```\nC()\n```"]),
        ("f", "C.f", ["A method."]),
        ("Inherited Members", None, ["**D**\n\nx"]),
    ]
    # A name without a word about it is no header of what follows.
    bare = '<section id="v"><div>v</div><a class="headerlink" href="#v"></a></section>'
    paths = [section.path for section in read_fragment(f"<h1>M</h1>{bare}{bare.replace('v', 'w')}", "M")]
    assert paths == [("M",), ("M", "v"), ("M", "w")]


CRUMBS = '<div><div><a href="/d/">Docs</a></div><svg></svg><div><a href="/d/g/">Guide</a></div><div>Tea</div></div>'


@pytest.mark.parametrize(
    ("above", "left"),
    [
        (CRUMBS, []),
        (f"<div><header>{CRUMBS}</header></div>", ["Docs", "Guide", "Tea"]),
        (CRUMBS.replace("/d/g/", "/other/"), ["Docs", "Guide", "Tea"]),
        (CRUMBS.replace("<div>Tea</div>", '<div><a href="/d/g/t/">Tea</a></div>'), ["Docs", "Guide", "Tea"]),
        ('<p><a href="/d/">Docs</a> for brewers.</p>', ["Docs for brewers."]),
        ('<ul><li><a href="/pot">A pot</a></li><li>Leaves</li></ul>', ["- A pot", "- Leaves"]),
        (CRUMBS.replace("Tea", "Warm the pot. " * 8), ["Docs", "Guide", ("Warm the pot. " * 8).strip()]),
    ],
)
def test_the_way_to_a_page_above_its_title_is_no_text(above: str, left: list[str]) -> None:
    page = read_document(f"<html><body><main>{above}<div><h1>Tea</h1></div><p>Text.</p>{CRUMBS}</main></body></html>")
    assert [[b.text for b in s.blocks] for s in page.sections][:-1] == ([left] if left else [])
    assert [b.text for b in page.sections[-1].blocks] == ["Text.", "Docs", "Guide", "Tea"]


def test_a_page_without_a_heading_has_no_way_above_it() -> None:
    (section,) = read_document(f"<html><body><main>{CRUMBS}</main></body></html>").sections
    assert [block.text for block in section.blocks] == ["Docs", "Guide", "Tea"]


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("<h1>A</h1><p>Text.</p><footer>Made on Sunday.</footer><script>s('<p>')</script>", ["Text."]),
        ("<h1>A</h1><footer>Text.</footer><p>More.</p>", ["Text.", "More."]),
        ("<h1>A</h1><section><p>Text.</p><footer>By Ann.</footer></section>", ["Text.", "By Ann."]),
        ("<main><h1>A</h1><p>Text.</p><footer>By Ann.</footer></main>", ["Text.", "By Ann."]),
        ("<h1>A</h1><blockquote>Text.<footer>By Ann.</footer></blockquote>", ["> Text.\n>\n> By Ann."]),
    ],
)
def test_the_footer_of_the_site_is_no_text_of_a_page_without_a_main_element(page: str, texts: list[str]) -> None:
    (section,) = read_document(f"<html><body>{page}</body></html>").sections
    assert [block.text for block in section.blocks] == texts


def site(root: Path, pages: dict[str, str]) -> Path:
    for path, html in pages.items():
        (root / path).write_text(html, encoding="utf-8")
    return root


def texts(root: Path) -> dict[str, str]:
    pages = [source.read() for source in read_site(root, "https://e.com/").sources]
    return {page.file_path: "\n".join(b.text for s in page.sections for b in s.blocks) for page in pages}


BARE = "<html><body><div>Tea docs</div><ul><li>Home</li></ul><h1>{0}</h1><p>About {0}.</p><p>© Tea</p></body></html>"


def test_what_a_site_repeats_is_left_out_where_no_element_holds_the_content(tmp_path: Path) -> None:
    site(tmp_path, {f"{name}.html": BARE.format(name) for name in "abcdef"})
    assert texts(tmp_path) == {f"{name}.html": f"About {name}." for name in "abcdef"}
    (warning,) = read_site(tmp_path, "https://e.com/").warnings
    assert warning.startswith("Pages such as a.html (6 in all) have no <main> and no <article>")
    # What is no longer repeated is read again.
    before = {source.file_path: source.content_hash for source in read_site(tmp_path, "https://e.com/").sources}
    site(tmp_path, {f"{name}.html": BARE.format(name).replace("© Tea", "") for name in "ab"})
    after = {source.file_path: source.content_hash for source in read_site(tmp_path, "https://e.com/").sources}
    assert all(before[path] != after[path] for path in before)
    assert "© Tea" in texts(tmp_path)["c.html"]


def test_fewer_pages_and_pages_that_are_all_the_same_lose_nothing(tmp_path: Path) -> None:
    site(tmp_path, {f"{name}.html": BARE.format(name) for name in "abcd"})
    assert "Tea docs" in texts(tmp_path)["a.html"]
    site(tmp_path, {f"{name}.html": BARE.format("same") for name in "abcdef"})
    assert all("About same." in text for text in texts(tmp_path).values())


def test_the_language_of_a_site_without_any(tmp_path: Path) -> None:
    names = "mat&lt;4, T&gt; f(T a, T b, T c, T d) " * 3
    english = "This guide tells you how to install the library and what to do if the compiler is too old for it. " * 2
    german = (
        "Diese Anleitung sagt, wie man die Bibliothek einbaut und was zu tun ist, wenn der Übersetzer zu alt ist. " * 2
    )
    pages = {"a": names, "b": english, "c": english, "d": german}
    site(tmp_path, {f"{name}.html": f"<html><body><main><p>{text}</p></main>" for name, text in pages.items()})
    found = {source.file_path: source.read().language for source in read_site(tmp_path, "https://e.com/").sources}
    assert found == {"a.html": "en", "b.html": "en", "c.html": "en", "d.html": "de"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<form><h1>A</h1><p>Text.</p><label for=x>Name</label><input id=x><button>Send</button></form>", ["Text."]),
        ("<h1>A</h1><div role=dialog><h1>Search</h1><p>Type.</p></div><p>Text.</p>", ["Text."]),
        ("<table><tr><td><h1>A</h1><p>Text.</p></td></tr></table>", ["Text."]),
    ],
)
def test_a_page_that_is_one_form_one_dialog_or_one_table(body: str, expected: list[str]) -> None:
    page = read_document(f"<html><body>{body}</body></html>")
    assert (page.title, [b.text for s in page.sections for b in s.blocks]) == ("A", expected)


@pytest.mark.parametrize(
    "piece",
    [
        "<b role=tab>x</b><div role=tabpanel>",
        "<b role=tab>x</b>",
        '<dl><dt id=a class="sig">x<dt id=b class="sig">y<dd>',
        "<section id=a><a class=headerlink href=#a>",
        "<b aria-expanded=false></b><div hidden></div>",
        "x<!-- --><div hidden></div>",
        "<table><tr><td><pre>a\nb</pre>",
    ],
)
def test_hostile_pages_take_linear_time(piece: str) -> None:
    assert_linear(lambda count: read_fragment(piece * count, "T"), 1_000, 8_000)


def test_an_accordion_below_the_deepest_level_is_named(tmp_path: Path) -> None:
    """Whether a control opens it can't be known there, so that all of the page is left out."""
    deep = "<b aria-expanded=false></b><div hidden>" * 200
    site(tmp_path, {"a.html": BARE.format("a"), "b.html": f"<html><body><main>{deep}"})
    first, second = read_site(tmp_path, "https://e.com/").sources
    assert first.read().sections
    with pytest.raises(PageTooLarge, match="hides an element below 100 others"):
        second.read()
