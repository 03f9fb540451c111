"""Addresses stand without the version of an API: each request names its own, `/v1/embeddings`."""

from __future__ import annotations

import re

_VERSION = re.compile(r"/v\d{1,3}/*\Z", re.IGNORECASE)


def unversioned(url: str) -> str:
    """Return an address without a version at its end, which other programs ask for and each request would repeat."""
    return _VERSION.sub("", url.strip())
