"""Packs the best sections into a budget of tokens.

Small chunks find the right section more often, and large ones hold more of the answer. So the search returns small
chunks, and the generator gets the sections around them. A passage never crosses into another section, because a
citation names one section.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from chapterverse.calibration import Question
from chapterverse.model import CHUNK_TOKENS, FAQ, Chunk
from chapterverse.text import lexical
from chapterverse.text.plain import plain
from chapterverse.text.utf8 import PROSE_TOKEN_BYTES, utf8_length
from chapterverse_api.generation.passage import Passage, Subsection
from chapterverse_api.retrieval.candidates import Candidate
from chapterverse_api.retrieval.ranking import section

#: cl100k tokens of all passages together: ten chunks, at which the public question sets are scored too.
BUDGET = 2560
#: Tokens of all FAQ entries, which have a share of their own: two of the longest, and pages lose nothing by them.
FAQ_BUDGET = 2 * CHUNK_TOKENS
#: Of the budget, what one section may take: it may be a whole reference.
WIDEST = 1024
#: Sections that are widened before others are added, and the most there may be.
WIDENED, MOST = 5, 10
#: The first sections are always passed on. A further one must hold this share, by idf, of the question's words that the
#: best section holds. On 81 labelled answers that left out 57 of 536 sections, of which 5 were used.
SURE, LEAST_SHARE = 4, 0.6
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


def choose(candidates: Iterable[Candidate], top_k: int | None, faq_top_k: int = MOST) -> list[Candidate]:
    """Return the best candidate of each section, best first: a section is one source, however many chunks match.

    The same text in two sections is one source as well. Of FAQ entries there are at most `faq_top_k`, and no more than
    fit into their share of the tokens.
    """
    best: dict[object, Candidate] = {}
    texts = set[str]()
    entries, left = faq_top_k, FAQ_BUDGET
    for candidate in candidates:
        text = " ".join(candidate.chunk.text.split())
        if section(candidate.chunk) in best or text in texts:
            continue
        if candidate.chunk.type == FAQ:
            entries, left = entries - 1, left - _tokens(candidate.chunk)
            if entries < 0 or (left < 0 and entries < faq_top_k - 1):
                continue
        best[section(candidate.chunk)] = candidate
        texts.add(text)
    return list(best.values())[: top_k or MOST]


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


def drop_irrelevant(kept: Sequence[Candidate], made: Sequence[Passage], question: Question) -> list[Candidate]:
    """Return the candidates without those behind the best whose passages say hardly anything of the question."""
    shares = [_share(passage, candidate, question) for passage, candidate in zip(made, kept, strict=False)]
    least = LEAST_SHARE * max(shares, default=0.0)
    return [one for n, (one, share) in enumerate(zip(kept, shares, strict=False)) if n < SURE or share >= least]


def _share(passage: Passage, candidate: Candidate, question: Question) -> float:
    text = f"{' '.join(passage.path)} {passage.section}"
    terms = passage.terms.union(*(word.terms for word in lexical.words(text, candidate.chunk.language)))
    pairs = zip(question.words, question.weights, strict=True)
    return sum(weight for word, weight in pairs if any(terms.intersection(alternative) for alternative in word))


def make_passages(
    kept: Sequence[Candidate], url: Callable[[Chunk], str], pages: Mapping[str, Sequence[Chunk]]
) -> list[Passage]:
    """Return the candidates as passages with the ids "1", "2" …, each in as much of its section as the budget allows.

    Args:
        kept: one candidate of each section, best first.
        url: where the reader finds a chunk.
        pages: all chunks of each of their pages, by file path.
    """
    left = BUDGET
    made = list[Passage]()
    held = set[str]()
    for number, candidate in enumerate(kept, 1):
        if number > WIDENED and _cost(candidate.chunk) > left:
            break
        waiting = sum(_cost(c.chunk) for c in kept[number:WIDENED])
        room = min(WIDEST, left - waiting) if number <= WIDENED else 0
        page = pages[candidate.chunk.source_file_path]
        around = _around(candidate.chunk, [c for c in page if c.text not in held or c == candidate.chunk], room)
        held.update(c.text for c in around)
        left -= sum(map(_cost, around))
        own = sum(section(c) == section(candidate.chunk) for c in page)
        made.append(
            Passage(
                id=str(number),
                path=candidate.chunk.heading_path,
                text=plain(candidate.chunk.text),
                section="\n\n".join(plain(c.text) for c in around),
                terms=frozenset(candidate.lexical.indices),
                score=candidate.score,
                evidence=candidate.evidence,
                url=url(candidate.chunk) or None,
                chunk_id=candidate.chunk.chunk_id,
                whole=len(around) == own,
                subsections=_subsections(candidate.chunk, page, url),
            )
        )
    return made


def _around(chunk: Chunk, page: Sequence[Chunk], room: int) -> list[Chunk]:
    """Return the chunk with its neighbors in its own section, nearest first, as far as there is room; in order."""
    own = [c for c in page if section(c) == section(chunk)]
    own.sort(key=lambda c: (abs(c.chunk_index - chunk.chunk_index), c.chunk_index))
    taken: list[Chunk] = []
    for neighbor in own:
        room -= _tokens(neighbor)
        if taken and room < 0:
            break
        taken.append(neighbor)
    return sorted(taken, key=lambda c: c.chunk_index)


def _subsections(chunk: Chunk, page: Sequence[Chunk], url: Callable[[Chunk], str]) -> tuple[Subsection, ...]:
    """Return the sections that stand directly below a chunk's section, in the order of its page."""
    depth = len(chunk.heading_path)
    found: list[Subsection] = []
    at = next((n for n, c in enumerate(page) if c.chunk_id == chunk.chunk_id), len(page))
    for c in page[at:]:
        if section(c) == section(chunk):
            continue
        # Another section may have the same headings, too.
        if c.heading_path[:depth] != chunk.heading_path or len(c.heading_path) == depth:
            break
        heading, is_own = c.heading_path[depth], len(c.heading_path) == depth + 1
        below = Subsection(heading, url(c) if is_own else "")
        if not found or found[-1].heading != heading or (is_own and found[-1].url != below.url):
            found.append(below)
    return tuple(found)


def _tokens(chunk: Chunk) -> int:
    return round(utf8_length(chunk.text) / PROSE_TOKEN_BYTES)


def _cost(chunk: Chunk) -> int:
    """Return what a chunk takes of the pages' budget: a FAQ entry is one chunk, and `choose` counted it."""
    return 0 if chunk.type == FAQ else _tokens(chunk)
