"""What the routes and the CLI ask: one open index, the models beside it, and the three things they can do."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chapterverse.embedding import Embedder, open_embedder
from chapterverse.errors import ChapterVerseError, IndexMismatch, InputError, ProviderError
from chapterverse.knowledge.persona import Persona, persona_of
from chapterverse.model import Chunk, EmbedderCard, Head, Scope
from chapterverse.settings import Settings
from chapterverse.store import Snapshot, Store, only_head, open_store
from chapterverse.store.filters import Asked, readdressed, version_of
from chapterverse_api import rejections
from chapterverse_api.answering import pipeline as ask
from chapterverse_api.answering.models import TurnModels, max_search_cost, max_turn_cost, open_economy_generator
from chapterverse_api.budget.circuit_breaker import CircuitBreaker, GuardedEmbedder, GuardedReranker
from chapterverse_api.budget.daily_budget import DailyBudget
from chapterverse_api.budget.prices import Prices
from chapterverse_api.commands import answer_eval
from chapterverse_api.commands import search as searching
from chapterverse_api.contract import (
    ChatQuery,
    Feedback,
    IndexStatus,
    RetrievalRequest,
    RetrievalResponse,
    RetrievalStats,
    RetrievedChunk,
    ServiceStatus,
)
from chapterverse_api.conversation import feedback
from chapterverse_api.conversation.threads import open_threads
from chapterverse_api.conversation.transcript import Signer
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation import Generator, open_generator
from chapterverse_api.http.sse import Events
from chapterverse_api.index import addresses
from chapterverse_api.index.live_index import LiveIndex
from chapterverse_api.retrieval.rerankers import Reranker, open_reranker
from chapterverse_api.retrieval.search import Candidate, Retrieval, rerank, retrieve
from chapterverse_api.validation import checked


def open_service(settings: Settings) -> Service:
    """Return the service that these settings describe. Cheap: the index opens at the first question.

    Raises:
        ConfigurationError: a name is unknown, or a chosen provider's key or package is missing.
    """
    embedder, generator, reranker = open_embedder(settings), open_generator(settings), open_reranker(settings)
    return Service(settings, open_store(settings), embedder, generator, reranker)


class Service:
    """Answers from one store. Safe to use from several threads."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        embedder: Embedder | None,
        generator: Generator,
        reranker: Reranker | None = None,
    ) -> None:
        self.settings = settings
        self.embedder = GuardedEmbedder(embedder) if embedder else None
        self.generator = generator
        self.reranker = GuardedReranker(reranker) if reranker else None
        self.circuit = CircuitBreaker("generator")
        self.signer = Signer.of(settings)
        self.prices = Prices.of(settings, embedder.price if embedder else None)
        self.economy = open_economy_generator(settings)
        self.budget = DailyBudget.of(settings)
        self.threads = open_threads(settings)
        self._index = LiveIndex(store, self._check_embedder, self._pinned, settings.site)
        self._personas: dict[Scope, tuple[int, Persona]] = {}

    def chat(self, query: ChatQuery, *, deadline: Deadline | None = None, origins: Collection[str] = ()) -> Events:
        """Yield the parts of an answer within the day's budget; the last is the whole `ChatResponse`. See `ask.ask`."""
        with self.budget.setting_aside(
            max_turn_cost(query, self.prices, keeps=self.threads is not None)
        ) as turn_budget:
            yield from ask.ask(query, self, deadline=deadline, origins=origins, turn_budget=turn_budget)

    def ask(self, query: ChatQuery) -> Events:
        """Yield the parts of an answer for the owner: the budget is for the public. See `ask.ask`."""
        return ask.ask(query, self)

    def find(
        self,
        snapshot: Snapshot,
        question: str | None,
        filters: Asked | None = None,
        *,
        vector: Sequence[float] | None = None,
        here: str = "",
        after: Retrieval | None = None,
        means: TurnModels | None = None,
    ) -> Retrieval:
        """Search one generation, without the reranker; see `retrieval.retrieve`.

        Args:
            after: an earlier search for the same question, which embedded it, or failed to, once for both.
            means: what may be used; all of it where it is left out.
        """
        # Readers filter by the addresses that they see.
        where = readdressed(filters, lambda url: self.published_url(url, snapshot.head))
        if after is None:
            embedder = means.embedder if means else self.embedder
            return retrieve(snapshot, embedder, question, vector=vector, filters=where, here=here)
        found = retrieve(snapshot, None, question, vector=after.vector, filters=where, here=here)
        seconds = {stage: t + found.timings.get(stage, 0.0) for stage, t in after.timings.items()}
        return replace(found, failures=after.failures, timings=seconds)

    def reranked(self, question: str | None, found: Retrieval, means: TurnModels | None = None) -> Retrieval:
        """Return what was found in the reranker's order, if there is one; it is paid, so it comes last and once."""
        reranker = means.reranker if means else self.reranker
        return rerank(found, question, reranker) if question and reranker else found

    def retrieve(self, request: RetrievalRequest) -> RetrievalResponse:
        """Return the best chunks, unexpanded, within the day's budget.

        Raises:
            InputError: there is no such version, or the embedding is of another size.
            IndexFault: there is no index that can be read.
        """
        started = time.perf_counter()
        snapshot = self.snapshot(version_of(request.filters))
        with self.budget.setting_aside(max_search_cost(request.query or "", self.prices)) as turn_budget:
            means = TurnModels.of(self, turn_budget)
            found = self.find(snapshot, request.query, request.filters, vector=request.embedding, means=means)
            found = self.reranked(request.query, found, means)
        for part, error in found.failures.items():
            rejections.report(error, part=part)
        # A search by a vector alone has no words to weigh: how near it came is all that is known.
        scored = [(c, c.evidence if request.query else _near(c)) for c in found.candidates]
        best = [self._retrieved(c, score, snapshot.head) for c, score in scored if score >= request.threshold]
        return RetrievalResponse(
            retrieved_chunks=best[: request.top_k],
            execution_time=time.perf_counter() - started,
            retrieval_stats=RetrievalStats(
                total_candidates=found.total,
                search_threshold=request.threshold,
                collection_name=snapshot.head.site,
                timings={stage: round(seconds, 6) for stage, seconds in found.timings.items()},
            ),
            ranking_algorithm=found.algorithm,
        )

    def search(
        self, question: str, top_k: int, filters: Mapping[str, Any], history: list[dict[str, str]] | None = None
    ) -> list[dict[str, Any]]:
        """Return the rows of `search --json` for one question; see `searching.search`."""
        return searching.search(self, question, top_k, filters, history)

    def examine(self, question: str, history: list[dict[str, str]] | None, top_k: int) -> dict[str, Any]:
        """Return what `chapterverse eval` measures of one question; see `searching.examine`."""
        return searching.examine(self, question, history, top_k)

    def weigh(self, question: str, history: list[dict[str, str]] | None, weights: Sequence[float]) -> dict[str, Any]:
        """Return what `chapterverse calibrate` must know of one question; see `searching.weigh`."""
        return searching.weigh(self, question, history, weights)

    def answer(self, **fields: Any) -> dict[str, Any]:
        """Return a `ChatResponse` as JSON for the fields of a `ChatQuery`; those that are None are left out.

        Raises:
            InputError: the fields are out of contract.
            IndexFault: there is no index that can be read.
        """
        query = checked(**{k: v for k, v in fields.items() if v is not None})
        *_, response = self.ask(query)
        return response.model_dump(mode="json")

    def rate(self, said: Feedback) -> None:
        """Log what a reader says of an answer, and keep it where turns are kept; see `feedback.take`."""
        feedback.take(said, self.threads, log_comment=self.settings.log_questions)

    def status(self) -> ServiceStatus:
        """Return what there is to answer from; a broken index is told, not raised."""
        heads, sound, embedder = list[Head](), False, self.settings.embedder
        with contextlib.suppress(ChapterVerseError):
            heads = self._of_site(self._index.serving())
            cards = [self._card(h) for h in heads]
            embedder = cards[0].name if cards else embedder
            fits = all(h.embedder.fingerprint == card.fingerprint for h, card in zip(heads, cards, strict=True))
            sound = fits and self._index.intact(heads)
        sound = sound and self._index.trouble is None
        degraded = ([] if heads and sound else ["index"]) + [part for part, c in self._circuits.items() if c.open]
        degraded += [] if self.budget.level == "full" else ["budget"]
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

    def snapshot(self, version: str | None = None, page_url: str | None = None) -> Snapshot:
        """Return what is published now; a generation is opened once and kept until the head moves.

        Where no version is named, by the reader or by the settings, it is that of the page that the reader is on.

        Raises:
            InputError: there is no such version of these docs.
            IndexMissing: nothing was published.
            IndexMismatch: the index is another embedder's.
        """
        heads = self._index.heads(version)
        if version is not None:
            self._check_version(version, heads)
        wanted = version if version is not None else self.settings.docs_version
        at = addresses.version_at(page_url, self._of_site(heads)) if page_url else None
        return self._index.snapshot(at if wanted is None and at else only_head(heads, self.settings.site, wanted))

    @property
    def key_refused(self) -> bool:
        """Whether a model or the store does not know our key: another may have taken its place."""
        return self._index.key_refused or any(circuit.key_refused for circuit in self._circuits.values())

    def follow(self, before: Service) -> None:
        """Take over from the service that answered until now what other keys don't change: the count of its money,
        and the key that it signs with, where that was made up."""
        self.budget = before.budget
        if not self.settings.signing_key and not before.settings.signing_key:
            self.signer = before.signer

    def _of_site(self, heads: Sequence[Head]) -> list[Head]:
        return [h for h in heads if self.settings.site in ("", h.site)]

    def _check_embedder(self, head: Head) -> None:
        with contextlib.suppress(ProviderError):
            _check(head, self._card(head))

    @property
    def _pinned(self) -> Scope | None:
        """The one scope that is asked about, where the settings name it."""
        site, version = self.settings.site, self.settings.docs_version
        return Scope(site, version) if site and version is not None else None

    def _check_version(self, version: str, heads: Sequence[Head]) -> None:
        known = {h.version for h in self._of_site(heads)}
        if known and version not in known:
            names = ", ".join(sorted(filter(None, known))) or "none by name"
            raise InputError(f"These docs have no such version; there are {names}.", field="version")

    @property
    def site(self) -> str:
        """Address of the documentation that was opened last; empty before."""
        latest = self._index.latest
        return latest.head.base_url if latest else ""

    def persona(self, snapshot: Snapshot | None) -> Persona:
        """Return how the owner wants answers said; it is read once a generation."""
        if snapshot is None:
            return Persona()
        head = snapshot.head
        generation, persona = self._personas.get(head.scope, (None, Persona()))
        if generation != head.generation:
            persona = persona_of(snapshot)
            self._personas[head.scope] = head.generation, persona
        return persona

    def judge(self, question: str, history: list[dict[str, str]] | None) -> dict[str, Any]:
        """Return what `chapterverse eval --answers` measures of one question; see `judging.judge`."""
        return answer_eval.judge(self, question, history)

    def holds(self, claims: Sequence[Mapping[str, str]]) -> list[bool]:
        """Return whether each claim may stand; see `judging.holds`."""
        return answer_eval.holds(self, claims)

    def public_url(self, chunk: Chunk, head: Head) -> str:
        """Return where the reader finds the chunk: on the site's own address, or on the one that serves it here."""
        return addresses.public(chunk.url, head, self.settings.base_url)

    def published_url(self, page_url: str, head: Head) -> str:
        """Return the address that the reader is at as the index has it."""
        return addresses.published(page_url, head, self.settings.base_url)

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
            components={"rank": round(candidate.rank, 4), **{k: round(v, 4) for k, v in candidate.components.items()}},
        )

    @property
    def _circuits(self) -> dict[str, CircuitBreaker]:
        circuits = {"generator": self.circuit}
        circuits |= {"embedder": self.embedder.circuit} if self.embedder else {}
        return circuits | ({"reranker": self.reranker.circuit} if self.reranker else {})

    def _card(self, head: Head) -> EmbedderCard:
        """Return what the embedder is beside what made an index: nobody is asked, as nothing is set aside for it."""
        return self.embedder.beside(head.embedder) if self.embedder else EmbedderCard()


def _near(candidate: Candidate) -> float:
    return min(1.0, max(0.0, candidate.components["cosine"]))


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
