"""Chooses what an answer is made from: passages with enough evidence, or the reader's selection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

from chapterverse.calibration import Question, read_question, read_weights
from chapterverse.errors import IndexFault
from chapterverse.knowledge.persona import Persona
from chapterverse.model import Chunk
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse.text.plain import plain
from chapterverse_api import phrases
from chapterverse_api.answering.small_talk import language_of
from chapterverse_api.contract import ChatQuery, Mode, Nearest, SearchedAs, SourceChunk
from chapterverse_api.conversation.follow_ups import back_reference
from chapterverse_api.conversation.history import Subject, subject
from chapterverse_api.generation import GenerationRequest, Passage
from chapterverse_api.grounding.links import Links
from chapterverse_api.index import addresses
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.retrieval.faq import FaqMatch
from chapterverse_api.retrieval.passages import Omission, chosen, omissions, passages, relevant
from chapterverse_api.retrieval.scope import (
    ScopedResults,
    chunk_of,
    faq_in_scope,
    memories_in_scope,
    primary,
    search_in_scope,
)
from chapterverse_api.retrieval.search import Candidate, Retrieval

if TYPE_CHECKING:
    from chapterverse_api.answering.turn import Turn

#: Pages that a refusal points to.
NEAREST = 3
#: Without passages and with a smaller answerability a question is about something else. 1 % of 614 questions on twelve
#: sites are smaller, of 1,560 about other tools 27 %. Near it is what its words name.
ON_TOPIC = 0.05
#: Words of a selection that are searched for: those that the fewest texts of the index hold.
SELECTED_WORDS = 8
SNIPPET = 200


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """Everything that the rest of the pipeline knows of the documentation.

    Attributes:
        language: BCP 47 tag of what we say ourselves, around the answer.
        sources: the passages of `task` as the reader sees them, with the same ids.
        nearest: where to look on, best first.
        candidates: how many chunks were considered.
        snapshot: what the words of an answer are weighed by (see `Weights`); None where nothing is indexed.
        found: what the passages were chosen from; None for a selection.
        pages: all chunks of each page that a passage is of, by file path.
        evidence: the strongest evidence found, 0 to 1.
        searched_as: what was searched for; None where it is just the question.
        other_language: whether the passages are in other languages than the reader's.
        degraded: why not everything went as configured; None if it did.
        off_topic: whether the question is small talk, or about nothing that these docs are about.
        omissions: why each other candidate is no source, by chunk id.
        faq: the entry that means the same as the question: it is the answer.
    """

    mode: Mode
    task: GenerationRequest
    language: str
    sources: tuple[SourceChunk, ...]
    nearest: tuple[Nearest, ...]
    candidates: int
    evidence: float
    retrieval_used: bool
    snapshot: Snapshot | None = None
    found: Retrieval | None = None
    pages: Mapping[str, Sequence[Chunk]] = field(default_factory=dict)
    searched_as: SearchedAs | None = None
    other_language: bool = False
    degraded: str | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    off_topic: bool = False
    omissions: Mapping[str, Omission] = field(default_factory=dict)
    faq: FaqMatch | None = None


@dataclass(slots=True)
class Weights:
    """Gives the idf of a text's terms in the index; nothing where there is none, or it can't be read any more.

    Attributes:
        lost: whether it could not be read: it is not tried again.
    """

    snapshot: Snapshot | None
    lost: bool = False

    def __call__(self, text: str) -> Mapping[int, float]:
        if self.snapshot is not None and not self.lost:
            try:
                return read_weights(text, self.snapshot.head.languages, self.snapshot)
            except IndexFault:
                self.lost = True
        return {}


def from_index(turn: Turn, selection: str = "") -> AnswerContext:
    """Return the passages that the index has on a question; none where the evidence is too weak.

    Args:
        selection: what the question is about.
    """
    query, index, models = turn.query, turn.resources.index, turn.models
    snapshot = turn.snapshot()
    if small_talk := language_of(query.query or "") if not selection else None:
        return _small_talk(turn, small_talk, snapshot)
    if selection:
        asked = f"{query.query or ''} {_rarest_words(selection, snapshot)}".strip()
        query = query.model_copy(update={"query": asked})
    question, languages = query.query or "", snapshot.head.languages

    def subject_of() -> Subject | None:
        return subject(question, turn.conversation, models.writer, turn.deadline, languages)

    refers_back = back_reference(question, languages) if turn.conversation.questions else "no"
    # What refers back may mean anything; and an entry has no data that fit a schema.
    alone = refers_back == "no" and not selection and not query.output
    if alone and (match := faq_in_scope(query, snapshot, index)):
        return _from_entry(turn, match, snapshot)
    results = search_in_scope(
        query, refers_back, subject_of, snapshot, index, models.embedder, models.reranker, turn.deadline, turn.progress
    )
    found = results.found

    def url(chunk: Chunk) -> str:
        return index.public_url(chunk, snapshot.head)

    choice = _choose(query, found, turn, snapshot, url)
    kept, made = choice.kept, choice.passages
    written = next((c.chunk.language for c in (*kept, *found.candidates)), snapshot.head.languages[0])
    language, persona = results.language or written, index.persona(snapshot)
    off_topic = not made and found.answerability < ON_TOPIC
    return AnswerContext(
        mode="rag",
        task=replace(
            _task(turn, found.question, made, language, written, persona, unsure=found.verdict == "perhaps"),
            selected=False,
            selection=selection,
            memories=choice.memories,
        ),
        language=persona.language or language,
        sources=tuple(_source(p, c.chunk) for p, c in zip(made, kept, strict=False)),
        nearest=_nearest([c for c in found.candidates if not off_topic or _named(c.chunk, found.question)], url),
        candidates=found.total,
        evidence=found.evidence,
        retrieval_used=True,
        snapshot=snapshot,
        found=found,
        pages=choice.pages,
        searched_as=None if selection else _searched_as(question, results),
        other_language=results.other_language,
        degraded=found.degraded,
        timings=found.timings,
        off_topic=off_topic,
        omissions=choice.omissions,
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    """What is answered with, of what was found.

    Attributes:
        kept: the candidates of the passages, and perhaps more.
        pages: all chunks of their pages, by file path.
        memories: texts that inform a model and are no sources.
        omissions: why each other candidate is no source, by chunk id.
    """

    kept: Sequence[Candidate]
    passages: tuple[Passage, ...]
    pages: Mapping[str, Sequence[Chunk]]
    memories: tuple[str, ...]
    omissions: Mapping[str, Omission]


def _choose(query: ChatQuery, found: Retrieval, turn: Turn, snapshot: Snapshot, url: Callable[[Chunk], str]) -> _Choice:
    settings, index = turn.resources.settings, turn.resources.index
    distinct = chosen(found.strong, len(found.strong), len(found.strong))
    kept = chosen(found.strong, query.top_k, settings.faq_top_k)
    stages: list[tuple[Omission, Sequence[Candidate]]] = [
        ("verdict", () if found.verdict == "no" else found.candidates),
        ("evidence", found.related),
        ("unsure", found.strong),
        ("section", distinct),
        ("limit", kept),
    ]
    # A memory alone is no answer.
    memories = memories_in_scope(query, found.searched, snapshot, index, settings.memory_top_k) if kept else []
    # One that names a page can be looked up, so it is a source behind those that were found.
    kept = [*kept, *(memory for memory in memories if memory.chunk.url)][: query.top_k]
    pages = {path: snapshot.page(path) for path in {c.chunk.source_file_path for c in kept}}
    made = tuple(passages(kept, url, pages))
    if query.top_k is None:
        kept = relevant(kept, made, found.question)
        made = tuple(passages(kept, url, pages)) if len(kept) < len(made) else made
        stages.append(("relevance", kept))
    stages.append(("budget", kept[: len(made)]))
    told = tuple(plain(memory.chunk.text) for memory in memories if not memory.chunk.url)
    return _Choice(kept, made, pages, told, omissions(found.candidates, *stages))


def _from_entry(turn: Turn, match: FaqMatch, snapshot: Snapshot) -> AnswerContext:
    """Return a FAQ entry as the only source; its links become their texts, as those of all that is quoted."""
    entry, index = match.entry, turn.resources.index
    persona, text, question = index.persona(snapshot), plain(entry.text), turn.query.query or ""
    terms = frozenset(t for w in lexical.words(entry.embed_text, entry.language) for t in w.terms)
    url = index.public_url(entry, snapshot.head) or None
    passage = Passage("1", entry.heading_path, text, text, terms, 1.0, match.probability, url, entry.chunk_id)
    corrected = match.searched != question
    turn.progress.enter("searching")
    return AnswerContext(
        mode="rag",
        task=_task(turn, Question((), ()), (passage,), entry.language, entry.language, persona),
        language=persona.language or entry.language,
        sources=(_source(passage, entry),),
        nearest=(),
        candidates=1,
        evidence=match.probability,
        retrieval_used=True,
        snapshot=snapshot,
        searched_as=SearchedAs(query=match.searched, reason="corrected", original=question) if corrected else None,
        faq=match,
    )


def _rarest_words(selection: str, snapshot: Snapshot) -> str:
    """Return the words of a selection that the fewest texts of the index hold, in order."""
    words = {word.surface: word.terms[0] for word in lexical.question_words(selection, snapshot.head.languages)}
    terms = sorted(set(words.values()))
    counts = dict(zip(terms, snapshot.document_frequencies(terms), strict=True))
    known = [word for word in words if counts[words[word]]]
    rarest = sorted(known, key=lambda word: counts[words[word]])[:SELECTED_WORDS]
    return " ".join(word for word in known if word in rarest)


def _small_talk(turn: Turn, language: str, snapshot: Snapshot) -> AnswerContext:
    persona = turn.resources.index.persona(snapshot)
    return AnswerContext(
        mode="rag",
        task=_task(turn, Question((), ()), (), language, language, persona),
        language=persona.language or language,
        sources=(),
        nearest=(),
        candidates=0,
        evidence=0.0,
        retrieval_used=False,
        snapshot=snapshot,
        off_topic=True,
    )


def _searched_as(question: str, results: ScopedResults) -> SearchedAs | None:
    """Return what the reader may want to take back: a correction, or what the question was taken to follow up on."""
    subject, searched = results.subject, results.found.searched
    if subject:
        query = subject.text if subject.whole else subject.question
        return SearchedAs(query=query, reason="follow_up", original=question)
    return SearchedAs(query=searched, reason="corrected", original=question) if searched != question else None


def from_selection(turn: Turn) -> AnswerContext:
    """Return the selection as the only source; the index is asked just where it stands and what its words weigh."""
    try:
        return _selected(turn, turn.snapshot())
    except IndexFault:
        # Whatever became of the index, the reader's own text is at hand.
        return _selected(turn, None)


def about_selection(turn: Turn) -> AnswerContext:
    """Return what the index has on a selection, for a generator that can only quote: the reader has read the selection.

    Where that is nothing, the selection is the source.
    """
    with suppress(IndexFault):
        context = from_index(turn, turn.query.selected_text or "")
        if context.task.passages:
            return context
    return from_selection(turn)


def _selected(turn: Turn, snapshot: Snapshot | None) -> AnswerContext:
    query, index = turn.query, turn.resources.index
    selection = query.selected_text or ""
    home = _home(selection, query.page_url, index, snapshot) if snapshot and query.page_url else None
    # Whoever has a reader send a text may want an address in it shown under this site's name.
    selection = Links((), home.texts if home else ()).without_foreign(selection)
    language = query.language or (home.language if home else snapshot.head.languages[0] if snapshot else "en")
    chapter = home.place.chapter if home else phrases.of(language).selection
    url = home.url if home else None
    words, persona = _weighed(query.query or "", language, snapshot), index.persona(snapshot)
    terms = frozenset(t for w in lexical.words(f"{chapter}\n{selection}", language) for t in w.terms)
    passage = Passage("1", (chapter,), selection, selection, terms, 1.0, 1.0, url, None)
    source = SourceChunk(
        id="1", chapter=chapter, section=None, snippet=snippet(selection), url=url, score=1.0, chunk_id=None
    )
    return AnswerContext(
        mode="selected_text",
        task=_task(turn, words, (passage,), language, home.language if home else language, persona),
        language=persona.language or language,
        sources=(source,),
        nearest=(home.place,) if home else (),
        candidates=1,
        evidence=1.0,
        retrieval_used=False,
        snapshot=snapshot,
    )


def _task(
    turn: Turn,
    words: Question,
    passages: tuple[Passage, ...],
    language: str,
    written: str,
    persona: Persona,
    *,
    unsure: bool = False,
) -> GenerationRequest:
    """Return what to answer.

    Args:
        language: the reader's; `persona.language` goes before it.
        written: that of the passages, in which the answer is when it is neither's: no word of a translation could be
            checked against what was sent.
    """
    wished = persona.language or language
    return GenerationRequest(
        question=turn.query.query or "",
        words=words,
        passages=passages,
        language=wished if primary(wished) == primary(written) else written,
        unsure=unsure,
        selected=turn.query.selected_text is not None,
        history=turn.conversation.messages,
        summary=turn.conversation.summary,
        recalled=turn.conversation.recalled,
        context=turn.query.user_context or "",
        persona=persona,
        deadline=turn.deadline,
    )


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a selection stands: the page's address, as sent if the index holds it so, and the likeliest section.

    Attributes:
        texts: all that the page says, with the addresses of its sections.
    """

    url: str
    place: Nearest
    language: str
    texts: tuple[str, ...]


def _home(selection: str, page_url: str, index: SiteIndex, snapshot: Snapshot) -> _Home | None:
    held = addresses.on_page(index.published_url(page_url, snapshot.head), snapshot)
    chunk = chunk_of(selection, held, snapshot)
    if chunk is None:
        return None
    place = _place(chunk, index.public_url(chunk, snapshot.head))
    # A URL that the index does not hold never reaches the reader, not even the one that the reader sent.
    known = page_url in {index.public(url, snapshot.head) for url in held}
    texts = tuple(text for c in snapshot.page(chunk.source_file_path) for text in (plain(c.text), c.url))
    return _Home(page_url if known else urldefrag(place.url).url, place, chunk.language, texts)


def _weighed(question: str, language: str, snapshot: Snapshot | None) -> Question:
    if snapshot is not None:
        return read_question(question, snapshot.head.languages, snapshot)[0]
    words = tuple((w.terms,) for w in lexical.words(question, language))
    return Question(words, (1.0,) * len(words))


def _source(passage: Passage, chunk: Chunk) -> SourceChunk:
    return SourceChunk(
        id=passage.id,
        chapter=chunk.chapter_title,
        section=chunk.section_heading,
        snippet=snippet(passage.text),
        url=passage.url,
        score=round(passage.score, 4),
        chunk_id=chunk.chunk_id,
    )


def snippet(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SNIPPET else flat[: SNIPPET - 1].rsplit(" ", 1)[0] + "…"


def _nearest(candidates: Sequence[Candidate], url: Callable[[Chunk], str]) -> tuple[Nearest, ...]:
    """Return the best place on each of the nearest pages."""
    pages: dict[str, Chunk] = {}
    for candidate in sorted((c for c in candidates if c.chunk.url), key=lambda c: -c.evidence):
        pages.setdefault(candidate.chunk.source_file_path, candidate.chunk)
    return tuple(_place(chunk, url(chunk)) for chunk in islice(pages.values(), NEAREST))


def _named(chunk: Chunk, question: Question) -> bool:
    """Whether a heading above a chunk holds a word of a question."""
    terms = {term for heading in chunk.heading_path for w in lexical.words(heading, chunk.language) for term in w.terms}
    return any(not terms.isdisjoint(alternative) for word in question.words for alternative in word)


def _place(chunk: Chunk, url: str) -> Nearest:
    return Nearest(chapter=chunk.chapter_title, section=chunk.section_heading, url=url)
