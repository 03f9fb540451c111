"""Markdown files."""

from __future__ import annotations

import pytest

from chapterverse.errors import UnreadablePage
from chapterverse.ext.sources.markdown.page import needs_build, read_markdown
from chapterverse.model import BlockKind
from chapterverse.readers.sections.html_page import read_fragment
from chapterverse.readers.urls import SiteGenerator


def test_the_same_blocks_as_from_html() -> None:
    page = read_markdown(
        "# Page\n\nA **b** `c`.[^n]\n\n- [x] one\n- two\n    - three\n\n| A |\n| - |\n| `x\\|y` |\n\n```py "
        'title="a.py"\nx\n```\n\n'
        '!!! warning "Careful"\n    Text.\n\n??? note\n    More.\n\nTerm\n:   Meaning.\n\n> quoted\n\n[^n]: '
        "The note.\n",
        "a.md",
    )
    (section,) = page.sections
    assert [(block.kind, block.text) for block in section.blocks] == [
        (BlockKind.PARAGRAPH, "A **b** `c`."),
        (BlockKind.LIST_ITEM, "- [x] one"),
        (BlockKind.LIST_ITEM, "- two\n  - three"),
        (BlockKind.TABLE, "| A |\n| --- |\n| `x\\|y` |"),
        (BlockKind.CODE, '```py title="a.py"\nx\n```'),
        (BlockKind.ADMONITION, "**Warning: Careful**\n\nText."),
        (BlockKind.ADMONITION, "**Note**\n\nMore."),
        (BlockKind.DEFINITION, "**Term**\n\nMeaning."),
        (BlockKind.QUOTE, "> quoted"),
        (BlockKind.FOOTNOTE, "The note."),
    ]


@pytest.mark.parametrize(
    ("generator", "heading", "anchor"),
    [
        (SiteGenerator.MKDOCS, "A `b_c` <em>d</em> ![e](f)", "a-b_c-d"),
        (SiteGenerator.GITHUB, "A `b_c` ![e](f)", "a-b_c-e"),
        (SiteGenerator.VITEPRESS, "1. A `b_c`", "_1-a-b-c"),
        (SiteGenerator.SPHINX, "A & b", "a-b"),
        (SiteGenerator.MKDOCS, "A { #my-id }", "my-id"),
        (SiteGenerator.MKDOCS, "A {: .x #my-id data-a=b }", "my-id"),
        (SiteGenerator.GITHUB, "A {#my-id}", "my-id"),
        (SiteGenerator.GITHUB, "A {/* #my-id */}", "my-id"),
        (SiteGenerator.VITEPRESS, "Set {a} of {b}", "set-a-of-b"),
        (SiteGenerator.MKDOCS, "AT&amp;T \\*", "att"),
    ],
)
def test_anchors_are_computed_and_say_so(generator: SiteGenerator, heading: str, anchor: str) -> None:
    (section,) = read_markdown(f"## {heading}\n", "a.md", generator).sections
    assert (section.anchor, section.anchor_verified) == (anchor, False)
    assert section.heading is not None
    assert "#my-id" not in section.heading


def test_explicit_ids_are_known_before_the_first_is_computed() -> None:
    markdown = "## Setup\n\n## Other {#setup}\n"
    assert [s.anchor for s in read_markdown(markdown, "a.md").sections] == ["setup_1", "setup"]
    assert [s.anchor for s in read_markdown(markdown, "a.md", SiteGenerator.GITHUB).sections] == ["setup", "setup"]


def test_myst_targets() -> None:
    markdown = "(My target)=\n## Heading\n\ntext\n"
    (section,) = read_markdown(markdown, "a.md", SiteGenerator.SPHINX).sections
    assert (section.anchor, [b.text for b in section.blocks]) == ("my-target", ["text"])


def test_headings_in_raw_html_keep_their_ids() -> None:
    (section,) = read_markdown('<h2 id="raw">Raw</h2>\n\ntext\n', "a.md").sections
    assert section.anchor == "raw"


@pytest.mark.parametrize(
    ("text", "file_path", "expected"),
    [
        ("---\ntitle: Front\n---\n# Heading\n", "a.md", "Front"),
        ("text\n\n# The `heading` {#x}\n", "a.md", "The heading"),
        ("text", "guide/first-steps.md", "First steps"),
        ("", "guide/index.md", "Guide"),
        ("", "README.md", "README"),
    ],
)
def test_titles(text: str, file_path: str, expected: str) -> None:
    assert read_markdown(text, file_path).title == expected


def test_a_page_without_anything() -> None:
    assert read_markdown("", "a.md").sections == ()


@pytest.mark.parametrize(
    ("file_path", "generator", "text", "shown"),
    [
        ("a.mdx", SiteGenerator.MKDOCS, "{/* x */}\n\n    text", "text"),
        ("a.md", SiteGenerator.GITHUB, "<Tip>\n\ntext\n\n</Tip>", "**Tip**\n\ntext"),
        ("a.md", SiteGenerator.GITHUB, "    text", "```\ntext\n```"),
        ("a.md", SiteGenerator.MKDOCS, "<Tip>\n\n{text}\n\n</Tip>", "{text}"),
    ],
)
def test_which_files_are_mdx(file_path: str, generator: SiteGenerator, text: str, shown: str) -> None:
    (section,) = read_markdown(text, file_path, generator).sections
    assert [block.text for block in section.blocks] == [shown]


def test_an_id_is_made_of_an_expression_and_not_of_its_value() -> None:
    (section,) = read_markdown(
        "export const v = '3.2';\n\n## Version {v} *now*", "a.mdx", SiteGenerator.GITHUB
    ).sections
    assert (section.heading, section.anchor) == ("Version 3.2 now", "version-v-now")


def test_broken_front_matter_is_refused() -> None:
    with pytest.raises(UnreadablePage):
        read_markdown("---\na: [\n---\n", "a.md")


def test_what_python_markdown_would_make_reads_alike() -> None:
    markdown = "# T\n\nA *b* **c** `d` and e.\n\n1. x\n2. y\n\n> q\n\n    code\n"
    html = (
        '<h1 id="t">T</h1><p>A <em>b</em> <strong>c</strong> <code>d</code> and e.</p>'
        "<ol><li>x</li><li>y</li></ol><blockquote><p>q</p></blockquote><pre><code>code\n</code></pre>"
    )
    ours = read_markdown(markdown, "a.md").sections
    theirs = read_fragment(html, "T")
    assert [(s.heading, s.anchor, s.blocks) for s in ours] == [(s.heading, s.anchor, s.blocks) for s in theirs]


def test_deep_nesting_is_no_crash() -> None:
    assert read_markdown("- " * 30 + "x\n", "a.md").sections[0].blocks[0].text.endswith("x")
    # markdown-it-py itself gives up on lists 50 deep.
    read_markdown("> " * 500 + "x\n" + "- " * 500 + "x\n" + "*" * 5000 + "[" * 5000, "a.md")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{{% include "x.md" %}}', True),
        ("{{< readfile file=x >}}", True),
        ("{% include note.html %}", True),
        ('--8<-- "x.md"', True),
        ("::: pkg.module", True),
        ("<!--@include: ./x.md-->", True),
        ("<<< @/x.js", True),
        ("```{include} x.md\n```", True),
        ("  ~~~~ {literalinclude} x.py\n  ~~~~", True),
        (":::{automodule} a.b\n:::", True),
        ("```{autosummary}\na\n```", True),
        ("```{eval-rst}\n.. autofunction:: a\n```", True),
        ("```{toctree}\na\n```", False),
        ("```{note}\na\n```", False),
        ("import Part from './_part.mdx';", True),
        ("import Tabs from '@theme/Tabs';", False),
        ("{{< note >}}\nText.\n{{< /note >}}", False),
        ("::: tip\nText.\n:::", False),
        ("Text includes {% raw %}.", False),
    ],
)
def test_pages_that_take_text_from_elsewhere(body: str, expected: bool) -> None:
    assert needs_build(f"Text.\n\n{body}\n") is expected
