"""What an answer is made from: the passages and their places, in the forms that generator and reader need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, get_args

from chapterverse.calibration import WeightedQuestion, read_weights
from chapterverse.errors import IndexFault
from chapterverse.knowledge.persona import Persona
from chapterverse.model import Chunk
from chapterverse.store import Snapshot
from chapterverse.text.shortening import cut_to_words
from chapterverse_api.contract import Mode, Nearest, SearchedAs, SourceChunk, ToolUse
from chapterverse_api.generation.passage import Passage
from chapterverse_api.generation.prompts import estimate_tokens
from chapterverse_api.generation.requests import GenerationRequest
from chapterverse_api.retrieval.faq import FaqMatch
from chapterverse_api.retrieval.passages import Omission
from chapterverse_api.retrieval.ranking import Candidate
from chapterverse_api.retrieval.results import Retrieval
from chapterverse_api.retrieval.site_search import primary

if TYPE_CHECKING:
    from chapterverse_api.answering.turn import Turn

MAX_SNIPPET_CHARS = 200


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """The sources of an answer, and all else that the rest of the pipeline needs of the documentation.

    Attributes:
        language: BCP 47 tag of our own words around the answer.
        sources: the passages of `request` as the reader sees them, with the same ids.
        nearest: places to read instead, best first.
        candidates: how many chunks were considered.
        snapshot: weighs the words of an answer (see `IdfLookup`); None without an index.
        retrieval: the search results that the passages were chosen from; None for a selection.
        pages: all chunks of each page that a passage is of, by file path.
        evidence: the strongest evidence found, 0 to 1.
        searched_as: the query of the search; None if it is just the question.
        other_language: whether the passages are in other languages than the reader's.
        degraded: why not everything went as configured; None if it did.
        off_topic: whether the question is small talk, or about another subject than these docs.
        omissions: why each other candidate is no source, by chunk id.
        faq: the entry with the same meaning as the question; it is the answer.
        memories: documents that inform a model or are sources, best first.
    """

    mode: Mode
    request: GenerationRequest
    language: str
    sources: tuple[SourceChunk, ...] = ()
    nearest: tuple[Nearest, ...] = ()
    candidates: int = 0
    evidence: float = 0.0
    retrieval_used: bool = False
    snapshot: Snapshot | None = None
    retrieval: Retrieval | None = None
    pages: Mapping[str, Sequence[Chunk]] = field(default_factory=dict)
    searched_as: SearchedAs | None = None
    other_language: bool = False
    degraded: str | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    off_topic: bool = False
    omissions: Mapping[str, Omission] = field(default_factory=dict)
    faq: FaqMatch | None = None
    memories: Sequence[Candidate] = ()

    @property
    def may_be_quoted(self) -> bool:
        """Whether the passages may answer without a model that judges them."""
        return bool(self.request.passages) and (self.retrieval is None or self.retrieval.may_be_quoted)


@dataclass(slots=True)
class IdfLookup:
    """Returns the idf of a text's terms in the index; nothing without an index or after it failed.

    Attributes:
        has_failed: whether the index could not be read. It is not tried again.
    """

    snapshot: Snapshot | None
    has_failed: bool = False

    def __call__(self, text: str) -> Mapping[int, float]:
        if self.snapshot is not None and not self.has_failed:
            try:
                return read_weights(text, self.snapshot.head.languages, self.snapshot)
            except IndexFault:
                self.has_failed = True
        return {}


@dataclass(frozen=True, slots=True)
class DraftSources:
    """The sources of a draft.

    Attributes:
        context: all sources, including the results of tools.
        documents: only the passages of the documentation, which are quoted if the model fails.
        idf: weighs the words of the answer.
        tool_failure: a sentence about the tools that failed; None if none did.
        tool_uses: each call of a tool, in order.
    """

    context: AnswerContext
    documents: AnswerContext
    idf: IdfLookup
    tool_failure: str | None = None
    tool_uses: tuple[ToolUse, ...] = ()

    @classmethod
    def from_documents(cls, documents: AnswerContext) -> DraftSources:
        """Return the passages of the documentation as all sources."""
        return cls(documents, documents, IdfLookup(documents.snapshot))


def make_request(
    turn: Turn,
    words: WeightedQuestion,
    passages: tuple[Passage, ...],
    *,
    language: str,
    source_language: str,
    persona: Persona,
) -> GenerationRequest:
    """Return the request to the generator.

    Args:
        language: the reader's; `persona.language` takes precedence.
        source_language: the passages' language. Every answer is written in it, because a translation could not be
            checked against the passages.
    """
    preferred = persona.language or language
    return GenerationRequest(
        question=turn.query.query or "",
        words=words,
        passages=passages,
        language=preferred if primary(preferred) == primary(source_language) else source_language,
        selected=turn.query.selected_text is not None,
        history=turn.conversation.messages,
        summary=turn.conversation.summary,
        recalled=turn.conversation.recalled,
        context=turn.query.user_context or "",
        persona=persona,
        deadline=turn.deadline,
    )


def make_source(passage: Passage, chapter: str, section: str | None = None) -> SourceChunk:
    """Return a passage as the reader sees it."""
    return SourceChunk(
        id=passage.id,
        chapter=chapter,
        section=section,
        snippet=_cut_snippet(passage.text),
        url=passage.url,
        score=round(passage.evidence, 4),
        chunk_id=passage.chunk_id,
    )


def _cut_snippet(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_SNIPPET_CHARS else f"{cut_to_words(flat, MAX_SNIPPET_CHARS - 1)}…"


def nearest_place(chunk: Chunk, url: str) -> Nearest:
    return Nearest(chapter=chunk.chapter_title, section=chunk.section_heading, url=url)


def log_context(turn: Turn, context: AnswerContext) -> None:
    """Log the results of each part, and the omitted candidates. A part that failed logs only its error."""
    retrieval = context.retrieval
    failures = retrieval.failures if retrieval else {}
    for part, error in failures.items():
        turn.log_failure(part, error)
    if "embed" in context.timings and "embedder" not in failures:
        turn.log("embedding_generated", seconds=context.timings["embed"])
    turn.log("retrieval_performed", mode=context.mode, candidates=context.candidates)
    turn.log(
        "results_ranked",
        passages=len(context.request.passages),
        evidence=round(context.evidence, 4),
        algorithm=retrieval.algorithm if retrieval else None,
    )
    if retrieval:
        reasons = Counter(context.omissions.values())
        omitted = {f"omitted_{stage}": reasons[stage] for stage in get_args(Omission)}
        turn.log("results_filtered", candidates=len(retrieval.candidates), floor=retrieval.calibration.floor, **omitted)
    request = context.request
    turn.log(
        "context_prepared",
        passages=len(request.passages),
        tokens=round(sum(estimate_tokens(passage.section) for passage in request.passages)),
        messages=len(request.history),
        summary=bool(request.summary),
        user_context=len(request.context),
    )
