"""Opens the checker that the settings name."""

from __future__ import annotations

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.grounding.checkers.protocols import Checker


def open_checker(settings: Settings) -> Checker:
    """Return the model that `settings.checker` names, which is not `words`: that is the check without one.

    Raises:
        ConfigurationError: no such checker, or its model, key or package is missing.
    """
    kind, _, model = settings.checker.partition(":")
    if kind == "openai":
        from chapterverse_api.grounding.checkers.openai import OpenAIChecker

        return OpenAIChecker.from_settings(settings, model)
    if kind == "bedrock":
        from chapterverse_api.grounding.checkers.bedrock import GuardrailChecker

        return GuardrailChecker.open(model)
    raise ConfigurationError(
        f"There is no checker named {settings.checker!r}: use words, openai:MODEL or bedrock:guardrail/ID."
    )
