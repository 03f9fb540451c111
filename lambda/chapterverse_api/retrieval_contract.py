"""The wire format of a search's results."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from chapterverse_api.contract import ResponseModel, Share


class ChunkImage(ResponseModel):
    """An image beside a chunk's text; `alt` is "" where the page has no text in its place."""

    url: str
    alt: str
    title: str | None


class ChunkTable(ResponseModel):
    """A table of a chunk's text, or the part of a longer one that the chunk holds; cells are Markdown.

    Attributes:
        name: the table's caption, or else the heading of its section.
    """

    name: str | None
    headers: list[str]
    rows: list[list[str]]


class RetrievedChunk(ResponseModel):
    """A chunk with its calibrated score and the parts that it was made from.

    Attributes:
        structured_data: the JSON-LD of the page: products, services, FAQs, instructions, its breadcrumb.
    """

    chunk_id: str
    text: str
    chapter_title: str
    section_heading: str | None
    heading_path: list[str]
    chunk_index: int
    source_file_path: str
    url: str
    source_domain: str
    language: str
    version: str
    type: str
    content_type: str
    created_at: str | None
    tags: list[str]
    images: list[ChunkImage]
    tables: list[ChunkTable]
    structured_data: list[dict[str, Any]]
    score: Share
    components: dict[str, float]


class RetrievalStats(ResponseModel):
    """`timings` are seconds by stage: embed, search, rank, weigh, rerank."""

    total_candidates: int
    search_threshold: float
    collection_name: str
    timings: dict[str, float] = Field(default={})


class RetrievalResponse(ResponseModel):
    """The results of a search, and how they were found.

    Attributes:
        query_id: this question's id in the log.
        processed_at: when the state was reached, ISO 8601, UTC.
        model: the model that embedded the question; null if the search used words alone.
        attempts: number of tries to embed the question; 1 if none failed.
    """

    query_id: str
    created_at: str
    processed_at: str | None
    state: Literal["created", "embedding", "searching", "completed", "failed"]
    model: str | None
    attempts: Annotated[int, Field(ge=0)]
    retrieved_chunks: list[RetrievedChunk]
    execution_time: float
    retrieval_stats: RetrievalStats
    ranking_algorithm: str
