"""Answers with a text that was looked up, word for word and under its authors' name."""

from __future__ import annotations

from collections.abc import Generator

from chapterverse.text.plain import escape_markdown
from chapterverse_api import phrases
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import GenerationRequest


class CuratedAnswer:
    """Quotes the one passage of a request unchanged. Implements `AnswerGenerator`.

    Args:
        language: BCP 47 tag of the words around it.
    """

    name = "faq"

    def __init__(self, language: str) -> None:
        self._language = language

    def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
        (entry,) = request.passages
        path = " › ".join(map(escape_markdown, entry.path))
        yield Span(f"{phrases.for_language(self._language).curated}\n\n", kind="framing")
        yield Span(f"**{path}**\n\n", kind="framing")
        yield Span(entry.section, (entry.id,), kind="quote")
