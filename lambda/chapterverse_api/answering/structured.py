"""Answers with data: a model fills a schema from the passages, and each value gets the citation that carries it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from chapterverse.errors import ProviderError
from chapterverse_api.answering.context import AnswerContext
from chapterverse_api.answering.turn import Turn
from chapterverse_api.answering.turn_cost import DATA_TRIES
from chapterverse_api.generation.draft import Check, Span
from chapterverse_api.generation.prompts import MAX_DATA_TOKENS, conversation, data_instructions, new_nonce
from chapterverse_api.generation.protocols import DataWriter
from chapterverse_api.generation.requests import ModelRequest, ResponseSchema
from chapterverse_api.grounding.links.address_filter import AddressFilter
from chapterverse_api.grounding.results import IdfFunction, VerifiedDraft
from chapterverse_api.structured_output.data import DataProblem, LeafCheck, leaf_line, leaves, mirror, read_data

_Data = TypeVar("_Data")


@dataclass(frozen=True, slots=True)
class FilledSchema:
    """Data that fits its schema.

    Attributes:
        citations: the data with each value replaced by the id of the source that carries it, or None.
        verified: the data as Markdown, a list item for each value.
    """

    data: dict[str, Any]
    citations: dict[str, Any]
    verified: VerifiedDraft


def fill_schema(
    context: AnswerContext, turn: Turn, schema: ResponseSchema, writer: DataWriter, idf: IdfFunction
) -> FilledSchema | None:
    """Return the data that a model finds in the passages; None if it failed, which is in the log.

    Raises:
        ClientDisconnected: the reader left.
    """
    try:
        with turn.models.circuit.calling(), turn.deadline.raising_on_disconnect(), turn.timing("generate"):
            data = _write(context, turn, schema, writer)
    except ProviderError as error:
        turn.log_failure("generator", error)
        return None
    check = LeafCheck(context.request.passages, context.request.language, idf)
    cited: dict[tuple[str | int, ...], str] = {}
    spans: list[Span] = []
    for leaf in leaves(data):
        carrier = check.find_source(leaf)
        if carrier is not None:
            cited[leaf.path] = carrier
        if text := leaf_line(leaf):
            outcome: Check = "confirmed" if carrier else "none" if isinstance(leaf.value, bool) else "unconfirmed"
            spans.append(Span(text, (carrier,) if carrier else (), check=outcome))
    claims = sum(span.check != "none" for span in spans)
    confidence = len(cited) / claims if claims else 0.0
    verified = VerifiedDraft(tuple(spans), 0, confidence, claims - len(cited), claims)
    return FilledSchema(data, mirror(data, cited), verified)


def _write(context: AnswerContext, turn: Turn, schema: ResponseSchema, writer: DataWriter) -> dict[str, Any]:
    asked, nonce = context.request, new_nonce()
    instructions, links = data_instructions(asked, nonce, schema), AddressFilter(asked.passages)
    request = ModelRequest(instructions, conversation(asked, nonce), MAX_DATA_TOKENS, turn.deadline)
    failure = "The model's data did not fit the schema, not even when it was asked once more."
    return ask_for_data(writer, request, schema, lambda text: read_data(text, schema, links), failure)


def ask_for_data(
    writer: DataWriter, request: ModelRequest, schema: ResponseSchema, read: Callable[[str], _Data], failure: str
) -> _Data:
    """Return a model's data as it was read. A model whose reply won't do is told why, and asked again.

    Args:
        read: reads a reply, and raises `DataProblem` where it won't do.
        failure: the error's sentence where no reply would do.

    Raises:
        ProviderError: no reply would do, or the model failed.
    """
    *earlier, last = request.messages
    for _ in range(DATA_TRIES):
        text = writer.write_data(request, schema)
        try:
            return read(text)
        except DataProblem as error:
            told = f"{last.content}\n\nYour reply before was rejected: {str(error)[:200]}."
            request = replace(request, messages=(*earlier, replace(last, content=told)))
    raise ProviderError(failure)
