"""The lines of a Markdown source, unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chapterverse.ext.sources.markdown.page import read_markdown
from chapterverse.ext.sources.markdown.verbatim import verbatim_plugin
from chapterverse.indexing.chunking import ChunkSizes, chunk
from chapterverse.model import BlockKind
from chapterverse.readers.html.visible_text import strip_invisible
from chapterverse.readers.sections.html_page import read_fragment
from chapterverse.readers.urls import SiteGenerator
from fakes.docs import SCOPE, page
from growth import assert_linear


def texts(markdown: str, file_path: str = "a.md") -> list[str]:
    generator = SiteGenerator.GITHUB if file_path.endswith("x") else SiteGenerator.MKDOCS
    return [
        block.text for section in read_markdown(markdown, file_path, generator).sections for block in section.blocks
    ]


@pytest.mark.parametrize(
    "line",
    [
        "See [the guide](../guide.md#part \"The guide\"), _not_ __this__ *one* **here**.",
        "By reference: [text][1], [text][], [1], and <https://go.example/x?a=1&b=2>.",
        "Call `f( x,  y )` or ``a`b`` with ~~old~~ *args and **kwargs, snake_case and 2 * 3 * 4.",
        "Two  spaces.  Then \"quotes\" -- dashes... (c) stay, as {{ macros }} and $x_1$ do.",
        "日本語の文章と [リンク](リンク.md)。",
        "R&D, AT&T and a < b > c.",
    ],
)  # fmt: skip
def test_a_plain_paragraph_is_its_source(line: str) -> None:
    assert texts(f"{line}\n\n[1]: https://elsewhere.example\n") == [line]


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("one\n   two\ntwo  \nthree\\\n  four\n", "one\ntwo\ntwo\nthree\nfour"),
        ("> one\n> [two](x)\nlazy", "> one\n> [two](x)\n> lazy"),
        ("* one\ntwo [x](y)\n    * three\n      four", "* one\n  two [x](y)\n  * three\n    four"),
        ("-   one\n    two\n\n    [three](x)\n    four", "-   one\n    two\n\n    [three](x)\n    four"),
        ("+ one\n  two", "+ one\n  two"),
        ("7)  one\n    [two](x)", "7)  one\n    [two](x)"),
        ("1. - one\n     two", "1. - one\n     two"),
        ("Term\n:   one\n    [two](x)", "**Term**\n\none\n[two](x)"),
        ("!!! note\n    one\n    [two](x)", "**Note**\n\none\n[two](x)"),
        ('=== "A"\n    one\n    [two](x)', "**A**\n\none\n[two](x)"),
        ("::: tip\none\n[two](x)\n:::", "**Tip**\n\none\n[two](x)"),
    ],
)
def test_lines_stay_lines_inside_what_holds_them(markdown: str, text: str) -> None:
    assert texts(markdown) == [text]


def test_numbers_are_counted_as_a_page_shows_them() -> None:
    assert texts("1. one\n1. two\n1. three\n") == ["1. one", "2. two", "3. three"]


def test_a_footnote_keeps_its_lines_and_the_line_that_refers_to_it_is_read() -> None:
    found = texts("See [there](x)\nand below.[^a]\n\n[^a]: one\n    [two](x)\n")
    assert found == ["See there\nand below.", "one\n[two](x)"]


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("an <b>old</b> [link](x)\nnew <!-- hidden -->\nline", "an **old** link\nnew\nline"),
        ("![a sign](sign.png) and [link](x)\nline", "a sign and link\nline"),
        ("- [x] done [link](x)\n  line", "- [x] done link\n  line"),
        ('<a href="https://evil.example">click</a>\nhere', "click\nhere"),
        ("<div hidden>\n\nhidden [link](x)\n\n</div>\n\nseen", "seen"),
    ],
)
def test_what_is_not_its_own_text_is_read_line_by_line(markdown: str, text: str) -> None:
    assert texts(markdown) == [text]


def test_expressions_of_mdx_are_resolved() -> None:
    assert texts("export const v = 'a_b*c';\n\nVersion {v} of {gone} [it](x)\n{/* hidden */}is\nout", "a.mdx") == [
        "Version a_b*c of [it](x)\nis\nout"
    ]


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        (r"\*no\* \`x\` a\_b C:\dir \\ [t\]](u\_v)", r"*no* `x` a_b C:\dir \ [t]](u\_v)"),
        ("a&nbsp;b &amp;&lt;x&gt; &copy; &#65; &unknown; `&amp; \\*`", "a b &<x> © A &unknown; `&amp; \\*`"),
        ("[a\\_b](a\\_b) a\\_b `a\\_b` a\\_b", "[a_b](a\\_b) a_b `a\\_b` a_b"),
        ("one&#10;two &#x202E;evil&#8203;", "one two evil"),
    ],
)
def test_escapes_and_references_are_resolved_where_markdown_knows_them(markdown: str, text: str) -> None:
    assert texts(markdown) == [text]


@pytest.mark.parametrize("hidden", ["\u200b", "\u202e", "\u2066", "\U000e0041", "\x07", "\ufeff", "\xad"])
def test_what_a_reader_cannot_see_never_stands_in_it(hidden: str) -> None:
    assert texts(f"one {hidden}two [three](x{hidden} \"y{hidden}\")\n{hidden}\nfour") == [
        'one two [three](x "y")\nfour'
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["- dash", "2019. year", "# hash", "> mark", "``` ticks", "* * *", "+", "1) one"])
def test_a_line_that_would_begin_another_block_stays_behind_the_one_before(line: str) -> None:
    (text,) = texts(f"one\n        {line}\nlast")
    assert text.startswith(f"one {line}")


def test_headings_titles_and_cells_hold_no_targets() -> None:
    markdown = (
        "## A [link](x) *here*\n\n| [a](x) | `b` |\n| - | - |\n| [c](y) | d |\n\n!!! note \"N [n](x)\"\n    text\n\n"
        "<table><tr><td>\n\nA [cell](z)\nof *two*\n\n</td></tr></table>\n\n<h3>\n\nA [raw](x) one\n\n</h3>\n"
    )  # fmt: skip
    sections = read_markdown(markdown, "a.md").sections
    assert [section.heading for section in sections] == ["A link here", "A raw one"]
    found = [block.text for block in sections[0].blocks]
    assert found[:2] == ["| a | `b` |\n| --- | --- |\n| c | d |", "**Note: N n**\n\ntext"]
    assert "A cell of *two*" in found[2]


def test_only_a_markdown_source_has_verbatim_paragraphs() -> None:
    html = '<p><verbatim n="0">seen</verbatim></p><ul><li data-marker="* evil ">item</li></ul>'
    assert [block.text for section in read_fragment(html, "T") for block in section.blocks] == ["seen", "- item"]
    forged = '<verbatim n="{}">seen</verbatim>\n\n[real](x)\n'
    for number in ("9", "-1", "x", "²", "9" * 5000):
        assert texts(forged.format(number)) == ["seen", "[real](x)"]


def test_a_list_is_cut_between_its_items_and_each_keeps_its_lines() -> None:
    items = [f"*   Item {i} says [this](https://example.com/{i})\n    on its second line." for i in range(40)]
    made = page("a.md", *read_markdown("\n".join(items), "a.md").sections)
    chunks = chunk(made, SCOPE, "none/0", ChunkSizes(64, 128))
    assert len(chunks) > 5
    assert "\n".join(c.text for c in chunks) == "\n".join(items)


def test_a_paragraph_over_the_cap_is_cut_at_its_lines() -> None:
    lines = [f"Line {i} of one long paragraph with [a link](https://example.com/{i}) in it" for i in range(60)]
    made = page("a.md", *read_markdown("\n".join(lines), "a.md").sections)
    chunks = chunk(made, SCOPE, "none/0", ChunkSizes(64, 128))
    assert [line for c in chunks for line in c.text.split("\n")] == lines


WORD = st.text("abcXYZ09éß語", min_size=1, max_size=8)
PIECE = st.one_of(
    WORD,
    WORD.map(lambda w: f"[{w}](https://{w}.example/a_b)"),
    WORD.map(lambda w: f"`{w}_*{w}`"),
    WORD.map(lambda w: f"**{w}**"),
    WORD.map(lambda w: f"_{w}_"),
)
LINE = st.lists(PIECE, min_size=1, max_size=8).map(" ".join)


@given(st.lists(st.lists(LINE, min_size=1, max_size=4).map("\n".join), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_paragraphs_of_plain_markdown_are_their_lines(paragraphs: list[str]) -> None:
    blocks = [b for s in read_markdown("\n\n".join(paragraphs), "a.md").sections for b in s.blocks]
    assert [b.text for b in blocks] == paragraphs
    assert {b.kind for b in blocks} == {BlockKind.PARAGRAPH}


@pytest.mark.parametrize("piece", ["a_b\n", "\\*", "&amp;", "- a\n", "[a](b)\n", "`a` \\_", "\\- - -"])
def test_it_takes_linear_time(piece: str) -> None:
    parser = MarkdownIt("commonmark").use(verbatim_plugin)
    assert_linear(lambda size: parser.parse(piece * size), 500, 5_000)


SIGNS = st.sampled_from("\u200b \u202e \x07 \\ & &#8203; ` [ ]( ) < > * _ ~ ! - 1. > : <!-- --> # | [^a] \n".split(" "))


@given(st.lists(st.one_of(SIGNS, WORD, st.sampled_from([" ", "\n", "\n    ", "\n\n"])), max_size=30).map("".join))
@settings(max_examples=300, deadline=None)
def test_nothing_invisible_and_no_blank_line_stands_in_a_paragraph(markdown: str) -> None:
    for section in read_markdown(markdown, "a.md").sections:
        for block in section.blocks:
            assert strip_invisible(block.text) == block.text
            if block.kind is BlockKind.PARAGRAPH:
                assert all(line and line == line.strip() for line in block.text.split("\n"))
