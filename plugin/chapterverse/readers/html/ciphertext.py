"""Cuts what only a password opens, so that a page whose ciphertext differs at each build is the same page."""

from __future__ import annotations

import re

#: A hidden element that has one long word of Base64, or several joined by a separator, and nothing else.
_CIPHERTEXT = re.compile(
    r"<([a-z][a-z0-9-]*+)(?=[^<>]*?(?:\shidden|display\s*:\s*none))[^<>]*>"
    r"\s*[A-Za-z0-9+/=_-]{16,}(?:[;:,.|][A-Za-z0-9+/=_-]+)*\s*</\1\s*>",
    re.IGNORECASE,
)
_SCRIPT = re.compile(r"<script\b.*?(?:</script\s*>|\Z)", re.DOTALL | re.IGNORECASE)


def cut_ciphertext(content: str) -> str:
    """Return the content of a page without encrypted parts and, if it has any, without scripts, which have their keys.

    Takes time linear in the length of `content`.
    """
    if "none" not in content and "hidden" not in content:
        return content
    cut, count = _CIPHERTEXT.subn("", content)
    return _SCRIPT.sub("", cut) if count else content
