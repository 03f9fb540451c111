"""The metadata of the six types of documents: one model each, for front matter, `import`, the API and the commands.

Only a document that is written or a schema that is asked for loads this module, because building the models takes
longer than the rest of a cold start may.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from chapterverse.errors import InputError
from chapterverse.model import DOCUMENT_TYPES, ENTITY, INDEX_TYPES, MEMORY, Chunk, stated_date, utc_now
from chapterverse.page_kinds import CONTENT_TYPES

_ENTITY = ENTITY.strip("^$")


def _date(value: object) -> str:
    date = stated_date(value)
    if date is None:
        raise ValueError("no date")
    return date


def _text(value: object) -> object:
    # YAML reads a version such as 1.10 as a number.
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


# A description completes the sentence "FIELD must be …": it is the schema's explanation and the error message.
Date = Annotated[
    str,
    BeforeValidator(_date),
    Field(description="a date such as 2026-01-31", json_schema_extra={"format": "date-time"}),
]
Label = Annotated[
    str, BeforeValidator(_text), Field(min_length=1, max_length=200, description="a text of 1 to 200 characters")
]
Language = Annotated[
    str, Field(pattern=r"^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$", description="a tag such as en or pt-BR")
]
PageReference = Annotated[
    str, Field(min_length=1, max_length=2048, description="the path or the address of a page of the site")
]
Entity = Annotated[
    str,
    Field(pattern=ENTITY, description="1 to 64 letters, digits, spaces and any of . _ -, such as enterprise"),
]
ConversationId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="1 to 64 letters, digits, - and _")]
Number = Annotated[int, Field(ge=0, description="a whole number from 0")]
Tags = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200)], ...],
    Field(max_length=100, description="a list of at most 100 texts of 1 to 200 characters"),
]


class Metadata(BaseModel):
    """The fields of every type."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    timestamp: Date = Field(default_factory=utc_now)
    source: Literal["chat", "kb", "system", "import"] = Field("kb", description="chat, kb, system or import")
    scope: str = Field(
        "global",
        pattern=rf"^(?:global|entity:{_ENTITY})$",
        description="global or entity:NAME, such as entity:enterprise",
    )


class PageMetadata(Metadata):
    """A chunk of a page of the documentation, as the index has it."""

    type: Literal["page"] = Field(description="page")
    chapter_title: Annotated[str, Field(description="a text")]
    section_heading: Annotated[str, Field(description="a text or null")] | None = None
    heading_path: Annotated[tuple[str, ...], Field(description="a list of texts")] = ()
    chunk_index: Number
    source_file_path: str = Field(min_length=1, max_length=512, description="a path of 1 to 512 characters")
    url: Annotated[str, Field(description="an address")]
    content_type: Literal[CONTENT_TYPES] = Field(  # type: ignore[valid-type]
        "documentation", description=f"one of {', '.join(CONTENT_TYPES)}"
    )
    tags: Annotated[tuple[str, ...], Field(description="a list of texts")] = ()
    language: Annotated[str, Field(description="a language tag")] = "en"
    version: Annotated[str, Field(description="a text")] = ""
    created_at: Date | None = None


class PersonaMetadata(Metadata):
    """The name, language and tone of the chat."""

    type: Literal["persona"] = Field(description="persona")
    name: Annotated[str, BeforeValidator(_text), Field(max_length=60, description="a text of 1 to 60 characters")] = ""
    language: Language | None = None
    version: Label | None = None
    topic: Label | None = None


class FaqMetadata(Metadata):
    """A file of questions with their answers.

    Attributes:
        page: where the answers are cited to; without it they are shown without a link.
    """

    type: Literal["faq"] = Field(description="faq")
    topic: Label | None = None
    specialist_name: Label | None = Field(None, alias="_specialist_name")
    revision: Label | None = Field(None, alias="_version")
    page: PageReference | None = None
    language: Language | None = None


class MemoryMetadata(Metadata):
    """A fact. Without a `page` it informs a model and is never cited."""

    type: Literal["memory"] = Field(description="memory")
    importance: int = Field(3, ge=1, le=5, strict=True, description="a whole number from 1 to 5")
    tags: Tags = ()
    entity: Entity | None = None
    conversation_id: ConversationId | None = None
    topic: Label | None = None
    page: PageReference | None = None
    language: Language | None = None


class TurnMetadata(Metadata):
    """A message of a stored conversation."""

    type: Literal["turn"] = Field(description="turn")
    conversation_id: ConversationId
    role: Literal["user", "assistant"] = Field(description="user or assistant")
    turn_index: Number


class SummaryMetadata(Metadata):
    """The summary of a stored conversation's first turns.

    Attributes:
        turn_range: `turn_index` of the first and of the last turn that it covers.
    """

    type: Literal["summary"] = Field(description="summary")
    conversation_id: ConversationId
    turn_range: Annotated[
        tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]],
        Field(description="two whole numbers from 0, the first not above the last"),
    ]
    summary_index: Number

    @model_validator(mode="after")
    def _check_order(self) -> SummaryMetadata:
        if self.turn_range[0] > self.turn_range[1]:
            raise ValueError("turn_range")
        return self


METADATA_BY_TYPE: Mapping[str, type[Metadata]] = {
    "page": PageMetadata,
    "persona": PersonaMetadata,
    "faq": FaqMetadata,
    "memory": MemoryMetadata,
    "turn": TurnMetadata,
    "summary": SummaryMetadata,
}

#: Fields of a page that may be empty texts and may not be left out.
_REQUIRED = frozenset({"chapter_title", "url"})


def validate_metadata(kind: str, mapping: Mapping[Any, Any], place: str = "") -> Any:
    """Return the metadata of a document as its model.

    Args:
        kind: one of `model.DOCUMENT_TYPES`; `mapping` may repeat it or leave it out.
        place: a file, or a file and a line, for the message.

    Raises:
        InputError: the type is unknown, or a field is unknown, missing or invalid; the message names place, field and
            allowed values.
    """
    model = METADATA_BY_TYPE.get(kind)
    where = f"{place}: " if place else ""
    if model is None:
        raise InputError(f"{where}type must be one of {', '.join(DOCUMENT_TYPES)}.", field="type")
    try:
        return model.model_validate({"type": kind, **mapping})
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = str(problem["loc"][0] if problem["loc"] else "turn_range")
    properties = _properties(kind)
    if field not in properties:
        raise InputError(
            f"{where}{field[:40]!a} is no field of a {kind}: there are {', '.join(properties)}.", field=None
        )
    verb = "is missing: it must be" if problem["type"] == "missing" else "must be"
    raise InputError(f"{where}{field} {verb} {_explain(properties[field])}.", field=field)


def validate_chunk(chunk: Chunk, place: str) -> None:
    """Raise `InputError` if a chunk of an export has a type or a field's value that no document has."""
    if chunk.type not in INDEX_TYPES:
        raise InputError(f"{place}: type must be one of {', '.join(INDEX_TYPES)}.", field="type")
    validate_metadata(MEMORY, {"importance": chunk.importance}, place)
    values = {
        field.alias or name: getattr(chunk, name, None)
        for name, field in METADATA_BY_TYPE[chunk.type].model_fields.items()
    }
    # A persona and a canonical line leave fields empty; a chunk's language and version may be private.
    unstated = {name for name, value in values.items() if value in ("", None)} | {"language", "version"}
    validate_metadata(chunk.type, {k: v for k, v in values.items() if k not in unstated or k in _REQUIRED}, place)


@functools.cache
def get_schema(kind: str) -> dict[str, Any]:
    """Return one type's JSON Schema, its fields and those that a document must state. Raises KeyError."""
    schema = METADATA_BY_TYPE[kind].model_json_schema(by_alias=True)
    return {
        "document_type": kind,
        "schema": schema,
        "fields": [*schema["properties"]],
        "required_fields": [*schema["required"]],
    }


def get_schemas(kind: str | None = None) -> dict[str, Any]:
    """Return `get_schema` of one type, or of each by its name."""
    return get_schema(kind) if kind else {one: get_schema(one) for one in DOCUMENT_TYPES}


def _properties(kind: str) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = get_schema(kind)["schema"]["properties"]
    return properties


def _explain(field: Mapping[str, Any]) -> str:
    # The description of an optional field belongs to its value.
    alternatives = [field, *field.get("anyOf", ())]
    return str(next(one["description"] for one in alternatives if "description" in one))
