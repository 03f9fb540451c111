"""Passages and word weights for the check of an answer."""

from __future__ import annotations

from collections.abc import Mapping

from chapterverse_api.draft.requests import Passage


def passage(number: str, text: str, path: tuple[str, ...] = ("Title",)) -> Passage:
    return Passage(number, path, text, text)


def equal_weights(text: str) -> Mapping[int, float]:
    """Give every word of a text the same weight, as without an index."""
    return {}
