"""Settings of generators that change addresses, read from the configuration beside the sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from chapterverse.ext.sources.markdown.addresses import AddressRule, address_rule, built_path
from chapterverse.ext.sources.markdown.front_matter import FrontMatter
from chapterverse.readers.urls import SiteGenerator


def rule(generator: SiteGenerator, root: Path, config: str, text: str) -> AddressRule:
    (root / "docs").mkdir(exist_ok=True)
    (root / config).parent.mkdir(parents=True, exist_ok=True)
    (root / config).write_text(text, encoding="utf-8")
    return address_rule(generator, root / "docs", ["guide/setup.md"])


@pytest.mark.parametrize(
    ("generator", "config", "text", "expected"),
    [
        (SiteGenerator.DOCUSAURUS, "docusaurus.config.ts", "export default { trailingSlash: false,\n};", "guide/setup"),
        (
            SiteGenerator.DOCUSAURUS,
            "docusaurus.config.js",
            "module.exports = {\n  trailingSlash: true }",
            "guide/setup/",
        ),
        (SiteGenerator.DOCUSAURUS, "docusaurus.config.js", "  // trailingSlash: false\n", "guide/setup/"),
        (SiteGenerator.DOCUSAURUS, "other.js", "trailingSlash: false", "guide/setup/"),
        (SiteGenerator.GITHUB, "docusaurus.config.js", "trailingSlash: false", "guide/setup/"),
        (SiteGenerator.VITEPRESS, "docs/.vitepress/config.mts", "  cleanUrls: true,", "guide/setup"),
        (SiteGenerator.VITEPRESS, "docs/.vitepress/config.mts", "  cleanUrls: false,", "guide/setup.html"),
        (SiteGenerator.MKDOCS, "mkdocs.yml", "site_name: x\nuse_directory_urls: false\n", "guide/setup.html"),
        (SiteGenerator.MKDOCS, "mkdocs.yml", "#use_directory_urls: false\n", "guide/setup/"),
        (SiteGenerator.SPHINX, "mkdocs.yml", "", "guide/setup.html"),
    ],
)
def test_a_setting_changes_the_ending(
    tmp_path: Path, generator: SiteGenerator, config: str, text: str, expected: str
) -> None:
    assert rule(generator, tmp_path, config, text).path("guide/setup.md", FrontMatter()) == expected


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
    addresses = rule(SiteGenerator.DOCUSAURUS, tmp_path, "docusaurus.config.ts", "trailingSlash: false")
    assert addresses.path(file_path, matter) == expected


def test_numbers_may_count_in_docusaurus(tmp_path: Path) -> None:
    addresses = rule(SiteGenerator.DOCUSAURUS, tmp_path, "docusaurus.config.ts", "docs: { numberPrefixParser: false }")
    assert addresses.path("01-guide/02-setup.md", FrontMatter()) == "01-guide/02-setup/"


def test_a_dynamic_route_of_vitepress_is_no_page(tmp_path: Path) -> None:
    addresses = address_rule(SiteGenerator.VITEPRESS, tmp_path, [])
    assert addresses.path("packages/[pkg].md", FrontMatter()) is None
    assert addresses.path("a.md", FrontMatter()) == "a.html"


@pytest.mark.parametrize(
    ("path", "expected"),
    [("", "index.html"), ("a/", "a/index.html"), ("a", "a.html"), ("v1.2", "v1.2.html"), ("a/b.html", "a/b.html")],
)
def test_the_built_page_at_an_address(path: str, expected: str) -> None:
    assert built_path(path) == expected
