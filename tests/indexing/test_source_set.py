"""The sources of a run: which count, and which are skipped."""

from __future__ import annotations

import pytest

from chapterverse.errors import InputError
from chapterverse.indexing.diff import SourceSet
from chapterverse.model import Page, Source
from fakes.docs import page, section


def read() -> Page:
    return page("a.md", section("S", "Text."))


def test_of_two_sources_with_one_path_the_first_counts() -> None:
    first, second = Source("a.md", "1", "", read), Source("a.md", "2", "", read)
    assert SourceSet.of([first, second]).sources == {"a.md": first}


@pytest.mark.parametrize("path", ["", "x" * 513, "a\0b", "\ud800"])
def test_a_path_that_no_ledger_can_hold_is_skipped_aloud(path: str) -> None:
    good = Source("a.md", "", "", read)
    offered = SourceSet.of([Source(path, "", "", read), good])
    assert list(offered.sources) == ["a.md"]
    assert "is skipped" in next(iter(offered.left_out.values()))
    with pytest.raises(InputError, match="no page to index"):
        SourceSet.of([Source(path, "", "", read)])
