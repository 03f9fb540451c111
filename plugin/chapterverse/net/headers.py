"""Request headers with keys, and response headers that ask for a pause."""

from __future__ import annotations

import http.client
import math
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

from chapterverse.errors import ConfigurationError


def bearer(key: str, variable: str) -> dict[str, str]:
    """Return the header that carries a key; `variable` is where the key came from.

    Raises:
        ConfigurationError: the key is malformed. Told here, as the HTTP layer would quote the key in its own message.
    """
    if not plain(key):
        raise ConfigurationError(f"{variable} holds characters that no key has: copy it again.")
    return {"Authorization": f"Bearer {key}"}


def plain(value: str) -> bool:
    """Whether a header, or the path of an address, may hold this."""
    return value.isascii() and value.isprintable()


def lowered(response: http.client.HTTPResponse) -> dict[str, str]:
    """Return a response's headers by their names in lower case."""
    return {name.lower(): value for name, value in response.headers.items()}


def asked_pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that a reply asks for, None where it names none; header names in lower case."""
    for name, seconds in _PAUSES.items():
        try:
            pause = seconds(headers[name])
        except (KeyError, ValueError, OverflowError):
            continue
        if not math.isnan(pause):
            return max(0.0, pause)
    return None


def _retry_after(value: str) -> float:
    """Return the seconds of a `Retry-After`, which holds a number or a date."""
    try:
        return float(value)
    except ValueError:
        return parsedate_to_datetime(value).timestamp() - time.time()


_PAUSES: dict[str, Callable[[str], float]] = {
    "retry-after-ms": lambda value: float(value) / 1000,
    "retry-after": _retry_after,
    "x-ratelimit-reset": lambda value: float(value) - time.time(),
}
