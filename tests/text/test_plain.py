"""Markdown without link targets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chapterverse.text.plain import escape_markdown, plain
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
