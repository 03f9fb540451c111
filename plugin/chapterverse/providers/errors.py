"""Errors of providers, by what a caller can do about them."""

from __future__ import annotations

from collections.abc import Collection

from chapterverse.errors import KeyRefused, ProviderError
from chapterverse.net import is_unbilled
from chapterverse.net.retry import BusyError

#: A timeout, a conflict and a rate limit pass, as does everything from 500 on.
_PASSING = {408, 409, 429}
#: The service doesn't know the key, or the key may not do this.
_KEY_REFUSED = {401, 403}


class TextRejected(ProviderError):
    """The model will never take the request as it is."""


def no_reply_error(service: str) -> ProviderError:
    """Return the error of a reply that is none of a service's."""
    return ProviderError(f"{service} answered with something that is no reply.", retryable=True)


def provider_error(
    message: str, status: int, pause: float | None, rejected_statuses: Collection[int] = (400,)
) -> ProviderError:
    """Return the error that a reply of this status is.

    Args:
        pause: seconds after which the service asks to be tried again; None where it didn't say.
        rejected_statuses: statuses of a request that will never be taken as it is.
    """
    if status in _PASSING or status >= 500:
        error: ProviderError = BusyError(message, pause=pause)
    elif status in _KEY_REFUSED:
        error = KeyRefused(message)
    else:
        error = TextRejected(message) if status in rejected_statuses else ProviderError(message)
    error.unbilled = is_unbilled(status)
    return error
