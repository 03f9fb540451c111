"""Encodes JSON bodies, and decodes those of servers that may send anything."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any

from chapterverse.errors import ProviderError

#: A reply that is larger is no reply of a model or a store: 96 vectors of 3,072 numbers take 8 MB.
MOST_BYTES = 16 * 1024 * 1024


def encoded(body: Mapping[str, Any]) -> bytes:
    """Return a body as it is sent."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate, which JSON may hold and UTF-8 may not, is sent as the "?" that it shows as.
    return text.encode(errors="replace")


def read(response: http.client.HTTPResponse, host: str) -> bytes:
    """Return the body of a response.

    Raises:
        ProviderError: it is too large.
    """
    raw = response.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise too_large(host)
    # `read` with a number of bytes takes fewer for an answer.
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return raw


def parsed(raw: bytes) -> Any:
    """Return what a body says, None where it is no JSON."""
    try:
        return json.loads(raw)
    # Brackets nested a hundred thousand deep are no reply either.
    except (ValueError, RecursionError):
        return None


def too_large(host: str) -> ProviderError:
    """Return the error that a reply without an end is."""
    return ProviderError(f"{host} sent more than a reply may hold: check its address.")
