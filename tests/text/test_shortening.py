from __future__ import annotations

import pytest

from chapterverse.text.shortening import cut_to_bytes, cut_to_words, ellipsize
from chapterverse.text.utf8 import utf8_length


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [("tea", 3, "tea"), ("tea", 2, "te"), ("thé", 3, "th"), ("thé", 4, "thé"), ("茶", 2, ""), ("a\ud800b", 2, "a?")],
)
def test_a_cut_leaves_no_part_of_a_character(text: str, most: int, expected: str) -> None:
    assert cut_to_bytes(text, most) == expected
    assert utf8_length(expected) <= most


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [("a cup of tea", 12, "a cup of tea"), ("a cup of tea", 8, "a cup"), ("teapot", 3, "tea"), (" teapot", 3, " te")],
)
def test_a_text_is_cut_at_a_space_where_there_is_one(text: str, most: int, expected: str) -> None:
    assert cut_to_words(text, most) == expected


@pytest.mark.parametrize(("text", "expected"), [("teas", "teas"), ("teapot", "tea…")])
def test_an_ellipsis_counts_among_the_characters(text: str, expected: str) -> None:
    assert ellipsize(text, 4) == expected
