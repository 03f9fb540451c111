"""Searches in the docs version and language of the reader's page.

A search never leaves the version, because a sentence that is true of one release may be wrong for another. It leaves
the language if that holds no answer, and the answer says so. A follow-up is also searched for as `conversation.detection`
writes it, and the scores of that search count two thirds. Measured on 132 later turns of human conversations
(mtrag-human): a page that answers is among the sources of .77 (.73 without the conversation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from chapterverse.calibration import read_weights
from chapterverse.embedding import Embedder
from chapterverse.filters import EVERYTHING, And, Filter, FilterTree, In, all_of, fields, holds, map_addresses, resolve
from chapterverse.model import MEMORY, PAGE, Chunk
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse.text.shortening import cut_to_bytes
from chapterverse_api.contract import ChatQuery
from chapterverse_api.conversation.detection import (
    ContextualQuery,
    FollowUpVerdict,
    detect_follow_up,
    rewrite_follow_up,
)
from chapterverse_api.conversation.transcript import Conversation
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Writer
from chapterverse_api.index.site_index import SiteIndex, on_page, page_of
from chapterverse_api.observability.query_state import QueryProgress
from chapterverse_api.search.reading import read_candidates
from chapterverse_api.search.rerankers import Reranker
from chapterverse_api.search.results import Retrieval, matched_share, merge_retrievals
from chapterverse_api.search.search import SearchRequest, rerank, retrieve, retrieve_again

if TYPE_CHECKING:
    from chapterverse.reading.model import ReadingModel

#: If a question only may be a follow-up, the best result of its rewriting must hold this share of its own words.
_MIN_OWN_WORD_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class FollowUp:
    """How a question may depend on the conversation; by default it stands alone.

    Attributes:
        verdict: whether it is a follow-up, by its own words.
        rewrite: returns what else to search for. It is called only if the question can't stand alone: it may ask a
            model.
    """

    verdict: FollowUpVerdict = "no"
    rewrite: Callable[[], ContextualQuery | None] = lambda: None

    @classmethod
    def detect(
        cls,
        question: str,
        conversation: Conversation,
        writer: Writer | None,
        deadline: Deadline,
        languages: Sequence[str],
    ) -> Self:
        """Return how a question depends on a conversation. The arguments are those of `rewrite_follow_up`."""
        verdict = detect_follow_up(question, languages) if conversation.questions else "no"
        return cls(verdict, lambda: rewrite_follow_up(question, conversation, writer, deadline, languages))


_NO_FOLLOW_UP = FollowUp()


def search_follow_up(
    question: str, follow_up: FollowUp, search: Callable[[str], Retrieval]
) -> tuple[Retrieval, ContextualQuery | None]:
    """Return the results, and the rewriting that they are also of; None if the question stands alone."""
    question_only = search(question)
    if follow_up.verdict == "no" or (follow_up.verdict == "perhaps" and question_only.sure):
        return question_only, None
    query = follow_up.rewrite()
    if query is None:
        return question_only, None
    in_context = search(query.text)
    if follow_up.verdict == "perhaps" and not _holds_own_words(question_only, in_context):
        return question_only, None
    return merge_retrievals(question_only, in_context), query


def _holds_own_words(question_only: Retrieval, in_context: Retrieval) -> bool:
    """Whether the best result of the rewriting holds enough words of the question itself."""
    best = in_context.candidates[:1]
    return bool(best) and matched_share(best[0], question_only.question) >= _MIN_OWN_WORD_SHARE


@dataclass(frozen=True, slots=True)
class SiteResults:
    """The results of a search for a reader.

    Attributes:
        language: BCP 47 tag of the reader's language, if it is known.
        contextual_query: what a follow-up was also searched for as; None if the question stands alone.
    """

    retrieval: Retrieval
    language: str | None
    contextual_query: ContextualQuery | None = None


@dataclass(frozen=True, slots=True)
class SearchResources:
    """The models of a search, and the time that it has.

    Attributes:
        progress: the question's states.
        model_judges: whether a language model will judge the passages.
    """

    embedder: Embedder | None
    reranker: Reranker | None
    reader: ReadingModel | None
    deadline: Deadline
    progress: QueryProgress
    model_judges: bool = False


def search_site(
    query: ChatQuery,
    snapshot: Snapshot,
    index: SiteIndex,
    resources: SearchResources,
    follow_up: FollowUp = _NO_FOLLOW_UP,
) -> SiteResults:
    """Search for a question in the version and language of the reader's page.

    Raises:
        ClientDisconnected: the reader left before the reranker was called.
        IndexFault: the index can't be read.
    """
    question = query.query or ""
    page = index.published_url(query.page_url or "", snapshot.head)
    language, languages = _languages(query, page, snapshot)
    # A memory informs, and is never cited.
    filters = site_filter(query.filters, snapshot, index, entity=query.entity, hidden_types=frozenset({MEMORY}))

    def search(text: str) -> Retrieval:
        request = SearchRequest(text, filters=filters, page=page_of(page))
        return _search_languages(request, languages, snapshot, resources)

    retrieval, contextual_query = search_follow_up(question, follow_up, search)
    retrieval = replace(retrieval, model_judges=resources.model_judges)
    # A refusal is not worth a reranker's price, nor is an answer whose reader has left.
    resources.deadline.check()
    if question and retrieval.verdict != "no":
        text = contextual_query.text if contextual_query else retrieval.searched
        retrieval = rerank(retrieval, text, resources.reranker)
        retrieval = read_candidates(retrieval, text, resources.reader, resources.deadline)
    if query.user_context:
        retrieval = _break_ties(retrieval, query.user_context, snapshot)
    return SiteResults(retrieval, language, contextual_query)


def _search_languages(
    request: SearchRequest, languages: tuple[str, ...], snapshot: Snapshot, resources: SearchResources
) -> Retrieval:
    """Search in these languages; in all if these hold no answer and the others surely do. No language means all."""
    if not languages:
        return retrieve(snapshot, resources.embedder, request, resources.progress)
    narrow = replace(request, filters=all_of(request.filters, In("language", languages)))
    retrieval = retrieve(snapshot, resources.embedder, narrow, resources.progress)
    if retrieval.verdict != "no":
        return retrieval
    everywhere = retrieve_again(retrieval, snapshot, request)
    return replace(everywhere, other_language=True) if everywhere.sure else retrieval


def _break_ties(retrieval: Retrieval, context: str, snapshot: Snapshot) -> Retrieval:
    # Most readers say nothing of themselves, and a start loads nothing for it.
    from chapterverse_api.search.reader_context import MAX_CONTEXT_BYTES, break_ties_by_context

    context = cut_to_bytes(context, MAX_CONTEXT_BYTES)
    idf = read_weights(context, snapshot.head.languages, snapshot)
    return replace(retrieval, candidates=break_ties_by_context(retrieval.candidates, context, idf))


def site_filter(
    filters: FilterTree | None,
    snapshot: Snapshot,
    index: SiteIndex,
    *,
    entity: str | None = None,
    hidden_types: AbstractSet[str] = frozenset(),
) -> FilterTree | None:
    """Return the filter for a search of the site: a request's own, with its addresses as the index has them.

    It leaves out the documents of entities, unless a filter names their scope, and those of disabled types.

    Args:
        entity: whose documents are searched too.
        hidden_types: further types of documents to leave out.
    """
    types, hidden = snapshot.values("type"), index.disabled_types | hidden_types
    kinds = tuple(kind for kind in types if kind not in hidden)
    parts = [In("type", kinds)] if len(kinds) < len(types) else []
    if len(snapshot.values("scope")) > 1 and "scope" not in fields(filters):
        parts.append(In("scope", ("global", f"entity:{entity}") if entity else ("global",)))
    return map_addresses(all_of(filters, *parts), lambda url: index.published_url(url, snapshot.head))


def make_reader_filter(query: ChatQuery, snapshot: Snapshot, index: SiteIndex) -> Callable[[Chunk], bool]:
    """Return whether a chunk is one that a search for this reader may find."""
    filters = reader_filter(query, snapshot, index)
    return lambda chunk: chunk.type != MEMORY and holds(filters, chunk)


def reader_filter(query: ChatQuery, snapshot: Snapshot, index: SiteIndex) -> Filter:
    """Return the filter for documents beside the pages: the reader's own, their language and their entity."""
    page = index.published_url(query.page_url or "", snapshot.head)
    _, languages = _languages(query, page, snapshot)
    filters = site_filter(query.filters, snapshot, index, entity=query.entity)
    return resolve(all_of(filters, *([In("language", languages)] if languages else [])), snapshot) or EVERYTHING


def find_closest_chunk(text: str, urls: Sequence[str], snapshot: Snapshot) -> Chunk | None:
    """Return the chunk at one of these addresses that is most like a text, or the first; None without an address."""
    if not urls:
        return None
    vector = lexical.query_vector(text, snapshot.head.languages)
    hits = snapshot.search_lexical(vector, 1, And((In("url", tuple(urls)), In("type", (PAGE,)))))
    return hits[0].chunk if hits else snapshot.page(min(urls), "url")[0]


def _languages(query: ChatQuery, page: str, snapshot: Snapshot) -> tuple[str | None, tuple[str, ...]]:
    """Return the reader's language, as far as it is known, and the languages to narrow the search to; empty for all.

    The language is the reader's own, that of their page, or that of the question.
    """
    tags, question, language = snapshot.head.languages, query.query or "", query.language or None
    if not language and len(tags) > 1:
        chunk = find_closest_chunk(question, on_page(page, snapshot), snapshot) if page else None
        language = chunk.language if chunk else lexical.language_of(question, tags)
    # An explicit language filter wins.
    if not language or "language" in fields(query.filters):
        return language, ()
    # A reader of "de-AT" reads "de" too.
    readable = tuple(tag for tag in tags if primary(tag) == primary(language))
    return language, readable if len(readable) < len(tags) else ()


def primary(tag: str) -> str:
    """Return the language of a tag without its script or region; some themes write "pt_BR"."""
    return lexical.primary_subtag(tag.replace("_", "-"))
