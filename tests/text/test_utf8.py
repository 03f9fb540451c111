"""Lengths of texts in UTF-8, and the cut by them."""

from __future__ import annotations

import pytest

from chapterverse.text.utf8 import cut_to_bytes, utf8_length


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [("tea", 3, "tea"), ("tea", 2, "te"), ("thé", 3, "th"), ("thé", 4, "thé"), ("茶", 2, ""), ("a\ud800b", 2, "a?")],
)
def test_a_cut_leaves_no_part_of_a_character(text: str, most: int, expected: str) -> None:
    assert cut_to_bytes(text, most) == expected
    assert utf8_length(expected) <= most


@pytest.mark.parametrize(("text", "length"), [(None, 0), ("", 0), ("thé", 4), ("\ud800", 1)])
def test_a_length_is_in_bytes(text: str | None, length: int) -> None:
    assert utf8_length(text) == length
