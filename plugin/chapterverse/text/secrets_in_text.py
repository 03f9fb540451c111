"""Finds and masks secrets in the values of settings: keys of known services, and what an address says to its server."""

from __future__ import annotations

import re

from chapterverse.text.key_shapes import find_keys

#: What stands before the host: a password, which may contain any character, or of a web address any token.
_LOGIN = re.compile(r"https?://[^/\s@]{1,200}@|//[^/\s@:]{0,99}:(?!\d{1,5}(?:[/?#]|$))\S{0,200}@", re.IGNORECASE)
_QUERY = re.compile(
    r"([?&;](?:[\w-]{0,40}[_-])?(?:api)?(?:key|token|secret|password|signature|sig)s?=)[^&;\s'\"]+", re.IGNORECASE
)
#: For a mask, which may hide too much.
_BEFORE_HOST = re.compile(r"//[^\s'\"]{0,400}@")
_ANY_QUERY = re.compile(r"([?&;][^=&;\s'\"]{1,99}=)[^&;\s'\"]+")


def has_secret(text: str) -> bool:
    """Whether a text holds a key of a known service, or an address with a password or a token."""
    return bool(_LOGIN.search(text) or _QUERY.search(text) or any(find_keys(text.encode("utf-8", "replace"))))


def mask(text: str) -> str:
    """Return a text without what may be a secret in it."""
    for _, key, _ in find_keys(text.encode("utf-8", "replace")):
        text = text.replace(key.decode("utf-8", "replace"), "…")
    return _ANY_QUERY.sub(r"\1…", _BEFORE_HOST.sub("//…@", text))
