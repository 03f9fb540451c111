"""The patterns of `exclude` and `include`."""

from __future__ import annotations

import pytest

from chapterverse.readers.folder import PageGlobs

PATTERNS = ["internal/", "*.draft.md", "!internal/public.md", "blog/*/index.html", "!blog/keep/index.html"]


@pytest.mark.parametrize(
    ("paths", "excluded"),
    [
        (("internal/a.md", "internal/a/index.html"), True),
        (("internal/public.md", "internal/public/index.html"), False),
        (("internal/public.md",), False),
        (("a.draft.md", "a.draft/index.html"), True),
        (("blog/a.md", "blog/a/index.html"), True),
        (("blog/keep.md", "blog/keep/index.html"), False),
        (("guide.md", "guide/index.html"), False),
    ],
)
def test_the_last_pattern_that_matches_one_of_the_paths_counts(paths: tuple[str, ...], excluded: bool) -> None:
    assert PageGlobs.of(exclude=PATTERNS).excludes(*paths) is excluded
    assert PageGlobs.of(include=PATTERNS).includes(*paths) is excluded


def test_no_pattern_matches_nothing() -> None:
    assert not PageGlobs.of().excludes("a.md")
    assert not PageGlobs.of(exclude=["# a comment", ""]).excludes("a.md")
