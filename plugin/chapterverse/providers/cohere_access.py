"""Cohere's address and key, for every part that calls it."""

from __future__ import annotations

from chapterverse.errors import ConfigurationError
from chapterverse.net.versions import unversioned
from chapterverse.settings import Settings


def access(settings: Settings, part: str) -> tuple[str, str]:
    """Return Cohere's address and the key.

    Args:
        part: who asks, for the message: "embedder", "reranker" or "generator".

    Raises:
        ConfigurationError: there is no key.
    """
    key = settings.cohere_api_key.strip()
    if not key:
        raise ConfigurationError(f"The {part} cohere needs a key: set COHERE_API_KEY in the environment.")
    return unversioned(settings.cohere_url), key
