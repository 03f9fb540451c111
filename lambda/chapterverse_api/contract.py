"""The wire format: requests, responses, stream events. Unknown fields are rejected."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import core_schema

from chapterverse.filters import FILTER_SCHEMA, FilterTree, parse_filter, version_of
from chapterverse.model import ENTITY
from chapterverse.text import tokens
from chapterverse.text.json_text import SURROGATE
from chapterverse.version import __version__
from chapterverse_api.request_limits import (
    MAX_COMMENT_CHARS,
    MAX_CONTEXT_CHARS,
    MAX_HISTORY_CHARS,
    MAX_HISTORY_MESSAGES,
    MAX_LANGUAGE_CHARS,
    MAX_MESSAGE_CHARS,
    MAX_NAME_CHARS,
    MAX_QUERY_TOKENS,
    MAX_SELECTION_CHARS,
    MAX_TOP_K,
    MAX_URL_CHARS,
    MAX_VECTOR_NUMBERS,
    MAX_VERSION_CHARS,
)

Mode = Literal["rag", "selected_text"]
AnswerStatus = Literal["answered", "partial", "not_in_docs", "degraded"]
PartialReason = Literal["left_open", "unconfirmed", "may_help", "cut", "language", "choice"]

#: Questions without a word.
QUESTION_MARKS = ("?", "？", "؟")
#: The end of the year 9999, an exact number in every language.
_LATEST = 253_402_300_799


def _rule(kind: type, holds: Callable[[Any], bool], sentence: str) -> BeforeValidator:
    """Check values of a kind by a sentence of our own: a constraint's would show a pattern, or blame a character."""

    def check(value: object) -> object:
        if isinstance(value, kind) and not holds(value):
            raise ValueError(sentence)
        return value

    return BeforeValidator(check)


def _hexadecimal(*lengths: int) -> BeforeValidator:
    must = " or ".join(f"{length} hexadecimal digits" if length else "empty" for length in lengths)
    return _rule(str, lambda text: len(text) in lengths and set(text) <= set("0123456789abcdef"), f"must be {must}")


# Our rules are last, because before the constraints they would hide them from OpenAPI. They run first anyway, the last
# one before the others. A mere "?" asks for help.
_WORDS = _rule(
    str,
    lambda text: text.strip() in QUESTION_MARKS or any(char.isalnum() for char in text),
    "must hold at least one letter or digit",
)
_UNICODE = _rule(str, lambda text: not SURROGATE.search(text), "must be valid Unicode")
_ENTITY = _rule(
    str, lambda name: bool(re.search(ENTITY, name)), "must be 1 to 64 letters, digits, spaces and any of . _ -"
)
_TIME = _rule(int, lambda seconds: 0 <= seconds <= _LATEST, "must be a time in seconds since 1970")

QuestionText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_MESSAGE_CHARS), _UNICODE, _WORDS]
Selection = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SELECTION_CHARS), _UNICODE, _WORDS]
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS, pattern=r"^[A-Za-z0-9_-]+$")]
EntityName = Annotated[str, StringConstraints(pattern=ENTITY), _ENTITY]
PageUrl = Annotated[str, StringConstraints(max_length=MAX_URL_CHARS)]
LanguageTag = Annotated[str, StringConstraints(max_length=MAX_LANGUAGE_CHARS)]
VersionName = Annotated[str, StringConstraints(max_length=MAX_VERSION_CHARS)]
TurnId = Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$"), _hexadecimal(32)]
TopK = Annotated[int, Field(ge=1, le=MAX_TOP_K)]
Share = Annotated[float, Field(ge=0, le=1)]
#: A filter as a tree. `parse_filter` validates it and writes the messages.
Filters = Annotated[
    FilterTree | None,
    GetPydanticSchema(lambda *_: core_schema.no_info_plain_validator_function(parse_filter)),
    WithJsonSchema(FILTER_SCHEMA),
]


class RequestModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ResponseModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Signature(RequestModel):
    """A service's signature of a turn (see `conversation.transcript`). Only a service with the same key can verify it.

    Attributes:
        expiry: end of its validity, in seconds since 1970.
        previous: tag of the turn before; empty in the first.
    """

    key_id: Annotated[str, StringConstraints(pattern="^[0-9a-f]{16}$"), _hexadecimal(16)]
    expiry: Annotated[int, Field(ge=0, le=_LATEST), _TIME]
    turn_id: TurnId
    previous: Annotated[str, StringConstraints(pattern="^([0-9a-f]{64})?$"), _hexadecimal(0, 64)]
    tag: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$"), _hexadecimal(64)]


class Message(RequestModel):
    role: Literal["user", "assistant"]
    content: Annotated[str, StringConstraints(min_length=1, max_length=MAX_MESSAGE_CHARS)]
    timestamp: Annotated[str, StringConstraints(max_length=MAX_NAME_CHARS)] | None = None
    signature: Signature | None = None


def _requires(field: str, kind: str) -> dict[str, Any]:
    return {"required": [field], "properties": {field: {"type": kind}}}


class ChatQuery(RequestModel):
    """A question, a selection, or both. A selection without a question means "explain this"."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [_requires("query", "string"), _requires("selected_text", "string")]}
    )

    query: QuestionText | None = None
    selected_text: Selection | None = None
    conversation_history: Annotated[list[Message], Field(max_length=MAX_HISTORY_MESSAGES)] = []
    user_context: Annotated[str, StringConstraints(max_length=MAX_CONTEXT_CHARS)] | None = None
    thread_id: Name | None = None
    page_url: PageUrl | None = None
    language: LanguageTag | None = None
    version: VersionName | None = None
    filters: Filters = Field(default={}, validate_default=True)
    top_k: TopK | None = None
    output: Name | None = None
    entity: EntityName | None = None

    @property
    def docs_version(self) -> str | None:
        """The docs version of the question, from `version` or else a filter: each version has its own index."""
        return self.version if self.version is not None else version_of(self.filters)

    @model_validator(mode="after")
    def _whole(self) -> ChatQuery:
        if self.query is None and self.selected_text is None:
            raise ValueError("query is missing; it may be left out only beside selected_text")
        if self.query is not None and not tokens.fits(self.query, MAX_QUERY_TOKENS):
            raise ValueError(f"query is over {MAX_QUERY_TOKENS} tokens")
        if sum(len(m.content) for m in self.conversation_history) > MAX_HISTORY_CHARS:
            raise ValueError(f"conversation_history is over {MAX_HISTORY_CHARS} characters in all")
        return self


def _rating_word(rating: object) -> object:
    # Check the type too, because in Python 1, 1.0 and true are equal.
    return {1: "up", -1: "down"}.get(rating, rating) if type(rating) is int else rating


class Feedback(RequestModel):
    """A reader's rating of an answer: 1 and -1 are "up" and "down"."""

    turn_id: TurnId
    rating: Annotated[
        Literal["up", "down"], BeforeValidator(_rating_word, json_schema_input_type=Literal["up", "down", 1, -1])
    ]
    reason: Literal["wrong", "incomplete", "unclear", "outdated", "citation", "other"] | None = None
    comment: Annotated[str, StringConstraints(max_length=MAX_COMMENT_CHARS)] | None = None


class SourceChunk(ResponseModel):
    """One source of an answer: `id` is the string that a segment cites."""

    id: str
    chapter: str
    section: str | None
    snippet: Annotated[str, StringConstraints(max_length=200)]
    url: str | None
    score: Share
    chunk_id: str | None


class Segment(ResponseModel):
    """A part of the answer with the ids of the sources that support it. The joined texts are the response.

    Attributes:
        kind: `quote` is a passage of one source, `framing` our own words such as a breadcrumb, `prose` a model's words.
        check: `confirmed` has citations that hold, `unconfirmed` claims something that no source supports, `none`
            claims nothing.
        mark: the exact part of the text that answers, if it is known.
    """

    text: str
    citations: list[str] = []
    kind: Literal["quote", "prose", "framing"] = "prose"
    check: Literal["confirmed", "unconfirmed", "none"] = "none"
    mark: str | None = None


class Nearest(ResponseModel):
    chapter: str
    section: str | None
    url: str


class SearchedAs(ResponseModel):
    """The query of the search, if it differs from the question.

    Attributes:
        query: the question with its typing mistakes corrected, or the earlier question that this one follows up on, or
            the whole question if a model wrote it in full.
        original: the question of the reader.
    """

    query: str
    reason: Literal["corrected", "follow_up"]
    original: str


class ChatResponse(ResponseModel):
    """An answer, or a refusal.

    Attributes:
        response: the whole text, Markdown.
        partial_reason: why the answer is only a part of one; null if it is whole. `left_open`: its own words leave a
            part open. `unconfirmed`: more than a fifth of its claims, and at least two, were found in no source.
            `may_help`: the quotes may not answer. `cut`: it reached its greatest length. `language`: the pages are in
            another language. `choice`: the question fits several sections, which `follow_ups` name.
        grounding_confidence: 0 to 1. Of a model's text, the mean probability that the sources say what the checked
            sentences say; of quotes, the probability that they answer the question.
        retrieval_used: whether the index was searched.
        sources_cited: the addresses of the cited sections, in the order of their citations, each once.
        timestamp: when the answer ended, ISO 8601, UTC.
        execution_time: seconds from the request to the end of the answer.
        follow_ups: suggested next questions, best first.
        nearest: places to look on, where the answer is partial or missing.
        degraded_reason: sentences that say what did not work as configured; null if all did.
        data: the answer in the form of the schema that the query names; null without one.
        data_citations: the same with each value replaced by the id of the source that carries it, or null.
    """

    response: Annotated[str, StringConstraints(min_length=1)]
    source_chunks: list[SourceChunk]
    segments: list[Segment]
    mode: Mode
    status: AnswerStatus
    partial_reason: PartialReason | None = None
    grounding_confidence: Share
    retrieval_used: bool
    sources_cited: list[str]
    timestamp: str
    execution_time: float
    turn_id: str
    thread_id: str | None = None
    signature: Signature | None = None
    follow_ups: list[str] = []
    nearest: list[Nearest] = []
    degraded_reason: str | None = None
    searched_as: SearchedAs | None = None
    data: dict[str, Any] | None = None
    data_citations: dict[str, Any] | None = None

    @property
    def text_with_choices(self) -> str:
        """The response; below a question that asks back the sections to choose from, for clients without buttons."""
        choices = self.follow_ups if self.partial_reason == "choice" else []
        return "\n\n".join([self.response, *(["\n".join(f"- {text}" for text in choices)] if choices else [])])


#: Limit of exact whole numbers in every language, far above any vector component.
Component = Annotated[float, Field(ge=-(2**53), le=2**53)]


class RetrievalRequest(RequestModel):
    """A search by words or by a vector; one of the two is given.

    Attributes:
        embedding: a vector of the index's embedder, 1 to 4,096 numbers.
        top_k: most chunks to return, 1 to 20.
        threshold: the least score of a chunk, 0 to 1: its evidence, or the cosine where a vector is given.
    """

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [_requires("query", "string"), _requires("embedding", "array")]}
    )

    query: QuestionText | None = None
    embedding: Annotated[list[Component], Field(min_length=1, max_length=MAX_VECTOR_NUMBERS)] | None = None
    top_k: TopK = 5
    threshold: Share = 0.0
    filters: Filters = Field(default={}, validate_default=True)

    @model_validator(mode="after")
    def _one(self) -> RetrievalRequest:
        if (self.query is None) == (self.embedding is None):
            raise ValueError("query or embedding must be given, and not both")
        return self


class ErrorBody(ResponseModel):
    code: str
    message: str
    field: str | None = None


class ErrorResponse(ResponseModel):
    error: ErrorBody


class Meta(ResponseModel):
    """First event of a stream."""

    turn_id: str
    mode: Mode
    sources: list[SourceChunk]


class Delta(Segment):
    """A whole segment of the answer, checked before it is sent. The response contains the same segments."""


class ToolUse(ResponseModel):
    """A call of a tool by the model, sent when it starts and again when it has ended.

    Attributes:
        id: the number of the call, the same in both.
        query: what is searched for; left out for other tools.
        ok: whether it found anything; left out when it starts.
    """

    id: str
    name: str
    query: str | None = None
    ok: bool | None = None


class StreamError(ResponseModel):
    """Last event of a stream that failed."""

    code: str
    message: str
    retryable: bool


AnswerEvent = Meta | Delta | ToolUse | ChatResponse
#: The parts of one answer in order; the last is the whole `ChatResponse`.
Events = Generator[AnswerEvent, None, None]


class Health(ResponseModel):
    status: Literal["ok"] = "ok"


class IndexStatus(ResponseModel):
    """An index that the service answers from."""

    site: str
    version: str
    generation: int
    pages: int
    chunks: int
    published_at: str


class ServiceStatus(ResponseModel):
    """The service's indexes and models, and whether they work. `version` is that of this package, as in OpenAPI.

    Attributes:
        mcp: whether agents may ask at `/mcp`.
    """

    version: str = __version__
    status: Literal["ok", "degraded"]
    indexes: list[IndexStatus]
    models: dict[str, str]
    degraded: list[str]
    mcp: bool = False


def dump(model: BaseModel) -> dict[str, Any]:
    """Return a contract value as JSON."""
    return model.model_dump(mode="json")
