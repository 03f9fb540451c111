"""Finds the sources of an answer: a text that is one, passages with enough evidence, or the reader's selection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urldefrag

from chapterverse.calibration import WeightedQuestion, count_terms, read_question
from chapterverse.errors import ChapterVerseError, IndexFault
from chapterverse.extensions import foreign, load, load_part
from chapterverse.manifests import EXTENSIONS, Extension
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse.text.markdown import plain
from chapterverse_api import log, phrases
from chapterverse_api.contract import ChatQuery, Nearest, SearchedAs
from chapterverse_api.conversation.detection import (
    FollowUpVerdict,
    detect_follow_up,
    opening_language,
    rewrite_follow_up,
    small_talk_language,
)
from chapterverse_api.conversation.transcript import Conversation
from chapterverse_api.draft.requests import Passage
from chapterverse_api.index.site_index import SiteIndex, on_page
from chapterverse_api.search.first_pages import find_first_pages
from chapterverse_api.search.lookups import LookupQuery, LookupResult
from chapterverse_api.search.passages import FoundSources, make_place, make_source, select_sources
from chapterverse_api.search.ranking import Candidate
from chapterverse_api.search.site_search import SearchResources, find_closest_chunk, reader_filter, search_site
from chapterverse_api.search.suggestions import name_choices

#: Words of a selection that are searched for, those in the fewest texts of the index. The number is not measured.
_SELECTED_WORDS = 8


def find_sources(
    query: ChatQuery, conversation: Conversation, snapshot: Snapshot, resources: SearchResources, selection: str = ""
) -> FoundSources:
    """Return the passages that the index has on a question; none if the evidence is too weak.

    Args:
        selection: the reader's selection that the question is about; empty without one.

    Raises:
        ClientDisconnected: the reader left.
        IndexFault: the index can't be read.
    """
    if selection:
        words = _rarest_words(selection, snapshot)
        query = query.model_copy(update={"query": f"{query.query or ''} {words}".strip()})
    elif (language := small_talk_language(query.query or "")) is not None:
        return _answer_small_talk(query, language or query.language or snapshot.head.main_language, snapshot, resources)
    question, languages = query.query or "", snapshot.head.languages
    verdict: FollowUpVerdict = detect_follow_up(question, languages) if conversation.questions else "no"
    # A question that refers back may mean anything; and a text has no data that fit a schema.
    may_win = verdict == "no" and not selection and not query.output
    found = _look_up(query, snapshot, resources, may_win=may_win)
    if found.wins:
        return _from_winner(found, question, snapshot, resources)
    rewrite = partial(rewrite_follow_up, question, conversation, resources.writer, resources.deadline, languages)
    retrieval = search_site(query, snapshot, resources, verdict, rewrite)
    sources = select_sources(query, retrieval, found.candidates, snapshot, resources)
    if selection:
        return replace(sources, selection=selection)
    if query_in_context := retrieval.contextual_query:
        searched_as = SearchedAs(query=query_in_context.title, reason="follow_up", original=question)
        return replace(sources, searched_as=searched_as)
    choices = [] if query.output else name_choices(question, retrieval, conversation, snapshot)
    return replace(sources, searched_as=_describe_correction(question, retrieval.searched), choices=choices)


def _rarest_words(selection: str, snapshot: Snapshot) -> str:
    """Return the words of a selection that the fewest texts of the index hold, in order."""
    words = {word.surface: word.terms[0] for word in lexical.question_words(selection, snapshot.head.languages)}
    counts = count_terms(set(words.values()), snapshot)
    indexed = [word for word in words if counts[words[word]]]
    rarest = sorted(indexed, key=lambda word: counts[words[word]])[:_SELECTED_WORDS]
    return " ".join(word for word in indexed if word in rarest)


def _answer_small_talk(query: ChatQuery, language: str, snapshot: Snapshot, resources: SearchResources) -> FoundSources:
    """Return no passage; to one who begins, the pages to read first."""
    begins = opening_language(query.query or "") is not None
    first = find_first_pages(snapshot, language) if begins else ()
    nearest = tuple(make_place(chunk, resources.index.public_url(chunk, snapshot.head)) for chunk in first)
    return FoundSources(
        snapshot=snapshot,
        persona=resources.index.persona(snapshot),
        passages=(),
        shown=(),
        language=language,
        source_language=language,
        nearest=nearest,
        off_topic=True,
    )


def _from_winner(found: LookupResult, question: str, snapshot: Snapshot, resources: SearchResources) -> FoundSources:
    """Return the text that is the answer as the only source; its links become their texts, as in every quote."""
    chunk, evidence = found.candidates[0].chunk, found.candidates[0].evidence
    text, url = plain(chunk.text), resources.index.public_url(chunk, snapshot.head) or None
    terms = lexical.terms_of(lexical.words(chunk.embed_text, chunk.language))
    passage = Passage("1", chunk.heading_path, text, text, terms, evidence=evidence, url=url, chunk_id=chunk.chunk_id)
    resources.progress.enter("searching")
    return FoundSources(
        snapshot=snapshot,
        persona=resources.index.persona(snapshot),
        passages=[passage],
        shown=[make_source(passage, chunk.chapter_title, chunk.section_heading)],
        language=chunk.language,
        source_language=chunk.language,
        searched_as=_describe_correction(question, found.searched or question),
        winner=found,
    )


def _describe_correction(question: str, searched: str) -> SearchedAs | None:
    return SearchedAs(query=searched, reason="corrected", original=question) if searched != question else None


def _look_up(query: ChatQuery, snapshot: Snapshot, resources: SearchResources, *, may_win: bool) -> LookupResult:
    """Return the answer of the first lookup that has it, or else what all of them add."""
    lookups = [*_list_lookups(snapshot, resources)]
    if not lookups:
        return LookupResult()
    filters = reader_filter(query, snapshot, resources.index)
    asked = LookupQuery(query.query or "", query.language or "", snapshot, filters, resources.settings, may_win)
    candidates = list[Candidate]()
    for extension, place in lookups:
        found = _ask(extension, place, asked)
        if found.wins and may_win:
            return found
        candidates += found.candidates
    return LookupResult(candidates)


def _list_lookups(snapshot: Snapshot, resources: SearchResources) -> Iterator[tuple[Extension, str]]:
    """Yield the places of the lookups that are on."""
    for extension in (*EXTENSIONS, *foreign()):
        for kind, place in extension.lookups.items():
            if not kind or resources.index.uses(kind, snapshot):
                yield extension, place


def _ask(extension: Extension, place: str, query: LookupQuery) -> LookupResult:
    try:
        found: LookupResult = load(place, extension)(query)
        if not all(isinstance(one, Candidate) for one in found.candidates) or (found.wins and not found.candidates):
            raise TypeError
    # Whatever a stranger's code raises, the pages are searched.
    except Exception as error:
        if extension in EXTENSIONS:
            raise
        # What another error says may hold a password.
        failed = f"The extension {extension.name} can't look up a question ({type(error).__name__})."
        log.event("error", code="lookup_failed", message=str(error) if isinstance(error, ChapterVerseError) else failed)
        return LookupResult()
    return found


def find_selection(
    query: ChatQuery,
    conversation: Conversation,
    snapshot: Snapshot | None,
    resources: SearchResources,
    *,
    only_quotes: bool,
) -> FoundSources:
    """Return the reader's selection as the only source; the index gives its place and the weights of its words.

    Args:
        snapshot: the index; None if it can't be read.
        only_quotes: whether the generator can only quote. The reader knows the selection itself, so passages about it
            are the sources then, if there are any.
    """
    if only_quotes and snapshot:
        with suppress(IndexFault):
            sources = find_sources(query, conversation, snapshot, resources, query.selected_text or "")
            if sources.passages:
                return sources
    try:
        return _read_selection(query, snapshot, resources)
    except IndexFault:
        # The reader's own text needs no index.
        return _read_selection(query, None, resources)


def _read_selection(query: ChatQuery, snapshot: Snapshot | None, resources: SearchResources) -> FoundSources:
    selection = query.selected_text or ""
    place = _find_place(selection, query.page_url, snapshot, resources.index) if snapshot and query.page_url else None
    language = query.language or (place.language if place else snapshot.head.main_language if snapshot else "en")
    chapter = place.nearest.chapter if place else phrases.for_language(language).selection
    # An attacker may have a reader send a text, so that an address in it is shown under this site's name.
    text: str = load_part("without_foreign")(selection, place.texts if place else ())
    terms = lexical.terms_of(lexical.words(f"{chapter}\n{text}", language))
    passage = Passage("1", (chapter,), text, text, terms, url=place.url if place else None)
    return FoundSources(
        snapshot=snapshot,
        persona=resources.index.persona(snapshot),
        passages=[passage],
        shown=[make_source(passage, chapter)],
        language=language,
        source_language=place.language if place else language,
        words=_weigh_words(query.query or "", language, snapshot),
        nearest=(place.nearest,) if place else (),
        selected=True,
    )


@dataclass(frozen=True, slots=True)
class _SelectedPlace:
    """The place of a selection in the documentation.

    Attributes:
        url: the page's address, as the reader sent it if the index has it so.
        nearest: the likeliest section.
        texts: all that the page says, with the addresses of its sections.
    """

    url: str
    nearest: Nearest
    language: str
    texts: Sequence[str]


def _find_place(selection: str, page_url: str, snapshot: Snapshot, index: SiteIndex) -> _SelectedPlace | None:
    page_urls = on_page(index.published_url(page_url, snapshot.head), snapshot)
    chunk = find_closest_chunk(selection, page_urls, snapshot)
    if chunk is None:
        return None
    nearest = make_place(chunk, index.public_url(chunk, snapshot.head))
    # A URL that the index does not hold never reaches the reader, not even the one that the reader sent.
    is_in_index = page_url in {index.public(url, snapshot.head) for url in page_urls}
    texts = [text for c in snapshot.page(chunk.source_file_path) for text in (plain(c.text), c.url)]
    return _SelectedPlace(page_url if is_in_index else urldefrag(nearest.url).url, nearest, chunk.language, texts)


def _weigh_words(question: str, language: str, snapshot: Snapshot | None) -> WeightedQuestion:
    if snapshot is not None:
        return read_question(question, snapshot.head.languages, snapshot)[0]
    words = tuple((w.terms,) for w in lexical.words(question, language))
    return WeightedQuestion(words, (1.0,) * len(words))
