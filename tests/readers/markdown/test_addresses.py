"""Where a source file is published."""

from __future__ import annotations

from pathlib import Path

import pytest

from chapterverse.ext.sources.markdown.addresses import address_rule
from chapterverse.ext.sources.markdown.front_matter import FrontMatter
from chapterverse.readers.urls import SiteGenerator

BARE = FrontMatter()


def published(generator: SiteGenerator, file_path: str, matter: FrontMatter = BARE) -> str | None:
    """Return where a file is published beside which no configuration is."""
    return address_rule(generator, Path("/none"), [file_path]).path(file_path, matter)


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
def test_a_page_has_the_path_of_its_file(file_path: str, expected: str) -> None:
    assert published(SiteGenerator.MKDOCS, file_path) == expected


@pytest.mark.parametrize(
    ("generator", "file_path", "expected"),
    [
        (SiteGenerator.VITEPRESS, "guide/setup.md", "guide/setup.html"),
        (SiteGenerator.VITEPRESS, "guide/index.md", "guide/"),
        (SiteGenerator.SPHINX, "index.md", ""),
        (SiteGenerator.SPHINX, "guide/readme.md", "guide/readme.html"),
        (SiteGenerator.GITHUB, "guide/README.mdx", "guide/"),
        (SiteGenerator.GITHUB, "guide/Guide.md", "guide/"),
        (SiteGenerator.MKDOCS, "02-guide/01-setup.md", "02-guide/01-setup/"),
        (SiteGenerator.GITHUB, "02-guide/01-setup.md", "guide/setup/"),
        (SiteGenerator.GITHUB, "2. Guide/3_setup.md", "Guide/setup/"),
        (SiteGenerator.GITHUB, "2024-01-02-news.md", "2024-01-02-news/"),
        (SiteGenerator.GITHUB, "7.0-upgrade.md", "7.0-upgrade/"),
        (SiteGenerator.GITHUB, "10.md", "10/"),
    ],
)
def test_each_generator_has_its_place(generator: SiteGenerator, file_path: str, expected: str) -> None:
    assert published(generator, file_path) == expected


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
    matter = FrontMatter(slug=slug, id=page_id)
    assert published(SiteGenerator.GITHUB, "02-guide/setup.md", matter) == expected
    assert published(SiteGenerator.MKDOCS, "02-guide/setup.md", matter) == "02-guide/setup/"


def test_partials_are_no_pages() -> None:
    assert published(SiteGenerator.GITHUB, "guide/_shared.mdx") is None
    assert published(SiteGenerator.GITHUB, "_parts/a.md") is None
    assert published(SiteGenerator.GITHUB, "guide/a_b.md") == "guide/a_b/"
    assert published(SiteGenerator.MKDOCS, "_shared.md") == "_shared/"
