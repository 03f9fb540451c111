from __future__ import annotations

import pytest

from chapterverse_api.generation import Passage, Span
from chapterverse_api.marks import without_marks

SECTION = "Set `argv[1]` or argv[2] first. It is documented elsewhere [3].\n\n[3]: the manual"


def left(*texts: str) -> str:
    passage = Passage("1", ("Page",), SECTION, SECTION, frozenset(), 1.0, 1.0, None, None)
    draft = without_marks(tuple(Span(text, ("1",)) for text in texts), (passage,))
    assert all(span.citations == ("1",) for span in draft)
    assert len(draft) == len(texts)
    return "".join(span.text for span in draft)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It costs 90 [1][2].", "It costs 90."),
        ("It costs 90.[1]", "It costs 90."),
        ("It costs 90 [1, 2] today.", "It costs 90 today."),
        ("It costs 90【1】.", "It costs 90."),
        ("[1] It costs 90.", " It costs 90."),
        ("Nothing to see.", "Nothing to see."),
    ],
)
def test_marks_in_prose_are_left_out(text: str, shown: str) -> None:
    assert left(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Take `list[1]` or `a [1]`.",
        "```py\nx = [1]\ny [2]\n```",
        "~~~\nx = [1]",
        "It is documented elsewhere [3].",
        "Set argv[2] first.",
        "See [1](https://docs.example.com/).",
        "An array such as a[1].",
    ],
)
def test_code_links_and_the_sources_own_words_keep_theirs(text: str) -> None:
    assert left(text) == text


def test_a_mark_over_several_spans_goes_whole() -> None:
    assert left("It costs 90 [", "1", "]. More", " [2]", " here.") == "It costs 90. More here."


def test_many_brackets_take_no_more_time_than_they_are() -> None:
    assert left("[1" * 20_000) == "[1" * 20_000
    assert left("`" * 20_000) == "`" * 20_000
