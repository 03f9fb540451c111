"""MDX without its build."""

from __future__ import annotations

import pytest

from chapterverse.ext.sources.markdown.mdx import to_markdown
from chapterverse.ext.sources.markdown.page import read_markdown
from chapterverse.model import BlockKind
from chapterverse.readers.sections.html_page import read_document
from chapterverse.readers.urls import SiteGenerator
from growth import assert_linear
from readers.golden import SITES


def read(mdx: str) -> list[tuple[str | None, list[str]]]:
    page = read_markdown(mdx, "a.mdx", SiteGenerator.GITHUB)
    return [(section.heading, [block.text for block in section.blocks]) for section in page.sections]


def shown(mdx: str) -> list[str]:
    return [text for _, texts in read(mdx) for text in texts]


@pytest.mark.parametrize(
    ("mdx", "blocks"),
    [
        ("import A from 'a';\nimport {\n  B,\n} from \"b\";\n\ntext", ["text"]),
        ("import 'a.css'\n\nimportant words", ["important words"]),
        ("export const f = () => {\n\n  return <p>no</p>;\n};\n\ntext", ["text"]),
        ("export const n = 3;\nexport default X\n\n{n} masts", ["3 masts"]),
        ("Some words\nimport nothing from 'here' in prose", ["Some words\nimport nothing from 'here' in prose"]),
        ("export the crate\n\ntext", ["export the crate", "text"]),
        ("a {/* gone */}b", ["a b"]),
        ("a <!-- gone\n\nstill --> b", ["a b"]),
        ("a <!-- never closed", ["a <!-- never closed"]),
        ("{' '}a{\"b\"}{`c`} {unknown} {1 + 1}d", ["abc d"]),
        ("export const x = 'K';\n\n{`${x}${y}-2`} *{x}*", ["K-2 *K*"]),
        ("{'*not* <b>bold</b>'}", ["*not* <b>bold</b>"]),
        (r"a \{x\} \<b\> {'{'}", ["a {x} <b> {"]),
        ("a { never closed", ["a { never closed"]),
        ("a { brace\n\nand b } later", ["a { brace", "and b } later"]),
        ("{\n  // JavaScript's blank line\n\n  null\n}\n\ntext", ["text"]),
        ("`<Tabs>` and ``{`x`}``", ["`<Tabs>` and ``{`x`}``"]),
        ("a < b and <YOUR_TOKEN> <https://e.com>", ["a < b and <YOUR_TOKEN> <https://e.com>"]),
        ("    indented is no code", ["indented is no code"]),
        ("<Highlight color={{a: '}'}}>green</Highlight> and\n<b>bold</b>", ["green and\n**bold**"]),
        ('<a href="x">link</a> <img alt="Rose" src={rose} /> <br/>z', ["link Rose\nz"]),
        ('<Image\n  alt="Rose"\n  src={rose}\n/>', ["Rose"]),
        ("<>\n\ntext\n\n</>", ["text"]),
        ("<head>\n  <title>no</title>\n</head>\n\n<style>{`a{}`}</style>\n\ntext", ["text"]),
        ("text <Icon name='x' /> more", ["text more"]),
    ],
)
def test_what_is_left(mdx: str, blocks: list[str]) -> None:
    assert shown(mdx) == blocks


@pytest.mark.parametrize(
    ("mdx", "text"),
    [
        (
            '<Tabs>\n  <TabItem value="a" label="Linux">\n\n  - one\n  - two\n\n  </TabItem>\n</Tabs>',
            "**Linux**\n\n- one\n- two",
        ),
        (
            "<Tabs values={[{label: 'A', value: 'a'}, {value: 'b', label: 'B'}]}>\n<Tab value='a'>1</Tab>\n</Tabs>",
            "**A**\n\n1",
        ),
        ('<Admonition type="warning" title="Careful">\n\nWet.\n\n</Admonition>', "**Warning: Careful**\n\nWet."),
        ("<Tip>Short.</Tip>", "Short."),
        ("<Tip>\nShort.\n</Tip>", "**Tip**\n\nShort."),
        (":::type[A *title*]\n\nBody.\n\n:::", "**A *title***\n\nBody."),
        ("<details>\n<summary>More `x`</summary>\n\nHidden.\n\n</details>", "**More `x`**\n\nHidden."),
        ('<Details summary="More">\nHidden.\n</Details>', "**More**\n\nHidden."),
        ("<Details summary={<b>More</b>}>\nHidden.\n</Details>", "**More**\n\nHidden."),
        ('<Card title="Start" description="First steps" />', "**Start**\n\nFirst steps"),
        ("<Frame>\n\n```js\n<b>{1}</b>\n```\n\n</Frame>", "```js\n<b>{1}</b>\n```"),
        (
            '<CodeBlock language="js" title="a.js">\n{`f("1");`}\n</CodeBlock>',
            '```js title="a.js"\nf("1");\n```',
        ),
        ("```mdx-code-block\nimport X from 'x';\n```\n\n```mdx-code-block\n<X>\n\ntext\n\n</X>\n```", "text"),
        ("| A | B |\n| - | - |\n| <code>a | b</code> | c |", "| A | B |\n| --- | --- |\n| `a \\| b` | c |"),
    ],
)
def test_components_become_one_block(mdx: str, text: str) -> None:
    assert shown(mdx) == [text]


def test_a_box_holds_the_blocks_it_may_be_cut_between() -> None:
    page = read_markdown("<Frame>\n\none\n\n<Tip>\n\ntwo\n\n</Tip>\n\n</Frame>\n\nthree", "a.mdx")
    box, after = page.sections[0].blocks
    assert (box.text, [part.kind for part in box.parts]) == (
        "one\n\n**Tip**\n\ntwo",
        [BlockKind.PARAGRAPH, BlockKind.ADMONITION],
    )
    assert after.text == "three"


def test_badges_and_icons_are_no_words_of_a_heading() -> None:
    assert read(
        '## Setup <Badge text="New" variant="tip" />\n\na <Badge text="beta" /> <Icon name="star" label="Star" />b'
    ) == [("Setup", ["a beta b"])]
    assert read("## Setup <Badge>New</Badge>\n\na") == [("Setup", ["a"])]
    page = read_markdown("## Setup <Badge>New</Badge>\n\na", "a.md", SiteGenerator.VITEPRESS)
    assert [section.heading for section in page.sections] == ["Setup"]


def test_headings_and_their_ids() -> None:
    mdx = "# A {#given}\n\n## B \\{#b-1}\n\n## C {/* #c-1 */}\n\n## D <X>`e`</X> {unknown}\n\n<h2 id='f'>F</h2>\n\ntext"
    page = read_markdown(mdx, "a.mdx", SiteGenerator.GITHUB)
    assert [(s.heading, s.anchor) for s in page.sections] == [
        ("A", "given"), ("B", "b-1"), ("C", "c-1"), ("D e", "d-e-unknown"), ("F", "f"),
    ]  # fmt: skip
    assert not any(section.anchor_verified for section in page.sections)


def test_the_brace_of_an_id_may_be_escaped_in_a_file_that_has_nothing_else_of_mdx() -> None:
    page = read_markdown("# A \\{#a}\n\n## `b` \\{#b-1}\n\ntext", "a.md", SiteGenerator.DOCUSAURUS)
    assert [(s.heading, s.anchor) for s in page.sections] == [("A", "a"), ("b", "b-1")]


@pytest.mark.parametrize(
    "mdx",
    [
        "```js\nimport a from 'a';\n{x}<b>\n```",
        "~~~\n```\n<b>\n~~~",
        "- item\n\n  ```js\n  {x}\n  ```",
        "> ```\n> {x}\n> ```",
    ],
)
def test_fences_stay_as_they_are(mdx: str) -> None:
    assert to_markdown(mdx) == mdx


def test_the_source_of_a_built_page_has_its_anchors_and_no_others() -> None:
    built = read_document((SITES / "docusaurus-traps/docs/index.html").read_text(encoding="utf-8"))
    source = read_markdown(
        (SITES / "docusaurus-traps/index.mdx").read_text(encoding="utf-8"), "index.mdx", SiteGenerator.GITHUB
    )
    computed = {s.anchor for s in source.sections if s.level > 1 and s.anchor}
    # What another file brings in is only in the build.
    assert {s.anchor for s in built.sections if s.anchor} - computed == {"shared-orders"}
    assert computed <= {s.anchor for s in built.sections}


@pytest.mark.parametrize(
    "hostile",
    [
        "{", "}", "<a ", "<a b='", "<a b={", "</a>", "<A>", "<div>\n", "<A>\n\n", "`", "``x`", "```\n", "{a}",
        "# {a}\n", "~~~mdx-code-block\n", "```mdx-code-block\n", "export const a = {\n\n", "import a\n",
        "import {a\n\n", "<!--", "\\", "{'", "{`", "x{\n\n", "{/*", "{//", "<A b={{}} ", "<A/>", "- ", "> ", " ",
        "<Tabs><TabItem>\n", "<code>|", "<CodeBlock>{``}</CodeBlock>\n", "x {#a} ", "<A>{`x`}", "{\\'", '{`<a b="',
        "{/**/", "{/* */}", "{'\\", "{`\\", '{"\\"', "{//\n",
    ],
)  # fmt: skip
def test_hostile_text_takes_linear_time(hostile: str) -> None:
    assert_linear(lambda size: to_markdown(hostile * (size // len(hostile))), 10_000, 120_000)


@pytest.mark.parametrize("hostile", ["<A>\n\n", "<div>", "<Tabs>\n<TabItem label='x'>\n", "{", "> <A>\n"])
def test_ten_thousand_levels(hostile: str) -> None:
    page = read_markdown(hostile * 10_000 + "the end", "a.mdx")
    assert "the end" in page.sections[-1].blocks[-1].text
