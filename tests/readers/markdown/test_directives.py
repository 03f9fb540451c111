"""Tabs and colon containers in Markdown."""

from __future__ import annotations

import pytest

from chapterverse.ext.sources.markdown.page import read_markdown
from growth import assert_linear


def texts(markdown: str) -> list[str]:
    return [block.text for section in read_markdown(markdown, "a.md").sections for block in section.blocks]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        (
            '=== "A <b>"\n\n    one\n\n    - two\n\n===! "B"\n\n        code\n\nafter',
            ["**A <b>**\n\none\n\n- two", "**B**\n\n```\ncode\n```", "after"],
        ),
        ('- item\n\n    === "A"\n\n        one', ["- item\n\n  **A**\n\n  one"]),
        ('    === "A"\n\n    one', ['```\n=== "A"\n\none\n```']),
        ("=== not a tab", ["=== not a tab"]),
        ("::: warning Be *careful*\nx\n:::\ny", ["**Warning: Be *careful***\n\nx", "y"]),
        (":::tip[Title]\n\nx\n\n:::", ["**Tip: Title**\n\nx"]),
        (":::{note}\nx\n:::", ["**Note**\n\nx"]),
        ("::::info\n:::tip\nx\n:::\ny\n::::", ["**Info**\n\n**Tip**\n\nx\n\ny"]),
        ("::: details Click\nx\n:::", ["**Click**\n\nx"]),
        ("::: my.package\n\nx", ["::: my.package", "x"]),
        ("::: never_closed\n\nx", ["::: never_closed", "x"]),
        ("text\n::: tip\nx\n:::", ["text", "**Tip**\n\nx"]),
        ("  ::: tip\nx\n\n  y\n  :::\nz", ["**Tip**\n\nx\n\ny", "z"]),
    ],
)
def test_directives(markdown: str, expected: list[str]) -> None:
    assert texts(markdown) == expected


def test_a_heading_in_a_tab_is_a_section_with_an_anchor() -> None:
    sections = read_markdown('=== "A"\n\n    ## Inside\n\n    x\n\nafter', "a.md").sections
    assert [(s.heading, s.anchor, [b.text for b in s.blocks]) for s in sections] == [
        (None, None, ["after"]),
        ("Inside", "inside", ["**A**\n\nx"]),
    ]


def test_containers_without_end_take_linear_time() -> None:
    assert_linear(lambda count: read_markdown("::: tip\n" * count, "a.md"), 1_000, 8_000)


def test_deep_nesting_is_no_crash() -> None:
    opening = "".join(f"{':' * (603 - depth)} tip\n" for depth in range(600))
    closing = "".join(f"{':' * (4 + depth)}\n" for depth in range(600))
    assert texts(f"{opening}x\n{closing}\nafter")[-1] == "after"
