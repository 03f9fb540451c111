"""The tool `search_docs`: the best sections for a query, within a budget of tokens."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chapterverse.model import Head
from chapterverse.store import Snapshot
from chapterverse_api import rejections
from chapterverse_api.contract import ChatQuery, QuestionText, RequestModel, ResponseModel
from chapterverse_api.ext.agents.tools.sections import (
    OVERHEAD_TOKENS,
    LanguageArgument,
    MaxTokens,
    QuotedSection,
    RawFilters,
    VersionArgument,
    cut_to,
    estimate_cl100k_tokens,
    json_tokens,
    make_tool_query,
)
from chapterverse_api.ext.agents.tools.tool import ToolContext
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.log import search_progress
from chapterverse_api.search.passages import choose
from chapterverse_api.search.ranking import Candidate
from chapterverse_api.search.results import Retrieval
from chapterverse_api.search.site_search import SearchResources, search_site

#: Sections of a search at most, within any budget.
_MAX_RESULTS = 20


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
    retrieval, snapshot = search_within_budget(make_tool_query(arguments.query, arguments), context)
    index, head = context.service.resources.index, snapshot.head
    results, remaining_tokens = list[SearchResult](), arguments.max_tokens - OVERHEAD_TOKENS
    candidates = choose(retrieval.candidates, _MAX_RESULTS)
    for candidate in candidates:
        result = _result(candidate, index, head)
        size = json_tokens(result)
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


def _result(candidate: Candidate, index: SiteIndex, head: Head) -> SearchResult:
    chunk = candidate.chunk
    return SearchResult(
        url=index.public_url(chunk, head),
        chapter=chunk.chapter_title,
        section=chunk.section_heading,
        quote=chunk.text,
        version=head.version,
        generation=head.generation,
        score=round(candidate.evidence, 4),
        language=chunk.language,
        cut=False,
    )


def search_within_budget(query: ChatQuery, context: ToolContext) -> tuple[Retrieval, Snapshot]:
    """Search within the day's budget, as for an answer."""
    resources = context.service.resources
    snapshot = resources.index.snapshot(query.docs_version)
    with resources.reserving(query.query or "") as models, search_progress() as progress:
        search = SearchResources(
            index=resources.index,
            settings=resources.settings,
            embedder=models.embedder,
            reranker=models.reranker,
            reading_model=models.reading_model,
            deadline=context.deadline,
            progress=progress,
        )
        retrieval = search_site(query, snapshot, search)
        for part, error in retrieval.failures.items():
            rejections.report(error, part=part, query_id=progress.id)
    return retrieval, snapshot
