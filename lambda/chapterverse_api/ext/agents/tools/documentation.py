"""The tools of every site: search the documentation, read it, ask it, and verify a claim against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from chapterverse.errors import InputError
from chapterverse_api.contract import AnswerStatus, ChatResponse, Nearest, QuestionText, RequestModel, ResponseModel
from chapterverse_api.ext.agents.tools.search_docs import SearchArguments, SearchResults, search_docs
from chapterverse_api.ext.agents.tools.sections import (
    OVERHEAD_TOKENS,
    LanguageArgument,
    MaxTokens,
    QuotedSection,
    RawFilters,
    SectionText,
    Url,
    VersionArgument,
    cut_to,
    estimate_cl100k_tokens,
    find_page,
    make_tool_query,
    quote_section,
)
from chapterverse_api.ext.agents.tools.tool import Tool, ToolContext, make_tool
from chapterverse_api.ext.agents.tools.verify_claim import ClaimArguments, ClaimVerdict, verify_claim

#: Addresses of further sections in a reply, because a page may have hundreds.
_MAX_LISTED = 20


class ReadArguments(RequestModel):
    url: Annotated[Url, Field(description="Of a page or, with an anchor, of a section, as search_docs returns it.")]
    max_tokens: MaxTokens = 4000
    offset: Annotated[int, Field(ge=0, le=2**31, description="Where to go on: next_offset of the result before.")] = 0


class SectionPlace(ResponseModel):
    url: str
    section: str | None
    tokens: int


class Remainder(ResponseModel):
    """What a budget left out; the first twenty sections are listed."""

    tokens: int
    sections: list[SectionPlace]


class ReadResult(ResponseModel):
    url: str
    chapter: str
    sections: Annotated[list[QuotedSection], Field(description="In order, with their Markdown as quote.")]
    next_offset: Annotated[int | None, Field(description="offset of the next call; null at the end.")]
    left: Remainder
    version: str
    generation: int


def read_section(arguments: ReadArguments, context: ToolContext) -> ReadResult:
    """Read a page or one section of the official documentation as Markdown, within a budget of tokens. Says what is
    left and how to go on."""
    snapshot, sections = find_page(arguments.url, context.service.resources.index)
    read, rest = _take(sections, arguments.max_tokens - OVERHEAD_TOKENS, arguments.offset)
    if not read:
        raise InputError("There is nothing at that offset: the text ends before it.", field="offset")
    head, first = snapshot.head, sections[0].first
    return ReadResult(
        url=sections[0].url if "#" in arguments.url else sections[0].url.partition("#")[0],
        chapter=first.chapter_title,
        sections=[
            quote_section(part.url, part.first.chapter_title, part.first.section_heading, part.text, head)
            for part in read
        ],
        next_offset=arguments.offset + sum(len(part.text) for part in read) if rest else None,
        left=Remainder(
            tokens=sum(estimate_cl100k_tokens(section.text) for section in rest),
            sections=[
                SectionPlace(url=s.url, section=s.first.section_heading, tokens=estimate_cl100k_tokens(s.text))
                for s in rest[:_MAX_LISTED]
            ],
        ),
        version=head.version,
        generation=head.generation,
    )


def _take(
    sections: Sequence[SectionText], remaining_tokens: int, skip: int
) -> tuple[list[SectionText], list[SectionText]]:
    """Return what fits into a budget of tokens behind the first characters, which are skipped, and the rest."""
    read, rest = list[SectionText](), list[SectionText]()
    for section in sections:
        text, skip = section.text[skip:], max(0, skip - len(section.text))
        room = remaining_tokens - OVERHEAD_TOKENS
        piece = cut_to(text, room) if room > 0 and not rest else ""
        if piece:
            read.append(replace(section, text=piece))
            remaining_tokens -= OVERHEAD_TOKENS + estimate_cl100k_tokens(piece)
        if len(piece) < len(text):
            rest.append(replace(section, text=text[len(piece) :]))
    return read, rest


class AskArguments(RequestModel):
    """A question to the documentation; `filters` narrow what is searched."""

    question: Annotated[QuestionText, Field(description="One question, in full.")]
    version: VersionArgument = None
    language: LanguageArgument = None
    filters: RawFilters = Field(default_factory=dict)
    page_url: Annotated[Url | None, Field(description="The page that the question is about, if there is one.")] = None


class Citation(QuotedSection):
    """A section that the answer cites; segments name its `id`."""

    id: str


class AnswerSegment(ResponseModel):
    """A part of the answer, as `contract.Segment` has it."""

    text: str
    citations: Annotated[list[str], Field(description="Ids of citations that carry it.")]
    check: Literal["confirmed", "unconfirmed", "none"]


class DocsAnswer(ResponseModel):
    """An answer with the sections that it cites.

    Attributes:
        nearest: pages to read instead, if the answer is partial or missing.
        grounding_confidence: the mean probability that the sources say what the answer says, 0 to 1; of quotes, the
            probability that they answer the question.
        degraded_reason: what did not work as configured; null if all did.
        generation: the number of the index's generation that was searched.
    """

    status: AnswerStatus
    answer: str
    segments: Annotated[list[AnswerSegment], Field(description="The answer in pieces, each checked.")]
    citations: list[Citation]
    nearest: list[Nearest]
    grounding_confidence: Annotated[float, Field(ge=0, le=1)]
    degraded_reason: str | None
    turn_id: str
    version: str
    generation: int


def ask_docs(arguments: AskArguments, context: ToolContext) -> DocsAnswer:
    """Ask the official documentation a question. Returns an answer whose sentences were each checked against the
    sections that they cite, or says that the documentation holds none."""
    query = make_tool_query(arguments.question, arguments, page_url=arguments.page_url)
    *_, response = context.service.chat(query, deadline=context.deadline, origins=context.origins)
    if not isinstance(response, ChatResponse):
        raise TypeError("An answer ended without its last part.")
    head = context.service.resources.index.snapshot(query.docs_version, query.page_url).head
    cited = {i for segment in response.segments for i in segment.citations}
    return DocsAnswer(
        status=response.status,
        answer=response.text_with_choices,
        segments=[AnswerSegment(text=one.text, citations=one.citations, check=one.check) for one in response.segments],
        citations=[
            Citation(id=s.id, **quote_section(s.url or "", s.chapter, s.section, s.snippet, head).model_dump())
            for s in response.source_chunks
            if s.id in cited
        ],
        nearest=response.nearest,
        grounding_confidence=response.grounding_confidence,
        degraded_reason=response.degraded_reason,
        turn_id=response.turn_id,
        version=head.version,
        generation=head.generation,
    )


@cache
def documentation_tools() -> Mapping[str, Tool]:
    """Return the tools that every site has, by name, in the order in which they are listed."""
    tools = (
        make_tool("search_docs", "Search the documentation", search_docs, SearchArguments, SearchResults),
        make_tool("read_section", "Read the documentation", read_section, ReadArguments, ReadResult),
        make_tool("ask_docs", "Ask the documentation", ask_docs, AskArguments, DocsAnswer),
        make_tool("verify_claim", "Verify a claim", verify_claim, ClaimArguments, ClaimVerdict),
    )
    return {tool.name: tool for tool in tools}
