"""Labels of links and images in each other: read as before, and no text of brackets takes minutes."""

from __future__ import annotations

import time

import pytest

from chapterverse.ext.sources.markdown.page import read_markdown


def read(text: str) -> str:
    return str([block.text for section in read_markdown(text, "a.md").sections for block in section.blocks])


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("[![alt [of](b) it](i.png) guide](g.md)", "guide"),
        ("[a [[[[[[x]]]]]] b](g.md)", "a [[[[[[x]]]]]] b"),
        ("[[[[[[[[[[[[[[[[[[[[deep]]]]]]]]]]]]]]]]]]]] and [link](g.md)", "deep"),
    ],
)
def test_labels_in_labels_are_read(markdown: str, shown: str) -> None:
    assert shown in read(markdown)


def seconds(unit: str) -> float:
    """Return the least processor time of three for 8,000 characters."""
    times = []
    for _ in range(3):
        started = time.process_time()
        read(unit * (8000 // len(unit)))
        times.append(time.process_time() - started)
    return min(times)


@pytest.mark.parametrize("unit", ["![", "[[", "[![", "[", "]["])
def test_brackets_take_no_longer_than_other_marks(unit: str) -> None:
    assert seconds(unit) < 8 * seconds("**a")
