"""Answers about the text that a reader selected: the selection is a source, with its place in the docs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import urldefrag

from chapterverse.calibration import WeightedQuestion, read_question
from chapterverse.errors import IndexFault
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse.text.plain import plain
from chapterverse_api import phrases
from chapterverse_api.answer.search import find_sources, make_source, make_sources, nearest_place
from chapterverse_api.answer.turn import Sources, Turn
from chapterverse_api.check.links.address_filter import AddressFilter
from chapterverse_api.contract import Nearest
from chapterverse_api.draft.requests import Passage
from chapterverse_api.index.site_index import SiteIndex, on_page
from chapterverse_api.search.site_search import find_closest_chunk


def search_selection(turn: Turn) -> Sources:
    """Return passages about a selection, for a generator that can only quote: the reader knows the selection itself.

    If there are none, the selection is the source.
    """
    with suppress(IndexFault):
        sources = find_sources(turn, turn.query.selected_text or "")
        if sources.request.passages:
            return sources
    return read_selection(turn)


def read_selection(turn: Turn) -> Sources:
    """Return the selection as the only source; the index gives its place and the weights of its words."""
    try:
        return _read_selection(turn, turn.snapshot())
    except IndexFault:
        # The reader's own text needs no index.
        return _read_selection(turn, None)


def _read_selection(turn: Turn, snapshot: Snapshot | None) -> Sources:
    query, index, selection = turn.query, turn.resources.index, turn.query.selected_text or ""
    place = _find_place(selection, query.page_url, index, snapshot) if snapshot and query.page_url else None
    language = query.language or (place.language if place else snapshot.head.main_language if snapshot else "en")
    chapter = place.nearest.chapter if place else phrases.for_language(language).selection
    # An attacker may have a reader send a text, so that an address in it is shown under this site's name.
    text = AddressFilter((), place.texts if place else ()).without_foreign(selection)
    terms = lexical.terms_of(lexical.words(f"{chapter}\n{text}", language))
    passage = Passage("1", (chapter,), text, text, terms, url=place.url if place else None)
    sources = make_sources(
        turn,
        snapshot,
        [passage],
        [make_source(passage, chapter)],
        language=language,
        source_language=place.language if place else language,
        words=_weigh_words(query.query or "", language, snapshot),
    )
    request = replace(sources.request, selected=True)
    return replace(sources, request=request, nearest=(place.nearest,) if place else ())


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
    texts: tuple[str, ...]


def _find_place(selection: str, page_url: str, index: SiteIndex, snapshot: Snapshot) -> _SelectedPlace | None:
    page_urls = on_page(index.published_url(page_url, snapshot.head), snapshot)
    chunk = find_closest_chunk(selection, page_urls, snapshot)
    if chunk is None:
        return None
    nearest = nearest_place(chunk, index.public_url(chunk, snapshot.head))
    # A URL that the index does not hold never reaches the reader, not even the one that the reader sent.
    is_in_index = page_url in {index.public(url, snapshot.head) for url in page_urls}
    texts = tuple(text for c in snapshot.page(chunk.source_file_path) for text in (plain(c.text), c.url))
    return _SelectedPlace(page_url if is_in_index else urldefrag(nearest.url).url, nearest, chunk.language, texts)


def _weigh_words(question: str, language: str, snapshot: Snapshot | None) -> WeightedQuestion:
    if snapshot is not None:
        return read_question(question, snapshot.head.languages, snapshot)[0]
    words = tuple((w.terms,) for w in lexical.words(question, language))
    return WeightedQuestion(words, (1.0,) * len(words))
