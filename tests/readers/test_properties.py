"""Invariants for every input: no crash, no invented anchor, no lost text."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from chapterverse.ext.sources.markdown.page import read_markdown
from chapterverse.model import Block
from chapterverse.readers.sections.html_page import read_document, read_fragment
from chapterverse.readers.urls import SiteGenerator
from readers.seen import Seen, characters, lost, words_of

NAMES = (
    "div p ul ol li dl dt dd table thead tr td th pre code span a b em h1 h2 h3 h6 section details summary "
    "blockquote br img"
    " sup input label script svg math figure unknown-element"
).split()
CLASSES = (
    "admonition warning admonition-title tabbed-set tabbed-labels tabbed-content tabbed-block footnote "
    "footnotes sig highlight"
    " filename language-py headerlink sd-tab-set custom-block vp-code-group blocks lang"
).split()
ATTRIBUTES = st.one_of(
    st.just(""),
    st.sampled_from(CLASSES).map(lambda c: f' class="{c}"'),
    st.sampled_from(["a", "fn:1", "ü", "x y"]).map(lambda i: f" id='{i}'"),
    st.sampled_from(["#a", "#fn:1", "#nowhere", "https://e.com"]).map(lambda h: f" href={h}"),
    st.sampled_from(
        [' colspan="3"', " rowspan=2", " hidden", " start=5", ' type="checkbox"', " data-search-exclude", ' "=<']
    ),
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
SOUP = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(NAMES), ATTRIBUTES).map(lambda t: f"<{t[0]}{t[1]}>"),
        st.sampled_from(NAMES).map(lambda n: f"</{n}>"),
        TEXT,
        st.sampled_from(["<", "&", "<!--", "-->", "&#x41;", "&#0;", "</", "<!x>", "\r\n", "\x00", "\ud800"]),
    ),
    max_size=40,
).map("".join)

WORD = st.text("abcdefghij0123456789", min_size=1, max_size=6)
INLINE: st.SearchStrategy[str] = st.deferred(
    lambda: st.one_of(
        WORD,
        st.tuples(
            st.sampled_from(["b", "em", "code", "span", "a href=x", "sup", "kbd", "mark"]), st.lists(INLINE, max_size=3)
        ).map(lambda t: f" <{t[0]}>{''.join(t[1])}</{t[0].split()[0]}> "),
    )
)
BLOCK: st.SearchStrategy[str] = st.deferred(
    lambda: st.one_of(
        st.lists(INLINE, max_size=3).map(lambda i: f"<p>{''.join(i)}</p>"),
        WORD.map(lambda w: f"<pre><code>{w}</code></pre>"),
        st.tuples(st.sampled_from("123456"), st.lists(INLINE, max_size=2)).map(
            lambda t: f"<h{t[0]}>{''.join(t[1])}</h{t[0]}>"
        ),
        st.lists(BLOCK, max_size=3).map(lambda b: f"<ul>{''.join(f'<li>{x}</li>' for x in b)}</ul>"),
        st.lists(BLOCK, max_size=3).map(lambda b: f"<table><tr>{''.join(f'<td>{x}</td>' for x in b)}</tr></table>"),
        st.lists(BLOCK, max_size=2).map(lambda b: f"<dl><dt>{''.join(b[:1])}</dt><dd>{''.join(b[1:])}</dd></dl>"),
        st.tuples(
            st.sampled_from(
                [
                    '<div class="admonition note"><p class="admonition-title">',
                    "<details><summary>",
                    '<div class="tabbed-set"><label>',
                    "<blockquote><p>",
                    "<section><p>",
                ]
            ),
            WORD,
            st.lists(BLOCK, max_size=3),
        ).map(_boxed),
    )
)


def _boxed(parts: tuple[str, str, list[str]]) -> str:
    opening, word, inner = parts
    content = "".join(inner)
    if "label" in opening:
        return f'{opening}{word}</label><div class="tabbed-content">{content}</div></div>'
    title, box = opening.split("<")[2].split(">")[0].split()[0], opening.split("<")[1].split(">")[0].split()[0]
    return f"{opening}{word}</{title}>{content}</{box}>"


def _all(block: Block) -> list[Block]:
    return [block, *(inner for part in block.parts for inner in _all(part))]


@given(SOUP)
@settings(max_examples=400, deadline=None)
def test_any_soup_is_read(html: str) -> None:
    document = read_document(html)
    for section in document.sections:
        assert section.anchor is None or section.anchor in html.replace("\r", "\n") or "&" in html
        assert section.path
        assert section.heading is None or section.path[-1] in (section.heading, document.title)
        for block in (b for whole in section.blocks for b in _all(whole)):
            assert block.text.strip()
            assert block.text.startswith(block.head)
            assert block.text.endswith(block.tail)
            block.text.encode()


@given(st.lists(BLOCK, max_size=6).map("".join))
@settings(max_examples=400, deadline=None)
def test_no_visible_character_is_lost(html: str) -> None:
    tagless = "".join(piece.partition(">")[2] for piece in f">{html}".split("<"))
    assert not characters(tagless) - characters(words_of(read_fragment(html, "T")))


@given(st.lists(st.tuples(st.sampled_from("123456"), st.sampled_from(["a", "b_1", "ü", ""]), BLOCK), max_size=6))
@settings(max_examples=150, deadline=None)
def test_each_heading_keeps_its_own_id(parts: list[tuple[str, str, str]]) -> None:
    html = "".join(f'<h{level} id="{name}{i}">T{i}</h{level}>{block}' for i, (level, name, block) in enumerate(parts))
    anchors = {s.heading: s.anchor for s in read_fragment(html, "Page")}
    assert all(anchors[f"T{i}"] == f"{name}{i}" for i, (_, name, _) in enumerate(parts))


@given(st.text(st.characters(codec="utf-8"), max_size=200), st.sampled_from(SiteGenerator))
@settings(max_examples=300, deadline=None)
def test_any_markdown_is_read(text: str, generator: SiteGenerator) -> None:
    for section in read_markdown(f"# T\n\n{text}", "a.md", generator).sections:
        assert not section.anchor_verified


MDX_PIECES = (
    "{ } {x} {/* c */} < <A <A> </A> <A/> <Tabs> <TabItem label='x'> </TabItem> </Tabs> <details> <summary> </details>"
    " <b> </b> <code> ` `` ``` ~~~ ```mdx-code-block import export | # ## - > \\\\ ' \" ::: {#a} <!-- --> $ &lt;"
).split()
MDX_SOUP = st.lists(
    st.one_of(st.sampled_from(MDX_PIECES), st.sampled_from(["\n", "\n\n", " ", "    "]), TEXT), max_size=40
)


@given(MDX_SOUP.map("".join))
@settings(max_examples=400, deadline=None)
def test_any_mdx_is_read(text: str) -> None:
    for section in read_markdown(text, "a.mdx", SiteGenerator.GITHUB).sections:
        assert not section.anchor_verified
        for block in section.blocks:
            block.text.encode()


@given(st.text("{}<>/A`'\"=\n #|-*$\\\\ import", max_size=80))
@settings(max_examples=400, deadline=None)
def test_any_signs_of_mdx_are_read(text: str) -> None:
    read_markdown(text, "a.mdx", SiteGenerator.GITHUB)


MDX_BLOCK: st.SearchStrategy[str] = st.deferred(
    lambda: st.one_of(
        WORD.map(lambda w: f"{w} <Mark color={{{{a: 1}}}}>{w}</Mark> {{'{w}'}}"),
        WORD.map(lambda w: f"```js\n{w} <X>{{{w}}}\n```"),
        WORD.map(lambda w: f"## {w} {{/* #{w} */}}"),
        WORD.map(lambda w: f"| {w} | <code>{w}</code> |\n| - | - |\n| {w} | {w} |"),
        WORD.map(lambda w: f'<Card\n  title="{w}"\n  to={{x}}\n/>'),
        st.lists(WORD, min_size=1, max_size=3).map(lambda words: "\n".join(f"- {w}" for w in words)),
        st.tuples(
            st.sampled_from(["Frame", "Tip", "details", "div", "TabItem"]), st.lists(MDX_BLOCK, min_size=1, max_size=3)
        ).map(lambda t: f"<{t[0]}>\n\n" + "\n\n".join(t[1]) + f"\n\n</{t[0]}>"),
    )
)
INVISIBLE = re.compile(
    r"<(?:Mark|Card|/?[A-Za-z]+)\b(?: color=\{\{a: 1\}\}|\n  title=)?|\n  to=\{x\}|```js|/\* #\w+ \*/"
)


@given(st.lists(MDX_BLOCK, max_size=5).map("\n\n".join))
@settings(max_examples=200, deadline=None)
def test_no_visible_character_of_mdx_is_lost(text: str) -> None:
    code = Counter(c for w in re.findall(r"```js\n(\w+) <X>", text) for c in "x")
    visible = characters(INVISIBLE.sub(" ", text)) + code
    assert not visible - characters(words_of(read_markdown(text, "a.mdx", SiteGenerator.GITHUB).sections))


@given(st.lists(BLOCK, max_size=4).map("".join), st.sampled_from(["main", "article", "body"]))
@settings(max_examples=100, deadline=None)
def test_the_oracle_agrees_about_whole_pages(html: str, root: str) -> None:
    document = read_document(f"<html><head><title>T</title></head><{root}>{html}</{root}></html>")
    assert {s.anchor for s in document.sections if s.anchor} <= set(Seen(html).ids)
    assert not lost(html, document.sections)
