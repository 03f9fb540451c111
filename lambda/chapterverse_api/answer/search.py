"""Finds the sources of an answer: a text that is the answer, or passages with enough evidence, and their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import get_args

from chapterverse.calibration import WeightedQuestion, count_terms
from chapterverse.extensions import load_part
from chapterverse.model import Chunk, Scope
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse.text.markdown import plain
from chapterverse.text.tokens import cut_to_words
from chapterverse_api.answer.turn import IdfLookup, Sources, Turn
from chapterverse_api.contract import ChatQuery, Nearest, SearchedAs, SourceChunk
from chapterverse_api.conversation.detection import opening_language, small_talk_language
from chapterverse_api.draft.requests import GenerationRequest, Passage, estimate_tokens
from chapterverse_api.search.first_pages import find_first_pages
from chapterverse_api.search.lookups import LookupResult, look_up
from chapterverse_api.search.passages import (
    Omission,
    choose,
    drop_irrelevant,
    explain_omissions,
    make_passages,
)
from chapterverse_api.search.ranking import Candidate
from chapterverse_api.search.results import MIN_ON_TOPIC, Retrieval
from chapterverse_api.search.site_search import (
    FollowUp,
    SearchResources,
    SiteResults,
    make_reader_filter,
    primary,
    search_site,
)

MAX_SNIPPET_CHARS = 200
#: Pages that a refusal names.
_MAX_NEAREST = 3
#: Evidence from which a page is near a question. On two sites that it was not chosen on, 57 of 68 questions have the
#: right page among three, and 58 without a least evidence; 17 of 60 refused questions about other subjects have a page,
#: and 57 without.
_MIN_NEAR_EVIDENCE = 0.15
#: Words of a selection that are searched for, those in the fewest texts of the index. The number is not measured.
_SELECTED_WORDS = 8


def make_sources(
    turn: Turn,
    snapshot: Snapshot | None,
    passages: Iterable[Passage] = (),
    shown: Iterable[SourceChunk] = (),
    *,
    language: str,
    source_language: str = "",
    words: WeightedQuestion | None = None,
) -> Sources:
    """Return these sources for the question of a turn.

    Args:
        language: the reader's; the owner's persona may have another one, which takes precedence.
        source_language: the passages', if another. Every answer is written in it, because a translation could not be
            checked against the passages.
    """
    query, conversation = turn.query, turn.conversation
    persona = turn.resources.index.persona(snapshot)
    preferred, source_language = persona.language or language, source_language or language
    request = GenerationRequest(
        question=query.query or "",
        words=words or WeightedQuestion(),
        passages=tuple(passages),
        language=preferred if primary(preferred) == primary(source_language) else source_language,
        history=conversation.messages,
        summary=conversation.summary,
        recalled=conversation.recalled,
        context=query.user_context or "",
        persona=persona,
        deadline=turn.deadline,
    )
    return Sources(request, tuple(shown), preferred, IdfLookup(snapshot))


def make_source(passage: Passage, chapter: str, section: str | None = None) -> SourceChunk:
    """Return a passage as the reader sees it."""
    flat = " ".join(passage.text.split())
    return SourceChunk(
        id=passage.id,
        chapter=chapter,
        section=section,
        snippet=flat if len(flat) <= MAX_SNIPPET_CHARS else f"{cut_to_words(flat, MAX_SNIPPET_CHARS - 1)}…",
        url=passage.url,
        score=round(passage.evidence, 4),
        chunk_id=passage.chunk_id,
    )


def nearest_place(chunk: Chunk, url: str) -> Nearest:
    return Nearest(chapter=chunk.chapter_title, section=chunk.section_heading, url=url)


def find_sources(turn: Turn, selection: str = "") -> Sources:
    """Return the passages that the index has on a question; none if the evidence is too weak.

    Args:
        selection: the reader's selection that the question is about; empty without one.
    """
    snapshot, query, models = turn.snapshot(), turn.query, turn.models
    if selection:
        words = _rarest_words(selection, snapshot)
        query = query.model_copy(update={"query": f"{query.query or ''} {words}".strip()})
    elif (language := small_talk_language(query.query or "")) is not None:
        return _small_talk(turn, language or query.language or snapshot.head.main_language, snapshot)
    question, languages = query.query or "", snapshot.head.languages
    follow_up = FollowUp.detect(question, turn.conversation, models.writer, turn.deadline, languages)
    # A question that refers back may mean anything; and a text has no data that fit a schema.
    may_win = follow_up.verdict == "no" and not selection and not query.output
    found = look_up(query, snapshot, turn.resources.index, turn.resources.settings, may_win=may_win)
    if found.wins:
        return _from_winner(turn, found, snapshot)
    search = SearchResources(
        models.embedder, models.reranker, models.reader, turn.deadline, turn.progress, models.writer is not None
    )
    results = search_site(query, snapshot, turn.resources.index, search, follow_up)
    sources = _from_results(turn, query, results, found.candidates, snapshot)
    if selection:
        return replace(sources, request=replace(sources.request, selection=selection))
    return replace(sources, searched_as=_describe_search(question, results))


@dataclass(frozen=True, slots=True)
class _Selection:
    """What of the results an answer may rest on, best first.

    Attributes:
        candidates, passages: of the same sections, in the same order.
        pages, omissions, looked_up: as in `Sources`.
    """

    candidates: Sequence[Candidate]
    passages: Sequence[Passage]
    pages: Mapping[str, Sequence[Chunk]]
    omissions: Mapping[str, Omission]
    looked_up: Sequence[Candidate]


def _from_results(
    turn: Turn, query: ChatQuery, results: SiteResults, looked_up: Sequence[Candidate], snapshot: Snapshot
) -> Sources:
    """Return the sections that the answer may rest on, and why the other results are left out."""
    retrieval = results.retrieval
    selection = _select(turn, query, retrieval, looked_up, snapshot)
    candidates, passages = selection.candidates, selection.passages
    found = next((c.chunk.language for c in (*candidates, *retrieval.candidates)), snapshot.head.main_language)
    chunks = (candidate.chunk for candidate in candidates)
    sources = make_sources(
        turn,
        snapshot,
        passages,
        (make_source(p, c.chapter_title, c.section_heading) for p, c in zip(passages, chunks, strict=True)),
        language=results.language or found,
        source_language=found,
        words=retrieval.question,
    )
    request = replace(
        sources.request,
        documentation=str(Scope(snapshot.head.site, snapshot.head.version)),
        may_help=retrieval.may_help,
        compares=retrieval.compares,
        sides=tuple(p.id for p in passages if p.chunk_id in retrieval.sides),
        memories=tuple(plain(added.chunk.text) for added in selection.looked_up if not added.chunk.url),
    )
    return replace(
        sources,
        request=request,
        nearest=_nearest(retrieval.candidates, partial(turn.resources.index.public_url, head=snapshot.head)),
        retrieval=retrieval,
        pages=selection.pages,
        omissions=selection.omissions,
        off_topic=not passages and retrieval.answerability.docs < MIN_ON_TOPIC,
        looked_up=selection.looked_up,
    )


def _select(
    turn: Turn, query: ChatQuery, retrieval: Retrieval, looked_up: Sequence[Candidate], snapshot: Snapshot
) -> _Selection:
    """Return the candidates that become sources, in as much of their sections as there is room for."""
    settings, index = turn.resources.settings, turn.resources.index
    url, any_number = partial(index.public_url, head=snapshot.head), query.top_k is None
    useful: Sequence[Candidate] = retrieval.strong
    if retrieval.model_judges:
        useful = load_part("without_waste")(useful)
    chosen = choose(useful, query.top_k, settings.faq_top_k)
    # What was looked up is no answer alone.
    looked_up = looked_up if chosen else ()
    # Readers can check what has an address, so it is a source too, behind the search results.
    candidates = [*chosen, *(added for added in looked_up if added.chunk.url)][: query.top_k]
    if any_number:
        candidates = drop_irrelevant(candidates, retrieval.question)
    # What was looked up may be on no page of the index.
    pages = {c.chunk.source_file_path: [c.chunk] for c in candidates}
    pages |= {path: page for path in pages if (page := snapshot.page(path))}
    passages = make_passages(candidates, url, pages)
    relevant, candidates = candidates, candidates[: len(passages)]
    omissions = _explain_choice(retrieval, useful, chosen, relevant, candidates)
    if passages and any_number and retrieval.model_judges:
        is_for_reader = make_reader_filter(query, snapshot, index)
        around = load_part("fill_room")(candidates, passages, pages, url, is_for_reader)
        candidates, passages = [*candidates, *(c for c, _ in around)], [*passages, *(p for _, p in around)]
    return _Selection(candidates, passages, pages, omissions, looked_up)


def _explain_choice(
    retrieval: Retrieval,
    useful: Sequence[Candidate],
    chosen: Sequence[Candidate],
    relevant: Sequence[Candidate],
    fitting: Sequence[Candidate],
) -> Mapping[str, Omission]:
    """Return by chunk id why each candidate is no source.

    Args:
        useful: the candidates to answer from, without copies and the like.
        chosen: the best candidate of each section.
        relevant: the candidates that have to do with the question.
        fitting: those of them that fit into the prompt.
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
        ("budget", fitting),
    )


def _from_winner(turn: Turn, found: LookupResult, snapshot: Snapshot) -> Sources:
    """Return the text that is the answer as the only source; its links become their texts, as in every quote."""
    winner, question = found.candidates[0], turn.query.query or ""
    chunk, text = winner.chunk, plain(winner.chunk.text)
    terms = lexical.terms_of(lexical.words(chunk.embed_text, chunk.language))
    url = turn.resources.index.public_url(chunk, snapshot.head) or None
    passage = Passage(
        "1", chunk.heading_path, text, text, terms, evidence=winner.evidence, url=url, chunk_id=chunk.chunk_id
    )
    turn.progress.enter("searching")
    shown = make_source(passage, chunk.chapter_title, chunk.section_heading)
    sources = make_sources(turn, snapshot, [passage], [shown], language=chunk.language)
    return replace(sources, searched_as=_describe_correction(question, found.searched or question), winner=found)


def _rarest_words(selection: str, snapshot: Snapshot) -> str:
    """Return the words of a selection that the fewest texts of the index hold, in order."""
    words = {word.surface: word.terms[0] for word in lexical.question_words(selection, snapshot.head.languages)}
    counts = count_terms(set(words.values()), snapshot)
    indexed = [word for word in words if counts[words[word]]]
    rarest = sorted(indexed, key=lambda word: counts[words[word]])[:_SELECTED_WORDS]
    return " ".join(word for word in indexed if word in rarest)


def _small_talk(turn: Turn, language: str, snapshot: Snapshot) -> Sources:
    """Return no passage; to one who begins, the pages to read first."""
    begins = opening_language(turn.query.query or "") is not None
    first = find_first_pages(snapshot, language) if begins else ()
    nearest = tuple(nearest_place(chunk, turn.resources.index.public_url(chunk, snapshot.head)) for chunk in first)
    return replace(make_sources(turn, snapshot, language=language), nearest=nearest, off_topic=True)


def _describe_search(question: str, results: SiteResults) -> SearchedAs | None:
    """Return a change to the query that a reader may want to undo: a correction, or the subject of a follow-up."""
    if results.contextual_query:
        return SearchedAs(query=results.contextual_query.title, reason="follow_up", original=question)
    return _describe_correction(question, results.retrieval.searched)


def _describe_correction(question: str, searched: str) -> SearchedAs | None:
    return SearchedAs(query=searched, reason="corrected", original=question) if searched != question else None


def _nearest(candidates: Iterable[Candidate], url: Callable[[Chunk], str]) -> tuple[Nearest, ...]:
    """Return the best place on each of the nearest pages."""
    near = [c for c in candidates if c.chunk.url and c.evidence >= _MIN_NEAR_EVIDENCE]
    pages: dict[str, Chunk] = {}
    for candidate in sorted(near, key=lambda c: -c.evidence):
        pages.setdefault(candidate.chunk.source_file_path, candidate.chunk)
    return tuple(nearest_place(chunk, url(chunk)) for chunk in [*pages.values()][:_MAX_NEAREST])


def log_sources(turn: Turn) -> None:
    """Log the results of each part, and the omitted candidates. A part that failed logs only its error."""
    sources = turn.sources
    retrieval, request = sources.retrieval, sources.request
    failures, timings = (retrieval.failures, retrieval.timings) if retrieval else ({}, {})
    turn.stages |= timings
    for part, error in failures.items():
        turn.log_failure(part, error)
    if "embed" in timings and "embedder" not in failures:
        turn.log("embedding_generated", seconds=timings["embed"])
    passages = len(request.passages)
    turn.log("retrieval_performed", mode=sources.mode, candidates=retrieval.total if retrieval else passages)
    evidence = retrieval.evidence if retrieval else max((p.evidence for p in request.passages), default=0.0)
    algorithm = retrieval.algorithm if retrieval else None
    turn.log("results_ranked", passages=passages, evidence=round(evidence, 4), algorithm=algorithm)
    if retrieval:
        reasons, floor = Counter(sources.omissions.values()), retrieval.calibration.floor
        omitted = {f"omitted_{stage}": reasons[stage] for stage in get_args(Omission)}
        turn.log("results_filtered", candidates=len(retrieval.candidates), floor=floor, **omitted)
    turn.log(
        "context_prepared",
        passages=passages,
        tokens=round(sum(estimate_tokens(passage.section) for passage in request.passages)),
        messages=len(request.history),
        summary=bool(request.summary),
        user_context=len(request.context),
    )
