"""The pages of a build: their marks, and which of them are indexed."""

from __future__ import annotations

from typing import Any

import pytest

from chapterverse.mkdocs import BuildPages
from chapterverse.readers.folder import PageGlobs
from chapterverse.readers.html.page_mark import PageMark


def pages() -> BuildPages:
    globs = PageGlobs.of(include=["tags.md"], exclude=["secret/", "*.html", "!a.md"])
    return BuildPages("https://e.com/", globs, frozenset(["knowledge/faq/a.md"]))


def mark(build: BuildPages, path: str, built: str, *, is_draft: bool = False, **meta: Any) -> PageMark:
    return build.mark(path, built, "Title", "en", meta, is_draft=is_draft)


def test_a_mark_says_what_the_front_matter_says() -> None:
    front: dict[str, Any] = {"tags": ["x", 1], "date": "2026-03-04", "description": "Of a.", "template": "blog.html"}
    made = mark(pages(), "a.md", "a/index.html", chapterverse={"content_type": "FAQ"}, **front)
    assert made == PageMark(
        path="a.md", built="a/index.html", base="https://e.com/", title="Title", language="en", tags=("x", "1"),
        date="2026-03-04T00:00:00Z", description="Of a.", template="blog.html", type="faq",
    )  # fmt: skip
    unwritable = int("f" * 5000, 16)
    odd = mark(
        pages(), "a.md", "a/index.html", tags=["x", unwritable], description=unwritable, date="soon", chapterverse=1
    )
    assert (odd.tags, odd.description, odd.date, odd.type) == (("x",), "", "", "")
    assert mark(pages(), "a.md", "a/index.html", tags="x, y").tags == ("x", "y")
    assert mark(pages(), "tags.md", "tags/index").include


@pytest.mark.parametrize(
    ("path", "meta", "reason"),
    [
        ("a.md", {}, ""),
        ("a.md", {"is_draft": True}, "draft"),
        ("a.md", {"search": {"exclude": True}}, "asks not to be indexed"),
        ("a.md", {"chapterverse": {"exclude": True}}, "asks not to be indexed"),
        ("knowledge/faq/a.md", {}, "knowledge"),
        ("secret/c.md", {}, "excluded by a pattern"),
        ("b.md", {}, "excluded by a pattern"),
    ],
)
def test_a_page_that_is_not_indexed_has_a_reason(path: str, meta: dict[str, Any], reason: str) -> None:
    build = pages()
    assert mark(build, path, f"{path.removesuffix('.md')}/a.html", **meta).exclude == reason
    assert build.excluded == ({path: reason} if reason else {})
    assert list(build.paths.values()) == ([] if reason else [path])


def test_a_page_in_place_of_a_translation_is_a_copy_of_the_first() -> None:
    build = pages()
    assert mark(build, "a.md", "a/index").exclude == ""
    assert mark(build, "a.md", "fr/a/index").exclude == "in place of a translation"
    assert (build.paths, build.excluded) == ({"a/index": "a.md"}, {})


def test_a_link_out_of_its_folder_is_told_once_and_left_out(tmp_path: Any) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").symlink_to(tmp_path)
    build = pages()
    place = "a.md", str(tmp_path / "docs/a.md"), str(tmp_path / "docs")
    assert [build.shut_out(*place), build.shut_out(*place)] == [True, False]
    assert mark(build, "a.md", "a/index").exclude == "a link out of the project"
    assert not build.shut_out("generated.md", None, None)
