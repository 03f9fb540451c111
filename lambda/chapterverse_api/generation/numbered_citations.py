"""Answers with numbers as marks, "Set `site_url` [1]." or "…【2】", to spans with citations, while they are written.

For models without citations of their own. The marks never reach the reader: the text is shown without them, with the
spaces right, and what they say is in the spans. A mark cites the sentence before it, or at the start of a line the one
after. Code keeps its brackets, and so does an array's element that the sources know, `argv[1]`. What models write
instead, "[Source 1]" or "(1)", is told by `wordings`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Generator as Steps
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from chapterverse_api.generation import Draft, Passage, Span
from chapterverse_api.generation.fences import LINE_START, TAIL, Fences
from chapterverse_api.generation.mark_forms import Wordings, ids
from chapterverse_api.generation.reasoning_filter import Restart, silent

_OPENING, _CLOSING = "[【", {"[": "]", "【": "】"}
_INSIDE = re.compile(r"[\[【][\d ,;，、^–-]{0,24}|\[\[[\d ,;，、^–-]{0,24}\]?|【\d{1,3}†[^】\n]{0,24}")
_MARK = re.compile(
    r"(?:\[\[|[\[【]) ?(\^?\d{1,3}\^?(?>(?: ?[,;，、–-] ?\^?\d{1,3}\^?)*))(?:†[^】\n]*)? ?(?:\]\]|[\]】])"
)
_PLAIN = re.compile(r"[^\s`~\[【()]+")
_ELEMENT = re.compile(r"(\w+)\[{1,2}(\d{1,3})\]")
_WORD = re.compile(r"\w+\Z")
# What stands without a space after a word.
_AFTER_WORDS = ".,;:!?)]}…。，、；：！？）"
#: Blanks that wait for what follows; more of them are no space before a mark.
_GAP = 8

_SENTENCE_END = re.compile(
    r"""[.!?…]["'”’»)*_]{0,4}\s++(?![a-zß-öø-ÿ]) | [。！？][」』”’）*]{0,4}\s*+ | \n\s*+""", re.VERBOSE
)
# "1. " before a step and "z. B." end no sentence.
_NO_END = re.compile(r"(?:(?:\A|\n)[ \t>]*\d{1,3}|(?:\A|[\s(.])[^\W\d_])\.\Z")


def numbered(texts: Steps[str, None, bool], passages: Sequence[Passage]) -> Steps[str, None, Draft]:
    """Yield the text without its marks as soon as it is certain, and return it in sentences with what they cite.

    Numbers that name no passage are passed on like others: which citations hold is not decided here. What is returned
    begins at the last `Restart`: only then do the texts yielded, joined, say more than the spans.

    Args:
        texts: the model's own pieces; returns whether its limit of length ended it.
        passages: what was sent.

    Raises:
        ProviderError: the model said nothing; and as `texts` does.
    """
    wordings, reader = Wordings(passages), _Reader(passages)
    whole: list[str] = []
    while True:
        try:
            text = next(texts)
        except StopIteration as end:
            cut: bool = end.value
            break
        if isinstance(text, Restart):
            if whole:
                yield "\n\n"
            wordings, reader, whole = Wordings(passages), _Reader(passages), []
        if piece := reader.read(wordings.read(text)):
            whole.append(piece)
            yield piece
    if piece := reader.read(wordings.read("", last=True)):
        whole.append(piece)
        yield piece
    reader.end()
    if not reader.length:
        raise silent(cut)
    spans = list(_spans("".join(whole), reader))
    return (*spans[:-1], replace(spans[-1], cut=cut))


@dataclass(frozen=True, slots=True)
class _Cited:
    """Where in the text without marks one stood, and whether it speaks of what follows."""

    at: int
    ids: tuple[str, ...]
    ahead: bool


class _Reader:
    """Takes marks out of a text that comes in pieces of any size, in time linear in its length.

    Attributes:
        length: characters that were let through.
        cited: the marks, in order.
        code: where fenced code begins and ends.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.length = 0
        self.cited: list[_Cited] = []
        self.code: list[tuple[int, int]] = []
        self._elements = {m.groups() for p in passages for m in _ELEMENT.finditer(p.section)}
        self._out: list[str] = []
        self._tail = ""
        self._fences = Fences()
        # What waits: blanks, marks as written with their numbers, the blanks after them, and a mark that is not over.
        self._gap = self._marks = self._after = self._open = ""
        self._waiting: list[str] = []

    def read(self, text: str) -> str:
        """Return what can be shown now that `text` has come."""
        at = 0
        while at < len(text):
            plain = None if self._open else _PLAIN.match(text, at)
            at += len(plain.group()) if plain else 1
            if plain:
                self._show(plain.group())
            else:
                self._sign(text[at - 1])
        shown = "".join(self._out)
        self._out.clear()
        return shown

    def end(self) -> None:
        """Take the end for what it is: blanks and a mark that was begun are left out."""
        if self._waiting:
            self._cite(self.length, ahead=False)
        self._fences.end(self.length, self.code)

    def _sign(self, c: str) -> None:
        """Take a character that may mean something."""
        if c not in "`~":
            self._fences.end_run(self.length)
        if self._open:
            self._continue(c)
        elif self._fences.is_code:
            self._show(c)
        elif c in _OPENING:
            self._open = c
        elif c == ")" and self._waiting and self._gap.endswith("("):
            # "([1])" leaves nothing behind.
            self._gap, self._marks = self._gap[:-1], f"({self._marks})"
        elif c == "(" and not self._waiting and not self._gap.endswith("("):
            self._gap += c
        elif c.isspace() and (self._waiting or not self._gap.endswith("(")):
            self._blank(c)
        else:
            self._show(c)

    def _blank(self, c: str) -> None:
        if self._waiting:
            self._after += c
        else:
            self._gap += c
        if len(self._gap) + len(self._after) > _GAP:
            self._settle(c)

    def _continue(self, c: str) -> None:
        """Take the next character of what may be a mark."""
        mark = self._open + c
        if mark.endswith("]]") if mark.startswith("[[") else c == _CLOSING[mark[0]]:
            self._open = ""
            found = _MARK.fullmatch(mark)
            named = ids(found[1]) if found else []
            if not named or (c == "]" and self._is_element(named)):
                self._show(mark)
                return
            self._marks += self._after + mark
            self._after = ""
            self._waiting += named
        elif _INSIDE.fullmatch(mark):
            self._open = mark
        else:
            begun, self._open = self._open, ""
            self._show(begun)
            if _PLAIN.match(c):
                self._show(c)
            else:
                self._sign(c)

    def _is_element(self, named: Sequence[str]) -> bool:
        """Whether what looks like a mark is an array's element."""
        if self._gap or self._waiting or not self._tail:
            return False
        word = _WORD.search(self._tail)
        if word is None:
            return self._tail.endswith(("]", "()"))
        one_letter = len(word.group()) == 1 and word.group().isascii()
        return one_letter or named[0] == "0" or (word.group(), named[0]) in self._elements

    def _show(self, text: str) -> None:
        """Let a text through that holds no mark; now it is known what the blanks and marks before it were."""
        self._settle(text[0])
        self._emit(text)

    def _settle(self, c: str) -> None:
        """Decide what becomes of what waits, by the character that follows it."""
        gap, after, marks = self._gap, self._after, self._marks
        self._gap = self._after = self._marks = ""
        if not self._waiting:
            self._emit(gap if self.length else gap.lstrip())
        elif not after and (c in "({=_" or (not gap and _WORD.search(self._tail) and c.isascii() and c.isalnum())):
            # The text of a link, or an element after all.
            self._waiting.clear()
            self._emit(gap + marks)
        elif LINE_START.search(self._tail + gap) and "\n" not in after:
            self._emit(gap if self.length else gap.lstrip())
            self._cite(self.length, ahead=True)
        else:
            self._cite(self.length, ahead=False)
            self._emit(self._between(gap, after, c))

    def _between(self, gap: str, after: str, c: str) -> str:
        """Return the space between two words where marks stood."""
        if gap.endswith("("):
            return gap
        if "\n" in after + gap:
            return max(gap, after, key=lambda blanks: blanks.count("\n"))
        if c in _AFTER_WORDS:
            return ""
        apart = c.isascii() and c.isalnum() and self._tail[-1:].isascii()
        return after or gap or (" " if apart else "")

    def _cite(self, at: int, *, ahead: bool) -> None:
        self.cited.append(_Cited(at, tuple(self._waiting), ahead))
        self._waiting.clear()

    def _emit(self, text: str) -> None:
        if text:
            self._fences.read(text, self.length, self.code)
            self._out.append(text)
            self._tail = (self._tail + text)[-TAIL:]
            self.length += len(text)


def _spans(text: str, reader: _Reader) -> Iterator[Span]:
    """Yield the sentences, items and code blocks of the text with what the marks say of them."""
    starts = _starts(text, reader.code)
    cited: list[list[str]] = [[] for _ in starts]
    for mark in reader.cited:
        find = bisect_right if mark.ahead else bisect_left
        cited[max(0, find(starts, mark.at) - 1)] += mark.ids
    blocks = {start for start, _ in reader.code}
    for i, (start, end) in enumerate(zip(starts, (*starts[1:], len(text)), strict=True)):
        # Code is announced, "Run this [1]:", and holds no marks of its own.
        if start in blocks and not cited[i] and i and text[:start].rstrip().endswith(":"):
            cited[i] = cited[i - 1]
        yield Span(text[start:end], tuple(dict.fromkeys(cited[i])))


def _starts(text: str, code: Sequence[tuple[int, int]]) -> list[int]:
    """Return where each sentence, item or code block begins."""
    ends = [found.end() for found in _SENTENCE_END.finditer(text) if not _goes_on(text, found.start())]
    blocks = [start for start, _ in code]
    inside = (bisect_right(blocks, at) - 1 for at in ends)
    outside = {at for at, block in zip(ends, inside, strict=True) if block < 0 or at >= code[block][1]}
    starts = sorted({0, *outside, *blocks, *(end for _, end in code)})
    # What is left at the end of a block may be blank, and belongs to it.
    return [at for at, end in zip(starts, (*starts[1:], len(text)), strict=True) if not at or text[at:end].strip()]


def _goes_on(text: str, at: int) -> bool:
    return _NO_END.search(text[max(0, at - 12) : at + 1]) is not None
