"""What the routes and the CLI ask: one open index, the models beside it, and the three things they can do."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import Any
from urllib.parse import urldefrag
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from chapterverse.embedding import Embedder, open_embedder
from chapterverse.errors import ChapterVerseError, ConfigurationError, IndexMismatch, InputError, ProviderError
from chapterverse.model import Chunk, EmbedderCard, Head, Scope
from chapterverse.settings import Settings
from chapterverse.store import Snapshot, Store, only_head, open_store
from chapterverse_api import ask
from chapterverse_api.contract import (
    ChatQuery,
    Filters,
    IndexStatus,
    RetrievalRequest,
    RetrievalResponse,
    RetrievalStats,
    RetrievedChunk,
    ServiceStatus,
)
from chapterverse_api.generation import Generator, open_generator
from chapterverse_api.guard import contract as guarded
from chapterverse_api.history import standalone
from chapterverse_api.retrieval import Candidate, retrieve
from chapterverse_api.sse import Events


def open_service(settings: Settings) -> Service:
    """Return the service that these settings describe. Cheap: the index opens at the first question.

    Raises:
        ConfigurationError: a name is unknown, or a chosen provider's key or package is missing.
    """
    if settings.reranker != "none":
        raise ConfigurationError(f"There is no reranker named {settings.reranker!r}: use none.")
    return Service(settings, open_store(settings), open_embedder(settings), open_generator(settings))


class Service:
    """Answers from one store. Safe to use from several threads."""

    def __init__(self, settings: Settings, store: Store, embedder: Embedder | None, generator: Generator) -> None:
        self.settings = settings
        self.embedder = embedder
        self.generator = generator
        self._store = store
        self._open: dict[Scope, Snapshot] = {}
        self._pages: WeakKeyDictionary[Snapshot, Mapping[str, str]] = WeakKeyDictionary()
        self._lock = Lock()

    def chat(self, query: ChatQuery) -> Events:
        """Yield the parts of an answer; the last is the whole `ChatResponse`. See `ask.ask`."""
        return ask.ask(query, self)

    def retrieve(self, request: RetrievalRequest) -> RetrievalResponse:
        """Return the best chunks, unexpanded.

        Raises:
            InputError: a filter names no known field, or the embedding is of another size.
            IndexFault: there is no index that can be read.
        """
        started = time.perf_counter()
        version = request.filters.get("version")
        snapshot = self.snapshot(version if isinstance(version, str) else None)
        found = retrieve(snapshot, self.embedder, request.query, vector=request.embedding, filters=request.filters)
        # A search by a vector alone has no words to weigh: there the order is all that is known.
        scored = [(c, c.evidence if request.query else c.rank) for c in found.candidates]
        best = [self._retrieved(c, score, snapshot.head) for c, score in scored if score >= request.threshold]
        return RetrievalResponse(
            retrieved_chunks=best[: request.top_k],
            execution_time=time.perf_counter() - started,
            retrieval_stats=RetrievalStats(
                total_candidates=found.total,
                search_threshold=request.threshold,
                collection_name=snapshot.head.site,
            ),
            ranking_algorithm=found.algorithm,
        )

    def search(
        self, question: str, top_k: int, filters: Filters, history: list[dict[str, str]] | None = None
    ) -> list[dict[str, Any]]:
        """Return the rows of `search --json` for one question: chunks unexpanded, best first.

        Raises:
            InputError: the question, its history or a filter is out of contract.
            IndexFault: there is no index that can be read.
        """
        query = _contracted(ChatQuery, query=question, conversation_history=history or [], filters=filters)
        snapshot = self.snapshot()
        asked = standalone(question, query.conversation_history, snapshot.head.languages)
        found = retrieve(snapshot, self.embedder, asked, filters=query.filters)
        return [
            {
                "rank": rank,
                "score": round(c.evidence, 4),
                "url": self.public_url(c.chunk, snapshot.head),
                "chapter": c.chunk.chapter_title,
                "section": c.chunk.section_heading,
                "heading_path": list(c.chunk.heading_path),
                "source_file_path": c.chunk.source_file_path,
                "chunk_id": c.chunk.chunk_id,
                "text": c.chunk.text,
            }
            for rank, c in enumerate(found.candidates[:top_k], 1)
        ]

    def answer(self, **fields: Any) -> dict[str, Any]:
        """Return a `ChatResponse` as JSON for the fields of a `ChatQuery`; those that are None are left out.

        Raises:
            InputError: the fields are out of contract.
            IndexFault: there is no index that can be read.
        """
        query = _contracted(ChatQuery, **{k: v for k, v in fields.items() if v is not None})
        *_, response = self.chat(query)
        return response.model_dump(mode="json")

    def status(self) -> ServiceStatus:
        """Return what there is to answer from; a broken index is told, not raised."""
        heads, sound, embedder = list[Head](), False, self.settings.embedder
        with contextlib.suppress(ChapterVerseError):
            heads = self._store.heads()
            embedder = self._card.name
            sound = all(h.embedder.fingerprint == self._card.fingerprint and self._store.intact(h.scope) for h in heads)
        degraded = [] if heads and sound else ["index"]
        return ServiceStatus(
            status="degraded" if degraded else "ok",
            indexes=[_index_status(h) for h in heads],
            models={
                "embedder": embedder,
                "reranker": self.settings.reranker,
                "generator": self.generator.name,
            },
            degraded=degraded,
        )

    def snapshot(self, version: str | None = None) -> Snapshot:
        """Return what is published now; a generation is opened once and kept until the head moves.

        Raises:
            InputError: there is no such version of these docs.
            IndexMissing: nothing was published.
            IndexMismatch: the index is another embedder's.
        """
        heads = self._store.heads()
        if version is not None:
            self._check_version(version, heads)
        wanted = version if version is not None else self.settings.docs_version
        live = only_head(heads, self.settings.site, wanted)
        with self._lock:
            opened = self._open.get(live.scope)
            if opened is None or opened.head != live:
                opened = self._store.snapshot(live.scope)
                # A model that can't be asked what it is can't be asked for a vector either: words are left.
                with contextlib.suppress(ProviderError):
                    _check(opened.head, self._card)
                self._open[live.scope] = opened
            return opened

    def _check_version(self, version: str, heads: Sequence[Head]) -> None:
        known = {h.version for h in heads if self.settings.site in ("", h.site)}
        if known and version not in known:
            names = ", ".join(sorted(filter(None, known))) or "none by name"
            raise InputError(f"These docs have no such version; there are {names}.", field="version")

    def page_at(self, url: str, snapshot: Snapshot) -> str | None:
        """Return the file path of the page at an address; None if the index holds no such page."""
        pages = self._pages.get(snapshot)
        if pages is None:
            chunks = (point.chunk for point in snapshot.points())
            pages = {_page(self.public_url(c, snapshot.head)): c.source_file_path for c in chunks}
            self._pages[snapshot] = pages
        return pages.get(_page(url))

    def public_url(self, chunk: Chunk, head: Head) -> str:
        """Return where the reader finds the chunk: on the site's own address, or on the one that serves it here."""
        base, published = self.settings.base_url, head.base_url.rstrip("/") + "/"
        if base and head.base_url and chunk.url.startswith(published):
            return f"{base.rstrip('/')}/{chunk.url.removeprefix(published)}"
        return chunk.url

    def _retrieved(self, candidate: Candidate, score: float, head: Head) -> RetrievedChunk:
        chunk = candidate.chunk
        return RetrievedChunk(
            chunk_id=chunk.chunk_id,
            text=chunk.text,
            chapter_title=chunk.chapter_title,
            section_heading=chunk.section_heading,
            heading_path=list(chunk.heading_path),
            chunk_index=chunk.chunk_index,
            source_file_path=chunk.source_file_path,
            url=self.public_url(chunk, head),
            language=chunk.language,
            version=chunk.version,
            content_type=chunk.content_type,
            tags=list(chunk.tags),
            score=round(score, 4),
            components={"fused": round(candidate.rank, 4), **{k: round(v, 4) for k, v in candidate.components.items()}},
        )

    @cached_property
    def _card(self) -> EmbedderCard:
        return self.embedder.card if self.embedder else EmbedderCard()


def _contracted(kind: type[ChatQuery], **fields: Any) -> ChatQuery:
    try:
        return kind(**fields)
    except ValidationError as error:
        told = guarded.refusal([{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()])
        raise InputError(told.message, field=told.field) from None


def _page(url: str) -> str:
    """Return what all addresses of one page have in common."""
    return urldefrag(url.partition("?")[0]).url.removesuffix("index.html").rstrip("/")


def _check(head: Head, card: EmbedderCard) -> None:
    if head.embedder.fingerprint != card.fingerprint:
        raise IndexMismatch(
            f"The index was made with the embedder {head.embedder.name!r} and the settings say {card.name!r}: "
            f"set CHAPTERVERSE_EMBEDDER={head.embedder.name}, or index again."
        )


def _index_status(head: Head) -> IndexStatus:
    return IndexStatus(
        site=head.site,
        version=head.version,
        generation=head.generation,
        pages=head.pages,
        chunks=head.chunks,
        published_at=head.published_at,
    )
