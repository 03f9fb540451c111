"""Splits Markdown into sentences, list items, headings, table rows and code blocks, while it is written.

A model's answer is checked and shown in these units, and a passage is read in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

SentenceKind = Literal["prose", "heading", "code"]

# A fence of backticks holds none in its first line: that would be code within a line.
_FENCE = re.compile(r"\s*(`{3,}(?=[^`\n]*\n?\Z)|~{3,})")
_BREAK = re.compile(r"\s*(?:\||#{1,6}\s|>|(?:[-*+]|\d{1,3}[.)])\s)")
#: Lines that are a block each, before any text.
_ONE_LINE = re.compile(r"\s*(?:\||#{1,6}\s)")
_HEADING = re.compile(r"\s*(?:#{1,6}\s.*|\*\*[^*\n]+\*\*:?|__[^_\n]+__:?)")
# What makes a head of the row of a table above it.
_RULE = re.compile(r"[ \t]{0,9}\|[ \t]{0,9}:?-{2,}")
_MAX_RULE_CHARS = 24

# A model's marks of its sources behind a stop belong to the sentence before them: "Set it. [1] Build it."
_NAMES = ("sources", "source", "documents", "document", "docs", "doc", "refs", "ref", "s")
_NAMED = rf"(?:see )?(?:(?:{'|'.join(_NAMES)})[ .:_-]{{0,2}})?\^?\d{{1,3}}"
_LINK = r"\(https?://[^()\s]{1,300}\)"
_MARKS = (
    rf"(?>(?:[ \t]?(?:\[{{1,2}} ?(?i:{_NAMED})[^\[\]()\n]{{0,80}}\]{{1,2}}(?:{_LINK}|(?!\())"
    rf"|\((?i:(?!\d){_NAMED})[^\[\]()\n]{{0,80}}\)|(?:\(\d{{1,3}}\)|<\d{{1,3}}>)(?=[ \t]*(?:\n|\Z))"
    r"|【\d{1,3}[^】\n]{0,24}】|</co[^<>\n]{0,40}>))*)"
)
_ONLY_MARKS = re.compile(rf"\s*(?=[\[【]){_MARKS}\s*")
_MARK_ROW = re.compile(_MARKS)
_MARK_LINE = re.compile(rf"(?=[\[【]){_MARKS}[ \t]*(?:\n|\Z)")
_PARTS = "|".join(sorted({name[:i] for name in _NAMES for i in range(1, len(name) + 1)}, reverse=True))
_BEGUN_MARK = re.compile(
    rf"[\[(]{{1,2}} ?(?:s|se|see|(?:see )?(?:{_PARTS})?[ .:_-]{{0,2}}(?:\^|\^?\d[^\[\]()\n]{{0,84}}\]?)?)\Z"
    rf"|\[{{1,2}} ?{_NAMED}[^\[\]()\n]{{0,80}}\]{{1,2}}\([^()\s]{{0,309}}\Z"
    r"|【[^】\n]{0,28}\Z|<\d{0,3}\Z|</?(?:c(?:o[^<>\n]{0,40})?)?\Z",
    re.IGNORECASE,
)
# A lower-case letter after the stop means an abbreviation, "e.g. this", unless marks stand there. A wide stop behind a
# Latin letter may be a dot in the name of a host (UTS 46).
_STOP = re.compile(
    rf"(?<=[.!?])[\"'”’)\]*_]*+{_MARKS}\s+(?=[^a-zß-öø-ÿ\s])"
    rf"|(?<=[.!?])[\"'”’)\]*_]*+(?=[ \t]?[\[【]){_MARKS}\s+(?=[a-zß-öø-ÿ])|(?<=\d[\]】][.!?])\s+(?=[a-zß-öø-ÿ])"
    rf"|(?<=[。！？])(?<![A-Za-z0-9]。)[」』”’）*]*+{_MARKS}\s*(?=[^\s」』”’）*])|(?<=[.!?][`*_]){_MARKS}\s+(?=[A-ZÄÖÜ])"
)
# "e.g. Here", "z. B. Hier".
_ABBREVIATED = re.compile(r"(?<![\w.])[^\W\d_]\.[ \u00a0]?[^\W\d_]\.\Z")
_LETTER = re.compile(r"(?<![\w.])[^\W\d_]\.\s\Z")
#: Characters before a stop that tell an abbreviation.
_ABBREVIATION_CHARS = 6
_TICK = re.compile(r"(?<!`)`(?!`)")
#: Characters of the longest code span in which a sentence doesn't end.
_MAX_CODE_SPAN_CHARS = 80
# Marks of headings, items and stress around a sentence are not among its words.
_LEADING = re.compile(r"(?:[\s>*_#|+-]|\d{1,3}[.)]\s|\[[ xX]\]\s)*")
_TRAILING = " \t\r\n*_#>|"

# Beginnings of lines and blocks that what follows decides on.
_BEGUN_LINE = re.compile(r"\s*(?:#{1,6}|[-*+]|\d{1,3}[.)]?|`{1,2}|~{1,2}|[`~]{3}[^\n]*)\Z")
_CLOSED = re.compile(r"[\])】>][ \t]*\Z")
_BEGUN_HEADING = re.compile(r"\s*(?:\*\*?(?:[^*\n]+(?:\*\*?:?\s*)?)?|__?(?:[^_\n]+(?:__?:?\s*)?)?)\Z")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, list item, heading (of a table, too), table row or code block.

    Attributes:
        start, end: its place in the text, with the white space behind it; the next one starts where it ends.
        plain_text: its words without markup.
    """

    start: int
    end: int
    plain_text: str
    kind: SentenceKind


def split(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a Markdown text; joined they are the text."""
    return SentenceReader().read(text, last=True)


class SentenceReader:
    """Yields each sentence of a text as soon as it is whole; the pieces in which the text comes make no difference.

    Attributes:
        text: all text so far.
        start: where the sentence begins that is not whole yet.
    """

    def __init__(self) -> None:
        self.text = ""
        self.start = 0
        self._block = self._line = self._limit = 0
        self._fence = ""
        self._filled = self._one_line = False
        self._blank = True

    @property
    def waiting(self) -> str:
        """The text behind the last complete sentence."""
        return self.text[self.start :]

    @property
    def is_code(self) -> bool:
        """Whether a block of code is open."""
        return bool(self._fence)

    def read(self, text: str, *, last: bool = False) -> Iterator[Sentence]:
        """Yield the sentences that `text` completes; if it is the last piece, all that remain."""
        self.text += text
        while self._line < len(self.text):
            end = self.text.find("\n", self._line) + 1
            line = self.text[self._line : end or len(self.text)]
            is_whole_line = bool(end) or last
            if self._fence:
                if not is_whole_line:
                    return
                yield from self._code(line)
            elif not line.strip():
                if not is_whole_line:
                    break
                self._blank = True
            elif self._limit <= self._line:
                if not is_whole_line and self._is_undecided(line):
                    break
                yield from self._begin(line)
            if not is_whole_line:
                self._limit = len(self.text)
                break
            self._line = self._limit = self._line + len(line)
        if last and self.start < len(self.text):
            yield from self._finish(len(self.text))
        elif self._filled and not self._fence:
            yield from self._stops(self._limit, last=False)

    def cut(self, longest: int) -> Sentence:
        """End what waits behind the last word, or line of code, that is whole within so many characters."""
        text = self.text[self.start : self.start + longest]
        signs = ("\n",) if self._fence else (" ", "\n")
        end = self.start + max(text.rfind(sign) for sign in signs) + 1
        return self._sentence(end, "code" if self._fence else "prose")

    def _is_undecided(self, line: str) -> bool:
        """Whether more of a line tells whether it begins a block."""
        begun = line.lstrip()
        row = self._one_line and begun.startswith("|") and len(line) < _MAX_RULE_CHARS
        return row or _begins_mark(begun) or _BEGUN_LINE.match(line) is not None

    def _begin(self, line: str) -> Iterator[Sentence]:
        """Take a line that holds something."""
        fence = _FENCE.match(line)
        if self._filled and not self._one_line and _ONLY_MARKS.fullmatch(line):
            # They are those of the block above.
            return
        if self._filled and (self._blank or self._one_line or fence or _BREAK.match(line)):
            yield from self._finish(self._line)
        self._fence = fence.group(1) if fence else ""
        self._one_line = not fence and (self._one_line if self._filled else _ONE_LINE.match(line) is not None)
        self._filled, self._blank = True, False

    def _code(self, line: str) -> Iterator[Sentence]:
        mark = line.strip()
        end = self._line + len(line)
        if mark.startswith(self._fence) and not mark.strip(self._fence[0]) and self._line > self._block:
            self._fence = ""
            yield self._sentence(end, "code")
            self._close(end)

    def _finish(self, end: int) -> Iterator[Sentence]:
        """Yield the rest of a block that ends here."""
        block = self.text[self.start : end]
        if self._fence:
            self._fence = ""
            yield self._sentence(end, "code")
        elif self.start == self._block and (
            _HEADING.fullmatch(block.rstrip()) or (block.lstrip().startswith("|") and _RULE.match(self.text, end))
        ):
            yield self._sentence(end, "heading")
        else:
            yield from self._stops(end, last=True)
            yield self._sentence(end, "prose")
        self._close(end)

    def _close(self, end: int) -> None:
        self._block = self.start = end
        self._filled = self._one_line = False
        self._blank = True

    def _stops(self, end: int, *, last: bool) -> Iterator[Sentence]:
        """Yield the sentences that end before `end`, up to which the text belongs to the block."""
        at = self.start
        if not last and _CLOSED.search(self.text, max(self.start, end - _ABBREVIATION_CHARS), end):
            # A mark may go on as a link.
            return
        if at == self._block:
            # "5. Run it": the sign of an item ends no sentence.
            leading = _LEADING.match(self.text, at, end)
            at = leading.end() if leading else at
            if self._one_line or (not last and _BEGUN_HEADING.match(self.text[self._block : end])):
                return
        for stop in _STOP.finditer(self.text, at, end):
            if not last and (
                _BEGUN_MARK.match(self.text, stop.end(), end) or self._ends_abbreviation(stop, end) is None
            ):
                return
            mark_line = _MARK_LINE.match(self.text, stop.end(), end)
            if mark_line or self._ends_abbreviation(stop, end) or self._is_quoted(stop):
                continue
            if self.text[self.start : stop.end()].strip():
                yield self._sentence(stop.end(), "prose")

    def _is_quoted(self, stop: re.Match[str]) -> bool:
        """Whether a stop is one of a code span between single backticks, which never goes on in the next line here."""
        line = max(self.start, self.text.rfind("\n", self.start, stop.start()))
        ticks = [tick.start() for tick in _TICK.finditer(self.text, line, stop.start())]
        return len(ticks) % 2 == 1 and "\n" not in stop.group() and stop.start() - ticks[-1] < _MAX_CODE_SPAN_CHARS

    def _ends_abbreviation(self, stop: re.Match[str], end: int) -> bool | None:
        """Whether a stop is one of an abbreviation; None where the next character tells."""
        before = self.text[max(self.start, stop.start() - _ABBREVIATION_CHARS) : stop.start()]
        if _ABBREVIATED.search(before):
            return True
        if not _LETTER.search(f"{before} ") or not before[-2:-1].islower():
            return False
        following = self.text[stop.end() : min(end, stop.end() + 2)]
        if len(following) == 1 and following.isalpha():
            return None
        return following[:1].isalpha() and following[1:] == "."

    def _sentence(self, end: int, kind: SentenceKind) -> Sentence:
        text = self.text[self.start : end]
        sentence = Sentence(self.start, end, text.strip() if kind == "code" else strip_marks(text), kind)
        self.start = end
        return sentence


def _begins_mark(line: str) -> bool:
    """Whether the known part of a line holds only marks, the last of which may be incomplete."""
    marks = _MARK_ROW.match(line)
    rest = line[marks.end() if marks else 0 :].lstrip()
    return line[0] in "[【" and (not rest or _BEGUN_MARK.match(rest) is not None)


def strip_marks(text: str) -> str:
    """Return the words of a sentence, without its marks."""
    leading = _LEADING.match(text)
    return text[leading.end() if leading else 0 :].rstrip(_TRAILING)
