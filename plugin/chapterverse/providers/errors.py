"""Errors of providers. Their types differ by what a caller can do."""

from __future__ import annotations

from collections.abc import Collection

from chapterverse.errors import KeyRefused, ProviderError
from chapterverse.net import is_unbilled
from chapterverse.net.retry import BusyError

#: A timeout, a conflict and a rate limit may pass, as may every status from 500 on.
_RETRIED_STATUSES = {408, 409, 429}
#: The service doesn't know the key, or the key may not do this.
_KEY_REFUSED_STATUSES = {401, 403}


class TextRejected(ProviderError):
    """The model will never take the request as it is."""


def no_reply_error(service: str) -> ProviderError:
    """Return the error of an answer that the service doesn't give."""
    return ProviderError(f"{service} answered with something that is no reply.", retryable=True)


def provider_error(
    message: str, status: int, pause: float | None, rejected_statuses: Collection[int] = (400,)
) -> ProviderError:
    """Return the error of a reply with this status.

    Args:
        pause: seconds after which the service asks to be tried again; None if it doesn't state any.
        rejected_statuses: statuses of a request that the service will never accept as it is.
    """
    if status in _RETRIED_STATUSES or status >= 500:
        error: ProviderError = BusyError(message, pause=pause)
    elif status in _KEY_REFUSED_STATUSES:
        error = KeyRefused(message)
    else:
        error = TextRejected(message) if status in rejected_statuses else ProviderError(message)
    error.unbilled = is_unbilled(status)
    return error
