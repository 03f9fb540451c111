from __future__ import annotations

from pathlib import Path

import pytest

from api import quill
from chapterverse_api.search.first_pages import find_first_pages

LANGUAGES = "# Languages\n\n| tag | name |\n| --- | --- |\n| hi | Hindi |\n| el | Greek, to help you get started |\n"
PAGES = {
    "index.md": "# Quill\n\nQuill builds sites.\n",
    "start.md": "# Getting started\n\nWrite a page.\n\n## First steps\n\nBuild it.\n",
    "plugins.md": "# Plugins\n\n## Getting started with plugins\n\nStart one.\n\n## Introduction\n\nA program.\n",
    "languages.md": LANGUAGES,
    "database.md": "# Database: getting started\n\nGet started with tables.\n",
}


def first_pages(pages: dict[str, str], root: Path, language: str = "en") -> list[tuple[str, str | None]]:
    snapshot = quill.service(quill.publish(root, pages)).resources.index.snapshot()
    return [(chunk.chapter_title, chunk.section_heading) for chunk in find_first_pages(snapshot, language)]


@pytest.mark.parametrize("language", ["en", "de", "ja"])
def test_pages_so_titled_come_before_the_home_page(tmp_path: Path, language: str) -> None:
    assert first_pages(PAGES, tmp_path, language) == [
        ("Getting started", "Getting started"),
        ("Quill", "Quill"),
    ]


@pytest.mark.parametrize(
    ("title", "begins"),
    [
        ("Quickstart guide", True), ("Installation guide", True), ("1. Installation", True), ("Installing Quill", True),
        ("User guide: getting started", True),
        ("Step", False), ("The first", False), ("Started", False), ("Steps first", False),
        ("How to write an installation script of your own", False),
    ],
)  # fmt: skip
def test_a_title_begins_with_a_whole_phrase_and_few_other_words(tmp_path: Path, title: str, *, begins: bool) -> None:
    pages = {"index.md": PAGES["index.md"], "a.md": f"# {title}\n\nThe first step to get started: installation.\n"}
    assert [chapter for chapter, _ in first_pages(pages, tmp_path)] == [title] * begins + ["Quill"]


def test_equal_titles_have_one_place_and_the_home_page_always_one(tmp_path: Path) -> None:
    titles = ["Installation", "Installation", "Tutorial", "First steps", "Overview"]
    pages = {f"{n}.md": f"# {title}\n\nWrite a page.\n" for n, title in enumerate(titles)}
    found = [chapter for chapter, _ in first_pages({"index.md": PAGES["index.md"], **pages}, tmp_path)]
    assert (len(set(found)), found[-1]) == (3, "Quill")


def test_without_such_pages_there_are_sections_so_headed_or_nothing(tmp_path: Path) -> None:
    pages = {name: PAGES[name] for name in ("index.md", "languages.md")}
    assert first_pages(pages, tmp_path / "a") == [("Quill", "Quill")]
    pages = {name: PAGES[name] for name in ("plugins.md", "languages.md")}
    assert first_pages(pages, tmp_path / "c") == [("Plugins", "Introduction")]
    assert first_pages({"languages.md": LANGUAGES}, tmp_path / "b") == []
