"""Addresses stand without the version of an API: each request names its own, `/v1/embeddings`."""

from __future__ import annotations

import re

from chapterverse.errors import ConfigurationError

_VERSION = re.compile(r"/v\d+/*\Z", re.IGNORECASE)


def unversioned(url: str, name: str) -> str:
    """Return an address as it was set.

    Args:
        name: of the setting that holds it.

    Raises:
        ConfigurationError: it ends in a version, which would then stand twice in each request.
    """
    if found := _VERSION.search(url.strip()):
        version = found.group().rstrip("/")
        raise ConfigurationError(f"{name} ends in {version}, which each request adds by itself: remove it there.")
    return url
