"""Opens the generator that the settings name."""

from __future__ import annotations

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.generation.protocols import AnswerGenerator


def open_generator(settings: Settings) -> AnswerGenerator:
    """Return the generator that `settings.generator` names; nothing is sent yet.

    Raises:
        ConfigurationError: there is no such generator, or its model, key or package is missing.
    """
    kind, _, model = settings.generator.partition(":")
    if settings.generator == "extractive":
        from chapterverse_api.generation.extractive import Extractive

        return Extractive()
    if kind == "cohere":
        from chapterverse_api.generation.cohere import CohereGenerator

        return CohereGenerator.from_settings(settings, model)
    if kind == "bedrock":
        from chapterverse_api.generation.bedrock import BedrockGenerator

        return BedrockGenerator.open(model)
    if kind == "openai":
        from chapterverse_api.generation.openai import OpenAIGenerator

        return OpenAIGenerator.from_settings(settings, model)
    raise ConfigurationError(
        f"There is no generator named {settings.generator!r}: use extractive, cohere[:MODEL], bedrock:MODEL or "
        "openai:MODEL."
    )
