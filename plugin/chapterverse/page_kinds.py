"""The kinds of pages by name: content types, listings, and the reasons for which a page is not indexed."""

from __future__ import annotations

from collections.abc import Mapping

#: What a page may be called by `content_type`; "documentation" where nothing says otherwise.
CONTENT_TYPES = (
    "documentation", "api", "faq", "article", "news", "product", "service", "category", "collection", "home", "other",
)  # fmt: skip

#: Kinds of pages that are not indexed unless a setting keeps them, with the content type that they have then.
LISTINGS = {
    "tag listing": "category",
    "category listing": "category",
    "author listing": "collection",
    "archive": "collection",
    "index of names": "collection",
    "source listing": "other",
    "search page": "other",
    "not-found page": "other",
    "redirect": "other",
}

#: Further reasons for which a page is not indexed.
EXCLUDED, OPTED_OUT, NO_PAGE = "excluded by a pattern", "asks not to be indexed", "no page of the site"

#: Of many pages left out only so many are listed.
_MAX_LINES = 20


def explain_no_text(path: str) -> str:
    """Return the sentence about a page that has nothing to index."""
    return f"{path} has no text in its HTML: is it filled by a script?"


def known_content_type(stated_type: object) -> str:
    """Return a stated content type as `CONTENT_TYPES` has it, "" for any other."""
    name = stated_type.strip().lower() if isinstance(stated_type, str) else ""
    return name if name in CONTENT_TYPES else ""


def unknown_content_type(stated_type: object) -> str:
    """Return the sentence for an author who stated an unknown content type."""
    return f"content_type {str(stated_type)[:60]!r} is unknown and not used; it may be {', '.join(CONTENT_TYPES)}."


def left_out_lines(reasons: Mapping[str, str]) -> list[str]:
    """Return a line for each page that was left out, with the reason; of many only the first."""
    lines = [f"Left out: {path} ({reason})" for path, reason in sorted(reasons.items())]
    more = [f"Left out: {len(lines) - _MAX_LINES:,} more; --json names them all"] if len(lines) > _MAX_LINES else []
    return [*lines[:_MAX_LINES], *more]
