"""A quote: parts of one section's blocks, verbatim, and the lines that state what is left out.

The part that answers is quoted with its block, what introduces that and what it introduces, as far as there is room.
What is left out of a list, a table or code is stated, with a link. A section that ends in an announcement announces its
subsections, so their names follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from chapterverse.text.plain import escape_markdown
from chapterverse_api import phrases
from chapterverse_api.generation.draft import OMISSION
from chapterverse_api.generation.passage import Passage
from chapterverse_api.generation.quoting.answer_scores import ParsedSection, QuestionWords, ScoredPart
from chapterverse_api.generation.quoting.blocks import QuotableBlock, QuotablePart, close_fence, sentences
from chapterverse_api.generation.requests import GenerationRequest

#: Words up to which a paragraph or a list is quoted whole, a table or entries, and a list that a quote introduces.
MAX_WHOLE_WORDS, MAX_WHOLE_TABLE_WORDS, MAX_WHOLE_LIST_WORDS = 110, 60, 160
#: Lines up to which code is quoted whole, and the lines of longer code that are.
MAX_WHOLE_CODE_LINES, CUT_CODE_LINES = 25, 16
#: Characters of one sentence, item or row.
MAX_PART_CHARS = 900
#: A longer item is marked by its best sentence, in words.
_MAX_MARK_WORDS = 45
#: How many blocks what introduces a block, and what it introduces, may reach.
_MAX_CHAIN_BLOCKS = 8
#: Lines of fewer words may stand in two quotes.
_MIN_UNIQUE_WORDS = 6
#: Subsections that a quote names.
_MAX_SUBSECTIONS = 12
#: What ends a link's address, or hides it.
_NO_ADDRESS = re.compile(r"[\s()<>\[\]\"'`\\]")

_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+|\s*>\s?|\s*:\s+")
_DIFF_HEAD = re.compile(r"(?:`{3,}|~{3,})\s*(?:diff|patch)\b")
_LABEL_LINE = re.compile(r"^[ \t]*(?:> ?)?(?:\[![A-Za-z]+\][^\n]*|:::[^\n]*)\n", re.MULTILINE)


@dataclass(slots=True)
class Quote:
    """Parts of one section's blocks.

    Attributes:
        parts_by_block: the place of each quoted block, with the places of its parts that are quoted.
        mark: the part that answers, as it stands in the text.
    """

    section: ParsedSection
    mark: str | None
    parts_by_block: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def around(cls, best: ScoredPart, request: GenerationRequest) -> Quote:
        """Return a part's block with what introduces it and what it introduces."""
        blocks, at = best.section.blocks, best.block
        quote = cls(best.section, None)
        place = _best_line(best, request) if blocks[at].kind == "code" else best.part
        quote.parts_by_block[at] = quote._fitting(at, place)
        # Above a list, a table or code stands a paragraph, and above that may be labels.
        top = at
        while 0 < top > at - _MAX_CHAIN_BLOCKS and (
            blocks[top - 1].announces or (blocks[top].kind != "paragraph" == blocks[top - 1].kind)
        ):
            top -= 1
            quote.parts_by_block[top] = quote._fitting(top, len(blocks[top].parts) - 1)
        end = at
        while end + 1 < min(len(blocks), at + _MAX_CHAIN_BLOCKS) and (
            blocks[end].announces or (blocks[end].kind == "paragraph" and blocks[end + 1].kind == "code")
        ):
            end += 1
            quote.parts_by_block[end] = quote._fitting(end, 0, from_start=True)
        quote.mark = _mark(best, request)
        if quote.mark and quote.mark not in quote._block(blocks[at], quote.parts_by_block[at]):
            quote.mark = None
        return quote

    @classmethod
    def of_part(cls, best: ScoredPart, request: GenerationRequest) -> Quote:
        """Return a part alone, or the lines of code around it."""
        quote, is_code = cls(best.section, None), best.section.blocks[best.block].kind == "code"
        quote.parts_by_block[best.block] = (
            quote._fitting(best.block, _best_line(best, request)) if is_code else [best.part]
        )
        return quote

    @classmethod
    def beginning(cls, section: ParsedSection, max_words: int) -> Quote:
        """Return the first blocks of a section without its headings, unmarked: as many as begin below `max_words`."""
        quote = cls(section, None)
        for at, block in enumerate(section.blocks):
            text = section.text[block.start : block.end].strip("#*_ \n")
            if text and text not in section.passage.path and quote.words <= max_words:
                quote.parts_by_block[at] = quote._fitting(at, 0, from_start=True)
        return quote

    def _fitting(self, at: int, part: int, *, from_start: bool = False) -> list[int]:
        """Return the parts of a block around one of them that fit; at least that one, with the items it stands in.

        Args:
            from_start: entries and rows are shown in order, and not only the one that answers.
        """
        block, text = self.section.blocks[at], self.section.text
        sizes = [count_words(text[p.start : p.end]) for p in block.parts]
        every = list(range(len(sizes)))
        if block.kind == "code":
            every = self._remaining_lines(block) or every
            part = sum(line < part for line in every)
            first = max(0, part - CUT_CODE_LINES // 2) if part >= CUT_CODE_LINES else 0
            return every if len(every) <= MAX_WHOLE_CODE_LINES else every[first : first + CUT_CODE_LINES]
        if block.kind in ("entries", "table") and not from_start:
            return every if sum(sizes) <= MAX_WHOLE_TABLE_WORDS else [part]
        max_words = MAX_WHOLE_LIST_WORDS if from_start and block.kind != "paragraph" else MAX_WHOLE_WORDS
        if sum(sizes) <= max_words:
            return every
        # A list goes on from its beginning, a paragraph from the sentence.
        order = [*range(part + 1, len(every)), *range(part - 1, -1, -1)] if block.kind == "paragraph" else every
        return _add_while_short({part, *_ancestors(block.parts, part)}, order, sizes, max_words)

    def _remaining_lines(self, block: QuotableBlock) -> list[int]:
        """Return the places of the lines of code that a diff doesn't remove: what a reader is to write."""
        is_diff = _DIFF_HEAD.match(block.head) is not None
        return [i for i, p in enumerate(block.parts) if not (is_diff and self.section.text.startswith("-", p.start))]

    def without(self, other: Quote) -> Quote:
        """Return the quote without the blocks of another one."""
        parts = {at: parts for at, parts in self.parts_by_block.items() if at not in other.parts_by_block}
        return replace(self, parts_by_block=parts)

    @property
    def words(self) -> int:
        return count_words(" ".join(self._pieces(None)))

    @property
    def lines(self) -> frozenset[str]:
        """Return its longer lines, which no other quote may hold."""
        lines = (" ".join(line.split()) for line in "\n".join(self._pieces(None)).split("\n"))
        return frozenset(line for line in lines if line.count(" ") >= _MIN_UNIQUE_WORDS - 1)

    def text(self, request: GenerationRequest | None = None) -> str:
        """Return the quote as it is shown; without a request, without the lines that state what is left out."""
        return "".join(self._pieces(request))

    def _pieces(self, request: GenerationRequest | None) -> Iterator[str]:
        section, last, stated = self.section, None, False
        for at in sorted(self.parts_by_block):
            block, places = section.blocks[at], self.parts_by_block[at]
            if last is not None:
                between = section.text[section.blocks[last].end : block.start]
                yield between if last == at - 1 and "\n" in between else "\n\n"
                if request and last < at - 1 and not stated:
                    yield f"{OMISSION}\n\n"
            last = at
            yield self._block(block, places)
            count = self._count_omitted(at) if request else None
            stated = count is not None
            if request and count is not None:
                yield f"\n\n{_omission_line(section.passage, count, request)}"
            elif request and block.announces and at == len(section.blocks) - 1 and section.passage.subsections:
                yield f"\n\n{_contents(section.passage, request)}"

    def _count_omitted(self, at: int) -> int | None:
        """Return how many parts of a block are not shown, 0 if that is not known; None if all are shown."""
        if self._omits_unknown_number(at):
            return 0
        block = self.section.blocks[at]
        return None if block.kind == "paragraph" else len(block.parts) - len(self.parts_by_block[at]) or None

    def _omits_unknown_number(self, at: int) -> bool:
        block, places, last = self.section.blocks[at], self.parts_by_block[at], len(self.section.blocks) - 1
        is_whole = self.section.passage.is_whole_section
        if any(block.parts[i].end - block.parts[i].start > MAX_PART_CHARS for i in places):
            return True
        # What it introduces is further down than is shown.
        if block.announces and at == max(self.parts_by_block) and (at != last or not is_whole):
            return True
        if block.kind == "paragraph":
            # Of what only introduces, the end is enough.
            return places[-1] < len(block.parts) - 1
        # Of a section that is not all here, the first and the last block may be longer than it seems.
        if not is_whole and at in (0, last) and (block.kind != "code" or at == last):
            return True
        # A chunk ends inside of longer code, which goes on in the next block.
        beside = (*self.section.blocks[max(0, at - 1) : at], *self.section.blocks[at + 1 : at + 2])
        goes_on = block.kind == "code" and any(b.kind == "code" and b.head == block.head for b in beside)
        return goes_on and len(places) < len(block.parts)

    def _block(self, block: QuotableBlock, places: Sequence[int]) -> str:
        text = self.section.text
        runs = [(block.parts[a], block.parts[b]) for a, b in _runs(places)]
        pieces = [text[a.start : b.end] if b.end - a.start <= MAX_PART_CHARS else self._short(a, b) for a, b in runs]
        if block.kind == "code":
            return "\n".join((block.head, *([OMISSION] if places and places[0] else []), *pieces, block.fence))
        if len(places) == len(block.parts) and block.end - block.start <= MAX_PART_CHARS:
            pieces = [text[block.start : block.end].rstrip()]
        elif block.head:
            pieces.insert(0, block.head)
        return "\n".join(close_fence(piece) for piece in pieces)

    def _short(self, first: QuotablePart, last: QuotablePart) -> str:
        """Return a run of parts, or as many characters of one as may be shown, up to a whole line or word."""
        text = self.section.text[first.start : last.end]
        if first is not last or len(text) <= MAX_PART_CHARS:
            return text
        head = text[:MAX_PART_CHARS]
        return (head.rpartition("\n")[0] or head.rpartition(" ")[0] or head).rstrip()


def _add_while_short(places: set[int], order: Iterable[int], sizes: Sequence[int], max_words: int) -> list[int]:
    """Return the places with further ones in this order, until the next one would exceed the limit."""
    words = sum(sizes[i] for i in places)
    for i in order:
        if i in places:
            continue
        words += sizes[i]
        if words > max_words:
            break
        places.add(i)
    return sorted(places)


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


def _omission_line(passage: Passage, count: int, request: GenerationRequest) -> str:
    """Return the line that states what is left out, with its number of items, rows or lines if it is known (else 0)."""
    place = _place(passage.path[-1] if passage.path else "", passage.url or "")
    return (
        phrases.for_language(request.language).more.format(count=count, place=place) if count else f"{OMISSION} {place}"
    )


def _contents(passage: Passage, request: GenerationRequest) -> str:
    """Return the line that names the subsections of a section whose last words announce them."""
    named = ", ".join(_place(*subsection) for subsection in passage.subsections[:_MAX_SUBSECTIONS])
    count = len(passage.subsections) - _MAX_SUBSECTIONS
    return f"{OMISSION} {named} {_omission_line(passage, count, request)}" if count > 0 else f"{OMISSION} {named}"


def _place(heading: str, url: str) -> str:
    """Return a heading as a link, or in italics if it has no address that Markdown can hold."""
    label = escape_markdown(heading, in_link=True)
    return f"[{label}]({url})" if url and not _NO_ADDRESS.search(url) else f"*{label}*"


def _mark(best: ScoredPart, request: GenerationRequest) -> str | None:
    """Return the sentence, the text of the item or of the entry, the row or the line of code that answers."""
    section, block = best.section, best.section.blocks[best.block]
    text = best.text
    if block.kind == "code":
        line = block.parts[_best_line(best, request)] if block.parts else block
        return section.text[line.start : line.end].strip() or None
    text = text.split("\n\n")[0]
    if block.kind == "entries":
        text = text.partition("\n")[2] or text
    text = _LABEL_LINE.sub("", text)
    at = 0
    while marker := _MARKER.match(text, at):
        at = marker.end()
    text = text[at:]
    if count_words(text) > _MAX_MARK_WORDS and block.kind != "table":
        text = max(sentences(text), key=QuestionWords(request).coverage, default=text)
    return text.strip() or None


def _best_line(best: ScoredPart, request: GenerationRequest) -> int:
    """Return the place of the line of code that holds most of the question's words, the first of equals."""
    lines, coverage = best.section.blocks[best.block].parts, QuestionWords(request).coverage
    return max(range(len(lines)), key=lambda i: coverage(best.section.text[lines[i].start : lines[i].end]), default=0)


def count_words(text: str) -> int:
    """Return the number of words, which white space separates."""
    return len(text.split())
