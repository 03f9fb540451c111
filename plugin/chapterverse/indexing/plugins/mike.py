"""Docs versions as mike deploys them: each below an address of its own."""

from __future__ import annotations

import os
from urllib.parse import urljoin

from chapterverse.readers.urls import clean_base


def docs_version() -> str | None:
    """Return the docs version that mike is deploying, None without one."""
    return os.environ.get("MIKE_DOCS_VERSION")


def site_address(site_url: str | None, canonical_version: str | None) -> str:
    """Return the address of the site that is being built, with a slash at its end; "" if it has none.

    Args:
        site_url: as other plugins left it. With a canonical version mike puts that one in place of the version that it
            deploys, so that search engines prefer it.
        canonical_version: of mike's configuration.
    """
    address, version = site_url or "", docs_version()
    if address and version and canonical_version:
        address = urljoin(address.rstrip("/"), version)
    return clean_base(address) or ""
