"""Chooses the sources of an answer: a FAQ entry, or passages with enough evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chapterverse.calibration import WeightedQuestion, count_terms
from chapterverse.model import Chunk, Scope
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse.text.plain import plain
from chapterverse_api.answering.context import AnswerContext, make_request, make_source, nearest_place
from chapterverse_api.answering.small_talk import opening_language, small_talk_language
from chapterverse_api.contract import ChatQuery, Nearest, SearchedAs
from chapterverse_api.generation.passage import Passage
from chapterverse_api.retrieval.faq import FaqMatch
from chapterverse_api.retrieval.first_pages import find_first_pages
from chapterverse_api.retrieval.passages import (
    Omission,
    choose,
    drop_irrelevant,
    explain_omissions,
    make_passages,
)
from chapterverse_api.retrieval.ranking import Candidate
from chapterverse_api.retrieval.results import MIN_ON_TOPIC, Retrieval
from chapterverse_api.retrieval.site_search import (
    FollowUp,
    SearchResources,
    SiteResults,
    find_faq_entry,
    find_memories,
    make_reader_filter,
    search_site,
)

if TYPE_CHECKING:
    from chapterverse_api.answering.turn import Turn

#: Pages that a refusal names.
MAX_NEAREST = 3
#: Evidence from which a page is near a question. On two sites that it was not chosen on, 57 of 68 questions have the
#: right page among three, and 58 without a least evidence; 17 of 60 refused questions about other subjects have a page,
#: and 57 without.
MIN_NEAR_EVIDENCE = 0.15
#: Words of a selection that are searched for, those in the fewest texts of the index. The number is not measured.
SELECTED_WORDS = 8


def find_sources(turn: Turn, selection: str = "") -> AnswerContext:
    """Return the passages that the index has on a question; none if the evidence is too weak.

    Args:
        selection: the reader's selection that the question is about; empty without one.
    """
    snapshot = turn.snapshot()
    small_talk = small_talk_language(turn.query.query or "") if not selection else None
    if small_talk is not None:
        return _small_talk(turn, small_talk or turn.query.language or snapshot.head.main_language, snapshot)
    query = _add_rare_words(selection, turn.query, snapshot) if selection else turn.query
    question = query.query or ""
    models, languages = turn.models, snapshot.head.languages
    follow_up = FollowUp.detect(question, turn.conversation, models.writer, turn.deadline, languages)
    # A question that refers back may mean anything; and an entry has no data that fit a schema.
    may_use_faq = follow_up.verdict == "no" and not selection and not query.output
    if may_use_faq and (match := find_faq_entry(query, snapshot, turn.resources.index)):
        return _from_entry(turn, match, snapshot)
    search = SearchResources(
        models.embedder, models.reranker, models.reader, turn.deadline, turn.progress, models.writer is not None
    )
    results = search_site(query, snapshot, turn.resources.index, search, follow_up)
    context = _from_results(turn, query, results, snapshot)
    if selection:
        return replace(context, request=replace(context.request, selection=selection))
    return replace(context, searched_as=_describe_search(question, results))


def _from_results(turn: Turn, query: ChatQuery, results: SiteResults, snapshot: Snapshot) -> AnswerContext:
    """Return the passages chosen from search results, as sources of an answer."""
    retrieval, index = results.retrieval, turn.resources.index

    def url(chunk: Chunk) -> str:
        return index.public_url(chunk, snapshot.head)

    choice = _choose_sources(query, retrieval, turn, snapshot, url)
    source_language = next(
        (c.chunk.language for c in (*choice.candidates, *retrieval.candidates)), snapshot.head.main_language
    )
    language, persona = results.language or source_language, index.persona(snapshot)
    off_topic = not choice.passages and retrieval.answerability.docs < MIN_ON_TOPIC
    return AnswerContext(
        mode="rag",
        request=replace(
            make_request(
                turn,
                retrieval.question,
                choice.passages,
                language=language,
                source_language=source_language,
                persona=persona,
            ),
            documentation=str(Scope(snapshot.head.site, snapshot.head.version)),
            may_help=retrieval.may_help,
            selected=False,
            compares=retrieval.compares,
            sides=tuple(p.id for p in choice.passages if p.chunk_id in retrieval.sides),
            memories=tuple(plain(memory.chunk.text) for memory in choice.memories if not memory.chunk.url),
        ),
        language=persona.language or language,
        sources=tuple(
            make_source(passage, candidate.chunk.chapter_title, candidate.chunk.section_heading)
            for passage, candidate in zip(choice.passages, choice.candidates, strict=False)
        ),
        nearest=_nearest(retrieval.candidates, url),
        candidates=retrieval.total,
        evidence=retrieval.evidence,
        retrieval_used=True,
        snapshot=snapshot,
        retrieval=retrieval,
        pages=choice.pages,
        other_language=retrieval.other_language,
        degraded=retrieval.degraded,
        timings=retrieval.timings,
        off_topic=off_topic,
        omissions=choice.omissions,
        memories=choice.memories,
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    """The sources of an answer, chosen from search results.

    Attributes:
        candidates: the candidates of the passages, in their order.
        pages: all chunks of their pages, by file path.
        memories: memories that inform a model; those that name a page are sources too.
        omissions: why each other candidate is no source, by chunk id.
    """

    candidates: Sequence[Candidate]
    passages: tuple[Passage, ...]
    pages: Mapping[str, Sequence[Chunk]]
    memories: Sequence[Candidate]
    omissions: Mapping[str, Omission]


def _choose_sources(
    query: ChatQuery, retrieval: Retrieval, turn: Turn, snapshot: Snapshot, url: Callable[[Chunk], str]
) -> _Choice:
    """Return the sections that the answer may rest on, and why the other results are left out."""
    settings, index = turn.resources.settings, turn.resources.index
    strong: Sequence[Candidate] = retrieval.strong
    if retrieval.model_judges:
        # Lazy: only needed with a model.
        from chapterverse_api.retrieval.prompt_room import without_waste

        strong = without_waste(strong)
    chosen = choose(strong, query.top_k, settings.faq_top_k)
    # A memory alone is no answer.
    memories = find_memories(query, retrieval.searched, snapshot, index, settings.memory_top_k) if chosen else []
    # A memory that names a page can be looked up, so it is a source too, behind the search results.
    candidates = [*chosen, *(memory for memory in memories if memory.chunk.url)][: query.top_k]
    if query.top_k is None:
        candidates = drop_irrelevant(candidates, retrieval.question)
    pages = {path: snapshot.page(path) for path in {c.chunk.source_file_path for c in candidates}}
    passages = make_passages(candidates, url, pages)
    omissions = _explain_choice(retrieval, strong, chosen, candidates, len(passages))
    candidates = candidates[: len(passages)]
    if passages and query.top_k is None and retrieval.model_judges:
        from chapterverse_api.retrieval.prompt_room import fill_room

        is_for_reader = make_reader_filter(query, snapshot, index)
        around = fill_room(candidates, passages, pages, url, is_for_reader)
        candidates, passages = [*candidates, *(c for c, _ in around)], [*passages, *(p for _, p in around)]
    return _Choice(candidates, tuple(passages), pages, memories, omissions)


def _explain_choice(
    retrieval: Retrieval,
    useful: Sequence[Candidate],
    chosen: Sequence[Candidate],
    relevant: Sequence[Candidate],
    passages: int,
) -> Mapping[str, Omission]:
    """Return by chunk id why each candidate is no source.

    Args:
        useful: the candidates to answer from, without copies and the like.
        chosen: the best candidate of each section.
        relevant: the candidates that have to do with the question.
        passages: how many of `relevant` fit into the prompt, from the first on.
    """
    strong = retrieval.strong
    return explain_omissions(
        retrieval.candidates,
        ("verdict", () if retrieval.verdict == "no" else retrieval.candidates),
        ("evidence", retrieval.related),
        ("unsure", strong),
        ("section", choose(useful, len(strong), len(strong))),
        ("limit", chosen),
        ("relevance", relevant),
        ("budget", relevant[:passages]),
    )


def _from_entry(turn: Turn, match: FaqMatch, snapshot: Snapshot) -> AnswerContext:
    """Return a FAQ entry as the only source; its links become their texts, as in every quote."""
    entry, index = match.entry, turn.resources.index
    persona, text, question = index.persona(snapshot), plain(entry.text), turn.query.query or ""
    terms = lexical.terms_of(lexical.words(entry.embed_text, entry.language))
    url = index.public_url(entry, snapshot.head) or None
    passage = Passage(
        "1", entry.heading_path, text, text, terms, evidence=match.probability, url=url, chunk_id=entry.chunk_id
    )
    corrected = match.searched != question
    turn.progress.enter("searching")
    return AnswerContext(
        mode="rag",
        request=make_request(
            turn,
            WeightedQuestion(),
            (passage,),
            language=entry.language,
            source_language=entry.language,
            persona=persona,
        ),
        language=persona.language or entry.language,
        sources=(make_source(passage, entry.chapter_title, entry.section_heading),),
        candidates=1,
        evidence=match.probability,
        retrieval_used=True,
        snapshot=snapshot,
        searched_as=SearchedAs(query=match.searched, reason="corrected", original=question) if corrected else None,
        faq=match,
    )


def _add_rare_words(selection: str, query: ChatQuery, snapshot: Snapshot) -> ChatQuery:
    """Return the query with the rarest words of a selection added to its question."""
    return query.model_copy(update={"query": f"{query.query or ''} {_rarest_words(selection, snapshot)}".strip()})


def _rarest_words(selection: str, snapshot: Snapshot) -> str:
    """Return the words of a selection that the fewest texts of the index hold, in order."""
    words = {word.surface: word.terms[0] for word in lexical.question_words(selection, snapshot.head.languages)}
    counts = count_terms(set(words.values()), snapshot)
    indexed = [word for word in words if counts[words[word]]]
    rarest = sorted(indexed, key=lambda word: counts[words[word]])[:SELECTED_WORDS]
    return " ".join(word for word in indexed if word in rarest)


def _small_talk(turn: Turn, language: str, snapshot: Snapshot) -> AnswerContext:
    """Return no passage; to one who begins, the pages to read first."""
    index = turn.resources.index
    persona = index.persona(snapshot)
    begins = opening_language(turn.query.query or "") is not None
    return AnswerContext(
        mode="rag",
        request=make_request(
            turn, WeightedQuestion(), (), language=language, source_language=language, persona=persona
        ),
        language=persona.language or language,
        nearest=tuple(
            nearest_place(chunk, index.public_url(chunk, snapshot.head))
            for chunk in (find_first_pages(snapshot, language) if begins else ())
        ),
        snapshot=snapshot,
        off_topic=True,
    )


def _describe_search(question: str, results: SiteResults) -> SearchedAs | None:
    """Return a change to the query that a reader may want to undo: a correction, or the subject of a follow-up."""
    searched = results.retrieval.searched
    if results.contextual_query:
        return SearchedAs(query=results.contextual_query.title, reason="follow_up", original=question)
    return SearchedAs(query=searched, reason="corrected", original=question) if searched != question else None


def _nearest(candidates: Iterable[Candidate], url: Callable[[Chunk], str]) -> tuple[Nearest, ...]:
    """Return the best place on each of the nearest pages."""
    near = [c for c in candidates if c.chunk.url and c.evidence >= MIN_NEAR_EVIDENCE]
    pages: dict[str, Chunk] = {}
    for candidate in sorted(near, key=lambda c: -c.evidence):
        pages.setdefault(candidate.chunk.source_file_path, candidate.chunk)
    return tuple(nearest_place(chunk, url(chunk)) for chunk in [*pages.values()][:MAX_NEAREST])
