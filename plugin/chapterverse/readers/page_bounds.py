"""The bounds of one page: what takes more is left out and named, so that no page holds up a build.

They count what a page holds and never the time that it takes: an index must not depend on the machine. Reading takes
time linear in each of them. The largest pages known to us, references on one page, have 5 million characters, 150,000
elements, and elements below 60 others.
"""

from __future__ import annotations

from chapterverse.errors import PageTooLarge

#: Bytes of a file that is read.
MAX_FILE_BYTES = 50_000_000

#: Characters of a page's HTML or Markdown.
MAX_CHARS = 20_000_000

#: Elements of a page's tree, those in preformatted code not counted.
MAX_ELEMENTS = 500_000

#: Open elements around an element. Those below the first hundred are read without their tags (see `html.dom`).
MAX_NESTED = 5_000


def require_chars(text: str) -> None:
    """Raise `PageTooLarge` for more than `MAX_CHARS`."""
    if len(text) > MAX_CHARS:
        raise PageTooLarge(f"holds more than {MAX_CHARS:,} characters, too many for a page.")


def require_elements(number: int) -> None:
    """Raise `PageTooLarge` for more than `MAX_ELEMENTS`."""
    if number > MAX_ELEMENTS:
        raise PageTooLarge(f"holds more than {MAX_ELEMENTS:,} elements, too many for a page.")


def require_nested(number: int) -> None:
    """Raise `PageTooLarge` for more than `MAX_NESTED`."""
    if number > MAX_NESTED:
        raise PageTooLarge(f"nests more than {MAX_NESTED:,} elements in each other, too many for a page.")
