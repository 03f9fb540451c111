from __future__ import annotations

import pytest

from chapterverse.text.utf8 import utf8_length


@pytest.mark.parametrize(("text", "length"), [(None, 0), ("", 0), ("thé", 4), ("\ud800", 1)])
def test_a_length_is_in_bytes(text: str | None, length: int) -> None:
    assert utf8_length(text) == length
