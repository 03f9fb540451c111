"""Heading ids as each generator makes them."""

from __future__ import annotations

import markdown
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chapterverse.ext.sources.markdown.slugs import Slugger, slugify
from chapterverse.readers.urls import SiteGenerator

#: As the captured sites of the real generators have them, further rows from docutils.nodes.make_id itself.
TABLE = {
    SiteGenerator.MKDOCS: [
        ("Überschrift mit Ümlaut", "uberschrift-mit-umlaut"),
        ("日本語の見出し", ""),
        ("🚀 Emoji  heading", "emoji-heading"),
        ("C++ / C# & .NET -- what's new?", "c-c-net-whats-new"),
        ("foo_bar and foo.bar()", "foo_bar-and-foobar"),
        ("Home of Demo v3.2.1", "home-of-demo-v321"),
    ],
    SiteGenerator.GITHUB: [
        ("Überschrift mit Ümlaut", "überschrift-mit-ümlaut"),
        ("日本語の見出し", "日本語の見出し"),
        ("1. Numbered heading", "1-numbered-heading"),
        ("C++ / C# & .NET -- what's new?", "c--c--net----whats-new"),
        ("foo_bar and foo.bar()", "foo_bar-and-foobar"),
        ("I ♥ unicode", "i--unicode"),
        ("🚀 Emoji", "-emoji"),
        ("½ and Ⅷ and ⓐ", "-and-ⅷ-and-ⓐ"),
    ],
    SiteGenerator.VITEPRESS: [
        ("Überschrift mit Ümlaut", "uberschrift-mit-umlaut"),
        ("日本語の見出し", "日本語の見出し"),
        ("1. Numbered heading", "_1-numbered-heading"),
        ("C++ / C# & .NET -- what's new?", "c-c-net-what-s-new"),
        ("foo_bar and foo.bar()", "foo-bar-and-foo-bar"),
    ],
    SiteGenerator.SPHINX: [
        ("Setup", "setup"),
        ("Überschrift mit Ümlaut", "uberschrift-mit-umlaut"),
        ("日本語の見出し", ""),
        ("1. Numbered heading", "numbered-heading"),
        ("C++ / C# & .NET -- what's new?", "c-c-net-what-s-new"),
        ("foo_bar and foo.bar()", "foo-bar-and-foo-bar"),
        ("Straße Øl æ œ", "strasze-ol-ae-oe"),
        ("łódź & đ", "lodz-d"),
        ("2024", ""),
    ],
}


@pytest.mark.parametrize(("rule", "heading", "expected"), [(r, h, e) for r, rows in TABLE.items() for h, e in rows])
def test_slugs(rule: SiteGenerator, heading: str, expected: str) -> None:
    assert slugify(heading, rule) == expected


@pytest.mark.parametrize(
    ("rule", "headings", "expected"),
    [
        (
            SiteGenerator.MKDOCS,
            ["Setup", "Setup", "Setup", "日本", "日本", "Setup_1"],
            ["setup", "setup_1", "setup_2", "_1", "_2", "setup_3"],
        ),
        (
            SiteGenerator.GITHUB,
            ["Setup", "Setup", "Setup-1", "Setup", "!", "?"],
            ["setup", "setup-1", "setup-1-1", "setup-2", "", "-1"],
        ),
        (SiteGenerator.VITEPRESS, ["Setup", "Setup", "Setup"], ["setup", "setup-1", "setup-2"]),
        (SiteGenerator.SPHINX, ["Setup", "Setup", "日本", "Id1"], ["setup", "id1", "id2", "id3"]),
    ],
)
def test_duplicates(rule: SiteGenerator, headings: list[str], expected: list[str]) -> None:
    slugger = Slugger(rule)
    assert [slugger.slug(heading) for heading in headings] == expected


def test_explicit_ids_count_except_for_docusaurus() -> None:
    for rule, expected in (
        (SiteGenerator.MKDOCS, "setup_1"),
        (SiteGenerator.VITEPRESS, "setup-1"),
        (SiteGenerator.GITHUB, "setup"),
    ):
        slugger = Slugger(rule)
        slugger.reserve("setup")
        assert slugger.slug("Setup") == expected


# Letters, digits, marks and spaces: what Python-Markdown doesn't read as markup of its own.
HEADING = st.text(st.characters(categories=("L", "N", "M"), include_characters=" -.,()/"), min_size=1, max_size=20).map(
    lambda text: f"x{' '.join(text.split())}"
)


@given(st.lists(HEADING, min_size=1, max_size=8))
@settings(max_examples=150, deadline=None)
def test_mkdocs_ids_are_python_markdowns(headings: list[str]) -> None:
    html = markdown.markdown("\n\n".join(f"## {heading}" for heading in headings), extensions=["toc"])
    slugger = Slugger(SiteGenerator.MKDOCS)
    assert [slugger.slug(heading) for heading in headings] == [
        part.partition('"')[0] for part in html.split('<h2 id="')[1:]
    ]


def test_ten_thousand_headings_with_one_name() -> None:
    slugger = Slugger(SiteGenerator.MKDOCS)
    assert [slugger.slug("Options") for _ in range(10_000)][-1] == "options_9999"
