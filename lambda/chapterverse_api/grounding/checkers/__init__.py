"""Checkers give a second vote on sentences that the check by words leaves undecided. A setting chooses one by name.

A vote can only take a citation away: a page that talks a checker round gains nothing.
"""

from __future__ import annotations

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.grounding.checkers.types import Checker, CheckRequest

__all__ = ["CheckRequest", "Checker", "open_checker"]


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
