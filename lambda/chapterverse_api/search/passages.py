"""Packs the best sections into a budget of tokens.

Small chunks find the right section more often, and large ones hold more of the answer. So the search returns small
chunks, and the generator gets the sections around them. A passage never crosses into another section, because a
citation names one section.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

from chapterverse.calibration import WeightedQuestion
from chapterverse.model import CHUNK_TOKENS, FAQ, Chunk
from chapterverse.text.markdown import plain
from chapterverse.text.tokens import PROSE_TOKEN_BYTES, utf8_length
from chapterverse_api.draft.requests import Passage, Subsection
from chapterverse_api.search.ranking import Candidate, section

#: cl100k tokens of all passages together: ten chunks, at which the public question sets are scored too.
MAX_PASSAGES_TOKENS = 2560
#: Tokens of all FAQ entries, which have a share of their own: two of the longest, and pages lose nothing by them.
MAX_FAQ_TOKENS = 2 * CHUNK_TOKENS
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


def choose(candidates: Iterable[Candidate], top_k: int | None, faq_top_k: int = MAX_SECTIONS) -> list[Candidate]:
    """Return the best candidate of each section, best first: a section is one source, however many chunks match.

    The same text in two sections is one source as well. Of FAQ entries there are at most `faq_top_k`, and no more than
    fit into their share of the tokens.
    """
    best: dict[object, Candidate] = {}
    texts = set[str]()
    entries, tokens = faq_top_k, MAX_FAQ_TOKENS
    for candidate in candidates:
        place = section(candidate.chunk)
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
        section_size = sum(section(c) == section(candidate.chunk) for c in page)
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
    neighbors = [c for c in page if section(c) == section(chunk)]
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
        if section(c) == section(chunk):
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
