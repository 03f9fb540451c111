"""Cuts what only a password opens, so that a page whose ciphertext differs at each build is the same page."""

from __future__ import annotations

import re

#: An element that has one long word of Base64, or several joined by a separator, and nothing else.
_CIPHERTEXT = re.compile(
    r"<([a-zA-Z][a-zA-Z0-9-]*+)([^<>]*+)>"
    r"\s*+[A-Za-z0-9+/=_-]{16,}+(?>(?:[;:,.|][A-Za-z0-9+/=_-]++)*)\s*+</\1\s*+>"
)
_HIDDEN = re.compile(r"\shidden|display\s*:\s*none", re.IGNORECASE)
_SCRIPT = re.compile(r"<script\b.*?(?:</script\s*>|\Z)", re.DOTALL | re.IGNORECASE)


def cut_ciphertext(content: str) -> str:
    """Return the content of a page without encrypted parts and, if it has any, without scripts, which have their keys.

    Takes time linear in the length of `content`.
    """
    if "none" not in content and "hidden" not in content:
        return content
    cut = _CIPHERTEXT.sub(lambda element: "" if _HIDDEN.search(element[2]) else element[0], content)
    return content if cut == content else _SCRIPT.sub("", cut)
