"""YAML at the top of a file."""

from __future__ import annotations

import pytest

from chapterverse.errors import UnreadablePage
from chapterverse.ext.sources.markdown.front_matter import FrontMatter, split_front_matter


def test_everything_it_may_say() -> None:
    text = "---\ntitle: A  b\ndescription: D\ntags: [x, 'y z', 3]\ndate: 2024-05-06 10:00:00+02:00\n---\nBody"
    assert split_front_matter(text, "a.md") == (
        FrontMatter("A b", ("x", "y z", "3"), "2024-05-06T08:00:00Z"),
        "Body",
    )


@pytest.mark.parametrize(
    "text",
    [
        "Body",
        "---\nBody",
        "--- \nnot: closed",
        "---\n- a list\n---\nBody",
        "---\n---\nBody",
        " ---\na: b\n---\n",
        "---\nBody\n---\nmore",
    ],
)
def test_text_that_is_no_front_matter_stays(text: str) -> None:
    assert split_front_matter(text, "a.md") == (FrontMatter(), text)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("date: 2024-05-06", "2024-05-06T00:00:00Z"),
        ("date: '2024-05-06T10:00:00Z'", "2024-05-06T10:00:00Z"),
        ("date: {created: 2024-05-06}", "2024-05-06T00:00:00Z"),
        ("date: yesterday", None),
        ("date: 0001-01-01T00:00:00+05:00", None),
        ("date: []", None),
    ],
)
def test_dates(line: str, expected: str | None) -> None:
    assert split_front_matter(f"---\n{line}\n---\n", "a.md")[0].created_at == expected


@pytest.mark.parametrize("line", ["chapterverse: {exclude: true}", "search: {exclude: true}", "draft: true"])
def test_exclusion(line: str) -> None:
    assert split_front_matter(f"---\r\n{line}\r\n---\r\nx", "a.md")[0].excluded


@pytest.mark.parametrize("line", ["chapterverse: {exclude: false}", "search: true", "draft: no", "tags: a, b"])
def test_no_exclusion(line: str) -> None:
    assert not split_front_matter(f"---\n{line}\n---\nx", "a.md")[0].excluded


@pytest.mark.parametrize(
    "yaml", ["a: [", "a: b: c", "!!python/object:os.system x", "[" * 5000, "a: 2024-99-99", "a: " + "1" * 5000]
)
def test_what_is_no_yaml_names_the_file(yaml: str) -> None:
    with pytest.raises(UnreadablePage, match=r"^The front matter of guide/a\.md is not valid YAML\.$"):
        split_front_matter(f"---\n{yaml}\n---\nx", "guide/a.md")


def test_tags_as_one_string() -> None:
    assert split_front_matter("---\ntags: a, b ,\n---\n", "a.md")[0].tags == ("a", "b")


def test_a_number_that_python_does_not_write_is_no_valid_front_matter() -> None:
    with pytest.raises(UnreadablePage, match=r"The front matter of a\.md is not valid YAML"):
        split_front_matter(f"---\ntitle: 0x{'f' * 5000}\n---\n# A\n", "a.md")
