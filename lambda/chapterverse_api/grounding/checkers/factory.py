"""Opens the checker that the settings name."""

from __future__ import annotations

from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.grounding.checkers.protocols import Checker


def open_checker(settings: Settings) -> Checker | None:
    """Return the model that `settings.checker` names; None for `words`. Raises as `open_offer` does."""
    checker: Checker | None = open_offer("checker", settings)
    return checker
