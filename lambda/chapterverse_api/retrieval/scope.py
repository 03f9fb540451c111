"""Where a question is looked up: in the docs version and the language of the reader's page.

The version is never left: what holds in one release may be wrong in another. The language is left where it holds no
answer, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chapterverse.model import Chunk
from chapterverse.store import Snapshot
from chapterverse.store.filters import In, all_of, fields
from chapterverse.text import lexical
from chapterverse_api.conversation.history import condense
from chapterverse_api.index.addresses import on_page, page_of
from chapterverse_api.retrieval.search import Retrieval

if TYPE_CHECKING:
    from chapterverse_api.answering.turn import Turn


@dataclass(frozen=True, slots=True)
class ScopedResults:
    """What was found, and where.

    Attributes:
        language: BCP 47 tag that the reader is answered in, as far as it is known.
        abroad: whether it was found in other languages than the reader's, for want of anything there.
    """

    snapshot: Snapshot
    found: Retrieval
    language: str | None
    other_language: bool = False


def search_in_scope(turn: Turn) -> ScopedResults:
    """Search for what a reader asks, within the scope of the page that they are on.

    Raises:
        InputError: there is no such version.
        IndexFault: there is no index that can be read.
    """
    query, service = turn.query, turn.service
    snapshot = turn.snapshot()
    asked = condense(query.query or "", turn.conversation, turn.means.writer, turn.deadline, snapshot.head.languages)
    question = asked.question
    page = service.published_url(query.page_url or "", snapshot.head)
    here = page_of(page)
    language = query.language or _language_of(question, page, snapshot)
    # Who filters by languages has chosen.
    spoken = () if "language" in fields(query.filters) else _spoken(language, snapshot)
    narrow = all_of(query.filters, In("language", spoken)) if spoken else query.filters
    found, other_language = service.find(snapshot, question, narrow, here=here, means=turn.means), False
    if spoken and not found.answerable:
        anywhere = service.find(snapshot, question, query.filters, here=here, after=found)
        found, other_language = (anywhere, True) if anywhere.answerable else (found, False)
    # What is going to be refused is not worth a model's price, nor what nobody waits for.
    turn.deadline.check()
    ordered = service.reranked(question, found, turn.means) if found.answerable else found
    return ScopedResults(snapshot, ordered, language, other_language)


def chunk_of(text: str, held: Sequence[str], snapshot: Snapshot) -> Chunk | None:
    """Return the chunk at one of these addresses that is likest to a text, else the first; None without an address."""
    if not held:
        return None
    vector = lexical.query_vector(text, snapshot.head.languages)
    hits = snapshot.search_lexical(vector, 1, In("url", tuple(held)))
    return hits[0].chunk if hits else snapshot.page(min(held), "url")[0]


def _language_of(question: str, page: str, snapshot: Snapshot) -> str | None:
    """Return the language of the reader's page, where the index has more than one."""
    if not page or len(snapshot.head.languages) == 1:
        return None
    chunk = chunk_of(question, on_page(page, snapshot), snapshot)
    return chunk.language if chunk else None


def _spoken(language: str | None, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the languages of the index that the reader reads; none where all or none are: "de-AT" reads "de" too."""
    tags = snapshot.head.languages
    spoken = tuple(tag for tag in tags if language and primary(tag) == primary(language))
    return spoken if len(spoken) < len(tags) else ()


def primary(tag: str) -> str:
    """Return the language of a tag without its script or region; some themes write "pt_BR"."""
    return tag.replace("_", "-").partition("-")[0].lower()
