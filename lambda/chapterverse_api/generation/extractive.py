"""Answers without a model: quotes whole blocks of the documentation, and marks the part that answers.

`answer_scores` says which part of the passages answers. A quote is that part's block with what introduces it and what
it introduces, as far as there is room; what is left out of a list, a table or code is stated, with a link. A second
section is quoted where it speaks nearly as clearly and of words that the first does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Generator as Steps
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from chapterverse_api import phrases
from chapterverse_api.generation.answer_scores import Asked, ScoredPart, Section, score
from chapterverse_api.generation.blocks import Block, Part, sentences
from chapterverse_api.generation.types import Draft, GenerationRequest, Span

#: Words of all quotes together; the block that answers is quoted even if it is longer.
ROOM = 110
#: Words up to which a paragraph or a list is quoted whole, and a table or entries.
WHOLE, WHOLE_TABLE = 90, 60
#: Lines up to which code is quoted whole, and of longer code those that are.
CODE_LINES, CODE_SHOWN = 25, 16
#: Sections that are quoted.
SECTIONS = 2
#: How much weaker than the part that answers another block may speak, in units of the score. In the same section and
#: beside what is quoted it may be weaker by the second, and every ten words must be worth the third.
WEAKEST, NEIGHBOR, TEN_WORDS = 2.5, 0.5, 0.1
#: A longer item is marked by its best sentence, in words.
_LONGEST_MARK = 45

_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+|\s*>\s?|\s*:\s+")
_LABEL_LINE = re.compile(r"(?:> ?)?(?:\[![A-Za-z]+\][^\n]*|:::[^\n]*)\n")


class Extractive:
    """Quotes. Implements `chapterverse_api.generation.Generator`."""

    name = "extractive"

    def generate(self, task: GenerationRequest) -> Steps[str, None, Draft]:
        spans = quotes(task)
        for span in spans:
            yield span.text
        return spans


def quotes(task: GenerationRequest) -> Draft:
    """Return the answer: framing and quotes in turn. A quote cites its source, and all of it but its cut lines stands
    verbatim in that source's section.
    """
    chosen = _chosen(task)
    spans: list[Span] = [Span(f"{phrases.of(task.language).unsure}\n\n", kind="framing")] if task.unsure else []
    for i, quote in enumerate(chosen):
        passage = quote.section.passage
        path = " › ".join(part.replace("*", "").replace("\n", " ") for part in passage.path)
        spans.append(Span(f"{'' if i == 0 else chr(10) * 2}**{path}**\n\n", kind="framing"))
        spans.append(Span(quote.text(task), (passage.id,), kind="quote", mark=quote.mark))
    return tuple(spans)


def _chosen(task: GenerationRequest) -> list[Quote]:
    """Return the quotes: first the block that answers, then blocks that speak nearly as clearly, while there is room."""
    waiting: dict[tuple[str, int], ScoredPart] = {}
    for part in score(task):
        held = waiting.setdefault(part.place, part)
        if part.score > held.score:
            waiting[part.place] = part
    if not waiting:
        return []
    best = max(waiting.values(), key=lambda part: part.score)
    chosen = [Quote.around(best, task)]
    room = ROOM - chosen[0].words
    weakest = best.score - WEAKEST
    waiting = {place: part for place, part in waiting.items() if part.score > weakest - 2 * NEIGHBOR}
    while waiting:
        values = {place: _value(part, chosen) for place, part in waiting.items()}
        place = max(values, key=values.__getitem__)
        part = waiting.pop(place)
        if values[place] < weakest:
            break
        quote = next((quote for quote in chosen if quote.section is part.section), None)
        if quote is None and len(chosen) == (1 if task.unsure else SECTIONS):
            continue
        added = Quote.around(part, task)
        if quote:
            added.shown = {at: parts for at, parts in added.shown.items() if at not in quote.shown}
        if added.words <= room:
            room -= added.words
            if quote:
                quote.shown |= added.shown
            else:
                chosen.append(added)
    return chosen


def _value(part: ScoredPart, chosen: Sequence[Quote]) -> float:
    """Return the score of a part with what speaks for and against quoting its block too."""
    quote = next((quote for quote in chosen if quote.section is part.section), None)
    beside = quote is not None and not {part.block - 1, part.block + 1}.isdisjoint(quote.shown)
    return part.score + NEIGHBOR * ((quote is not None) + beside) - TEN_WORDS * _words(part.section.text[slice(*_ends(part))]) / 10


@dataclass(slots=True)
class Quote:
    """Parts of one section's blocks.

    Attributes:
        shown: for each block that is quoted, the places of the parts that are.
        mark: the part that answers, as it stands in the text.
    """

    section: Section
    mark: str | None
    shown: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def around(cls, best: ScoredPart, task: GenerationRequest) -> Quote:
        """Return a part's block with what introduces it and what it introduces."""
        blocks, at = best.section.blocks, best.block
        quote = cls(best.section, _mark(best, task))
        quote.shown[at] = quote._fitting(at, _best_line(best, task) if blocks[at].kind == "code" else best.part)
        # Above a list, a table or code stands a paragraph, and above that may be labels.
        top = at
        while top > 0 and (blocks[top - 1].announces or blocks[top].kind != "paragraph"):
            top -= 1
            quote.shown[top] = quote._fitting(top, len(blocks[top].parts) - 1)
        end = at
        while end + 1 < len(blocks) and (
            blocks[end].announces or (blocks[end].kind == "paragraph" and blocks[end + 1].kind == "code")
        ):
            end += 1
            quote.shown[end] = quote._fitting(end, 0)
        return quote

    def _fitting(self, at: int, part: int) -> list[int]:
        """Return the parts of a block around one of them that fit; at least that one, with the items it stands in."""
        block, text = self.section.blocks[at], self.section.text
        sizes = [_words(text[p.start : p.end]) for p in block.parts]
        every = list(range(len(sizes)))
        if block.kind == "code":
            first = max(0, part - CODE_SHOWN // 2) if part >= CODE_SHOWN else 0
            return every if len(every) <= CODE_LINES else every[first : first + CODE_SHOWN]
        if block.kind in ("entries", "table"):
            return every if sum(sizes) <= WHOLE_TABLE else [part]
        if sum(sizes) <= WHOLE:
            return every
        shown = {part, *_ancestors(block.parts, part)} if every else set()
        size = sum(sizes[i] for i in shown)
        # A list goes on from its beginning, a paragraph from the sentence.
        order = every if block.kind == "list" else [*range(part + 1, len(every)), *range(part - 1, -1, -1)]
        for i in order:
            if i in shown:
                continue
            size += sizes[i]
            if size > WHOLE:
                break
            shown.add(i)
        return sorted(shown)

    @property
    def words(self) -> int:
        return sum(_words(piece) for piece in self._pieces(None))

    def text(self, task: GenerationRequest) -> str:
        return "".join(self._pieces(task))

    def _pieces(self, task: GenerationRequest | None) -> Iterator[str]:
        section, last = self.section, None
        for at in sorted(self.shown):
            block, shown = section.blocks[at], self.shown[at]
            if last is not None:
                between = section.text[section.blocks[last].end : block.start]
                yield between if last == at - 1 and "\n" in between else "\n\n"
            last = at
            yield self._block(block, shown)
            left = len(block.parts) - len(shown)
            if left and task:
                yield f"\n\n{_cut(section, block, left, task)}"

    def _block(self, block: Block, shown: Sequence[int]) -> str:
        text = self.section.text
        if len(shown) == len(block.parts):
            return text[block.start : block.end].rstrip()
        runs = list(_runs(shown))
        if block.kind == "paragraph":
            return " … ".join(text[block.parts[a].start : block.parts[b].end] for a, b in runs)
        lines = [text[block.parts[a].start : block.parts[b].end] for a, b in runs]
        fence = block.head.lstrip("> ")
        tail = fence[: len(fence) - len(fence.lstrip("`~"))]
        return "\n".join([*([block.head] if block.head else []), *lines, *([tail] if block.kind == "code" else [])])


def _ancestors(parts: Sequence[Part], at: int) -> Iterator[int]:
    level = parts[at].level
    for i in range(at - 1, -1, -1):
        if parts[i].level < level:
            level = parts[i].level
            yield i


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run of adjacent places."""
    start = last = places[0]
    for place in places[1:]:
        if place != last + 1:
            yield start, last
            start = place
        last = place
    yield start, last


def _cut(section: Section, block: Block, left: int, task: GenerationRequest) -> str:
    passage = section.passage
    heading = (passage.path[-1] if passage.path else "").replace("[", "").replace("]", "").replace("\n", " ")
    place = f"[{heading}]({passage.url})" if passage.url else f"*{heading}*"
    return phrases.of(task.language).more.format(count=left, place=place)


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
        text = max(sentences(text), key=Asked(task).coverage, default=text)
    return text.strip() or None


def _best_line(best: ScoredPart, task: GenerationRequest) -> int:
    """Return the place of the line of code that holds most of the question's words, the first of equals."""
    lines, coverage = best.section.blocks[best.block].parts, Asked(task).coverage
    return max(range(len(lines)), key=lambda i: coverage(best.section.text[lines[i].start : lines[i].end]), default=0)


def _ends(part: ScoredPart) -> tuple[int, int]:
    block = part.section.blocks[part.block]
    return block.start, block.end


def _words(text: str) -> int:
    return len(text.split())
