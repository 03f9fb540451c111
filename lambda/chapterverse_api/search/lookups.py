"""Looks up what is kept beside the pages, before these are searched.

A room's manifest names its lookups (`chapterverse.extensions`): functions from a `LookupQuery` to a `LookupResult`.
Those that are on are asked in the order of the manifests. One adds passages to what the search finds, or has the
answer; then that is quoted, and nothing is searched.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chapterverse.errors import ChapterVerseError
from chapterverse.extensions import foreign, load
from chapterverse.filters import Filter
from chapterverse.manifests import EXTENSIONS, Extension
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
        settings: of the service.
        may_win: whether a text can be the whole answer: not to a follow-up, a selection or a request for data.
    """

    text: str
    language: str
    snapshot: Snapshot
    filters: Filter
    settings: Settings
    may_win: bool = True


@dataclass(frozen=True, slots=True)
class LookupResult:
    """What a lookup has on a question, or all of them.

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


def look_up(
    query: ChatQuery, snapshot: Snapshot, index: SiteIndex, settings: Settings, *, may_win: bool
) -> LookupResult:
    """Return the answer of the first lookup that has it, or else what all of them add.

    Raises:
        IndexFault: the index can't be read.
    """
    lookups = [*_list_lookups(snapshot, index)]
    if not lookups:
        return LookupResult()
    filters = reader_filter(query, snapshot, index)
    asked = LookupQuery(query.query or "", query.language or "", snapshot, filters, settings, may_win)
    candidates = list[Candidate]()
    for extension, place in lookups:
        found = _ask(extension, place, asked)
        if found.wins and may_win:
            return found
        candidates += found.candidates
    return LookupResult(candidates)


def _list_lookups(snapshot: Snapshot, index: SiteIndex) -> Iterator[tuple[Extension, str]]:
    """Yield the places of the lookups that are on."""
    for extension in (*EXTENSIONS, *foreign()):
        for kind, place in extension.lookups.items():
            if not kind or index.uses(kind, snapshot):
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
