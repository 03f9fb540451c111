"""Opens the limiter that the settings name."""

from __future__ import annotations

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.limits.protocols import Limiter


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
