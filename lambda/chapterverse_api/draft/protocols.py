"""The interfaces of generators: passages and a question in, a draft with citations out."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol, runtime_checkable

from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import GenerationRequest, ModelRequest, ResponseSchema, ToolCall


class AnswerGenerator(Protocol):
    """Drafts answers."""

    @property
    def name(self) -> str: ...

    def generate(self, request: GenerationRequest) -> Generator[Span | ToolCall, None, None]:
        """Yield the draft with its citations, as it comes.

        Spans of prose are pieces of one text and may end anywhere. They may contain the marks by which a model cites,
        "[1]". A span of a quote or of our own words is complete. Closing the generator ends the model's work. A model
        that calls tools of the request yields the calls at the end.

        Raises:
            ProviderError: the model could not be reached, broke off, or took longer than the deadline.
        """
        ...


@runtime_checkable
class Writer(Protocol):
    """A generator with a language model, which also writes short texts without sources, and data."""

    def write(self, request: ModelRequest) -> str:
        """Return the model's whole text.

        Raises:
            ProviderError: the model could not be reached, broke off, or took longer than the deadline.
        """
        ...

    def write_data(self, request: ModelRequest, schema: ResponseSchema) -> str:
        """Return the model's whole text, which should be JSON that fits the schema. The caller has to check that.

        Raises:
            ProviderError: as above.
        """
        ...
