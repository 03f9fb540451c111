from __future__ import annotations

import pytest

from chapterverse_api.generation import Passage, Span
from chapterverse_api.generation.stray_marks import without_marks
from growth import assert_linear

SECTION = (
    "Set `argv[1]` or argv[2] first. It is documented elsewhere [3].\n\n[3]: the manual\n\n"
    "Press [Doc 7]. It is normal (2)."
)


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
        ("It costs 90 [Source 1]. More (doc:0).", "It costs 90. More."),
        ("It costs 90 (1). More <1>.\nEnd (see source 1)", "It costs 90. More.\nEnd"),
        ("It costs 90 [doc_1][S1]. More [1, Page].", "It costs 90. More."),
        ("It costs 90 [1](https://docs.example.com/).", "It costs 90."),
        ("<co: 1>It costs 90</co: 1>. <co>More</co: 1,2>", "It costs 90. More"),
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
        "Press [Doc 7]. It is normal (2).",
        "Take `a (1)`.\n```\n(Source 1).\n<co: 1>\n```",
        "There are three: (1) one, (9). See tar(1).",
        "See [1](/x) or [docs](https://docs.example.com/).",
        "[1](https://docs.example.com/) is a link.",
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
    assert left("a (1) (" * 3_000) == "a (1) (" * 3_000
    assert_linear(lambda size: left("[1]【2】" * size + "("), 500, 4_000)
    assert_linear(lambda size: left("a [1]" + "[2]" * size), 1_000, 8_000)
