"""Markdown without link targets, and tables read back as the reader of HTML wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chapterverse.ext.sources.markdown_folder import read_markdown_folder
from chapterverse.indexing.chunking import chunk
from chapterverse.model import Chunk, Page, Scope
from chapterverse.readers.sections.html_page import read_document
from chapterverse.text.markdown import escape_markdown, plain, tables
from growth import assert_linear


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("a [b](c) d", "a b d"),
        ('[b](c "d"), [b](<c d> \'e\') and [b](c (d))', "b, b and b"),
        ("[b](https://e.example/x_(y)) [b]( c ) [b]()", "b b b"),
        ("[b](c\n'd') [two\nlines](c\n)", "b two\nlines"),
        ("[*a* `b](c)` d](e)", "*a* `b](c)` d"),
        ("[a [b] c](d) [a [b](c) d](e)", "a [b] c a b d"),
        ("![alt](src) and [![alt](src)](href)", "alt and alt"),
        ("[](gone)left", "left"),
        ("[text][1], [text][] and [text][a ref]", "text, text and text"),
        ("<https://e.example/x>, <mailto:a@e.example>", "https://e.example/x, mailto:a@e.example"),
        ("<me@e.example>", "me@e.example"),
        ("[x](javascript:alert(1)) [x](data:text/html,<b>)", "x x"),
        ("- [ ] a [b](c)\n- [x] d\n> [e](f)", "- [ ] a b\n- [x] d\n> e"),
        ("a.[^1] [b](c)[^2]\n\n[^1]: see [d](e)", "a.[^1] b[^2]\n\n[^1]: see d"),
    ],
)  # fmt: skip
def test_links_are_their_texts(markdown: str, shown: str) -> None:
    assert plain(markdown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a[0] and x[i][j][k], [1][2], m[-1][0]",
        "`a[0](x)` and ``[b](c) ` ``",
        "```py\na[0](x)\n[b](c)\n```",
        "~~~\n```\n[b](c)\n~~~",
        "- item\n\n  ```js\n  f[0](x)\n  ```",
        "1. ```\n   f[0](x)\n   ```",
        "> ```\n> f[0](x)\n> ```",
        "```\n[b](c)",
        "- [ ] open\n- [x] done",
        "said.[^1][^2]\n\n[^1]: why\n[^2]: how",
        "[text](no target at all) [text] (x) [text](x y) [text](x",
        "[ref] and [another ref].",
        "](x) ] [ ![",
        "a < b, vector<std::string>, <b>, <T> and a<b>c",
        r"C:\[x] and \d[0-9]",
    ],
)
def test_what_is_no_link_stays(text: str) -> None:
    assert plain(text) == text


def test_code_ends_where_its_block_does() -> None:
    assert plain("a ` b\n\n[c](d) `") == "a ` b\n\nc `"
    assert plain("- a ` b\n- [c](d) `\n| ` | [e](f) |\n| ` | [g](h) |") == "- a ` b\n- c `\n| ` | e |\n| ` | g |"
    assert plain("````\n```\n[a](b)\n````\n[c](d)") == "````\n```\n[a](b)\n````\nc"


def test_a_target_is_followed_as_deep_as_markdown_does() -> None:
    assert plain(f"[a]({'(' * 32}{')' * 32})") == "a"
    too_deep = f"[a]({'(' * 33}{')' * 33})"
    assert plain(too_deep) == too_deep


WORD = st.text("abc019é語", min_size=1, max_size=6)
TEXT: st.SearchStrategy[str | tuple[str, str]] = st.deferred(
    lambda: st.one_of(WORD, st.tuples(WORD, LINK).map(lambda t: (f"{t[0]} {t[1][0]}", t[1][1])))
)
TARGET = st.tuples(
    st.sampled_from(["https://evil.example/{}", "<evil {}>", "evil.md#{}(x(y))", "javascript:evil({})"]), WORD,
    st.sampled_from(["", ' "evil"', " 'evil'", "\n(evil)"]),
).map(lambda t: t[0].format(t[1]) + t[2])  # fmt: skip
#: Each with what it shows.
LINK: st.SearchStrategy[tuple[str, str]] = st.tuples(st.sampled_from(["", "!"]), WORD, TARGET).map(
    lambda t: (f"{t[0]}[{t[1]}]({t[2]})", t[1])
)
NESTED = st.tuples(LINK, TARGET).map(lambda t: (f"[{t[0][0]}]({t[1]})", t[0][1]))
CODE = st.tuples(WORD, TARGET).map(lambda t: f"``{t[0]}[0]({t[1]}) ` ``")
PIECE = st.one_of(WORD.map(lambda w: (w, w)), LINK, NESTED, CODE.map(lambda c: (c, c)))


@given(st.lists(st.lists(PIECE, min_size=1, max_size=5), max_size=4))
@settings(max_examples=300, deadline=None)
def test_texts_and_code_stay_and_targets_go(paragraphs: list[list[tuple[str, str]]]) -> None:
    markdown = "\n\n".join(" ".join(piece for piece, _ in pieces) for pieces in paragraphs)
    assert plain(markdown) == "\n\n".join(" ".join(shown for _, shown in pieces) for pieces in paragraphs)


@given(st.text("[]()<>`~!^\\\"' \n-*1.|:#>ab/@", max_size=60))
@settings(max_examples=500, deadline=None)
def test_nothing_is_added_or_reordered(text: str) -> None:
    rest = iter(text)
    assert all(sign in rest for sign in plain(text))


@pytest.mark.parametrize(
    "pattern",
    [
        "[", "]", "[a](", "[a](b \"", "[a](b '", "[a](b (", "[a](((", "[a](<", "[[a](b)", "[a][", "][", "`", "` ``",
        "```\n", "``` `\n", "[a](b \"c' ", "<a@", "<http://", "[a](  ", "- > ", "![", "[a](b\\", "a[0][",
        "[^a]: ", "[a](b \"\\", "[a](b (\\",
    ],
)  # fmt: skip
def test_it_takes_linear_time(pattern: str) -> None:
    assert_linear(lambda size: plain((pattern * size)[:size]), 10_000, 100_000)


def test_fences_of_all_lengths_take_linear_time() -> None:
    assert_linear(lambda size: plain("\n".join("`" * (3 + i % 50) + "\n[a](b)" for i in range(size))), 1_000, 10_000)


@pytest.mark.parametrize(
    ("heading", "line"),
    [
        ("Install it", "Install it"),
        ("max_retries, list[int] & a < b", "max_retries, list[int] & a < b"),
        ("run(*args)", r"run(\*args)"),
        ("__init__", r"\_\_init\_\_"),
        ("a `b`\n c", r"a \`b\` c"),
        ("[a](https://b.example)", "[a] (https://b.example)"),
        ("<img src=x> &amp; a\\b", r"&lt;img src=x> \&amp; a\\b"),
    ],
)
def test_a_text_is_escaped_where_markdown_would_not_show_it(heading: str, line: str) -> None:
    assert escape_markdown(heading) == line


def test_the_text_of_a_link_has_no_bracket_that_ends_it() -> None:
    assert escape_markdown("list[int] [a](b)", in_link=True) == r"list\[int\] \[a\] (b)"


TABLE = (
    "<table><caption>Sizes in cm</caption><tr><th>Part</th><th>Width</th></tr>"
    "<tr><td>Door | open</td><td>60</td></tr><tr><td><code>a|b</code></td></tr></table>"
)


def chunks(html: str) -> list[Chunk]:
    page = read_document(f"<html lang=en><main><h1 id=t>Oven</h1>{html}</main></html>")
    made = Page("a.html", "https://x.example/a/", page.title, "en", page.sections)
    return list(chunk(made, Scope("s"), "none/0"))


def test_headers_and_rows_come_back_from_the_text_of_a_chunk() -> None:
    for html in (
        TABLE,
        f"<blockquote>{TABLE}</blockquote>",
        f"<div class=admonition><p class=admonition-title>N</p>{TABLE}</div>",
    ):
        (made,) = chunks(html)
        (table,) = tables(made.text)
        assert table.headers == ("Part", "Width")
        assert table.rows == (("Door | open", "60"), ("`a|b`", ""))
        assert dict(made.captions)[table.line] == "Sizes in cm"


def test_a_long_table_is_cut_into_tables_of_one_name() -> None:
    rows = "".join(f"<tr><td>part {n}</td><td>{n}</td></tr>" for n in range(300))
    html = TABLE.replace("</table>", f"{rows}</table>")
    made = chunks(html)
    read = [(c, table) for c in made for table in tables(c.text)]
    assert len(made) > 5
    assert sum(len(table.rows) for _, table in read) == 302
    assert {dict(c.captions).get(table.line) for c, table in read} == {"Sizes in cm"}


def test_code_and_signs_are_no_tables() -> None:
    assert not list(tables("```\n| a |\n| --- |\n```\n\n~~~~\n| a |\n| --- |\n~~~\n~~~~\n| a | b |\ntext\n| --- |"))


def test_images_have_addresses_and_go_to_the_chunk_that_names_them() -> None:
    made = chunks(
        "<p>One.</p><h2 id=a>A</h2><p>"
        + "word " * 200
        + '</p><p>See <img src="../i/door.png" alt="The door" title="Front"> and '
        '<img src="b.png" alt="">, <img src="data:image/png;base64,AA" alt="inline">, '
        '<img src="javascript:x" alt="script">, '
        '<img src="https://img.shields.io/badge/x" alt="build">, <img src="http://[" alt="broken">, '
        '<img src="c.png"></p>'
    )
    by_text = {c.text: c.images for c in made if c.images}
    door = {"url": "https://x.example/i/door.png", "alt": "The door", "title": "Front"}
    assert [door in images for text, images in by_text.items() if "The door" in text] == [True]
    every = [image["url"] for images in by_text.values() for image in images]
    assert sorted(every) == ["https://x.example/a/c.png", "https://x.example/i/door.png"]


def test_a_gallery_is_bounded() -> None:
    made = chunks("".join(f'<p><img src="{n}.png" alt="Picture {n}"></p>' for n in range(3_000)))
    assert sum(len(c.images) for c in made) <= 50
    assert max(len(c.images) for c in made) <= 10


def test_images_of_a_source_start_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "guide").mkdir()
    text = '# Guide\n\nSee ![The door](../i/door.png "Front") and ![Here](a%20b.png).\n'
    (tmp_path / "guide" / "oven.md").write_text(text, encoding="utf-8")
    (source,) = read_markdown_folder(tmp_path, "https://x.example/docs/").sources
    (made,) = chunk(source.read(), Scope("s"), "none/0")
    assert made.url == "https://x.example/docs/guide/oven/"
    assert [(image["url"], image["alt"]) for image in made.images] == [
        ("https://x.example/docs/i/door.png", "The door"),
        ("https://x.example/docs/guide/a%20b.png", "Here"),
    ]
