"""Answers without a model, by quotes from the documentation.

`answer_scores` scores the parts of the passages. The block of the best part is quoted first, then other blocks whose
score is near its own, while there is room. A second section is quoted if its score is near, too, and it holds a word of
the question that the first does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import nlargest
from math import exp

from chapterverse.text.plain import escape_markdown
from chapterverse_api import phrases
from chapterverse_api.generation.draft import Draft, Span
from chapterverse_api.generation.prompts import REFUSAL
from chapterverse_api.generation.quoting.answer_scores import (
    MAX_PASSAGES,
    ParsedSection,
    QuestionWords,
    ScoredPart,
    score_parts,
)
from chapterverse_api.generation.quoting.blocks import read_blocks
from chapterverse_api.generation.quoting.quote import Quote, count_words
from chapterverse_api.generation.requests import GenerationRequest

#: The limits below were chosen by `benchmarks/quoting.py`, which says on which sites.
#: Words of all quotes together; the block that answers is quoted even if it is longer.
MAX_ANSWER_WORDS = 220
#: Sections that are quoted.
MAX_SECTIONS = 2
#: Sections that are quoted if it is doubtful that they answer.
MAX_SHORT_QUOTES = 3
#: How far the score of another block may be below that of the part that answers.
MAX_SCORE_GAP = 2.5
#: What a block beside a quoted one gains, and what every ten words of a block lose, in units of the score.
NEIGHBOR_BONUS, TEN_WORDS_PENALTY = 1.0, 0.26
#: What a block gains if its section is quoted and has a heading with at least this share of the question: then all of
#: the section is about it, also the remedy below an error.
ON_SUBJECT_BONUS, MIN_ON_SUBJECT_SHARE = 5.0, 0.5
#: What a block of another section loses. In a comparison it gains, because the other side often is another section.
OTHER_SECTION_PENALTY, COMPARISON_PENALTY = 1.0, -0.5
#: Characters of a heading that is shown whole.
MAX_HEADING_CHARS = 80
#: The parameters of a signature, and what it returns. Words go on behind the brackets of "the function(s) to call".
_BEFORE_PARAMETERS = re.compile(r"\w(?=\()")
_PARAMETERS = re.compile(r"\([^,]*+,.*\)(?:\s*(?:→|->).*)?\Z", re.DOTALL)
#: Blocks that may be quoted beside the one that answers.
_MAX_CANDIDATES = 60
#: Parts of a section's opening.
_OPENING_PARTS = 3
#: Words of a label that says something: "Deprecated since 2.0", and not "Note".
_MIN_LABEL_WORDS = 3


def quoted_answer(request: GenerationRequest) -> Draft:
    """Return the answer: framing and quotes in turn, or the word for a refusal. A quote cites its source, and all of it
    but its cut lines stands verbatim in that source's section.
    """
    order = [p.id for p in request.passages]
    quotes = _short_quotes(request) if request.may_help else _choose(request)
    chosen = sorted(quotes, key=lambda quote: order.index(quote.section.passage.id))
    if not chosen:
        # An empty section, or nothing but headings.
        return (Span(REFUSAL),)
    texts = phrases.for_language(request.language)
    spans = [Span(f"{texts.may_help}\n\n", kind="framing")] if request.may_help else []
    for i, quote in enumerate(chosen):
        passage = quote.section.passage
        path = " › ".join(escape_markdown(_short_heading(heading)) for heading in passage.path)
        spans.append(Span(f"{'' if i == 0 else chr(10) * 2}**{path}**\n\n", kind="framing"))
        spans.append(Span(quote.text(request), (passage.id,), kind="quote", mark=quote.mark))
    return tuple(spans)


def _short_quotes(request: GenerationRequest) -> list[Quote]:
    """Return the best part of each of the first sections, the first with what belongs to it; else a beginning."""
    best: dict[str, ScoredPart] = {}
    for part in score_parts(request):
        if part.score > best.setdefault(part.section.passage.id, part).score:
            best[part.section.passage.id] = part
    first, *others = [p.id for p in request.passages if p.id in best] or [""]
    # The sides of a comparison are quoted before what lies around them.
    others.sort(key=lambda place: place not in request.sides)
    quotes = [Quote.around(best[first], request)] if first else _quote_beginning(request)
    for quote in (Quote.of_part(best[place], request) for place in others):
        if len(quotes) < MAX_SHORT_QUOTES and all(quote.lines.isdisjoint(other.lines) for other in quotes):
            quotes.append(quote)
    return quotes


def _short_heading(heading: str) -> str:
    """Return a heading, a long signature without its parameters."""
    before = _BEFORE_PARAMETERS.search(heading) if len(heading) > MAX_HEADING_CHARS else None
    # What the first bracket doesn't begin, no later one does.
    return f"{heading[: before.end()]}(…)" if before and _PARAMETERS.match(heading, before.end()) else heading


def _choose(request: GenerationRequest) -> list[Quote]:
    """Return the quotes: first the block that answers, then others with nearly its score, while there is room."""
    scored = score_parts(request)
    blocks = _best_parts(scored)
    if not blocks:
        return _quote_beginning(request)
    best = max(_likeliest_section(scored), key=lambda part: part.score)
    weakest = best.score - MAX_SCORE_GAP
    if request.context:
        best, blocks = _of_named_tab(best, blocks, request.context)
    chosen = [Quote.around(part, request) for part in _sides(scored, request) or [best]]
    _fill(chosen, nlargest(_MAX_CANDIDATES, blocks.values(), key=lambda part: part.score), weakest, request)
    return chosen


def _likeliest_section(scored: Iterable[ScoredPart]) -> list[ScoredPart]:
    """Return the parts of the section that most likely answers.

    Scores are log-odds, so the odds of a section are the sum of its parts' odds.
    """
    sections: dict[str, list[ScoredPart]] = {}
    for part in scored:
        sections.setdefault(part.section.passage.id, []).append(part)
    return max(sections.values(), key=lambda parts: sum(exp(part.score) for part in parts))


def _best_parts(scored: Iterable[ScoredPart]) -> dict[tuple[str, int], ScoredPart]:
    """Return the best part of each block, by the place of the block."""
    best: dict[tuple[str, int], ScoredPart] = {}
    for part in scored:
        if part.score > best.setdefault(part.place, part).score:
            best[part.place] = part
    return best


def _sides(scored: Sequence[ScoredPart], request: GenerationRequest) -> list[ScoredPart]:
    """Return the best part of the opening of each side's section, which answers a comparison."""
    sides = [[part for part in scored if part.section.passage.id == side] for side in request.sides]
    return [max(parts[:_OPENING_PARTS], key=lambda part: part.score) for parts in sides if parts]


def _fill(chosen: list[Quote], parts: Iterable[ScoredPart], weakest: float, request: GenerationRequest) -> None:
    """Add the blocks of these parts to the quotes, the most valuable first, while one is worth it and there is room."""
    parts_by_place = {part.place: part for part in parts}
    room = MAX_ANSWER_WORDS - sum(quote.words for quote in chosen)
    elsewhere = COMPARISON_PENALTY if request.compares else OTHER_SECTION_PENALTY
    words = QuestionWords(request)
    on_subject = [quote.section for quote in chosen if _is_on_subject(quote.section, words)]
    while parts_by_place and room > 0:
        values = {
            place: _value(part, chosen, elsewhere) + ON_SUBJECT_BONUS * (part.section in on_subject)
            for place, part in parts_by_place.items()
        }
        place = max(values, key=values.__getitem__)
        part = parts_by_place.pop(place)
        if values[place] < weakest:
            break
        quote = _quote_of_section(part.section, chosen)
        if quote is None and (len(chosen) >= MAX_SECTIONS or not (request.compares or _adds_word(part, chosen, words))):
            continue
        addition = Quote.around(part, request)
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


def _quote_of_section(section: ParsedSection, chosen: Sequence[Quote]) -> Quote | None:
    return next((quote for quote in chosen if quote.section is section), None)


def _is_on_subject(section: ParsedSection, words: QuestionWords) -> bool:
    """Whether a section's heading holds at least `MIN_ON_SUBJECT_SHARE` of the question."""
    return bool(section.passage.path) and words.coverage(section.passage.path[-1]) >= MIN_ON_SUBJECT_SHARE


def _adds_word(part: ScoredPart, chosen: Sequence[Quote], words: QuestionWords) -> bool:
    """Whether a part's block or headings hold a word of the question that no quote and no heading of one holds."""
    section, block = part.section, part.section.blocks[part.block]
    added = f"{section.text[block.start : block.end]} {' '.join(section.passage.path)}"
    quoted = " ".join(f"{quote.text()} {' '.join(quote.section.passage.path)}" for quote in chosen)
    return bool(words.read(added) - words.read(quoted))


def _quote_beginning(request: GenerationRequest) -> list[Quote]:
    """Return the beginning of the first section that says something; no part of it can be an answer by itself.

    It is only a label, "Deprecated since 2.0", or the reader has selected all of it.
    """
    quotes = (
        Quote.beginning(ParsedSection(p, p.section, read_blocks(p.section)), MAX_ANSWER_WORDS)
        for p in request.passages[:MAX_PASSAGES]
    )
    return [quote for quote in quotes if quote.words >= _MIN_LABEL_WORDS][:1]


def _of_named_tab(
    best: ScoredPart, blocks: dict[tuple[str, int], ScoredPart], context: str
) -> tuple[ScoredPart, dict[tuple[str, int], ScoredPart]]:
    """Return the best part and the blocks; if a reader's context names a tab, without those of the tabs beside it."""
    # Most readers say nothing of themselves.
    from chapterverse_api.generation.quoting.tabs import TabNames, read_tabs

    names = TabNames(context)
    tab_blocks = dict(blocks)
    for section in {part.section: None for part in blocks.values()}:
        tabs = read_tabs(section.text, section.blocks)
        chosen = names.choose(tab for tab in tabs if tab is not None)
        parts = [part for part in blocks.values() if part.section is section and tabs[part.block] is not None]
        named = [part for part in parts if tabs[part.block] == chosen]
        if named:
            # What tabs say differs in their names: the named one speaks as clearly as the best of them.
            highest = max(part.score for part in parts)
            first = replace(max(named, key=lambda part: part.score), score=highest)
            tab_blocks = {place: part for place, part in tab_blocks.items() if part in named or part not in parts}
            tab_blocks[first.place] = first
            best = first if best in parts else best
    return best, tab_blocks


def _value(part: ScoredPart, chosen: Sequence[Quote], elsewhere: float) -> float:
    """Return the score of a part with the bonuses and penalties of quoting its block.

    Args:
        elsewhere: what a block of another section loses.
    """
    quote = _quote_of_section(part.section, chosen)
    beside = quote is not None and not {part.block - 1, part.block + 1}.isdisjoint(quote.parts_by_block)
    block = part.section.blocks[part.block]
    words = count_words(part.section.text[block.start : block.end])
    return part.score + NEIGHBOR_BONUS * beside - elsewhere * (quote is None) - TEN_WORDS_PENALTY * words / 10
