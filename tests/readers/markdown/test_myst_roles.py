"""Roles of MyST."""

from __future__ import annotations

import pytest

from chapterverse.ext.sources.markdown.page import read_markdown
from chapterverse.readers.urls import SiteGenerator
from growth import assert_linear
from readers.markdown.test_myst import texts


@pytest.mark.parametrize(
    ("role", "shown"),
    [
        ("{func}`a.b`", "`a.b`"),
        ("{func}`~a.b.c`", "`c`"),
        ("{py:func}`~a.b.c()`", "`c()`"),
        ("{cpp:class}`~a::b`", "`b`"),
        ("{class}`.Client`", "`Client`"),
        ("{class}`x <target>`", "`x`"),
        ("{class}`x<target>`", "`x`"),
        ("{meth}`!a.b`", "`a.b`"),
        ("{mod}`a\nb`", "`a b`"),
        ("{exc}``a`b``", "``a`b``"),
        ("{file}`~/.bashrc`", "`~/.bashrc`"),
        ("{option}`--a`", "`--a`"),
        ("{command}`a <b>`", "`a <b>`"),
        ("{any}`logging.Logger`", "`logging.Logger`"),
        ("{any}`the logger <logging.Logger>`", "the logger"),
        ("{ref}`some text <label>`", "some text"),
        ("{ref}`my-label`", "my label"),
        ("{ref}`guide/setup:Install it`", "Install it"),
        ("{doc}`some text <a/b>`", "some text"),
        ("{doc}`/guide/first-steps`", "first-steps"),
        ("{doc}`guide/`", "guide"),
        ("{doc}`/`", "/"),
        ("{term}`bound logger`", "bound logger"),
        ("{term}`loggers <logger>`", "loggers"),
        ("{abbr}`API (an interface)`", "API (an interface)"),
        ("H{sub}`2`O", "H2O"),
        # As the HTML reader shows it: "102" would be another number.
        ("10{sup}`2`", "10^2"),
        ("{kbd}`Ctrl <`", "Ctrl <"),
        ("{math}`a^2 *b*`", "a^2 *b*"),
        ("{pep}`8`", "PEP 8"),
        ("{unknown}`text <x>`", "text"),
        ("*{doc}`a`* **{func}`b`**", "*a* **`b`**"),
        (r"\{func}`a`", "{func}`a`"),
        ("{func} `a`", "{func} `a`"),
        ("{func}`a", "{func}`a"),
        ("`{func}`", "`{func}`"),
    ],
)
def test_roles(role: str, shown: str) -> None:
    # A paragraph of plain Markdown keeps its wording, one with HTML is read as a page is.
    assert texts(f"x {role} y") == [f"x {shown} y"]
    assert texts(f"x {role} <b></b>y") == [f"x {shown} y"]


def test_a_paragraph_keeps_its_lines() -> None:
    assert texts("Use {func}`~a.b`\nor [a _link_](x.md) in {doc}`c/d`\nnow.") == [
        "Use `b`\nor [a _link_](x.md) in d\nnow."
    ]


def test_roles_in_headings_tables_and_links() -> None:
    (section,) = read_markdown("## Use {func}`~a.b` in {doc}`c`\n\ntext", "a.md", SiteGenerator.SPHINX).sections
    assert (section.heading, section.anchor) == ("Use b in c", "use-b-in-c")
    assert texts("| {func}`~a.b` |\n| - |\n| {doc}`c/d` |") == ["| `b` |\n| --- |\n| d |"]
    assert texts("[see {func}`~a.b`](x)<b></b>") == ["see `b`"]
    assert read_markdown("# {doc}`a/b`", "a.md", generator=SiteGenerator.SPHINX).title == "b"


@pytest.mark.parametrize("generator", [SiteGenerator.MKDOCS, SiteGenerator.VITEPRESS, SiteGenerator.HUGO])
def test_other_generators_have_no_roles(generator: SiteGenerator) -> None:
    assert texts("a {func}`b`", generator) == ["a {func}`b`"]


@pytest.mark.parametrize("piece", ["{a}`", "{a}``", "{a}`b`", "{a:", "{", "{ref}`a <", "{a}`<b>` `"])
def test_hostile_roles_take_linear_time(piece: str) -> None:
    assert_linear(lambda count: texts(piece * count), 1_000, 8_000)
