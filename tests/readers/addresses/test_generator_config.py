"""Settings of generators that change addresses, read from the configuration beside the sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from chapterverse.readers.addresses.generator_rules import PlaceRule, built_path, place_rule
from chapterverse.readers.markdown.front_matter import FrontMatter
from chapterverse.readers.markdown.slugs import SlugRule


def rule(slugs: SlugRule, root: Path, config: str, text: str) -> PlaceRule:
    (root / "docs").mkdir(exist_ok=True)
    (root / config).parent.mkdir(parents=True, exist_ok=True)
    (root / config).write_text(text, encoding="utf-8")
    return place_rule(slugs, root / "docs", ["guide/setup.md"])


@pytest.mark.parametrize(
    ("slugs", "config", "text", "expected"),
    [
        (SlugRule.DOCUSAURUS, "docusaurus.config.ts", "export default { trailingSlash: false,\n};", "guide/setup"),
        (SlugRule.DOCUSAURUS, "docusaurus.config.js", "module.exports = {\n  trailingSlash: true }", "guide/setup/"),
        (SlugRule.DOCUSAURUS, "docusaurus.config.js", "  // trailingSlash: false\n", "guide/setup/"),
        (SlugRule.DOCUSAURUS, "other.js", "trailingSlash: false", "guide/setup/"),
        (SlugRule.GITHUB, "docusaurus.config.js", "trailingSlash: false", "guide/setup/"),
        (SlugRule.VITEPRESS, "docs/.vitepress/config.mts", "  cleanUrls: true,", "guide/setup"),
        (SlugRule.VITEPRESS, "docs/.vitepress/config.mts", "  cleanUrls: false,", "guide/setup.html"),
        (SlugRule.MKDOCS, "mkdocs.yml", "site_name: x\nuse_directory_urls: false\n", "guide/setup.html"),
        (SlugRule.MKDOCS, "mkdocs.yml", "#use_directory_urls: false\n", "guide/setup/"),
        (SlugRule.SPHINX, "mkdocs.yml", "", "guide/setup.html"),
    ],
)
def test_a_setting_changes_the_ending(tmp_path: Path, slugs: SlugRule, config: str, text: str, expected: str) -> None:
    assert rule(slugs, tmp_path, config, text).path("guide/setup.md", FrontMatter()) == expected


@pytest.mark.parametrize(
    ("file_path", "matter", "expected"),
    [
        ("01-guide/02-setup.md", FrontMatter(), "guide/setup"),
        ("guide/index.md", FrontMatter(), "guide"),
        ("guide/index.md", FrontMatter(id="intro"), "guide"),
        ("guide/Guide.md", FrontMatter(), "guide"),
        ("01-guide/guide.md", FrontMatter(), "guide/guide"),
        ("01-index.md", FrontMatter(), "index"),
        ("index.md", FrontMatter(), ""),
        ("a.md", FrontMatter(slug="/"), ""),
        ("a/b.md", FrontMatter(slug="c"), "a/c"),
        ("a.md", FrontMatter(values={"unlisted": True}), None),
        ("_a.md", FrontMatter(), None),
        ("_parts/a.md", FrontMatter(), None),
        ("__tests__/a.md", FrontMatter(), None),
        ("a.test.md", FrontMatter(), "a.test"),
    ],
)
def test_docusaurus_without_slashes(tmp_path: Path, file_path: str, matter: FrontMatter, expected: str | None) -> None:
    places = rule(SlugRule.DOCUSAURUS, tmp_path, "docusaurus.config.ts", "trailingSlash: false")
    assert places.path(file_path, matter) == expected


def test_numbers_may_count_in_docusaurus(tmp_path: Path) -> None:
    places = rule(SlugRule.DOCUSAURUS, tmp_path, "docusaurus.config.ts", "docs: { numberPrefixParser: false }")
    assert places.path("01-guide/02-setup.md", FrontMatter()) == "01-guide/02-setup/"


def test_a_dynamic_route_of_vitepress_is_no_page(tmp_path: Path) -> None:
    places = place_rule(SlugRule.VITEPRESS, tmp_path, [])
    assert places.path("packages/[pkg].md", FrontMatter()) is None
    assert places.path("a.md", FrontMatter()) == "a.html"


@pytest.mark.parametrize(
    ("path", "expected"),
    [("", "index.html"), ("a/", "a/index.html"), ("a", "a.html"), ("v1.2", "v1.2.html"), ("a/b.html", "a/b.html")],
)
def test_the_built_page_at_an_address(path: str, expected: str) -> None:
    assert built_path(path) == expected
