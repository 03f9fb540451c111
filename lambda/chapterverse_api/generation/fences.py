"""Tracks code in Markdown that is still being written: fences and backticks."""

from __future__ import annotations

import re

# A line on which nothing was said yet: blank, a quote's or an item's sign, the start of stress.
LINE_START = re.compile(r"(?:\A|\n)[ \t>]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?[*_]{0,3}\Z")
#: Characters before a mark that tell what it is.
TAIL = 120


class Fences:
    """Knows which part of a Markdown text is code, fenced or between backticks, while the text is written.

    Attributes:
        is_code: whether what comes now is; a run of backticks counts from `end_run` on.
    """

    def __init__(self) -> None:
        self._line = ""
        self._run = 0
        self._sign = ""
        self._inline = 0
        self._fence: tuple[str, int] | None = None
        self._start = 0
        self._opened_here = False

    @property
    def is_code(self) -> bool:
        return self._fence is not None or self._inline > 0

    def read(self, text: str, at: int, code: list[tuple[int, int]]) -> None:
        """Take the text that stands at `at`; append to `code` from where to where a fence went that it ends."""
        for i, c in enumerate(text):
            if c in "`~" and (c == self._sign or not self._run):
                self._run, self._sign = self._run + 1, c
            else:
                self.end_run(at + i)
            self._line = (self._line + c)[:TAIL]
            if c == "\n":
                self._end_line(at + i + 1, code)

    def end_run(self, at: int) -> None:
        """Decide what a run of backticks or tildes that ended before `at` means."""
        run, self._run = self._run, 0
        if not run or self._fence:
            return
        if run > 2 and LINE_START.search(self._line[:-run]):
            self._fence, self._start, self._opened_here = (self._sign, run), at - len(self._line), True
        elif self._sign == "`":
            self._inline = 0 if self._inline == run else self._inline or run

    def end(self, at: int, code: list[tuple[int, int]]) -> None:
        """Take the end of the text: a fence that is open goes up to it."""
        self.end_run(at)
        if self._fence:
            code.append((self._start, at))

    def _end_line(self, at: int, code: list[tuple[int, int]]) -> None:
        if self._fence and not self._opened_here:
            sign, least = self._fence
            line = self._line.strip()
            if len(line) >= least and not line.strip(sign):
                self._fence = None
                code.append((self._start, at))
        # Backticks that are still open were no code, and must not hide the marks of the rest.
        self._line, self._inline, self._opened_here = "", 0, False
