"""Limiters: counters that several processes may share. A setting chooses one by name.

Two things are counted: requests of a client in windows of time, and money of a site in a day. Both are counted before
anything is done for them, in one atomic step each, so that no race admits more than there is room for, and a process
that is killed has counted too much and never too little. Money is whole microdollars: floats don't add up.
"""

from __future__ import annotations

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.limits.protocols import ACCOUNT_SECONDS, Limiter, LimiterFault, RateWindow, Reservation

__all__ = ["ACCOUNT_SECONDS", "Limiter", "LimiterFault", "RateWindow", "Reservation", "open_limiter"]


def open_limiter(settings: Settings) -> Limiter:
    """Return the limiter that `settings.limiter` names; nothing is read or sent yet.

    Raises:
        ConfigurationError: there is no such limiter.
    """
    kind, _, place = settings.limiter.partition(":")
    if settings.limiter == "memory":
        from chapterverse_api.limits.memory import MemoryLimiter

        return MemoryLimiter()
    if kind == "sqlite" and place:
        from chapterverse_api.limits.sqlite import SqliteLimiter

        return SqliteLimiter(place)
    if kind == "dynamodb" and place:
        from chapterverse_api.limits.dynamodb import DynamoLimiter

        return DynamoLimiter.open(place)
    raise ConfigurationError(f"There is no limiter {settings.limiter!r}: use memory, sqlite:PATH or dynamodb:TABLE.")
