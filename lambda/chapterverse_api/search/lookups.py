"""What a lookup gets and returns: it knows what is kept beside the pages, and is asked before these are searched.

A room's manifest names its lookups (`chapterverse.extensions`): functions from a `LookupQuery` to a `LookupResult`.
`search.sources` asks those that are on in the order of the manifests. One adds passages to what the search finds, or
has the answer; then that is quoted, and nothing is searched.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from chapterverse.filters import Filter
from chapterverse.model import NAMESPACE, Chunk
from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse_api.search.ranking import Candidate


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
