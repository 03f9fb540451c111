"""The tools of every site: search the documentation, read it, ask it, and verify a claim against it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from chapterverse.errors import InputError
from chapterverse.model import Head
from chapterverse_api.contract import AnswerStatus, Nearest, QuestionText, RequestModel, ResponseModel
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
    search_within_budget,
)
from chapterverse_api.ext.agents.tools.tool import Tool, ToolContext, make_tool
from chapterverse_api.ext.agents.tools.verify_claim import verify_claim
from chapterverse_api.http.answers import read_final
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.search.passages import choose
from chapterverse_api.search.ranking import Candidate

#: Sections of a search at most, within any budget.
_MAX_RESULTS = 20
#: Addresses of further sections in a reply, because a page may have hundreds.
_MAX_LISTED = 20


class SearchArguments(RequestModel):
    query: Annotated[QuestionText, Field(description="A question or keywords.")]
    version: VersionArgument = None
    language: LanguageArgument = None
    filters: RawFilters = Field(default_factory=dict)
    max_tokens: MaxTokens = 4000


class SearchResult(QuotedSection):
    score: Annotated[float, Field(ge=0, le=1, description="Evidence that it speaks of the query.")]
    language: str
    cut: Annotated[bool, Field(description="Whether read_section has more of it.")]


class SearchResults(ResponseModel):
    results: list[SearchResult]
    answerable: Annotated[
        Literal["yes", "perhaps", "no"], Field(description="Whether the documentation seems to answer the query.")
    ]
    left_out: Annotated[int, Field(description="Further sections that max_tokens has no room for.")]
    searched_as: Annotated[str | None, Field(description="The query with its mistakes corrected.")]
    degraded_reason: str | None


def search_docs(arguments: SearchArguments, context: ToolContext) -> SearchResults:
    """Search the official documentation. Returns the best sections with quotes and addresses, within a budget of
    tokens. Call it first, and read_section for all of a section."""
    query = make_tool_query(arguments.query, arguments, filters=arguments.filters)
    retrieval, snapshot = search_within_budget(query, context)
    results, remaining_tokens = list[SearchResult](), arguments.max_tokens - OVERHEAD_TOKENS
    candidates = choose(retrieval.candidates, _MAX_RESULTS)
    for candidate in candidates:
        result = _make_result(candidate, context.service.resources.index, snapshot.head)
        size = estimate_cl100k_tokens(json.dumps(result.model_dump(), ensure_ascii=False))
        if size > remaining_tokens and not results:
            quote = cut_to(result.quote, max(0, remaining_tokens - (size - estimate_cl100k_tokens(result.quote))))
            result, size = result.model_copy(update={"quote": quote, "cut": True}), remaining_tokens
        if size > remaining_tokens:
            break
        results.append(result)
        remaining_tokens -= size
    return SearchResults(
        results=results,
        answerable=retrieval.verdict,
        left_out=len(candidates) - len(results),
        searched_as=retrieval.searched if retrieval.searched != arguments.query else None,
        degraded_reason=retrieval.degraded,
    )


def _make_result(candidate: Candidate, index: SiteIndex, head: Head) -> SearchResult:
    chunk = candidate.chunk
    quoted = quote_section(index.public_url(chunk, head), chunk, chunk.text, head)
    score = round(candidate.evidence, 4)
    return SearchResult(**quoted.model_dump(), score=score, language=chunk.language, cut=False)


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
        sections=[quote_section(part.url, part.first, part.text, head) for part in read],
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
    query = make_tool_query(arguments.question, arguments, filters=arguments.filters, page_url=arguments.page_url)
    response = read_final(context.service.chat(query, deadline=context.deadline, origins=context.origins))
    head = context.service.resources.index.snapshot(query.docs_version, query.page_url).head
    cited = {i for segment in response.segments for i in segment.citations}
    return DocsAnswer(
        status=response.status,
        answer=response.text_with_choices,
        segments=[AnswerSegment(text=one.text, citations=one.citations, check=one.check) for one in response.segments],
        citations=[
            Citation(
                id=source.id,
                url=source.url or "",
                chapter=source.chapter,
                section=source.section,
                quote=source.snippet,
                version=head.version,
                generation=head.generation,
            )
            for source in response.source_chunks
            if source.id in cited
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
        make_tool("search_docs", "Search the documentation", search_docs),
        make_tool("read_section", "Read the documentation", read_section),
        make_tool("ask_docs", "Ask the documentation", ask_docs),
        make_tool("verify_claim", "Verify a claim", verify_claim),
    )
    return {tool.name: tool for tool in tools}
