"""Answers without a model."""

from __future__ import annotations

from collections.abc import Generator

from chapterverse_api.generation.draft import Span
from chapterverse_api.generation.quoting.answer import quoted_answer
from chapterverse_api.generation.requests import GenerationRequest


class Extractive:
    """Quotes the passages. Implements `AnswerGenerator`."""

    name = "extractive"

    @classmethod
    def from_settings(cls, *_: object) -> Extractive:
        return cls()

    def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
        yield from quoted_answer(request)
