"""Searches in the docs version and language of the reader's page.

The version is never left: what holds in one release may be wrong in another. The language is left where it holds no
answer, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chapterverse.embedding import Embedder
from chapterverse.filters import Asked, In, all_of, fields, readdressed
from chapterverse.model import Chunk
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse_api.contract import ChatQuery
from chapterverse_api.deadline import Deadline
from chapterverse_api.index.addresses import on_page, page_of
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.retrieval.rerankers import Reranker
from chapterverse_api.retrieval.search import Retrieval, rerank, retrieve


@dataclass(frozen=True, slots=True)
class ScopedResults:
    """What was found, and where.

    Attributes:
        language: BCP 47 tag that the reader is answered in, as far as it is known.
        other_language: whether it was found in other languages than the reader's, for want of anything there.
    """

    snapshot: Snapshot
    found: Retrieval
    language: str | None
    other_language: bool = False


def search_in_scope(
    query: ChatQuery,
    question: str,
    snapshot: Snapshot,
    index: SiteIndex,
    embedder: Embedder | None,
    reranker: Reranker | None,
    deadline: Deadline,
) -> ScopedResults:
    """Search for a question in the version and language of the reader's page.

    Args:
        question: what is searched for: the reader's question, or what a follow-up means.

    Raises:
        ClientDisconnected: the reader left before the reranker was asked.
        IndexFault: the index can't be read.
    """
    page = index.published_url(query.page_url or "", snapshot.head)
    language = query.language or _language_of(question, page, snapshot)
    # An explicit language filter wins.
    spoken = () if "language" in fields(query.filters) else _spoken(language, snapshot)
    narrow = all_of(query.filters, In("language", spoken)) if spoken else query.filters

    def search(filters: Asked | None, after: Retrieval | None = None) -> Retrieval:
        where = readdressed(filters, lambda url: index.published_url(url, snapshot.head))
        return retrieve(snapshot, embedder, question, filters=where, here=page_of(page), after=after)

    found, other_language = search(narrow), False
    if spoken and not found.answerable:
        anywhere = search(query.filters, after=found)
        found, other_language = (anywhere, True) if anywhere.answerable else (found, False)
    # A refusal is not worth a reranker's price, nor is an answer that nobody waits for.
    deadline.check()
    ordered = rerank(found, question, reranker) if reranker and question and found.answerable else found
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
