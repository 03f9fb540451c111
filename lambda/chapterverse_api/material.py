"""What an answer may be made of: passages from the index that carry enough evidence, or the reader's own selection."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

from chapterverse import lexical
from chapterverse.errors import IndexMissing
from chapterverse.evidence import Question, read_question
from chapterverse.model import Chunk
from chapterverse.store import Snapshot
from chapterverse_api import phrases
from chapterverse_api.contract import ChatQuery, FilterValue, Mode, Nearest, SourceChunk
from chapterverse_api.generation import Passage, Task
from chapterverse_api.history import standalone
from chapterverse_api.retrieval import Candidate, retrieve

if TYPE_CHECKING:
    from chapterverse_api.service import Service

#: Pages that a refusal points to.
NEAREST = 3
SNIPPET = 200


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that the rest of the pipeline knows of the documentation.

    Attributes:
        sources: the passages of `task` as the reader sees them, with the same ids.
        nearest: where to look on, best first.
        candidates: how many chunks were considered.
        evidence: the strongest evidence found, 0 to 1.
        degraded: why not everything went as configured; None if it did.
    """

    mode: Mode
    task: Task
    sources: tuple[SourceChunk, ...]
    nearest: tuple[Nearest, ...]
    candidates: int
    evidence: float
    retrieval_used: bool
    degraded: str | None = None
    timings: Mapping[str, float] = field(default_factory=dict)

    def idf(self, term: int) -> float:
        """Return the weight of a hashed term; an average one where the question has no say."""
        return self.task.idf.get(term, 1.0)

    def coverage(self, ids: Collection[str]) -> float:
        """Return the share of the question's words, by idf, that the passages of these ids hold together."""
        words, weights = self.task.words.words, self.task.words.weights
        if not words:
            return 1.0
        cited = (p for p in self.task.passages if p.id in ids)
        text = "\n".join(t for p in cited for t in (*p.path, p.section))
        held = {t for w in lexical.words(text, self.task.language) for t in w.terms}
        found = sum(w for word, w in zip(words, weights, strict=True) if any(held.intersection(a) for a in word))
        return found / sum(weights)


def from_index(query: ChatQuery, service: Service) -> Material:
    """Return the passages that the index has on a question; none where the evidence is too weak."""
    snapshot = service.snapshot(query.version)
    head = snapshot.head
    question = standalone(query.query or "", query.conversation_history, head.languages)
    found = retrieve(snapshot, service.embedder, question, filters=_scoped(query, head.languages))
    kept = [c for c in found.candidates[: query.top_k] if c.evidence >= found.calibration.floor]
    urls = {c.chunk.chunk_id: service.public_url(c.chunk, head) for c in found.candidates}
    passages = tuple(_passage(str(i), c, urls[c.chunk.chunk_id], snapshot) for i, c in enumerate(kept, 1))
    return Material(
        mode="rag",
        task=Task(query.query or "", found.question, found.idf, passages, query.language or head.languages[0]),
        sources=tuple(_source(p, c.chunk) for p, c in zip(passages, kept, strict=True)),
        nearest=_nearest(found.candidates, urls),
        candidates=found.total,
        evidence=found.evidence,
        retrieval_used=True,
        degraded=found.degraded,
        timings=found.timings,
    )


def from_selection(query: ChatQuery, service: Service) -> Material:
    """Return the selection as the only source; of the index just where the selection stands is asked."""
    selection = query.selected_text or ""
    try:
        snapshot: Snapshot | None = service.snapshot(query.version)
    except IndexMissing:
        snapshot = None
    found = _home(selection, query.page_url, service, snapshot)
    language = query.language or (snapshot.head.languages[0] if snapshot else "en")
    chapter = found.chunk.chapter_title if found else phrases.of(language).selection
    # A URL that the index does not hold never reaches the reader, not even the one that the reader sent.
    url = query.page_url if found else None
    words, idf = _weighed(query.query or "", language, snapshot)
    passage = Passage("1", (chapter,), selection, selection, 1.0, url, None)
    source = SourceChunk(
        id="1", chapter=chapter, section=None, snippet=_snippet(selection), url=url, score=1.0, chunk_id=None
    )
    return Material(
        mode="selected_text",
        task=Task(query.query or "", words, idf, (passage,), language),
        sources=(source,),
        nearest=(_place(found.chunk, found.url),) if found else (),
        candidates=1,
        evidence=1.0,
        retrieval_used=False,
    )


@dataclass(frozen=True, slots=True)
class _Home:
    chunk: Chunk
    url: str


def _home(selection: str, page_url: str | None, service: Service, snapshot: Snapshot | None) -> _Home | None:
    """Return the chunk of the reader's page that the selection most likely comes from."""
    if snapshot is None or not page_url:
        return None
    page = _page_of(page_url)
    hits = snapshot.search_lexical(lexical.query_vector(selection, snapshot.head.languages), 50)
    places = (_Home(hit.chunk, service.public_url(hit.chunk, snapshot.head)) for hit in hits)
    return next((place for place in places if _page_of(place.url) == page), None)


def _page_of(url: str) -> str:
    return urldefrag(url.partition("?")[0]).url.removesuffix("index.html")


def _weighed(question: str, language: str, snapshot: Snapshot | None) -> tuple[Question, Mapping[int, float]]:
    if snapshot is not None:
        return read_question(question, snapshot.head.languages, snapshot)
    words = tuple((w.terms,) for w in lexical.words(question, language))
    return Question(words, (1.0,) * len(words)), {}


def _scoped(query: ChatQuery, languages: Sequence[str]) -> dict[str, FilterValue]:
    """Return the filters with the reader's language, where the index has pages in it."""
    filters: dict[str, FilterValue] = dict(query.filters)
    if query.language is not None and query.language in languages and len(languages) > 1:
        filters.setdefault("language", query.language)
    return filters


def _passage(number: str, candidate: Candidate, url: str, snapshot: Snapshot) -> Passage:
    chunk = candidate.chunk
    around = [c.text for c in snapshot.page(chunk.source_file_path) if _same_section(c, chunk)]
    section = "\n\n".join(around) or chunk.text
    return Passage(number, chunk.heading_path, chunk.text, section, candidate.evidence, url, chunk.chunk_id)


def _same_section(a: Chunk, b: Chunk) -> bool:
    return a.url == b.url and a.heading_path == b.heading_path


def _source(passage: Passage, chunk: Chunk) -> SourceChunk:
    return SourceChunk(
        id=passage.id,
        chapter=chunk.chapter_title,
        section=chunk.section_heading,
        snippet=_snippet(chunk.text),
        url=passage.url,
        score=round(passage.score, 4),
        chunk_id=chunk.chunk_id,
    )


def _snippet(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SNIPPET else flat[: SNIPPET - 1].rsplit(" ", 1)[0] + "…"


def _nearest(candidates: Sequence[Candidate], urls: Mapping[str, str]) -> tuple[Nearest, ...]:
    """Return the best place on each of the nearest pages."""
    pages: dict[str, Nearest] = {}
    for candidate in sorted(candidates, key=lambda c: -c.evidence):
        pages.setdefault(candidate.chunk.source_file_path, _place(candidate.chunk, urls[candidate.chunk.chunk_id]))
    return tuple(pages.values())[:NEAREST]


def _place(chunk: Chunk, url: str) -> Nearest:
    return Nearest(chapter=chunk.chapter_title, section=chunk.section_heading, url=url)
