"""Answers with data: a model fills a schema from the passages, and each value gets the citation that supports it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from chapterverse.errors import InputError, ProviderError
from chapterverse_api.answering.resources import Resources
from chapterverse_api.answering.response import make_answer, make_refusal
from chapterverse_api.answering.segments import make_delta
from chapterverse_api.answering.turn import Turn
from chapterverse_api.contract import ChatResponse, Delta
from chapterverse_api.ext.agents.structured_output.data import (
    DataProblem,
    LeafCheck,
    leaf_line,
    leaves,
    mirror,
    read_data,
)
from chapterverse_api.ext.agents.structured_output.schema import read_schema
from chapterverse_api.generation.draft import Check, Span
from chapterverse_api.generation.prompts import MAX_DATA_TOKENS, conversation, data_instructions, new_nonce
from chapterverse_api.generation.protocols import Writer
from chapterverse_api.generation.requests import ModelRequest, ResponseSchema
from chapterverse_api.grounding.links.address_filter import AddressFilter
from chapterverse_api.grounding.links.known_text import SiteText
from chapterverse_api.grounding.results import VerifiedDraft

#: How often at most data that fits a schema is asked for.
DATA_TRIES = 2

_Data = TypeVar("_Data")


class SchemaAnswer:
    """Answers with data that fits one schema of the owner's.

    Raises:
        InputError: there is no schema of this name, it can't be used, or the generator writes no data.
    """

    def __init__(self, name: str, resources: Resources) -> None:
        if not isinstance(resources.models.generator, Writer):
            raise InputError("output needs a language model: this site answers with quotes alone.", field="output")
        self._schema = read_schema(name, resources.settings.schemas)

    def answer(self, turn: Turn, writer: Writer) -> Generator[Delta, None, ChatResponse | None]:
        """Answer with data; return None if the model gave none that fits. Data without any citation is a refusal."""
        filled = fill_schema(turn, self._schema, writer)
        if filled is None:
            return None
        degraded, verified = turn.explain_degradation(), filled.verified
        name = turn.models.generator.name
        turn.log("response_generated", generator=name, dropped_citations=verified.unsupported_count)
        if not verified.cited:
            return make_refusal(turn, degraded)
        yield from map(make_delta, verified.spans)
        return make_answer(turn, verified, degraded, data=filled.data, data_citations=filled.citations)


@dataclass(frozen=True, slots=True)
class FilledSchema:
    """Data that fits its schema.

    Attributes:
        citations: the data with each value replaced by the id of the source that supports it, or None.
        verified: the data as Markdown, a list item for each value.
    """

    data: dict[str, Any]
    citations: dict[str, Any]
    verified: VerifiedDraft


def fill_schema(turn: Turn, schema: ResponseSchema, writer: Writer) -> FilledSchema | None:
    """Return the data that a model finds in the passages; None if it failed, which is in the log.

    Raises:
        ClientDisconnected: the reader left.
    """
    try:
        with turn.models.circuit.calling(), turn.deadline.raising_on_disconnect(), turn.timing("generate"):
            data = _write(turn, schema, writer)
    except ProviderError as error:
        turn.log_failure("generator", error)
        return None
    request = turn.sources.request
    check = LeafCheck(request.passages, request.language, turn.sources.idf)
    cited: dict[tuple[str | int, ...], str] = {}
    spans: list[Span] = []
    for leaf in leaves(data):
        source_id = check.find_source(leaf)
        if source_id is not None:
            cited[leaf.path] = source_id
        if text := leaf_line(leaf):
            outcome: Check = "confirmed" if source_id else "none" if isinstance(leaf.value, bool) else "unconfirmed"
            spans.append(Span(text, (source_id,) if source_id else (), check=outcome))
    claims = sum(span.check != "none" for span in spans)
    confidence = len(cited) / claims if claims else 0.0
    verified = VerifiedDraft(tuple(spans), 0, confidence, claims - len(cited), claims)
    return FilledSchema(data, mirror(data, cited), verified)


def _write(turn: Turn, schema: ResponseSchema, writer: Writer) -> dict[str, Any]:
    draft_request, nonce = turn.sources.request, new_nonce()
    instructions = data_instructions(draft_request, nonce, schema)
    links = AddressFilter(draft_request.passages, site=SiteText(turn.sources.snapshot))
    request = ModelRequest(instructions, conversation(draft_request, nonce), MAX_DATA_TOKENS, turn.deadline)
    failure = "The model's data did not fit the schema, not even when it was asked once more."
    return ask_for_data(writer, request, schema, lambda text: read_data(text, schema, links), failure)


def ask_for_data(
    writer: Writer, request: ModelRequest, schema: ResponseSchema, read: Callable[[str], _Data], failure: str
) -> _Data:
    """Return what `read` makes of a model's reply. After an unusable reply the model is told why, and asked again.

    Args:
        read: reads a reply, and raises `DataProblem` if it is unusable.
        failure: the error's sentence if no reply is usable.

    Raises:
        ProviderError: no reply was usable, or the model failed.
    """
    *earlier, last = request.messages
    for _ in range(DATA_TRIES):
        text = writer.write_data(request, schema)
        try:
            return read(text)
        except DataProblem as error:
            content = f"{last.content}\n\nYour reply before was rejected: {str(error)[:200]}."
            request = replace(request, messages=(*earlier, replace(last, content=content)))
    raise ProviderError(failure)
