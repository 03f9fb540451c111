"""Answers without a model: quotes the documentation's sentences whole, with the nearest code.

Two windows of about 55 words from the three best passages, chosen by maximal marginal relevance, recover more of a
human answer than any single window or the best isolated sentences (measured on 285 questions: ROUGE-1 recall .511
against .453 to .464). Lists, tables and code are never cut inside an item, a row or a block.
"""

from __future__ import annotations

from collections.abc import Generator as Steps
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chapterverse_api import phrases
from chapterverse_api.generation.blocks import QuotableBlock, split, terms_of
from chapterverse_api.generation.types import GenerationRequest, Passage, Span

WINDOW_WORDS = 55
WINDOWS = 2
PASSAGES = 3
#: Two windows that share more of their terms than this say the same thing.
OVERLAP = 0.6
#: How much longer a window may get for what its last words announce.
ANNOUNCED = 3


@dataclass(frozen=True, slots=True)
class QuoteWindow:
    """Adjacent units of one passage's section, from `first` up to and without `end`."""

    passage: Passage
    section: tuple[QuotableBlock, ...]
    first: int
    end: int
    score: float

    @property
    def units(self) -> tuple[QuotableBlock, ...]:
        return self.section[self.first : self.end]

    @property
    def text(self) -> str:
        return "".join(u.text if i == 0 else u.glue + u.text for i, u in enumerate(self.units))

    @property
    def terms(self) -> frozenset[int]:
        return frozenset().union(*(u.terms for u in self.units))


class Extractive:
    """Quotes. Implements `chapterverse_api.generation.Generator`."""

    name = "extractive"

    def generate(self, task: GenerationRequest) -> Steps[Span, None, None]:
        ours = phrases.of(task.language)
        yield Span(f"{ours.unsure if task.unsure else ours.quoted}\n\n", kind="framing")
        chosen = _choose(task)[: 1 if task.unsure else WINDOWS]
        shown = {u.text for window in chosen for u in window.units if u.code}
        for i, window in enumerate(chosen):
            before, after = chosen[i - 1] if i else None, chosen[i + 1] if i + 1 < len(chosen) else None
            # Under one heading that heading stands above the first quote, and the code below the last.
            parts = [] if _together(window, before) else [f"**{_plain(' › '.join(window.passage.path))}**"]
            parts.append(window.text)
            if not _together(window, after):
                parts += _nearest_code(window, task, shown)
            yield Span("\n\n".join(parts) + ("\n\n" if after else ""), (window.passage.id,))


def _choose(task: GenerationRequest) -> list[QuoteWindow]:
    """Return windows that add something to each other: the best of each passage in the passages' order, then others.

    The order of passages knows more than the words of one window do: by it 13 of 15 questions on a public site cited
    the page that answers them, by the windows' own scores 10. So quotes stand in it, too.
    """
    of_passages = [sorted(_windows(p, task), key=lambda w: -w.score) for p in task.passages[:PASSAGES]]
    first = [windows[0] for windows in of_passages if windows]
    others = sorted((w for windows in of_passages for w in windows[1:]), key=lambda w: -w.score)
    enough = max((w.score for w in (*first, *others)), default=0.0) / 3
    chosen: list[QuoteWindow] = []
    for window in (*first, *others):
        if len(chosen) == WINDOWS:
            break
        # What hardly speaks to the question is noise under a citation.
        if window.score < enough:
            continue
        if all(_share(window.terms, other.terms) < OVERLAP and not _touch(window, other) for other in chosen):
            chosen.append(window)
    order = [p.id for p in task.passages]
    return sorted(chosen, key=lambda w: (order.index(w.passage.id), w.first))


def _windows(passage: Passage, task: GenerationRequest) -> Iterator[QuoteWindow]:
    section = tuple(split(passage.section, task.language))
    best = max((p.rank for p in task.passages), default=0.0) or 1.0
    prior = 0.5 + 0.5 * passage.rank / best
    # The section's own heading answers for words that its sentences don't repeat.
    headed = _covered(terms_of(" ".join(passage.path), task.language), task)
    for rank, (first, end) in enumerate(_runs(section)):
        # A listing holds the words of many questions by accident.
        covered = _covered(frozenset().union(*(u.terms for u in section[first:end] if not u.code)), task)
        # Early sentences define; with equal evidence they win.
        score = (covered * 0.75 + headed * 0.25) * prior + 0.1 / (1 + rank)
        last = section[end - 1]
        # An announcement of nothing or an endless listing is quoted only where there is nothing else.
        yield QuoteWindow(passage, section, first, end, 0.0 if last.announces or last.long_code else score)


def _runs(units: Sequence[QuotableBlock]) -> Iterator[tuple[int, int]]:
    """Yield from where to where may be quoted.

    A quote begins with a paragraph, a list or a block, never with what the words before it announce. What is longer
    than a window is taken up again where the window before it ended.
    """
    end = 0
    for first, unit in enumerate(units):
        announced = first > 0 and units[first - 1].announces
        if (unit.opens or first >= end) and not announced and not unit.long_code:
            end = _reach(units, first)
            yield first, end
    if units and not end:
        yield 0, _reach(units, 0)


def _reach(units: Sequence[QuotableBlock], first: int) -> int:
    """Return the end of about a window's words; what a colon or a label announces comes with it or not at all."""
    end, size = first + 1, units[first].words
    # The rest of a paragraph is a quote for its own sake, and not a way into the next one.
    while end < len(units) and (units[first].opens or not units[end].opens):
        size += units[end].words
        if units[end].long_code or size > WINDOW_WORDS * (ANNOUNCED if units[end - 1].announces else 1):
            break
        end += 1
    while end > first + 1 and units[end - 1].announces:
        end -= 1
    return end


def _nearest_code(window: QuoteWindow, task: GenerationRequest, shown: set[str]) -> list[str]:
    """Return the section's code that speaks most of what was asked, with what announces it, if the quote has none."""
    if any(u.code for u in window.units):
        return []
    blocks = [(i, u) for i, u in enumerate(window.section) if u.code and u.opens and not u.long_code]
    scored = [(_covered(unit.terms, task), -abs(i - window.end), i) for i, unit in blocks if unit.text not in shown]
    if not scored or (max(scored)[0] == 0.0 and len(scored) > 1):
        return []
    at = max(scored)[2]
    before = window.section[at - 1] if at else None
    announced = before is not None and before.announces and before not in window.units
    return [u.text for u in window.section[at - announced : at + 1]]


def _covered(terms: frozenset[int], task: GenerationRequest) -> float:
    """Return the share of the question's words, weighted by idf, that `terms` hold; 0 without a question."""
    total = sum(task.words.weights)
    if not total:
        return 0.0
    pairs = zip(task.words.words, task.words.weights, strict=True)
    return sum(w for word, w in pairs if any(terms.intersection(alternative) for alternative in word)) / total


def _share(a: frozenset[int], b: frozenset[int]) -> float:
    return len(a & b) / max(1, min(len(a), len(b)))


def _touch(a: QuoteWindow, b: QuoteWindow) -> bool:
    return a.passage.id == b.passage.id and a.first < b.end and b.first < a.end


def _together(window: QuoteWindow, other: QuoteWindow | None) -> bool:
    return other is not None and other.passage.path == window.passage.path


def _plain(title: str) -> str:
    """Return a heading that can stand between asterisks."""
    return title.replace("*", "").replace("\n", " ")
