"""The tools of every site: search the documentation, read it, ask it, and verify a claim against it."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from chapterverse_api.contract import ChatResponse, Nearest, QuestionText, RequestModel, ResponseModel
from chapterverse_api.ext.agents.tools.read_section import ReadArguments, ReadResult, read_section
from chapterverse_api.ext.agents.tools.registry import ToolContext, ToolRegistry, make_tool
from chapterverse_api.ext.agents.tools.search_docs import SearchArguments, SearchResults, search_docs
from chapterverse_api.ext.agents.tools.sections import (
    LanguageArgument,
    QuotedSection,
    RawFilters,
    Url,
    VersionArgument,
    make_tool_query,
    quote_section,
)
from chapterverse_api.ext.agents.tools.verify_claim import ClaimArguments, ClaimVerdict, verify_claim


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

    status: Literal["answered", "partial", "not_in_docs", "degraded"]
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
        answer=response.response,
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
def registry() -> ToolRegistry:
    """Return the tools that every site has."""
    return ToolRegistry(
        (
            make_tool("search_docs", "Search the documentation", search_docs, SearchArguments, SearchResults),
            make_tool("read_section", "Read the documentation", read_section, ReadArguments, ReadResult),
            make_tool("ask_docs", "Ask the documentation", ask_docs, AskArguments, DocsAnswer),
            make_tool("verify_claim", "Verify a claim", verify_claim, ClaimArguments, ClaimVerdict),
        )
    )
