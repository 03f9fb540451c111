"""Rejects addresses that hold an API version; each request adds its own, such as `/v1/embeddings`."""

from __future__ import annotations

import re

_VERSION = re.compile(r"/v\d{1,3}/*\Z", re.IGNORECASE)


def unversioned(url: str) -> str:
    """Return an address without a version at its end, which other programs ask for and each request would repeat."""
    return _VERSION.sub("", url.strip())
