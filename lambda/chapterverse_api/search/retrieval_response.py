"""The document of `/v1/retrieve`: the best chunks of a search with their scores, unexpanded."""

from __future__ import annotations

from chapterverse.model import Chunk, Head
from chapterverse_api import log, rejections
from chapterverse_api.contract import RetrievalRequest
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.log import QueryProgress
from chapterverse_api.retrieval_contract import (
    ChunkImage,
    ChunkTable,
    RetrievalResponse,
    RetrievalStats,
    RetrievedChunk,
)
from chapterverse_api.search.ranking import Candidate
from chapterverse_api.search.results import Retrieval

#: Fields that the document has as the chunk has them.
_SAME = (
    "chunk_id", "text", "chapter_title", "section_heading", "heading_path", "chunk_index", "source_file_path",
    "source_domain", "language", "version", "type", "content_type", "tags",
)  # fmt: skip


def respond_with_chunks(
    request: RetrievalRequest, retrieval: Retrieval, head: Head, index: SiteIndex, progress: QueryProgress
) -> RetrievalResponse:
    """Return the document, and log the parts that failed and how many chunks the threshold and the limit left out."""
    for part, error in retrieval.failures.items():
        rejections.report(error, part=part, query_id=progress.id)
    # Without words the score is the cosine.
    scored = [(c, c.evidence if request.query else _cosine(c)) for c in retrieval.candidates]
    over = [(c, score) for c, score in scored if score >= request.threshold]
    best = [_retrieved_chunk(c, score, index, head) for c, score in over[: request.top_k]]
    log.event(
        "results_filtered",
        execution_time=progress.seconds,
        query_id=progress.id,
        candidates=len(scored),
        floor=request.threshold,
        omitted_evidence=len(scored) - len(over),
        omitted_limit=len(over) - len(best),
    )
    progress.enter("completed")
    return RetrievalResponse(
        query_id=progress.id,
        created_at=progress.created_at,
        processed_at=progress.processed_at,
        state=progress.state,
        model=progress.model,
        attempts=progress.attempts,
        retrieved_chunks=best,
        execution_time=progress.seconds,
        retrieval_stats=RetrievalStats(
            total_candidates=retrieval.total,
            search_threshold=request.threshold,
            collection_name=head.site,
            timings={stage: round(seconds, 6) for stage, seconds in retrieval.timings.items()},
        ),
        ranking_algorithm=retrieval.algorithm,
    )


def _cosine(candidate: Candidate) -> float:
    return min(1.0, max(0.0, candidate.components["cosine"]))


def _retrieved_chunk(candidate: Candidate, score: float, index: SiteIndex, head: Head) -> RetrievedChunk:
    chunk = candidate.chunk
    return RetrievedChunk(
        **{name: getattr(chunk, name) for name in _SAME},
        url=index.public_url(chunk, head),
        created_at=chunk.created_at or None,
        images=[ChunkImage(url=i["url"], alt=i["alt"], title=i.get("title")) for i in chunk.images],
        tables=_tables(chunk),
        structured_data=[dict(one) for one in chunk.structured_data],
        score=round(score, 4),
        components={"rank": round(candidate.score, 4), **{k: round(v, 4) for k, v in candidate.components.items()}},
    )


def _tables(chunk: Chunk) -> list[ChunkTable]:
    # A chat doesn't need it.
    from chapterverse.text.markdown import tables

    captions = dict(chunk.captions)
    return [
        ChunkTable(
            name=captions.get(table.line) or chunk.section_heading,
            headers=list(table.headers),
            rows=[list(row) for row in table.rows],
        )
        for table in tables(chunk.text)
    ]
