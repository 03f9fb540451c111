"""Errors of a draft: the model wrote too much, or nothing."""

from __future__ import annotations

from chapterverse.errors import ProviderError

#: An answer of 600 tokens is shorter in any language, and each sentence of it has to be checked.
MAX_ANSWER_CHARS = 60_000


def length_error() -> ProviderError:
    return ProviderError("The model answered with more than it was asked for.")


def silence_error(cut: bool) -> ProviderError:
    """Return the error for a model that wrote nothing, perhaps because its limit ended its reasoning."""
    if cut:
        return ProviderError(
            "The model spent its whole answer on thoughts: name a model that reasons less, or switch that off."
        )
    return ProviderError("The model answered with nothing: try again.", retryable=True)
