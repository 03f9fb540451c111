"""What an answer may be made of: passages from the index that carry enough evidence, or the reader's own selection."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

from chapterverse import lexical
from chapterverse.errors import IndexFault
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
#: Chunks of the section on either side of the one that was found: a section may be a whole reference.
NEIGHBORS = 1


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that the rest of the pipeline knows of the documentation.

    Attributes:
        sources: the passages of `task` as the reader sees them, with the same ids.
        nearest: where to look on, best first.
        candidates: how many chunks were considered.
        snapshot: what the words of an answer are weighed by; None where nothing is indexed.
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
    snapshot: Snapshot | None = None
    degraded: str | None = None
    timings: Mapping[str, float] = field(default_factory=dict)

    def weigh(self, text: str) -> Mapping[int, float]:
        """Return the idf of a text's terms in the index; nothing where there is none."""
        if self.snapshot is None:
            return {}
        return read_question(text, self.snapshot.head.languages, self.snapshot)[1]

    def coverage(self, ids: Collection[str]) -> float:
        """Return the share of the question's words, by idf, that the passages of these ids hold together."""
        words, weights = self.task.words.words, self.task.words.weights
        if not words:
            return 1.0
        held = frozenset().union(*(p.terms for p in self.task.passages if p.id in ids))
        found = sum(w for word, w in zip(words, weights, strict=True) if any(held.intersection(a) for a in word))
        return found / sum(weights)


def from_index(query: ChatQuery, service: Service) -> Material:
    """Return the passages that the index has on a question; none where the evidence is too weak."""
    snapshot = service.snapshot(query.version)
    head = snapshot.head
    question = standalone(query.query or "", query.conversation_history, head.languages)
    found = retrieve(snapshot, service.embedder, question, filters=_scoped(query, head.languages))
    kept = _sections(c for c in found.candidates if c.evidence >= found.calibration.floor)[: query.top_k]
    urls = {c.chunk.chunk_id: service.public_url(c.chunk, head) for c in found.candidates}
    pages = {path: snapshot.page(path) for path in {c.chunk.source_file_path for c in kept}}
    passages = tuple(_passage(str(i), c, urls[c.chunk.chunk_id], pages) for i, c in enumerate(kept, 1))
    language = query.language or next((c.chunk.language for c in found.candidates), head.languages[0])
    return Material(
        mode="rag",
        task=Task(query.query or "", found.question, passages, language),
        sources=tuple(_source(p, c.chunk) for p, c in zip(passages, kept, strict=True)),
        nearest=_nearest(found.candidates, urls),
        candidates=found.total,
        evidence=found.evidence,
        retrieval_used=True,
        snapshot=snapshot,
        degraded=found.degraded,
        timings=found.timings,
    )


def from_selection(query: ChatQuery, service: Service) -> Material:
    """Return the selection as the only source; the index is asked just where it stands and what its words weigh."""
    selection = query.selected_text or ""
    try:
        snapshot: Snapshot | None = service.snapshot(query.version)
    except IndexFault:
        # Whatever became of the index, the reader's own text is at hand.
        snapshot = None
    home = _home(selection, query.page_url, service, snapshot) if snapshot and query.page_url else None
    language = query.language or (home.language if home else snapshot.head.languages[0] if snapshot else "en")
    chapter = home.place.chapter if home else phrases.of(language).selection
    url = home.url if home else None
    words = _weighed(query.query or "", language, snapshot)
    terms = frozenset(t for w in lexical.words(f"{chapter}\n{selection}", language) for t in w.terms)
    passage = Passage("1", (chapter,), selection, selection, terms, 1.0, 1.0, url, None)
    source = SourceChunk(
        id="1", chapter=chapter, section=None, snippet=_snippet(selection), url=url, score=1.0, chunk_id=None
    )
    return Material(
        mode="selected_text",
        task=Task(query.query or "", words, (passage,), language),
        sources=(source,),
        nearest=(home.place,) if home else (),
        candidates=1,
        evidence=1.0,
        retrieval_used=False,
        snapshot=snapshot,
    )


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a selection stands: the page's address, as sent if the index holds it so, and the likeliest section."""

    url: str
    place: Nearest
    language: str


def _home(selection: str, page_url: str, service: Service, snapshot: Snapshot) -> _Home | None:
    page = service.page_at(page_url, snapshot)
    if page is None:
        return None
    chunks = snapshot.page(page)
    vector = lexical.query_vector(selection, snapshot.head.languages)
    hits = snapshot.search_lexical(vector, 1, {"source_file_path": [page]})
    chunk = hits[0].chunk if hits else chunks[0]
    place = _place(chunk, service.public_url(chunk, snapshot.head))
    # A URL that the index does not hold never reaches the reader, not even the one that the reader sent.
    held = page_url in {service.public_url(c, snapshot.head) for c in chunks}
    return _Home(page_url if held else urldefrag(place.url).url, place, chunk.language)


def _weighed(question: str, language: str, snapshot: Snapshot | None) -> Question:
    if snapshot is not None:
        return read_question(question, snapshot.head.languages, snapshot)[0]
    words = tuple((w.terms,) for w in lexical.words(question, language))
    return Question(words, (1.0,) * len(words))


def _scoped(query: ChatQuery, languages: Sequence[str]) -> dict[str, FilterValue]:
    """Return the filters with the reader's language, where the index has pages in it: "de-AT" reads "de" as well."""
    filters: dict[str, FilterValue] = dict(query.filters)
    spoken = [tag for tag in languages if query.language and _primary(tag) == _primary(query.language)]
    if spoken and len(languages) > 1:
        filters.setdefault("language", [*spoken])
    return filters


def _primary(tag: str) -> str:
    return tag.partition("-")[0].lower()


def _passage(number: str, candidate: Candidate, url: str, pages: Mapping[str, Sequence[Chunk]]) -> Passage:
    chunk = candidate.chunk
    around = range(chunk.chunk_index - NEIGHBORS, chunk.chunk_index + NEIGHBORS + 1)
    page = pages[chunk.source_file_path]
    section = "\n\n".join(c.text for c in page if c.chunk_index in around and _same_section(c, chunk))
    terms = frozenset(candidate.lexical.indices)
    return Passage(
        id=number,
        path=chunk.heading_path,
        text=chunk.text,
        section=section,
        terms=terms,
        rank=candidate.rank,
        score=candidate.evidence,
        url=url,
        chunk_id=chunk.chunk_id,
    )


def _sections(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the best candidate of each section, best first: a section is one source, however many chunks match."""
    best: dict[tuple[str, tuple[str, ...]], Candidate] = {}
    for candidate in candidates:
        best.setdefault((candidate.chunk.url, candidate.chunk.heading_path), candidate)
    return list(best.values())


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
