"""Opens the limiter that the settings name."""

from __future__ import annotations

from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.limits.protocols import Limiter


def open_limiter(settings: Settings) -> Limiter:
    """Return the limiter that `settings.limiter` names; nothing is read or sent yet. Raises as `open_offer` does."""
    limiter: Limiter = open_offer("limiter", settings)
    return limiter
