"""Directives, targets, comments and breaks of MyST."""

from __future__ import annotations

import pytest

from chapterverse.ext.sources.markdown.page import read_markdown
from chapterverse.readers.urls import SiteGenerator
from growth import assert_linear


def texts(markdown: str, generator: SiteGenerator = SiteGenerator.SPHINX) -> list[str]:
    return [block.text for section in read_markdown(markdown, "a.md", generator).sections for block in section.blocks]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("```{note}\na *b*\n```\nc", ["**Note**\n\na *b*", "c"]),
        ("~~~{warning}\na\n~~~", ["**Warning**\n\na"]),
        (":::{tip}\na\n:::", ["**Tip**\n\na"]),
        ("``` {seealso}\n{doc}`a/b`\n```", ["**See also**\n\nb"]),
        ("```{note} Begins here\nand goes on.\n```", ["**Note**\n\nBegins here\nand goes on."]),
        ("```{note} Begins here.\n:class: x\n\nGoes on.\n```", ["**Note**\n\nBegins here.\n\nGoes on."]),
        ("```{admonition} A *title*\n:class: tip\na\n```", ["**A *title***\n\na"]),
        ("```{dropdown} Click\na\n```", ["**Click**\n\na"]),
        ("```{versionadded} 1.2\na\n```", ["**Added in version 1.2**\n\na"]),
        ("```{versionchanged} 1.2 Now\nfaster.\n```", ["**Changed in version 1.2**\n\nNow\nfaster."]),
        (":::{deprecated} 2.0\n:::", ["**Deprecated since version 2.0**"]),
        ("```{epigraph}\na\n```", ["> a"]),
        ("````{note}\n```{tip}\na\n```\n\n```python\nb\n```\n````", ["**Note**\n\n**Tip**\n\na\n\n```python\nb\n```"]),
        (
            "::::{tab-set}\n:sync-group: a\n\n:::{tab-item} A\n:sync: a\n\na\n:::\n:::{tab-item} B\nb\n:::\n::::",
            ["**A**\n\na", "**B**\n\nb"],
        ),
        (
            "::::{grid} 1 2\n:gutter: 2\n:::{grid-item-card} Title\n:link: a\nHead\n^^^\na\n+++\nfoot\n:::\n::::",
            ["**Title**\n\nHead\n\na\n\nfoot"],
        ),
        ("- a\n\n  ```{note}\n  b\n  ```\n\n- c", ["- a\n\n  **Note**\n\n  b", "- c"]),
        ("> ```{note}\n> b\n> ```", ["> **Note**\n>\n> b"]),
        ("- a\n\n  ```{note}\n  b\n\nc", ["- a\n\n  **Note**\n\n  b", "c"]),
        ("  ```{note}\na\n  ```\nb", ["**Note**\n\na", "b"]),
        ("text\n```{note}\na\n```", ["text", "**Note**\n\na"]),
        ("```{note}\nnever closed\n\na", ["**Note**\n\nnever closed\n\na"]),
        ("```{note}", ["**Note**"]),
        (":::{exercise} Title\na\n:::", ["**Title**\n\na"]),
        ("```{py:function} f(a: int)\n:canonical: x\n\nDoes it.\n```", ["`f(a: int)`", "Does it."]),
        ("```{list-table} Sizes\n:header-rows: 1\n\n* - a\n  - b\n```", ["Sizes", "* - a\n  - b"]),
        ("```{math}\na < b\n```", ["\\[a < b\\]"]),
        ("::: warning Not MyST\na\n:::", ["**Warning: Not MyST**\n\na"]),
    ],
)
def test_containers(markdown: str, expected: list[str]) -> None:
    assert texts(markdown) == expected


@pytest.mark.parametrize(
    "kind", "note warning tip important caution danger attention error hint todo custom-kind".split()
)
def test_names_of_boxes(kind: str) -> None:
    label = "" if kind == "custom-kind" else f"**{kind.capitalize()}**\n\n"
    assert texts(f":::{{{kind}}}\na\n:::") == [f"{label}a"]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("```{code-block} python\n:emphasize-lines: 1\n:caption: a.py\n\nx = 1\n```", "```python\nx = 1\n```"),
        ("```{code-block}\nx\n```", "```\nx\n```"),
        ("```{code} js\nx\n```", "```js\nx\n```"),
        ("```{sourcecode} c\nx\n```", "```c\nx\n```"),
        ("```{doctest} group\n>>> 1\n1\n```", "```pycon\n>>> 1\n1\n```"),
        ("```{testcode}\nx\n```", "```python\nx\n```"),
        ("```{testoutput}\nx\n```", "```\nx\n```"),
        ("```{code-cell} ipython3\n---\ntags: [a]\n---\nx\n```", "```python\nx\n```"),
        ("```{code-block} yaml\n---\na: 1\n```", "```yaml\n---\na: 1\n```"),
        ("```{prompt} bash $\nx\n```", "```bash\nx\n```"),
        (":::{code-block} python\nx\n:::", "```python\nx\n```"),
        (
            "````{code-block} md\n```{note}\n{func}`a`\n(b)=\n% c\n```\n````",
            "````md\n```{note}\n{func}`a`\n(b)=\n% c\n```\n````",
        ),
        ("```{jupyter-execute}\n:hide-code:\nx\n```", "```jupyter-execute\nx\n```"),
        ("```python\n:a: b\n```", "```python\n:a: b\n```"),
        ("    ```{note}\n    a\n    ```", "````\n```{note}\na\n```\n````"),
    ],
)
def test_code(markdown: str, expected: str) -> None:
    assert texts(markdown) == [expected]


@pytest.mark.parametrize(
    "directive",
    (
        "toctree include literalinclude testsetup testcleanup contents index image eval-rst autosummary automodule"
        " autoclass currentmodule py:currentmodule raw mermaid"
    ).split(),
)
@pytest.mark.parametrize("fence", ["```", "~~~", ":::"])
def test_what_shows_nothing_is_left_out(directive: str, fence: str) -> None:
    assert texts(f"a\n\n{fence}{{{directive}}} x\n:b: c\n\nd\n{fence}\n\ne") == ["a", "e"]


def test_hidden_tests_are_left_out() -> None:
    assert texts("```{testcode}\n:hide:\n\na\n```\n```{doctest}\n:hide:\n>>> a\n```\nb") == ["b"]


@pytest.mark.parametrize(
    "directive",
    [
        "```{only} latex\nsecret\n```",
        "```{only} internal\nsecret\n```",
        "```{only} html and draft\nsecret\n```",
        "```{ifconfig} releaselevel in ('alpha',)\nsecret\n```",
        "```{code-cell} python\n:tags: [remove-cell]\nsecret\n```",
        '```{code-cell} python\n---\ntags: ["a", "remove-input"]\n---\nsecret\n```',
        ":::{note}\n% secret\n:::",
        "- item\n\n  % secret",
    ],
)
def test_what_no_page_shows_is_left_out(directive: str) -> None:
    assert "secret" not in str(texts(f"{directive}\n\nend"))


@pytest.mark.parametrize("condition", ["html", "not latex", "draft or html", "builder_dirhtml", "html and not epub"])
def test_what_a_page_shows_is_kept(condition: str) -> None:
    assert texts(f"```{{only}} {condition}\nshown\n```") == ["shown"]


def test_a_figure_keeps_its_caption() -> None:
    assert texts("```{figure} a.png\n:alt: b\n\nThe *caption*.\n\nThe legend.\n```") == [
        "The *caption*.",
        "The legend.",
    ]


@pytest.mark.parametrize(
    "options",
    [
        ":class: a\n:name: b\n",
        "\n:class: a\n",
        "---\nclass: a\nname: |\n  b\n---\n",
        "---\na: b\n----\n\n",
        ":a: >\n:    b\n:c:d\n",
    ],
)
def test_options_are_never_shown(options: str) -> None:
    assert texts(f"```{{note}}\n{options}text\n```") == ["**Note**\n\ntext"]
    assert texts(f"```{{code-block}} c\n{options}text\n```") == ["```c\ntext\n```"]
    assert texts(f"```{{toctree}}\n{options}text\n```") == []


def test_a_glossary() -> None:
    markdown = (
        ":::{glossary}\n:sorted:\n\nTerm\nOther *term*\n    The meaning\n    of it.\n\n"
        "    :::{note}\n    a\n    :::\n\nThird : key\n  b\n:::\nc"
    )
    assert texts(markdown) == [
        "**Term**\n**Other *term***\n\nThe meaning\nof it.\n\n**Note**\n\na",
        "**Third**\n\nb",
        "c",
    ]


@pytest.mark.parametrize(
    ("markdown", "anchor"),
    [
        ("(My target)=\n## Heading\n\ntext", "my-target"),
        ("(my-target)=\n\n## Heading\n\ntext", "my-target"),
        ("(other)=\n(my-target)=\n% why\n## Heading\n\ntext", "my-target"),
        ("a\n\n(my-target)=\n# Heading\ntext", "my-target"),
        ("(other)=\na\n\n## Heading\n\ntext", "heading"),
    ],
)
def test_a_target_is_the_id_of_its_heading(markdown: str, anchor: str) -> None:
    section = read_markdown(markdown, "a.md", SiteGenerator.SPHINX).sections[-1]
    assert (section.heading, section.anchor, [b.text for b in section.blocks]) == ("Heading", anchor, ["text"])


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("(a)=\ntext", ["text"]),
        ("text\n(a)=", ["text"]),
        ("- a\n\n  (b)=\n  c", ["- a\n\n  c"]),
        ("```{note}\n(a)=\ntext\n```", ["**Note**\n\ntext"]),
        ("f(a)= b", ["f(a)= b"]),
        ("% comment\ntext\n% more", ["text"]),
        ("> % comment\n>", []),
        ('a\n\n+++ {"x": 1}\n\nb', ["a", "b"]),
        ("50 % of `% a`", ["50 % of `% a`"]),
        ("a\n^^^\nb", ["a\n^^^\nb"]),
    ],
)
def test_targets_comments_and_breaks_show_nothing(markdown: str, expected: list[str]) -> None:
    assert texts(markdown) == expected


@pytest.mark.parametrize("generator", [SiteGenerator.MKDOCS, SiteGenerator.VITEPRESS, SiteGenerator.HUGO])
def test_other_generators_have_no_directives(generator: SiteGenerator) -> None:
    assert texts("```{note}\na\n```\n\n```{r}\nb\n```", generator) == ["```note\na\n```", "```r\nb\n```"]
    assert texts("(a)=\n\n% b", generator) == ["(a)=", "% b"]


def test_deep_nesting_is_no_crash() -> None:
    assert "deep" in texts("```{note}\n" * 200 + "deep")[0]
    texts("".join(f"{':' * (503 - depth)}{{note}}\n" for depth in range(500)) + "deep")
    texts("```{note} " + "~~~{note} " * 500)


@pytest.mark.parametrize(
    "piece",
    [
        "```{note}\n", "```{note}\n:a: b\n", "```{note}\n---\n", "~~~{note}\nx\n~~~\n", ":::{tip}\n", "~~~{tip} ",
        "- ```{note}\n", "> ```{note}\n", ":::{glossary}\nx\n  y\n", "```{code} py\n", "(a)=\n", "(a)=\n# b\n", "% x\n",
        "+++\n", "^^^\n",
    ],
)  # fmt: skip
def test_hostile_directives_take_linear_time(piece: str) -> None:
    assert_linear(lambda count: texts(piece * count), 500, 4_000)
