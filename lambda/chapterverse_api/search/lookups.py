"""Looks up what is kept beside the pages, before these are searched.

A room's manifest names its lookups (`chapterverse.extensions`). Each one that is on is asked, in the order of the
manifests. It adds passages to what the search finds, or has the answer, which then is quoted and nothing is searched.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from chapterverse.extensions import EXTENSIONS, Extension, every_extension, load
from chapterverse.filters import Filter
from chapterverse.model import NAMESPACE, Chunk
from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse_api.contract import ChatQuery
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.observability import log
from chapterverse_api.search.ranking import Candidate
from chapterverse_api.search.site_search import reader_filter


@dataclass(frozen=True, slots=True)
class LookupQuery:
    """What a reader asks, and of the index what they may find.

    Attributes:
        text: the question as it was written, with words of the selection that it is about.
        language: BCP 47 tag that the reader's request states; empty if it states none.
        filters: hold for the chunks of `snapshot` that this reader may find, by version, language and audience.
        may_win: whether a text can be the whole answer: not to a follow-up, a selection or a request for data.
    """

    text: str
    language: str
    snapshot: Snapshot
    filters: Filter
    may_win: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """What lookups have on a question.

    Attributes:
        candidates: best first. One with an address is a source behind the results of the search. The others inform a
            model and are never cited.
        wins: whether the first one is the whole answer, word for word.
        searched: the question with its typing mistakes corrected; empty if there are none.
        entry_id: by what the database keeps that this answered; empty for nothing.
    """

    candidates: Sequence[Candidate] = ()
    wins: bool = False
    searched: str = ""
    entry_id: str = ""


class Lookup(Protocol):
    """Looks up one kind of texts. One object serves all questions of a process, in many threads."""

    def look_up(self, query: LookupQuery) -> Found:
        """Return what there is on a question.

        Raises:
            IndexFault: the index can't be read.
        """
        ...


class Lookups:
    """The lookups of all rooms, each opened when it is first asked."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opened = dict[str, Lookup | None]()

    def look_up(self, query: ChatQuery, snapshot: Snapshot, index: SiteIndex, *, may_win: bool) -> Found:
        """Return the answer of the first one that has it, or else what all of them add.

        Raises:
            IndexFault: the index can't be read.
        """
        lookups = [*self._on(snapshot, index)]
        if not lookups:
            return Found()
        asked = LookupQuery(
            query.query or "", query.language or "", snapshot, reader_filter(query, snapshot, index), may_win
        )
        candidates = list[Candidate]()
        for extension, lookup in lookups:
            found = _ask(extension, lookup, asked)
            if found.wins and may_win:
                return found
            candidates += () if found.wins else found.candidates
        return Found(candidates)

    def _on(self, snapshot: Snapshot, index: SiteIndex) -> Iterator[tuple[Extension, Lookup]]:
        for extension in every_extension():
            for kind, place in extension.lookups.items():
                if (not kind or index.uses(kind, snapshot)) and (lookup := self._open(extension, place)):
                    yield extension, lookup

    def _open(self, extension: Extension, place: str) -> Lookup | None:
        if place not in self._opened:
            try:
                self._opened[place] = load(place, extension)(self._settings)
            except Exception as error:
                if extension in EXTENSIONS:
                    raise
                _log_failure(extension, error)
                self._opened[place] = None
        return self._opened[place]


def make_candidate(headings: Sequence[str], text: str, url: str = "", language: str = "en") -> Candidate:
    """Return a text that is in no index, as a lookup returns it.

    Args:
        headings: its title, and perhaps the headings below that.
        text: Markdown.
        url: where it can be read; empty for a text that informs and is never cited.
        language: its BCP 47 tag.
    """
    path = tuple(headings)
    chunk_id = str(uuid.uuid5(NAMESPACE, "\n".join((*path, text))))
    chunk = Chunk(
        chunk_id=chunk_id,
        embed_hash="",
        text=text,
        chapter_title=path[0],
        section_heading=path[-1],
        heading_path=path,
        chunk_index=0,
        source_file_path=chunk_id,
        url=url,
        anchor_verified=False,
        source_domain="",
        language=language,
    )
    return Candidate(chunk, lexical.document_vector(path, text, language), score=1.0, evidence=1.0, components={})


def _ask(extension: Extension, lookup: Lookup, query: LookupQuery) -> Found:
    try:
        return lookup.look_up(query)
    # Whatever a stranger's code raises, the pages are searched.
    except Exception as error:
        if extension in EXTENSIONS:
            raise
        _log_failure(extension, error)
        return Found()


def _log_failure(extension: Extension, error: Exception) -> None:
    # What it says may hold a password.
    message = f"The extension {extension.name} could not look up a question ({type(error).__name__})."
    log.event("error", code="lookup_failed", message=message)
