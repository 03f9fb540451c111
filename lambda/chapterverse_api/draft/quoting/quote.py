"""A quote: parts of one section's blocks, verbatim, and the lines that state what is left out.

The part that answers is quoted with its block, what introduces that and what it introduces, as far as there is room.
What is left out of a list, a table or code is stated, with a link. A section that ends in an announcement announces its
subsections, so their names follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from chapterverse.text.markdown import escape_markdown
from chapterverse_api import phrases
from chapterverse_api.draft.draft import OMISSION
from chapterverse_api.draft.quoting.answer_scores import ParsedSection, ScoredPart
from chapterverse_api.draft.quoting.blocks import FENCE, QuotableBlock, QuotablePart, sentences

#: Words up to which a paragraph or a list is quoted whole, a table or entries, and a list that a quote introduces.
MAX_WHOLE_WORDS, _MAX_WHOLE_TABLE_WORDS, _MAX_WHOLE_LIST_WORDS = 110, 60, 160
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
        mark: the part that answers, as it stands in the text; None if it is not known.
        parts_by_block: the place of each quoted block, with the places of its parts that are quoted.
    """

    section: ParsedSection
    mark: str | None = None
    parts_by_block: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def around(cls, best: ScoredPart) -> Quote:
        """Return a part's block with what introduces it and what it introduces."""
        quote, blocks, at = cls.of_part(best, whole=True), best.section.blocks, best.block
        # Above a list, a table or code stands a paragraph, and above that may be labels.
        top = at
        while 0 < top > at - _MAX_CHAIN_BLOCKS and (
            blocks[top - 1].announces or (blocks[top].kind != "paragraph" == blocks[top - 1].kind)
        ):
            top -= 1
            quote.parts_by_block[top] = quote._fitting(top, len(blocks[top].parts) - 1)
        quote._follow(at, to_code=True)
        mark = _mark(best)
        quote.mark = mark if mark and mark in quote._block(at) else None
        return quote

    @classmethod
    def of_part(cls, best: ScoredPart, *, whole: bool = False) -> Quote:
        """Return a part with what it announces, or as much as fits of the code or the `whole` block around it."""
        quote, place = cls(best.section), _best_line(best) if best.is_code else best.part
        is_wide = whole or best.is_code
        quote.parts_by_block[best.block] = quote._fitting(best.block, place) if is_wide else [place]
        quote._follow(best.block)
        return quote

    def _follow(self, at: int, *, to_code: bool = False) -> None:
        """Add what the end of a block announces, if that is quoted, and, if so asked, the code below a paragraph."""
        blocks, end = self.section.blocks, at
        while end + 1 < min(len(blocks), at + _MAX_CHAIN_BLOCKS) and (
            (blocks[end].announces and self.parts_by_block[end][-1:] == [len(blocks[end].parts) - 1])
            or (to_code and blocks[end].kind == "paragraph" and blocks[end + 1].kind == "code")
        ):
            end += 1
            self.parts_by_block[end] = self._fitting(end, 0, from_start=True)

    @classmethod
    def beginning(cls, section: ParsedSection, max_words: int) -> Quote:
        """Return the first blocks of a section without its headings, unmarked: as many as begin below `max_words`."""
        quote = cls(section)
        for at, block in enumerate(section.blocks):
            text = section.text_of(block).strip("#*_ \n")
            if text and text not in section.passage.path and quote.words <= max_words:
                quote.parts_by_block[at] = quote._fitting(at, 0, from_start=True)
        return quote

    def _fitting(self, at: int, part: int, *, from_start: bool = False) -> list[int]:
        """Return the parts of a block around one of them that fit; at least that one, with the items it stands in.

        Args:
            from_start: entries and rows are shown in order, and not only the one that answers.
        """
        block = self.section.blocks[at]
        if block.kind == "code":
            return self._fitting_lines(block, part)
        sizes = [count_words(self.section.text_of(p)) for p in block.parts]
        every, total = list(range(len(sizes))), sum(sizes)
        if block.kind in ("entries", "table") and not from_start:
            return every if total <= _MAX_WHOLE_TABLE_WORDS else [part]
        max_words = _MAX_WHOLE_LIST_WORDS if from_start and block.kind != "paragraph" else MAX_WHOLE_WORDS
        if total <= max_words:
            return every
        # A list goes on from its beginning, a paragraph from the sentence.
        order = [*range(part + 1, len(every)), *range(part - 1, -1, -1)] if block.kind == "paragraph" else every
        places = {part, *_ancestors(block.parts, part)}
        words = sum(sizes[i] for i in places)
        for i in order:
            words += 0 if i in places else sizes[i]
            if words > max_words:
                break
            places.add(i)
        return sorted(places)

    def _fitting_lines(self, block: QuotableBlock, line: int) -> list[int]:
        """Return the lines of code around one of them that fit; of a diff those that it doesn't remove."""
        every = list(range(len(block.parts)))
        if _DIFF_HEAD.match(block.head):
            # What a reader is to write.
            every = [i for i in every if not self.section.text_of(block.parts[i]).startswith("-")] or every
        if len(every) <= MAX_WHOLE_CODE_LINES:
            return every
        before = sum(i < line for i in every)
        first = max(0, before - CUT_CODE_LINES // 2) if before >= CUT_CODE_LINES else 0
        return every[first : first + CUT_CODE_LINES]

    def without(self, other: Quote) -> Quote:
        """Return the quote without the blocks of another one."""
        parts = {at: parts for at, parts in self.parts_by_block.items() if at not in other.parts_by_block}
        return replace(self, parts_by_block=parts)

    @property
    def words(self) -> int:
        return count_words(self.text(omissions=False))

    @property
    def lines(self) -> frozenset[str]:
        """Return its longer lines, which no other quote may hold."""
        lines = (" ".join(line.split()) for line in self.text(omissions=False).split("\n"))
        return frozenset(line for line in lines if line.count(" ") >= _MIN_UNIQUE_WORDS - 1)

    def text(self, *, omissions: bool = True) -> str:
        """Return the quote as it is shown, with or without the lines that state what is left out."""
        return "".join(self._pieces(omissions=omissions))

    def _pieces(self, *, omissions: bool) -> Iterator[str]:
        section, last, stated = self.section, None, False
        for at in sorted(self.parts_by_block):
            block = section.blocks[at]
            if last is not None:
                between = section.passage.section[section.blocks[last].end : block.start]
                yield between if last == at - 1 and "\n" in between else "\n\n"
                if omissions and last < at - 1 and not stated:
                    yield f"{OMISSION}\n\n"
            last = at
            yield self._block(at)
            if not omissions:
                continue
            count = self._count_omitted(at)
            stated = count is not None
            if count is not None:
                yield f"\n\n{_omission_line(section, count)}"
            elif block.announces and at == len(section.blocks) - 1 and section.passage.subsections:
                yield f"\n\n{_contents(section)}"

    def _count_omitted(self, at: int) -> int | None:
        """Return how many parts of a block are not shown, 0 if that is not known; None if all are shown."""
        block, count = self.section.blocks[at], len(self.section.blocks[at].parts) - len(self.parts_by_block[at])
        if self._omits_unknown_number(at):
            return 0
        return None if block.kind == "paragraph" else count or None

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

    def _block(self, at: int) -> str:
        block, places = self.section.blocks[at], self.parts_by_block[at]
        pieces = [self._run(block.parts[first], block.parts[last]) for first, last in _runs(places)]
        if block.kind == "code":
            return "\n".join((block.head, *([OMISSION] if places and places[0] else []), *pieces, block.fence))
        if len(places) == len(block.parts) and block.end - block.start <= MAX_PART_CHARS:
            pieces = [self.section.text_of(block).rstrip()]
        elif block.head:
            pieces.insert(0, block.head)
        return "\n".join(close_fence(piece) for piece in pieces)

    def _run(self, first: QuotablePart, last: QuotablePart) -> str:
        """Return a run of parts, or as many characters of one as may be shown, up to a whole line or word."""
        text = self.section.passage.section[first.start : last.end]
        if first is not last or len(text) <= MAX_PART_CHARS:
            return text
        head = text[:MAX_PART_CHARS]
        return (head.rpartition("\n")[0] or head.rpartition(" ")[0] or head).rstrip()


def close_fence(text: str) -> str:
    """Return a piece of Markdown with the fence closed that it leaves open."""
    fence = ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if fence and mark and line.strip("> ").startswith(fence.strip("> ")) and not line.strip("`~> "):
            fence = ""
        elif mark and not fence:
            fence = mark.group()
    return f"{text}\n{fence}" if fence else text


def _ancestors(parts: Sequence[QuotablePart], at: int) -> Iterator[int]:
    level = parts[at].level
    for i in range(at - 1, -1, -1):
        if parts[i].level < level:
            level = parts[i].level
            yield i


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run of adjacent places."""
    for _, run in groupby(enumerate(places), key=lambda numbered: numbered[1] - numbered[0]):
        adjacent = [place for _, place in run]
        yield adjacent[0], adjacent[-1]


def _omission_line(section: ParsedSection, count: int) -> str:
    """Return the line that states what is left out, with its number of items, rows or lines if it is known (else 0)."""
    passage, more = section.passage, phrases.for_language(section.words.language).more
    place = _place(passage.path[-1] if passage.path else "", passage.url or "")
    return more.format(count=count, place=place) if count else f"{OMISSION} {place}"


def _contents(section: ParsedSection) -> str:
    """Return the line that names the subsections of a section whose last words announce them."""
    below = section.passage.subsections
    named = f"{OMISSION} {', '.join(_place(*subsection) for subsection in below[:_MAX_SUBSECTIONS])}"
    count = len(below) - _MAX_SUBSECTIONS
    return f"{named} {_omission_line(section, count)}" if count > 0 else named


def _place(heading: str, url: str) -> str:
    """Return a heading as a link, or in italics if it has no address that Markdown can hold."""
    label = escape_markdown(heading, in_link=True)
    return f"[{label}]({url})" if url and not _NO_ADDRESS.search(url) else f"*{label}*"


def _mark(best: ScoredPart) -> str | None:
    """Return the sentence, the text of the item or of the entry, the row or the line of code that answers."""
    section, block = best.section, best.section.blocks[best.block]
    if best.is_code:
        return section.text_of(block.parts[_best_line(best)] if block.parts else block).strip() or None
    text = best.text.split("\n\n")[0]
    if block.kind == "entries":
        text = text.partition("\n")[2] or text
    text = _LABEL_LINE.sub("", text)
    at = 0
    while marker := _MARKER.match(text, at):
        at = marker.end()
    text = text[at:]
    if count_words(text) > _MAX_MARK_WORDS and block.kind != "table":
        text = max(sentences(text), key=section.words.coverage, default=text)
    return text.strip() or None


def _best_line(best: ScoredPart) -> int:
    """Return the place of the line of code that holds most of the question's words, the first of equals."""
    section, lines = best.section, best.section.blocks[best.block].parts
    return max(range(len(lines)), key=lambda i: section.words.coverage(section.text_of(lines[i])), default=0)


def count_words(text: str) -> int:
    """Return the number of words, which white space separates."""
    return len(text.split())
