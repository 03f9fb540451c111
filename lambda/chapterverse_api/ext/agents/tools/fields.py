"""Arguments and results that several tools of the documentation share."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from chapterverse.model import Head
from chapterverse_api.contract import ChatQuery, ResponseModel
from chapterverse_api.request_limits import MAX_LANGUAGE_CHARS, MAX_URL_CHARS, MAX_VERSION_CHARS
from chapterverse_api.validation import make_query

#: Tokens around the results of a tool, and around each quote.
OVERHEAD_TOKENS = 80

Url = Annotated[str, StringConstraints(min_length=1, max_length=MAX_URL_CHARS)]
MaxTokens = Annotated[int, Field(ge=200, le=20_000, description="Most cl100k tokens of the result, estimated.")]
VersionArgument = Annotated[
    str | None,
    Field(max_length=MAX_VERSION_CHARS, description="Docs version; the only one, or the default one, if left out."),
]
LanguageArgument = Annotated[
    str | None, Field(max_length=MAX_LANGUAGE_CHARS, description="BCP 47 tag of the pages to search, such as de.")
]
#: Validated by the contract of the API, whose schema of all levels of nesting would fill a model's context.
RawFilters = Annotated[
    dict[str, Any],
    Field(
        description='Conditions on fields, such as {"tags": ["linux"], "url": "https://docs.example/guide/"}. Fields: '
        "url (a prefix), chapter_title, content_type, tags, language, created_at, source_file_path. Operators: $eq, "
        "$in, $prefix, $contains, $gt, $gte, $lt, $lte, $and, $or."
    ),
]


class QuotedSection(ResponseModel):
    """A section with words of it. Every result of a tool is made of these."""

    url: Annotated[str, Field(description="Of the section, with its anchor.")]
    chapter: str
    section: str | None
    quote: str
    version: str
    generation: int


def quote_section(url: str, chapter: str, heading: str | None, quote: str, head: Head) -> QuotedSection:
    return QuotedSection(
        url=url, chapter=chapter, section=heading, quote=quote, version=head.version, generation=head.generation
    )


def make_tool_query(text: str, arguments: Any, **more: Any) -> ChatQuery:
    """Return a query of the API, validated as such."""
    fields = {
        "version": arguments.version,
        "language": arguments.language,
        "filters": getattr(arguments, "filters", {}),
        **more,
    }
    return make_query(query=text, **fields)
