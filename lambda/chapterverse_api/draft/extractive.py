"""Answers without a model, by quotes from the documentation.

`quoting.answer_scores` scores the parts of the passages. Of the section whose parts are together the likeliest, the
block of the best part is chosen; in a comparison, a block of the opening of each side. Then other blocks are added
whose score is near, while there is room; one of a second section only if it holds a word that the quotes lack. The
quotes are shown in the order of the passages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from heapq import nlargest
from math import exp
from typing import TypeVar

from chapterverse.text.markdown import escape_markdown
from chapterverse_api import phrases
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.quoting.answer_scores import (
    ParsedSection,
    QuestionWords,
    ScoredPart,
    score_parts,
)
from chapterverse_api.draft.quoting.blocks import TabNames, read_tabs
from chapterverse_api.draft.quoting.quote import Quote, count_words
from chapterverse_api.draft.requests import GenerationRequest

#: The limits below were chosen by `benchmarks/quoting.py`, which says on which sites.
#: Words of all quotes together; the block that answers is quoted even if it is longer.
MAX_ANSWER_WORDS = 220
#: Sections that are quoted.
MAX_QUOTED_SECTIONS = 2
#: Sections that are quoted if it is doubtful that they answer.
_MAX_SHORT_QUOTES = 3
#: How far the score of another block may be below that of the part that answers.
_MAX_SCORE_GAP = 2.5
#: What a block beside a quoted one gains, and what every ten words of a block lose, in units of the score.
_NEIGHBOR_BONUS, TEN_WORDS_PENALTY = 1.0, 0.26
#: What a block gains if its section is quoted and has a heading with at least this share of the question: then all of
#: the section is about it, also the remedy below an error.
_ON_SUBJECT_BONUS, _MIN_ON_SUBJECT_SHARE = 5.0, 0.5
#: What a block of another section loses. In a comparison it gains, because the other side often is another section.
_OTHER_SECTION_PENALTY, COMPARISON_PENALTY = 1.0, -0.5
#: Characters of a heading that is shown whole.
_MAX_HEADING_CHARS = 80
#: The parameters of a signature, and what it returns. Words go on behind the brackets of "the function(s) to call".
_BEFORE_PARAMETERS = re.compile(r"\w(?=\()")
_PARAMETERS = re.compile(r"\([^,]*+,.*\)(?:\s*(?:→|->).*)?\Z", re.DOTALL)
#: Blocks that may be quoted beside the one that answers.
_MAX_CANDIDATES = 60
#: Parts of a section's opening.
_OPENING_PARTS = 3
#: Words of a label that says something: "Deprecated since 2.0", and not "Note".
_MIN_LABEL_WORDS = 3

_Key = TypeVar("_Key", bound=Hashable)


class Extractive:
    """Quotes the passages. Implements `AnswerGenerator`."""

    name = "extractive"

    @classmethod
    def from_settings(cls, *_: object) -> Extractive:
        return cls()

    def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
        """Yield framing and quotes in turn; nothing if there is nothing to quote.

        A quote cites its source, and all of it but its cut lines stands verbatim in that source's section.
        """
        order = [p.id for p in request.passages]
        quotes = _choose(request)
        # None of an empty section, or of nothing but headings.
        if quotes and request.may_help:
            yield Span(f"{phrases.for_language(request.language).may_help}\n\n", kind="framing")
        for i, quote in enumerate(sorted(quotes, key=lambda quote: order.index(quote.section.passage.id))):
            passage, gap = quote.section.passage, "\n\n" if i else ""
            path = " › ".join(escape_markdown(_short_heading(heading)) for heading in passage.path)
            yield Span(f"{gap}**{path}**\n\n", kind="framing")
            yield Span(quote.text(), (passage.id,), kind="quote", mark=quote.mark)


def _short_heading(heading: str) -> str:
    """Return a heading, a long signature without its parameters."""
    before = _BEFORE_PARAMETERS.search(heading) if len(heading) > _MAX_HEADING_CHARS else None
    # What the first bracket doesn't begin, no later one does.
    return f"{heading[: before.end()]}(…)" if before and _PARAMETERS.match(heading, before.end()) else heading


def _choose(request: GenerationRequest) -> list[Quote]:
    """Return the quotes in the order in which they were chosen; the beginning of a section if no part can answer."""
    scored = score_parts(request)
    if not scored:
        return _quote_beginning(request)
    sections = _group(scored, lambda part: part.section)
    # Scores are log-odds, so the odds of a section are the sum of its parts' odds.
    best = _best(max(sections.values(), key=lambda parts: sum(exp(part.score) for part in parts)))
    return (_short_quotes if request.may_help else _long_quotes)(best, sections, request)


def _short_quotes(
    best: ScoredPart, sections: Mapping[ParsedSection, Sequence[ScoredPart]], request: GenerationRequest
) -> list[Quote]:
    """Return the block that answers, if one does, and the best part of each of the first other sections."""
    chosen = [Quote.around(best)]
    others = [_best(parts) for section, parts in sections.items() if section is not best.section]
    # The sides of a comparison before what lies around them.
    others.sort(key=lambda part: part.section.passage.id not in request.sides)
    for quote in map(Quote.of_part, others):
        if len(chosen) < _MAX_SHORT_QUOTES and all(quote.lines.isdisjoint(other.lines) for other in chosen):
            chosen.append(quote)
    return chosen


def _long_quotes(
    best: ScoredPart, sections: Mapping[ParsedSection, Sequence[ScoredPart]], request: GenerationRequest
) -> list[Quote]:
    """Return the block that answers, then others with nearly its score, while there is room."""
    weakest = best.score - _MAX_SCORE_GAP
    blocks = [_best(parts) for read in sections.values() for parts in _group(read, lambda part: part.block).values()]
    if request.context:
        best, blocks = _of_named_tab(best, blocks, request.context)
    # The best part of the opening of each side's section answers a comparison.
    sides = [parts for side in request.sides for section, parts in sections.items() if section.passage.id == side]
    chosen = [Quote.around(_best(parts[:_OPENING_PARTS])) for parts in sides] or [Quote.around(best)]
    _fill(chosen, nlargest(_MAX_CANDIDATES, blocks, key=lambda part: part.score), weakest, request)
    return chosen


def _group(parts: Iterable[ScoredPart], key: Callable[[ScoredPart], _Key]) -> dict[_Key, list[ScoredPart]]:
    groups: dict[_Key, list[ScoredPart]] = {}
    for part in parts:
        groups.setdefault(key(part), []).append(part)
    return groups


def _best(parts: Sequence[ScoredPart]) -> ScoredPart:
    return max(parts, key=lambda part: part.score)


def _fill(chosen: list[Quote], parts: list[ScoredPart], weakest: float, request: GenerationRequest) -> None:
    """Add the blocks of these parts to the quotes, the most valuable first, while one is worth it and there is room."""
    room = MAX_ANSWER_WORDS - sum(quote.words for quote in chosen)
    elsewhere = COMPARISON_PENALTY if request.compares else _OTHER_SECTION_PENALTY
    on_subject = [quote.section for quote in chosen if _is_on_subject(quote.section)]

    @cache
    def count_block_words(section: ParsedSection, block: int) -> int:
        return count_words(section.text_of(section.blocks[block]))

    def value(part: ScoredPart) -> float:
        words = count_block_words(part.section, part.block)
        bonus = _ON_SUBJECT_BONUS * (part.section in on_subject)
        return _value(part, words, _quote_of(part.section, chosen), elsewhere) + bonus

    while parts and room > 0:
        part = max(parts, key=value)
        parts.remove(part)
        if value(part) < weakest:
            break
        quote = _quote_of(part.section, chosen)
        if quote is None and (len(chosen) >= MAX_QUOTED_SECTIONS or not (request.compares or _adds_word(part, chosen))):
            continue
        addition = Quote.around(part)
        if quote:
            addition = addition.without(quote)
        repeats = any(not addition.lines.isdisjoint(other.lines) for other in chosen if other is not quote)
        if repeats or addition.words > room:
            continue
        room -= addition.words
        if quote:
            quote.parts_by_block |= addition.parts_by_block
        else:
            chosen.append(addition)


def _value(part: ScoredPart, words: int, quote: Quote | None, elsewhere: float) -> float:
    """Return the score of a part with the bonuses and penalties of quoting its block.

    Args:
        words: of its block.
        quote: of its section.
        elsewhere: what a block of another section loses.
    """
    beside = quote is not None and not {part.block - 1, part.block + 1}.isdisjoint(quote.parts_by_block)
    return part.score + _NEIGHBOR_BONUS * beside - elsewhere * (quote is None) - TEN_WORDS_PENALTY * words / 10


def _quote_of(section: ParsedSection, chosen: Sequence[Quote]) -> Quote | None:
    return next((quote for quote in chosen if quote.section is section), None)


def _is_on_subject(section: ParsedSection) -> bool:
    """Whether a section's heading holds at least `_MIN_ON_SUBJECT_SHARE` of the question."""
    return bool(section.passage.path) and section.words.coverage(section.passage.path[-1]) >= _MIN_ON_SUBJECT_SHARE


def _adds_word(part: ScoredPart, chosen: Sequence[Quote]) -> bool:
    """Whether a part's block or headings hold a word of the question that no quote and no heading of one holds."""
    section, read = part.section, part.section.words.read
    added = f"{section.text_of(section.blocks[part.block])} {' '.join(section.passage.path)}"
    quoted = " ".join(f"{quote.text(omissions=False)} {' '.join(quote.section.passage.path)}" for quote in chosen)
    return bool(read(added) - read(quoted))


def _quote_beginning(request: GenerationRequest) -> list[Quote]:
    """Return the beginning of the first section that says something; no part of it can be an answer by itself.

    It is only a label, "Deprecated since 2.0", or the reader has selected all of it.
    """
    sections = ParsedSection.read(request.passages, QuestionWords(request))
    quotes = (Quote.beginning(section, MAX_ANSWER_WORDS) for section in sections)
    return [quote for quote in quotes if quote.words >= _MIN_LABEL_WORDS][:1]


def _of_named_tab(best: ScoredPart, blocks: list[ScoredPart], context: str) -> tuple[ScoredPart, list[ScoredPart]]:
    """Return the best part and the blocks; if a reader's context names a tab, without those of the tabs beside it."""
    names, kept = TabNames(context), list[ScoredPart]()
    for section, beside in _group(blocks, lambda part: part.section).items():
        tabs = read_tabs(section.passage.section, section.blocks)
        chosen = names.choose(tab for tab in tabs if tab is not None)
        parts = [part for part in beside if tabs[part.block] is not None]
        named = [part for part in parts if tabs[part.block] == chosen]
        if named:
            # What tabs say differs in their names: the named one speaks as clearly as the best of them.
            first = replace(_best(named), score=_best(parts).score)
            best = first if best in parts else best
            beside = [part for part in beside if part in named or part not in parts]
            beside[beside.index(_best(named))] = first
        kept += beside
    return best, kept
