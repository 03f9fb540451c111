"""Shortcodes of Hugo and tags of Liquid in Markdown that was never built."""

from __future__ import annotations

import pytest

from chapterverse.ext.sources.markdown.page import read_markdown
from chapterverse.readers.urls import SiteGenerator
from growth import assert_linear


def texts(markdown: str, generator: SiteGenerator = SiteGenerator.MKDOCS) -> list[str]:
    sections = read_markdown(markdown, "a.md", generator=generator).sections
    return [block.text for section in sections for block in section.blocks]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("a {{< new-in 0.144.0 />}} b", ["a b"]),
        ("{{% note %}}\na **b**\n{{% /note %}}", ["a **b**"]),
        ('a\n\n{{< datatable\n  "config"\n  "weight"\n>}}\n\nb', ["a", "b"]),
        ('see [a page]({{< relref "b.md#c" >}}) too', ["see [a page]() too"]),
        ("see [the source](<{{% eturl disqus %}}>)", ["see [the source]()"]),
        ('{% include "x.html" %}\n\na {% if b %}c{% endif %}', ["a c"]),
        ("a {{ site.baseurl }}/b\n{: .note }\n\n* TOC\n{:toc}", ["a /b", "* TOC"]),
        ("[Start](start.md){ .md-button .md-button--primary } now", ["[Start](start.md) now"]),
        (":material-check: yes, :octicons-x-16: no", ["yes, no"]),
        ('a\n\n[TOC]\n\n[[toc]]\n\n--8<-- "links.md"\n\n{{ table_of_all }}\n\nb', ["a", "b"]),
        ("{{< highlight go >}}\na := `{{ .B }}`\n{{< /highlight >}}", ["```go\na := `{{ .B }}`\n```"]),
        ("{{< code-toggle file=hugo >}}\ntitle = 'a'\n{{< /code-toggle >}}", ["```\ntitle = 'a'\n```"]),
        ("{% highlight ruby %}\nputs 1\n{% endhighlight %}", ["```ruby\nputs 1\n```"]),
    ],
)
def test_shortcodes_are_left_out(markdown: str, expected: list[str]) -> None:
    assert texts(markdown) == expected


@pytest.mark.parametrize(
    "markdown",
    [
        "`{{< note >}}` and `{% raw %}`",
        "```html\n{{ site.title }} {% for a in b %}\n{{< note >}}\n```",
        "the sign {{ and ${{ secrets.TOKEN }}",
        "written as {{</* note */>}}",
        "{{< never closed",
        "a set {1, 2} and {x: 1}",
        '```\n[TOC]\n--8<-- "a.md"\n```',
        "a:material-b:c",
    ],
)
def test_code_and_other_braces_stay(markdown: str) -> None:
    assert texts(markdown) == [markdown]


def test_a_heading_without_its_shortcode_has_the_anchor_of_its_words() -> None:
    (section,) = read_markdown("## Setup {{< new-in 2.0 >}}\n\na", "a.md", generator=SiteGenerator.MKDOCS).sections
    assert (section.heading, section.anchor) == ("Setup", "setup")


def test_a_shortcode_around_code_that_never_ends_leaves_the_text() -> None:
    assert texts("{{< highlight go >}}\na\n\nb") == ["a", "b"]


@pytest.mark.parametrize(
    "piece", ["{{< ", "{{<\n", "{% a %}\n", "{{< highlight x >}}\n", "{: ", "[a]({{< ", "{ .a", ":material-", "){ .a "]
)
def test_hostile_shortcodes_take_linear_time(piece: str) -> None:
    assert_linear(lambda count: texts(piece * count), 500, 4_000)
