"""The bounds of one page: what takes more is left out and named, so that no page holds up a build.

They count what a page holds and never the time that it takes: an index must not depend on the machine. Reading takes
time linear in each of them. Of the documentations that we measure on, no page has a million characters.
"""

from __future__ import annotations

from chapterverse.errors import PageTooLarge

#: Bytes of a file that is read.
MAX_FILE_BYTES = 50_000_000

#: Characters of a page's HTML, and of its Markdown, whose parser takes up to a hundred times as long for a character.
MAX_PAGE_CHARS, MAX_MARKDOWN_CHARS = 20_000_000, 5_000_000

#: Elements of a page's tree, those in preformatted code not counted.
MAX_ELEMENTS = 500_000

#: Opening brackets of a page's Markdown outside of code blocks: each may begin a link, whose end is searched for.
MAX_BRACKETS = 100_000

#: Levels of the tree. Deeper containers lose their tags and keep their text, so that one that hides it can't be read.
MAX_DEPTH = 100


def require_at_most(most: int, number: int, unit: str) -> None:
    """Raise `PageTooLarge` for more than so many of a unit."""
    if number > most:
        raise PageTooLarge(f"holds more than {most:,} {unit}, too many for a page.")


def require_shown(*, hidden: bool) -> None:
    """Raise `PageTooLarge` for a hidden element below `MAX_DEPTH` others."""
    if hidden:
        raise PageTooLarge(f"hides an element below {MAX_DEPTH} others, too deep for a page.")
