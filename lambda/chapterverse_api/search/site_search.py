"""Searches the index for a question: one generation, in the docs version and language of the reader's page.

A search never leaves the version, because a sentence that is true of one release may be wrong for another. It leaves
the language if that holds no answer, and the answer says so. A follow-up is also searched for as it was rewritten, and
the scores of that search count two thirds. Measured on 132 later turns of human conversations (mtrag-human): a page
that answers is among the sources of .77 (.73 without the conversation).

A score only orders: the first result may still be irrelevant. The evidence of a chunk, calibrated for the index, is the
probability that it is about the question's subject.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from chapterverse.calibration import Calibration, read_weights
from chapterverse.embedding import MAX_COMPONENT, Embedder
from chapterverse.errors import InputError, ProviderError, observing_retries
from chapterverse.filters import EVERYTHING, And, Filter, FilterTree, In, all_of, fields, holds, map_addresses, resolve
from chapterverse.model import MEMORY, PAGE, Chunk
from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse.text.tokens import cut_to_bytes
from chapterverse_api.contract import ChatQuery
from chapterverse_api.conversation.detection import ContextualQuery, FollowUpVerdict
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Writer
from chapterverse_api.index.site_index import SiteIndex, on_page, page_of
from chapterverse_api.log import QueryProgress
from chapterverse_api.search.question import correct
from chapterverse_api.search.ranking import Wording, weigh_memories, with_sides
from chapterverse_api.search.reading import read_candidates
from chapterverse_api.search.rerankers import Reranker
from chapterverse_api.search.results import Retrieval, answer_features, answerability, matched_share, merge_retrievals

if TYPE_CHECKING:
    from chapterverse.reading import ReadingModel

LEXICAL_ALGORITHM = "bm25-code-aware + structure"
HYBRID_ALGORITHM = "bm25-code-aware + dense, min-max linear + structure"
#: If a question only may be a follow-up, the best result of its rewriting must hold this share of its own words.
_MIN_OWN_WORD_SHARE = 0.3
#: Writes what else to search for, for a question that can't stand alone; None if there is nothing else.
Rewrite: TypeAlias = Callable[[], ContextualQuery | None]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What one search looks for.

    Attributes:
        question: the reader's words; None for a search by `vector` alone.
        vector: a dense vector of the index's own embedder; None if the question is still to be embedded.
        filters: narrow the search (see `filters.parse_filter`).
        page: the page that the reader is on (see `site_index.page_of`), which comes a little earlier.
        weight: share of the dense side in the fusion; None for the index's own.
    """

    question: str | None
    vector: Sequence[float] | None = None
    filters: FilterTree | None = None
    page: str = ""
    weight: float | None = None


def retrieve(
    snapshot: Snapshot, embedder: Embedder | None, request: SearchRequest, progress: QueryProgress | None = None
) -> Retrieval:
    """Search one generation of the index.

    Args:
        progress: the question's states, which a search takes on to `searching`.

    Raises:
        InputError: the vector is not of the index's size.
    """
    progress = progress or QueryProgress("", logged=False)
    corrected, vector = correct(request.question or "", snapshot), request.vector
    failures, timings, started = dict[str, ProviderError](), dict[str, float](), time.perf_counter()
    if vector is not None:
        _check_vector(vector, snapshot.head.embedder.size)
    progress.enter("embedding")
    if vector is not None:
        progress.model = snapshot.head.embedder.name
    elif request.question is not None and embedder is not None:
        try:
            with observing_retries(progress.retry):
                vector = embedder.embed_query(corrected)
            progress.model = embedder.card.name
        # Its words are still searched.
        except ProviderError as error:
            failures["embedder"] = error
            progress.retry()
        timings["embed"] = time.perf_counter() - started
    progress.enter("searching")
    return _search(snapshot, request, corrected, vector, failures, timings)


def _search(
    snapshot: Snapshot,
    request: SearchRequest,
    corrected: str,
    vector: Sequence[float] | None,
    failures: Mapping[str, ProviderError],
    timings: Mapping[str, float],
) -> Retrieval:
    """Find, rank and weigh."""
    head, times = snapshot.head, [time.perf_counter()]
    wording = Wording.read(corrected, head.languages)
    hits = wording.find(snapshot, request.filters, vector)
    times.append(time.perf_counter())
    ranked = hits.rank_hits(head.fusion_weight if request.weight is None else request.weight, request.page)
    times.append(time.perf_counter())
    hits = hits.without_details(ranked, snapshot)
    calibration = Calibration.from_json(head.calibration)
    sides = hits.candidates(wording.sides(snapshot, request.filters), calibration)
    candidates = with_sides(weigh_memories(hits.candidates(ranked, calibration)), sides)
    features = answer_features(candidates, hits.question, calibration, head.chunks)
    times.append(time.perf_counter())
    took = {stage: b - a for stage, a, b in zip(("search", "rank", "weigh"), times, times[1:], strict=False)}
    return Retrieval(
        candidates=tuple(candidates),
        question=hits.question,
        calibration=calibration,
        total=len(hits.by_id),
        algorithm=HYBRID_ALGORITHM if vector is not None else LEXICAL_ALGORITHM,
        failures=failures,
        timings={**timings, **{stage: timings.get(stage, 0.0) + seconds for stage, seconds in took.items()}},
        vector=vector,
        searched=corrected,
        subject=wording.subject,
        answerability=answerability(features),
        compares=wording.compares,
        sides=frozenset(side.chunk.chunk_id for side in sides),
    )


def _check_vector(vector: Sequence[float], size: int) -> None:
    if not size:
        raise InputError("The index holds no dense vectors: send a query.", field="embedding")
    if len(vector) != size:
        raise InputError(f"The index holds vectors of {size} dimensions.", field="embedding")
    # The engine counts in 32 bits, so a larger number is infinite. A vector of zeros has no direction.
    if not any(vector) or not all(abs(v) <= MAX_COMPONENT for v in vector):
        raise InputError("The embedding needs finite numbers that are not all zero.", field="embedding")


def order_by_models(
    retrieval: Retrieval,
    question: str | None,
    reranker: Reranker | None,
    reading_model: ReadingModel | None,
    deadline: Deadline,
) -> Retrieval:
    """Let the models that there are order the results, and say how likely quotes of the first ones answer.

    Raises:
        ClientDisconnected: the reader left while the reading model read for others.
    """
    if question and reranker:
        retrieval = rerank(retrieval, question, reranker)
    if question and reading_model:
        retrieval = read_candidates(retrieval, question, reading_model, deadline)
    return retrieval if retrieval.confidence is not None else replace(retrieval, confidence=retrieval.unread_confidence)


def rerank(retrieval: Retrieval, question: str, reranker: Reranker) -> Retrieval:
    """Order the candidates by a model, ties as before. If the model fails, keep the order, and note the failure."""
    if not retrieval.candidates:
        return retrieval
    started, failures, relevance = time.perf_counter(), retrieval.failures, None
    try:
        relevance = reranker.rerank(question, [c.chunk.embed_text for c in retrieval.candidates])
    except ProviderError as error:
        failures = {**failures, "reranker": error}
    timings = {**retrieval.timings, "rerank": time.perf_counter() - started}
    if relevance is None:
        return replace(retrieval, failures=failures, timings=timings)
    pairs = zip(retrieval.candidates, relevance, strict=True)
    scored = [c._replace(score=v, components={**c.components, "rerank": v}) for c, v in pairs]
    return replace(
        retrieval,
        candidates=tuple(weigh_memories(sorted(scored, key=lambda c: -c.score))),
        algorithm=f"{retrieval.algorithm} + {reranker.name}",
        timings=timings,
    )


def search_follow_up(
    question: str, verdict: FollowUpVerdict, rewrite: Rewrite, search: Callable[[str], Retrieval]
) -> Retrieval:
    """Return the results of a question, and of its rewriting if it can't stand alone.

    Args:
        verdict: whether it is a follow-up, by its own words.
        rewrite: returns what else to search for. It may ask a model, so it is called only if needed.
    """
    question_only = search(question)
    if verdict == "no" or (verdict == "perhaps" and question_only.sure):
        return question_only
    query = rewrite()
    if query is None:
        return question_only
    in_context = search(query.text)
    # The best result of the rewriting must hold enough words of the question itself.
    own = [matched_share(best, question_only.question) for best in in_context.candidates[:1]]
    if verdict == "perhaps" and not (own and own[0] >= _MIN_OWN_WORD_SHARE):
        return question_only
    return replace(merge_retrievals(question_only, in_context), contextual_query=query)


@dataclass(frozen=True, slots=True)
class SearchResources:
    """What a question is searched with, and the time that it has.

    Attributes:
        progress: the question's states.
        writer: the language model that will judge the passages and write; None without one.
    """

    index: SiteIndex
    settings: Settings
    embedder: Embedder | None
    reranker: Reranker | None
    reading_model: ReadingModel | None
    deadline: Deadline
    progress: QueryProgress
    writer: Writer | None = None


def search_site(
    query: ChatQuery,
    snapshot: Snapshot,
    resources: SearchResources,
    verdict: FollowUpVerdict = "no",
    rewrite: Rewrite = lambda: None,
) -> Retrieval:
    """Search for a question in the version and language of the reader's page.

    Args:
        verdict, rewrite: as in `search_follow_up`; without them the question stands alone.

    Raises:
        ClientDisconnected: the reader left before the reranker was called.
        IndexFault: the index can't be read.
    """
    question, index = query.query or "", resources.index
    page = index.published_url(query.page_url or "", snapshot.head)
    language, languages = _languages(query, page, snapshot)
    # A memory informs, and is never cited.
    filters = site_filter(query.filters, snapshot, index, entity=query.entity, hidden_types=frozenset({MEMORY}))

    def search(text: str) -> Retrieval:
        request = SearchRequest(text, filters=filters, page=page_of(page))
        return _search_languages(request, languages, snapshot, resources)

    retrieval = search_follow_up(question, verdict, rewrite, search)
    retrieval = replace(retrieval, language=language, model_judges=resources.writer is not None)
    # A refusal is not worth a reranker's price, nor is an answer whose reader has left.
    resources.deadline.check()
    if question and retrieval.verdict != "no":
        text = retrieval.contextual_query.text if retrieval.contextual_query else retrieval.searched
        retrieval = order_by_models(retrieval, text, resources.reranker, resources.reading_model, resources.deadline)
    return _break_ties(retrieval, query.user_context, snapshot) if query.user_context else retrieval


def _search_languages(
    request: SearchRequest, languages: tuple[str, ...], snapshot: Snapshot, resources: SearchResources
) -> Retrieval:
    """Search in these languages; in all if these hold no answer and the others surely do. No language means all."""
    if not languages:
        return retrieve(snapshot, resources.embedder, request, resources.progress)
    narrow = replace(request, filters=all_of(request.filters, In("language", languages)))
    first = retrieve(snapshot, resources.embedder, narrow, resources.progress)
    if first.verdict != "no":
        return first
    # The question is embedded, or that has failed, for both.
    everywhere = _search(snapshot, request, first.searched, first.vector, first.failures, first.timings)
    return replace(everywhere, other_language=True) if everywhere.sure else first


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
