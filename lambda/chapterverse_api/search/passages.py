"""Chooses the sources of an answer from the results of a search, and packs them into a budget of tokens.

Small chunks find the right section more often, and large ones hold more of the answer. So the search returns small
chunks, and the generator gets the sections around them. A passage never crosses into another section, because a
citation names one section.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Literal, TypeAlias

from chapterverse.calibration import WeightedQuestion
from chapterverse.extensions import load_part
from chapterverse.model import FAQ, MAX_CHUNK_TOKENS, Chunk, Persona
from chapterverse.store import Snapshot
from chapterverse.text.markdown import plain
from chapterverse.text.tokens import PROSE_TOKEN_BYTES, cut_to_words, utf8_length
from chapterverse_api.contract import ChatQuery, Nearest, SearchedAs, SourceChunk
from chapterverse_api.draft.requests import Passage, Subsection
from chapterverse_api.search.lookups import LookupResult
from chapterverse_api.search.ranking import Candidate, section_key
from chapterverse_api.search.results import MIN_ON_TOPIC, Retrieval
from chapterverse_api.search.site_search import SearchResources, make_reader_filter

#: cl100k tokens of all passages together: ten chunks, at which the public question sets are scored too.
MAX_PASSAGES_TOKENS = 2560
#: Tokens of all FAQ entries, which have a share of their own: two of the longest, and pages lose nothing by them.
MAX_FAQ_TOKENS = 2 * MAX_CHUNK_TOKENS
#: Of the budget, what one section may take: it may be a whole reference.
MAX_SECTION_TOKENS = 1024
#: Sections that are widened before others are added, and the most there may be.
WIDENED_SECTIONS, MAX_SECTIONS = 5, 10
#: The first candidates are always passed on. A further one must hold this share, by idf, of the question's words that
#: the one with most of them holds. Of 773 questions about sixteen sites this leaves 5.3 sections and not 6.4, and the
#: right one among them in 55.6 % and not in 57.3 %.
MIN_SECTIONS, _MIN_SHARE = 4, 0.6
#: The stages between a search and the sources of an answer.
#:
#:     verdict     the docs hold no answer
#:     evidence    the chunk has little to do with the question
#:     unsure      the docs only perhaps hold an answer, and enough others rank before it
#:     section     a better one is of the same section, or has the same text
#:     limit       the question wants fewer sources, there are ten, or enough of its type
#:     relevance   its section holds hardly any of the question's words
#:     budget      the passages before it fill the budget of tokens
Omission: TypeAlias = Literal["verdict", "evidence", "unsure", "section", "limit", "relevance", "budget"]


MAX_SNIPPET_CHARS = 200
#: Pages that a refusal names.
_MAX_NEAREST = 3
#: Evidence from which a page is near a question. On two sites that it was not chosen on, 57 of 68 questions have the
#: right page among three, and 58 without a least evidence; 17 of 60 refused questions about other subjects have a page,
#: and 57 without.
_MIN_NEAR_EVIDENCE = 0.15


@dataclass(frozen=True, slots=True)
class FoundSources:
    """What a question may be answered from; without passages if the evidence is too weak.

    Attributes:
        snapshot: the index; None if it could not be read for a selection.
        persona: the owner's settings of tone and language.
        passages: best first.
        shown: the same as the reader sees them, with the same ids.
        language: BCP 47 tag of the reader's language, if it is known; else the passages'.
        source_language: the passages'.
        words: the words of the question with their weights in the index.
        nearest: places to read instead, best first.
        retrieval: the search results that the passages were chosen from; None without a search.
        pages: all chunks of each page that a passage is of, by file path.
        omissions: why each other candidate is no source, by chunk id.
        searched_as: the query of the search; None if it is just the question.
        off_topic: whether the question is small talk, or about another subject than these docs.
        winner: the text that is the whole answer, as a lookup found it.
        looked_up: what lookups added, for a model to know or as sources, best first.
        selection: the reader's selection, if it was searched with.
        selected: whether the one passage is the reader's selection, and no search result.
        choices: the texts that name each of the sections that the question fits equally well; else none.
    """

    snapshot: Snapshot | None
    persona: Persona
    passages: Sequence[Passage]
    shown: Sequence[SourceChunk]
    language: str
    source_language: str
    words: WeightedQuestion = field(default_factory=WeightedQuestion)
    nearest: tuple[Nearest, ...] = ()
    retrieval: Retrieval | None = None
    pages: Mapping[str, Sequence[Chunk]] = field(default_factory=dict)
    omissions: Mapping[str, Omission] = field(default_factory=dict)
    searched_as: SearchedAs | None = None
    off_topic: bool = False
    winner: LookupResult | None = None
    looked_up: Sequence[Candidate] = ()
    selection: str = ""
    selected: bool = False
    choices: Sequence[str] = ()


def select_sources(
    query: ChatQuery,
    retrieval: Retrieval,
    looked_up: Sequence[Candidate],
    snapshot: Snapshot,
    resources: SearchResources,
) -> FoundSources:
    """Return the results that become sources, in as much of their sections as there is room for.

    Args:
        looked_up: what lookups added to the results, best first.
    """
    url, any_number = partial(resources.index.public_url, head=snapshot.head), query.top_k is None
    strong = retrieval.strong
    useful: Sequence[Candidate] = load_part("without_waste")(strong) if retrieval.model_judges else strong
    chosen = choose(useful, query.top_k, resources.settings.faq_top_k)
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
    omissions = explain_omissions(
        retrieval.candidates,
        ("verdict", () if retrieval.verdict == "no" else retrieval.candidates),
        ("evidence", retrieval.related),
        ("unsure", strong),
        ("section", choose(useful, len(strong), len(strong))),
        ("limit", chosen),
        ("relevance", relevant),
        ("budget", candidates),
    )
    if passages and any_number and retrieval.model_judges:
        is_for_reader = make_reader_filter(query, snapshot, resources.index)
        around = load_part("fill_room")(candidates, passages, pages, url, is_for_reader)
        candidates, passages = [*candidates, *(c for c, _ in around)], [*passages, *(p for _, p in around)]
    first = next((c.chunk.language for c in (*candidates, *retrieval.candidates)), snapshot.head.main_language)
    chunks = [candidate.chunk for candidate in candidates]
    return FoundSources(
        snapshot=snapshot,
        persona=resources.index.persona(snapshot),
        passages=passages,
        shown=[make_source(p, c.chapter_title, c.section_heading) for p, c in zip(passages, chunks, strict=True)],
        language=retrieval.language or first,
        source_language=first,
        words=retrieval.question,
        nearest=_find_nearest(retrieval.candidates, url),
        retrieval=retrieval,
        pages=pages,
        omissions=omissions,
        off_topic=not passages and retrieval.answerability.docs < MIN_ON_TOPIC,
        looked_up=looked_up,
    )


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


def make_place(chunk: Chunk, url: str) -> Nearest:
    """Return a chunk as a place to read, at its address for readers."""
    return Nearest(chapter=chunk.chapter_title, section=chunk.section_heading, url=url)


def _find_nearest(candidates: Iterable[Candidate], url: Callable[[Chunk], str]) -> tuple[Nearest, ...]:
    """Return the best place on each of the nearest pages."""
    near = [c for c in candidates if c.chunk.url and c.evidence >= _MIN_NEAR_EVIDENCE]
    pages: dict[str, Chunk] = {}
    for candidate in sorted(near, key=lambda c: -c.evidence):
        pages.setdefault(candidate.chunk.source_file_path, candidate.chunk)
    return tuple(make_place(chunk, url(chunk)) for chunk in [*pages.values()][:_MAX_NEAREST])


def choose(candidates: Iterable[Candidate], top_k: int | None, faq_top_k: int = MAX_SECTIONS) -> list[Candidate]:
    """Return the best candidate of each section, best first: a section is one source, however many chunks match.

    The same text in two sections is one source as well. Of FAQ entries there are at most `faq_top_k`, and no more than
    fit into their share of the tokens.
    """
    best: dict[object, Candidate] = {}
    texts = set[str]()
    entries, tokens = faq_top_k, MAX_FAQ_TOKENS
    for candidate in candidates:
        place = section_key(candidate.chunk)
        if place in best or (text := " ".join(candidate.chunk.text.split())) in texts:
            continue
        if candidate.chunk.type == FAQ:
            entries, tokens = entries - 1, tokens - _tokens(candidate.chunk)
            if entries < 0 or (tokens < 0 and entries < faq_top_k - 1):
                continue
        best[place] = candidate
        texts.add(text)
    return list(best.values())[: top_k or MAX_SECTIONS]


def explain_omissions(
    candidates: Sequence[Candidate], *stages: tuple[Omission, Iterable[Candidate]]
) -> dict[str, Omission]:
    """Return by chunk id the stage that left a candidate out; those that passed them all are missing.

    Args:
        stages: each with the candidates that passed it, in order.
    """
    reasons = dict[str, Omission]()
    for stage, passing in stages:
        ids = {c.chunk.chunk_id for c in passing}
        for c in candidates:
            if c.chunk.chunk_id not in ids:
                reasons.setdefault(c.chunk.chunk_id, stage)
    return reasons


def drop_irrelevant(candidates: Sequence[Candidate], question: WeightedQuestion) -> list[Candidate]:
    """Return the candidates without those behind the first that hold hardly anything of the question."""
    weighted = list(zip(question.words, question.weights, strict=True))
    shares = [
        sum(weight for word, weight in weighted if any(not terms.isdisjoint(alternative) for alternative in word))
        for terms in (frozenset(candidate.lexical.indices) for candidate in candidates)
    ]
    least = _MIN_SHARE * max(shares, default=0.0)
    return [
        c for n, (c, share) in enumerate(zip(candidates, shares, strict=True)) if n < MIN_SECTIONS or share >= least
    ]


def make_passages(
    candidates: Sequence[Candidate],
    url: Callable[[Chunk], str],
    pages: Mapping[str, Sequence[Chunk]],
    free_tokens: int = MAX_PASSAGES_TOKENS,
) -> list[Passage]:
    """Return the candidates as passages with the ids "1", "2" …, each in as much of its section as the budget allows.

    Args:
        candidates: one candidate of each section, best first.
        url: where the reader finds a chunk.
        pages: all chunks of each of their pages, by file path.
        free_tokens: the budget.
    """
    passages = list[Passage]()
    texts = set[str]()
    for number, candidate in enumerate(candidates, 1):
        if number > WIDENED_SECTIONS and _cost(candidate.chunk) > free_tokens:
            break
        reserve = sum(_cost(c.chunk) for c in candidates[number:WIDENED_SECTIONS])
        max_tokens = min(MAX_SECTION_TOKENS, free_tokens - reserve) if number <= WIDENED_SECTIONS else 0
        page = pages[candidate.chunk.source_file_path]
        around = _around(candidate.chunk, [c for c in page if c.text not in texts or c == candidate.chunk], max_tokens)
        texts.update(c.text for c in around)
        free_tokens -= sum(map(_cost, around))
        section_size = sum(section_key(c) == section_key(candidate.chunk) for c in page)
        passages.append(
            Passage(
                id=str(number),
                path=candidate.chunk.heading_path,
                text=_plain(candidate.chunk.text),
                section="\n\n".join(_plain(c.text) for c in around),
                terms=frozenset(candidate.lexical.indices),
                score=candidate.score,
                evidence=candidate.evidence,
                url=url(candidate.chunk) or None,
                chunk_id=candidate.chunk.chunk_id,
                is_whole_section=len(around) == section_size,
                subsections=_subsections(candidate.chunk, page, url),
                reading=candidate.reading,
            )
        )
    return passages


def _around(chunk: Chunk, page: Sequence[Chunk], max_tokens: int) -> list[Chunk]:
    """Return the chunk and the nearest chunks of its section that fit into `max_tokens`, in order."""
    neighbors = [c for c in page if section_key(c) == section_key(chunk)]
    neighbors.sort(key=lambda c: (abs(c.chunk_index - chunk.chunk_index), c.chunk_index))
    chunks: list[Chunk] = []
    for neighbor in neighbors:
        max_tokens -= _tokens(neighbor)
        if chunks and max_tokens < 0:
            break
        chunks.append(neighbor)
    return sorted(chunks, key=lambda c: c.chunk_index)


def _subsections(chunk: Chunk, page: Sequence[Chunk], url: Callable[[Chunk], str]) -> tuple[Subsection, ...]:
    """Return the sections that stand directly below a chunk's section, in the order of its page."""
    depth = len(chunk.heading_path)
    subsections: list[Subsection] = []
    at = next((n for n, c in enumerate(page) if c.chunk_id == chunk.chunk_id), len(page))
    for c in page[at:]:
        if section_key(c) == section_key(chunk):
            continue
        # Another section may have the same headings, too.
        if c.heading_path[:depth] != chunk.heading_path or len(c.heading_path) == depth:
            break
        heading, is_own = c.heading_path[depth], len(c.heading_path) == depth + 1
        below = Subsection(heading, url(c) if is_own else "")
        if not subsections or subsections[-1].heading != heading or (is_own and subsections[-1].url != below.url):
            subsections.append(below)
    return tuple(subsections)


_plain = lru_cache(maxsize=1024)(plain)


def _tokens(chunk: Chunk) -> int:
    return round(utf8_length(chunk.text) / PROSE_TOKEN_BYTES)


def _cost(chunk: Chunk) -> int:
    """Return what a chunk takes of the pages' budget: a FAQ entry is one chunk, and `choose` counted it."""
    return 0 if chunk.type == FAQ else _tokens(chunk)
