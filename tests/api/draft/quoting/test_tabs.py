from __future__ import annotations

import pytest

from chapterverse_api.draft.quoting.blocks import TabNames, read_blocks, read_tabs

SYSTEMS = ["Linux", "macOS", "Windows 11"]


@pytest.mark.parametrize(
    ("context", "chosen"),
    [
        ("I work on Linux.", "Linux"),
        ("LINUX", "Linux"),
        ("My laptop has Windows 11", "Windows 11"),
        ("macOS, sometimes Linux", "macOS"),
        ("Windows", None),
        ("Linuxbrew", None),
        ("", None),
        ("I have a FreeBSD box", None),
    ],
)
def test_the_label_that_is_named_first_is_chosen(context: str, chosen: str | None) -> None:
    assert TabNames(context).choose(SYSTEMS) == chosen


@pytest.mark.parametrize(
    ("label", "context", "named"),
    [
        ("macOS / Linux", "on Linux", True),
        ("Linux and macOS", "on macOS", True),
        ("C++", "I write C++.", True),
        ("C", "I write C++.", False),
        ("Python 3.11", "python 3.11, I think", True),
        ("npm", "I use pnpm", False),
        ("**", "stars", False),
        ("日本語", "日本語 の 読者", True),
    ],
)
def test_a_label_may_have_several_names(label: str, context: str, named: bool) -> None:
    assert TabNames(context).choose([label, "Other"]) == (label if named else None)


def test_a_single_label_is_no_choice() -> None:
    assert TabNames("Linux").choose(["Linux", "Linux"]) is None


def test_the_tabs_of_a_section() -> None:
    parts = ["Install.", "**Linux**", "First:", "```\na\n```", "**macOS**", "```\nb\n```", "Then start it.", "Stop it."]
    text = "\n\n".join(parts)
    tabs = read_tabs(text, read_blocks(text))
    # The last tab has at most as many blocks as the longest of the others.
    assert tabs == [None, "Linux", "Linux", "Linux", "macOS", "macOS", "macOS", None]
    assert read_tabs("**Note**\n\nOne.\n\nTwo.", read_blocks("**Note**\n\nOne.\n\nTwo.")) == ["Note", "Note", "Note"]
    assert read_tabs("One.", read_blocks("One.")) == [None]
