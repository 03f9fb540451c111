"""Answers without a model: quotes whole blocks of the documentation, and marks the part that answers.

`answer_scores` says which part of the passages answers. A quote is that part's block with what introduces it and what
it introduces, as far as there is room; what is left out of a list, a table or code is stated, with a link. A section
that ends in an announcement announces its subsections, so their names follow. A second section is quoted where it
speaks nearly as clearly and of words that the first does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Generator as Steps
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest

from chapterverse.text.plain import escape_markdown
from chapterverse_api import phrases
from chapterverse_api.generation.answer_scores import PASSAGES, QuestionWords, ReadSection, ScoredPart, score
from chapterverse_api.generation.blocks import QuotableBlock, QuotablePart, closed, read_blocks, sentences
from chapterverse_api.generation.draft import OMISSION, Draft, Span
from chapterverse_api.generation.passage import Passage
from chapterverse_api.generation.prompts import REFUSAL
from chapterverse_api.generation.requests import GenerationRequest

#: Words of all quotes together; the block that answers is quoted even if it is longer.
ROOM = 220
#: Words up to which a paragraph or a list is quoted whole, a table or entries, and a list that a quote introduces.
WHOLE, WHOLE_TABLE, WHOLE_LIST = 110, 60, 160
#: Lines up to which code is quoted whole, and of longer code those that are.
CODE_LINES, CODE_SHOWN = 25, 16
#: Characters of one sentence, item or row.
LONGEST_PART = 900
#: Sections that are quoted.
SECTIONS = 2
#: How much weaker than the part that answers another block may speak, in units of the score.
WEAKEST = 2.5
#: What a block beside a quoted one gains, and what every ten words of a block lose.
NEIGHBOR, TEN_WORDS = 1.0, 0.22
#: What a block of another section loses; where a comparison is asked for, the other side often is another section.
OTHER_SECTION, COMPARED = 1.0, -0.5
#: A longer item is marked by its best sentence, in words.
_LONGEST_MARK = 45
#: Blocks that may be quoted beside the one that answers, and how far what introduces it and what it introduces reach.
_CANDIDATES, _CHAIN = 60, 8
#: Lines of fewer words may stand in two quotes.
_REPEATABLE = 6
#: Words of a label that says something: "Deprecated since 2.0", and not "Note".
_SAYS_SOMETHING = 3
#: Subsections that a quote names.
_NAMED = 12
#: What ends a link's address, or hides it.
_NO_ADDRESS = re.compile(r"[\s()<>\[\]\"'`\\]")

_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+|\s*>\s?|\s*:\s+")
_LABEL_LINE = re.compile(r"(?:> ?)?(?:\[![A-Za-z]+\][^\n]*|:::[^\n]*)\n")


class Extractive:
    """Quotes. Implements `Generator`."""

    name = "extractive"

    def generate(self, task: GenerationRequest) -> Steps[Span, None, None]:
        yield from quoted_answer(task)


def quoted_answer(task: GenerationRequest) -> Draft:
    """Return the answer: framing and quotes in turn, or the word for a refusal. A quote cites its source, and all of it
    but its cut lines stands verbatim in that source's section.
    """
    order = [p.id for p in task.passages]
    chosen = sorted(_choose(task), key=lambda quote: order.index(quote.section.passage.id))
    if not chosen:
        # An empty section, or nothing but headings.
        return (Span(REFUSAL),)
    spans: list[Span] = [Span(f"{phrases.of(task.language).unsure}\n\n", kind="framing")] if task.unsure else []
    for i, quote in enumerate(chosen):
        passage = quote.section.passage
        path = " › ".join(map(escape_markdown, passage.path))
        spans.append(Span(f"{'' if i == 0 else chr(10) * 2}**{path}**\n\n", kind="framing"))
        spans.append(Span(quote.text(task), (passage.id,), kind="quote", mark=quote.mark))
    return tuple(spans)


def _choose(task: GenerationRequest) -> list[Quote]:
    """Return the quotes: first the block that answers, then what speaks nearly as clearly, while there is room."""
    scored = score(task)
    blocks = _best_parts(scored)
    if not blocks:
        return _quote_beginning(task)
    best = max(blocks.values(), key=lambda part: part.score)
    weakest = best.score - WEAKEST
    if task.context:
        best, blocks = _of_named_tab(best, blocks, task.context)
    chosen = [Quote.around(part, task) for part in _sides(scored, task) or [best]]
    _fill(chosen, nlargest(_CANDIDATES, blocks.values(), key=lambda part: part.score), weakest, task)
    return chosen


def _best_parts(scored: Iterable[ScoredPart]) -> dict[tuple[str, int], ScoredPart]:
    """Return the best part of each block, by the place of the block."""
    best: dict[tuple[str, int], ScoredPart] = {}
    for part in scored:
        if part.score > best.setdefault(part.place, part).score:
            best[part.place] = part
    return best


def _sides(scored: Sequence[ScoredPart], task: GenerationRequest) -> list[ScoredPart]:
    """Return the best part of the opening of each side's section, which answers a comparison; none where unsure."""
    openings = [part for part in scored if part.features.opening and not task.unsure]
    sides = [[part for part in openings if part.section.passage.id == side] for side in task.sides]
    return [max(parts, key=lambda part: part.score) for parts in sides if parts]


def _fill(chosen: list[Quote], parts: Iterable[ScoredPart], weakest: float, task: GenerationRequest) -> None:
    """Add the blocks of these parts to the quotes, the most valuable first, while one is worth it and there is room."""
    waiting = {part.place: part for part in parts}
    room, sections = ROOM - sum(quote.words for quote in chosen), 1 if task.unsure else SECTIONS
    elsewhere = COMPARED if task.compares else OTHER_SECTION
    while waiting and room > 0:
        values = {place: _value(part, chosen, elsewhere) for place, part in waiting.items()}
        place = max(values, key=values.__getitem__)
        part = waiting.pop(place)
        if values[place] < weakest:
            break
        quote = next((quote for quote in chosen if quote.section is part.section), None)
        if quote is None and len(chosen) >= sections:
            continue
        added = Quote.around(part, task)
        if quote:
            added.shown = {at: parts for at, parts in added.shown.items() if at not in quote.shown}
        if not added.lines.isdisjoint(line for other in chosen if other is not quote for line in other.lines):
            continue
        if added.words <= room:
            room -= added.words
            if quote:
                quote.shown |= added.shown
            else:
                chosen.append(added)


def _quote_beginning(task: GenerationRequest) -> list[Quote]:
    """Return the beginning of the first section that says something; no part of it can be an answer by itself.

    It is only a label, "Deprecated since 2.0", or the reader has selected all of it.
    """
    quotes = (Quote.beginning(ReadSection(p, p.section, read_blocks(p.section))) for p in task.passages[:PASSAGES])
    return [quote for quote in quotes if quote.words >= _SAYS_SOMETHING][:1]


def _of_named_tab(
    best: ScoredPart, waiting: dict[tuple[str, int], ScoredPart], context: str
) -> tuple[ScoredPart, dict[tuple[str, int], ScoredPart]]:
    """Return the best part, and the blocks, without those of other tabs where a reader's context names one of them."""
    # Most readers say nothing of themselves.
    from chapterverse_api.generation.tabs import TabNames, tabs_of

    names = TabNames(context)
    left = dict(waiting)
    for section in {part.section: None for part in waiting.values()}:
        tabs = tabs_of(section.text, section.blocks)
        chosen = names.chosen(tab for tab in tabs if tab is not None)
        parts = [part for part in waiting.values() if part.section is section and tabs[part.block] is not None]
        named = [part for part in parts if tabs[part.block] == chosen]
        if named:
            # What tabs say differs in their names: the named one speaks as clearly as the best of them.
            highest = max(part.score for part in parts)
            first = replace(max(named, key=lambda part: part.score), score=highest)
            left = {place: part for place, part in left.items() if part in named or part not in parts}
            left[first.place] = first
            best = first if best in parts else best
    return best, left


def _value(part: ScoredPart, chosen: Sequence[Quote], elsewhere: float) -> float:
    """Return the score of a part with what speaks for and against quoting its block too.

    Args:
        elsewhere: what a block of another section loses.
    """
    quote = next((quote for quote in chosen if quote.section is part.section), None)
    beside = quote is not None and not {part.block - 1, part.block + 1}.isdisjoint(quote.shown)
    block = part.section.blocks[part.block]
    words = _words(part.section.text[block.start : block.end])
    return part.score + NEIGHBOR * beside - elsewhere * (quote is None) - TEN_WORDS * words / 10


@dataclass(slots=True)
class Quote:
    """Parts of one section's blocks.

    Attributes:
        shown: for each block that is quoted, the places of the parts that are.
        mark: the part that answers, as it stands in the text.
    """

    section: ReadSection
    mark: str | None
    shown: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def around(cls, best: ScoredPart, task: GenerationRequest) -> Quote:
        """Return a part's block with what introduces it and what it introduces."""
        blocks, at = best.section.blocks, best.block
        quote = cls(best.section, None)
        place = _best_line(best, task) if blocks[at].kind == "code" else best.part
        quote.shown[at] = quote._fitting(at, place)
        # Above a list, a table or code stands a paragraph, and above that may be labels.
        top = at
        while 0 < top > at - _CHAIN and (
            blocks[top - 1].announces or (blocks[top].kind != "paragraph" == blocks[top - 1].kind)
        ):
            top -= 1
            quote.shown[top] = quote._fitting(top, len(blocks[top].parts) - 1)
        end = at
        while end + 1 < min(len(blocks), at + _CHAIN) and (
            blocks[end].announces or (blocks[end].kind == "paragraph" and blocks[end + 1].kind == "code")
        ):
            end += 1
            quote.shown[end] = quote._fitting(end, 0, from_start=True)
        quote.mark = _mark(best, task)
        if quote.mark and quote.mark not in quote._block(blocks[at], quote.shown[at]):
            quote.mark = None
        return quote

    @classmethod
    def beginning(cls, section: ReadSection) -> Quote:
        """Return the first blocks of a section without its headings, unmarked."""
        quote = cls(section, None)
        for at, block in enumerate(section.blocks):
            text = section.text[block.start : block.end].strip("#*_ \n")
            if text and text not in section.passage.path and quote.words <= ROOM:
                quote.shown[at] = quote._fitting(at, 0, from_start=True)
        return quote

    def _fitting(self, at: int, part: int, *, from_start: bool = False) -> list[int]:
        """Return the parts of a block around one of them that fit; at least that one, with the items it stands in.

        Args:
            from_start: entries and rows are shown in order, and not only the one that answers.
        """
        block, text = self.section.blocks[at], self.section.text
        sizes = [_words(text[p.start : p.end]) for p in block.parts]
        every = list(range(len(sizes)))
        if block.kind == "code":
            first = max(0, part - CODE_SHOWN // 2) if part >= CODE_SHOWN else 0
            return every if len(every) <= CODE_LINES else every[first : first + CODE_SHOWN]
        if block.kind in ("entries", "table") and not from_start:
            return every if sum(sizes) <= WHOLE_TABLE else [part]
        room = WHOLE_LIST if from_start and block.kind != "paragraph" else WHOLE
        if sum(sizes) <= room:
            return every
        shown = {part, *_ancestors(block.parts, part)} if every else set()
        size = sum(sizes[i] for i in shown)
        # A list goes on from its beginning, a paragraph from the sentence.
        order = [*range(part + 1, len(every)), *range(part - 1, -1, -1)] if block.kind == "paragraph" else every
        for i in order:
            if i in shown:
                continue
            size += sizes[i]
            if size > room:
                break
            shown.add(i)
        return sorted(shown)

    @property
    def words(self) -> int:
        return _words(" ".join(self._pieces(None)))

    @property
    def lines(self) -> frozenset[str]:
        """Return its longer lines, which no other quote may hold."""
        lines = (" ".join(line.split()) for line in "\n".join(self._pieces(None)).split("\n"))
        return frozenset(line for line in lines if line.count(" ") >= _REPEATABLE - 1)

    def text(self, task: GenerationRequest) -> str:
        return "".join(self._pieces(task))

    def _pieces(self, task: GenerationRequest | None) -> Iterator[str]:
        section, last, stated = self.section, None, False
        for at in sorted(self.shown):
            block, shown = section.blocks[at], self.shown[at]
            if last is not None:
                between = section.text[section.blocks[last].end : block.start]
                yield between if last == at - 1 and "\n" in between else "\n\n"
                if task and last < at - 1 and not stated:
                    yield f"{OMISSION}\n\n"
            last = at
            yield self._block(block, shown)
            left = self._left_out(at) if task else None
            stated = left is not None
            if task and left is not None:
                yield f"\n\n{_omission_line(section.passage, left, task)}"
            elif task and block.announces and at == len(section.blocks) - 1 and section.passage.subsections:
                yield f"\n\n{_contents(section.passage, task)}"

    def _left_out(self, at: int) -> int | None:
        """Return how many parts of a block are not shown, 0 where that is not known; None where all are."""
        block, shown, last = self.section.blocks[at], self.shown[at], len(self.section.blocks) - 1
        if any(block.parts[i].end - block.parts[i].start > LONGEST_PART for i in shown):
            return 0
        # What it introduces is further down than is shown.
        if block.announces and at == max(self.shown) and (at != last or not self.section.passage.whole):
            return 0
        if block.kind == "paragraph":
            # Of what only introduces, the end is enough.
            return 0 if shown[-1] < len(block.parts) - 1 else None
        # Of a section that is not all here, the first and the last block may be longer than it seems.
        if not self.section.passage.whole and at in (0, last) and (block.kind != "code" or at == last):
            return 0
        left = len(block.parts) - len(shown)
        # A chunk ends inside of longer code, which goes on in the next block.
        beside = (*self.section.blocks[max(0, at - 1) : at], *self.section.blocks[at + 1 : at + 2])
        if left and block.kind == "code" and any(other.kind == "code" and other.head == block.head for other in beside):
            return 0
        return left or None

    def _block(self, block: QuotableBlock, shown: Sequence[int]) -> str:
        text = self.section.text
        runs = [(block.parts[a], block.parts[b]) for a, b in _runs(shown)]
        pieces = [text[a.start : b.end] if b.end - a.start <= LONGEST_PART else self._short(a, b) for a, b in runs]
        if block.kind == "code":
            return "\n".join((block.head, *([OMISSION] if shown and shown[0] else []), *pieces, block.fence))
        if len(shown) == len(block.parts) and block.end - block.start <= LONGEST_PART:
            pieces = [text[block.start : block.end].rstrip()]
        elif block.head:
            pieces.insert(0, block.head)
        return "\n".join(closed(piece) for piece in pieces)

    def _short(self, first: QuotablePart, last: QuotablePart) -> str:
        """Return a run of parts, or as many characters of one as may be shown, up to a whole line or word."""
        text = self.section.text[first.start : last.end]
        if first is not last:
            return text
        head = text[:LONGEST_PART]
        return (head.rpartition("\n")[0] or head.rpartition(" ")[0] or head).rstrip()


def _ancestors(parts: Sequence[QuotablePart], at: int) -> Iterator[int]:
    level = parts[at].level
    for i in range(at - 1, -1, -1):
        if parts[i].level < level:
            level = parts[i].level
            yield i


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run of adjacent places."""
    if not places:
        return
    start = last = places[0]
    for place in places[1:]:
        if place != last + 1:
            yield start, last
            start = place
        last = place
    yield start, last


def _omission_line(passage: Passage, left: int, task: GenerationRequest) -> str:
    """Return the line that states what is left out, with its number of items, rows or lines where that is known."""
    place = _place(passage.path[-1] if passage.path else "", passage.url or "")
    return phrases.of(task.language).more.format(count=left, place=place) if left else f"{OMISSION} {place}"


def _contents(passage: Passage, task: GenerationRequest) -> str:
    """Return the line that names the subsections of a section whose last words announce them."""
    named = ", ".join(_place(*subsection) for subsection in passage.subsections[:_NAMED])
    left = len(passage.subsections) - _NAMED
    return f"{OMISSION} {named} {_omission_line(passage, left, task)}" if left > 0 else f"{OMISSION} {named}"


def _place(heading: str, url: str) -> str:
    """Return a heading as a link, or in italics where it has no address that Markdown can hold."""
    label = escape_markdown(heading, in_link=True)
    return f"[{label}]({url})" if url and not _NO_ADDRESS.search(url) else f"*{label}*"


def _mark(best: ScoredPart, task: GenerationRequest) -> str | None:
    """Return the sentence, the text of the item or of the entry, the row or the line of code that answers."""
    section, block = best.section, best.section.blocks[best.block]
    text = best.text
    if block.kind == "code":
        line = block.parts[_best_line(best, task)] if block.parts else block
        return section.text[line.start : line.end].strip() or None
    text = text.split("\n\n")[0]
    if block.kind == "entries":
        text = text.partition("\n")[2] or text
    text = _LABEL_LINE.sub("", text)
    while marker := _MARKER.match(text):
        text = text[marker.end() :]
    if _words(text) > _LONGEST_MARK and block.kind != "table":
        text = max(sentences(text), key=QuestionWords(task).coverage, default=text)
    return text.strip() or None


def _best_line(best: ScoredPart, task: GenerationRequest) -> int:
    """Return the place of the line of code that holds most of the question's words, the first of equals."""
    lines, coverage = best.section.blocks[best.block].parts, QuestionWords(task).coverage
    return max(range(len(lines)), key=lambda i: coverage(best.section.text[lines[i].start : lines[i].end]), default=0)


def _words(text: str) -> int:
    return len(text.split())
