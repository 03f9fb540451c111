"""Errors of providers that no user meets: callers act on them."""

from __future__ import annotations

from chapterverse.errors import ProviderError


class TextRejected(ProviderError):
    """The model will never take the request as it is."""
