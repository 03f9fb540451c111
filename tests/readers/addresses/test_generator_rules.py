"""Where a source file is published."""

from __future__ import annotations

import pytest

from chapterverse.readers.addresses.generator_rules import is_partial, source_path
from chapterverse.readers.markdown.slugs import SlugRule


@pytest.mark.parametrize(
    ("file_path", "expected"),
    [
        ("index.md", ""),
        ("guide/index.md", "guide/"),
        ("guide/README.md", "guide/"),
        ("guide/ä b.md", "guide/%C3%A4%20b/"),
        ("v1.2.md", "v1.2/"),
    ],
)
def test_source_path(file_path: str, expected: str) -> None:
    assert source_path(file_path) == expected


@pytest.mark.parametrize(
    ("rule", "file_path", "expected"),
    [
        (SlugRule.VITEPRESS, "guide/setup.md", "guide/setup.html"),
        (SlugRule.VITEPRESS, "guide/index.md", "guide/"),
        (SlugRule.SPHINX, "index.md", ""),
        (SlugRule.SPHINX, "guide/readme.md", "guide/readme.html"),
        (SlugRule.GITHUB, "guide/README.mdx", "guide/"),
        (SlugRule.GITHUB, "guide/Guide.md", "guide/"),
        (SlugRule.MKDOCS, "02-guide/01-setup.md", "02-guide/01-setup/"),
        (SlugRule.GITHUB, "02-guide/01-setup.md", "guide/setup/"),
        (SlugRule.GITHUB, "2. Guide/3_setup.md", "Guide/setup/"),
        (SlugRule.GITHUB, "2024-01-02-news.md", "2024-01-02-news/"),
        (SlugRule.GITHUB, "7.0-upgrade.md", "7.0-upgrade/"),
        (SlugRule.GITHUB, "10.md", "10/"),
    ],
)
def test_each_generator_has_its_place(rule: SlugRule, file_path: str, expected: str) -> None:
    assert source_path(file_path, rule) == expected


@pytest.mark.parametrize(
    ("slug", "page_id", "expected"),
    [
        ("/", "", ""),
        ("/start", "", "start/"),
        ("start", "", "guide/start/"),
        ("./start/", "", "guide/start/"),
        ("../start", "", "start/"),
        ("../../../etc", "", "etc/"),
        ("", "begin", "guide/begin/"),
        ("/start", "begin", "start/"),
        ("/ä b", "", "%C3%A4%20b/"),
    ],
)
def test_front_matter_moves_a_page(slug: str, page_id: str, expected: str) -> None:
    assert source_path("02-guide/setup.md", SlugRule.GITHUB, slug, page_id) == expected
    assert source_path("02-guide/setup.md", SlugRule.MKDOCS, slug, page_id) == "02-guide/setup/"


def test_partials_are_no_pages() -> None:
    assert is_partial("guide/_shared.mdx", SlugRule.GITHUB)
    assert is_partial("_parts/a.md", SlugRule.GITHUB)
    assert not is_partial("guide/a_b.md", SlugRule.GITHUB)
    assert not is_partial("_shared.md", SlugRule.MKDOCS)
