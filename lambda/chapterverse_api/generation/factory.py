"""Opens the generator that the settings name."""

from __future__ import annotations

from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.generation.protocols import AnswerGenerator


def open_generator(settings: Settings) -> AnswerGenerator:
    """Return the generator that `settings.generator` names; nothing is sent yet. Raises as `open_offer` does."""
    generator: AnswerGenerator = open_offer("generator", settings)
    return generator
