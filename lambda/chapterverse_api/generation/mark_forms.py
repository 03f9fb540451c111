"""Recognizes other forms of the mark "[1]": "[Source 1]", "(doc 1)", "[1, Installation]", "[1](https://…)", "<1>".

At the end of a sentence, an item or a part of one they are marks like others; inside it they are its words, and words
of the sources are never marks. A number without a word, "(1)" or "<1>", must stand before the sentence's own stop and
name a passage, as it is a list's sign, a callout's or a manual's section elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chapterverse_api.generation.fences import Fences
from chapterverse_api.generation.types import Passage

#: Characters of a title and of an address, and marks in a row, at most: what may become one waits.
_TITLE, _ADDRESS, _ROW = 80, 300, 6

_NAMES = ("sources", "source", "documents", "document", "docs", "doc", "refs", "ref", "s")
_ONE = rf"(?:(?:{'|'.join(_NAMES)})[ .:_-]{{0,2}})?\^?\d{{1,3}}\^?"
_SEVERAL = rf"{_ONE}(?:(?: ?[,;&–-] ?| and ){_ONE}){{0,9}}"
_HEADED = rf" ?[,:–-] ?[^\W\d][^\[\]()<>\n]{{0,{_TITLE}}}"
_INSIDE = rf" ?(?:see )?(?P<ids>{_SEVERAL})(?P<title>{_HEADED})? ?"
_LINK = rf"\(https?://[^()\s]{{1,{_ADDRESS}}}\)"
_MARKS = {
    "[": re.compile(rf"\[{_INSIDE}\](?:{_LINK})?", re.IGNORECASE),
    "(": re.compile(rf"\({_INSIDE}\)", re.IGNORECASE),
    "<": re.compile(rf"<{_INSIDE}>", re.IGNORECASE),
}
_NUMBERS = re.compile(r"(\d+)(?:\^? ?[–-] ?\^?(\d+))?")
#: "[1-9]" means all nine; of a wider range only the ends are taken at their word.
_WIDEST = 20

# What such a mark looks like before it is whole: names and numbers, then perhaps a title or an address.
_PARTS = "|".join(sorted({name[:i] for name in (*_NAMES, "see", "and") for i in range(1, len(name) + 1)}, reverse=True))
_BEGUN = re.compile(
    rf"[\[(<](?:[ ,;&–^.:_-]|\d{{1,3}}|(?:{_PARTS})(?![^\W\d_])){{0,40}}\Z"
    rf"|[\[(<] ?(?:see )?{_ONE}{_HEADED}\Z"
    rf"|\[ ?(?:see )?{_SEVERAL}(?:{_HEADED})? ?\](?:\([^()\s]{{0,{_ADDRESS}}})?\Z",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"\[[\d ,;^–-]*\]")
_LETTER = re.compile(r"[^\W\d_]")
# What may stand before the first word of a line.
_ITEM = " \t>*+-"
_OPENING = re.compile(r"[\[(<]")
_GAP = re.compile(r"[ ,;]{0,2}")
# A sentence's end after a mark, and the end of a part of it; with what closes quotes and stress.
_STOP = re.compile(r"""[)*_"'”’»]{0,4}[ \t]{0,3}(?:[.!?…。！？]|\n|\Z)""")
_PAUSE = re.compile(r"[)*_]{0,4}[ \t]{0,3}[,;:，；：|]")
_LINE_END = re.compile(r"[)*_]{0,4}[ \t]{0,3}(?:\n|\Z)")
_UNDECIDED = re.compile(r"""[)*_"'”’»]{0,4}[ \t]{0,3}\Z""")
_AFTER_STOP = re.compile(r"""(?:[.!?…。！？]["'”’»)*_]{0,4}|(?:\A|\n)[ \t>*+-]*)\s*\Z""")
_BLANK = re.compile(r"[\s\u2e80-\uffef]\Z")
#: Characters before a mark that tell what it is.
_BEFORE = 40


@dataclass(frozen=True, slots=True)
class Wording:
    """A row of such marks: up to where it goes, and the ids that it names; none where it is a text's own words."""

    end: int
    ids: tuple[str, ...]


class KnownMarks:
    """What tells a mark from the sources' own words."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.text = " ".join(" ".join(p.section.split()) for p in passages)
        self._paths = {p.id: set(re.findall(r"\w+", " ".join(p.path).casefold())) for p in passages}

    def wording(self, text: str, start: int, *, before: str = "", last: bool = True) -> Wording | None:
        """Return what begins with the bracket at `start`; None where what follows will tell.

        Args:
            before: what stands before `text`.
            last: whether nothing follows it.
        """
        row: list[re.Match[str]] = []
        while len(row) < _ROW and (found := _mark(text, _blanks(text, row[-1].end()) if row else start)):
            if not self._is_mark(found):
                break
            row.append(found)
        if not last and _is_undecided(text, start, row):
            return None
        if not row:
            return Wording(start + 1, ())
        end, said = row[-1].end(), (before + text[max(0, start - _BEFORE) : start])[-_BEFORE:]
        named = [number for found in row for number in ids(found["ids"])] if self._ends(text, row, said) else []
        return Wording(end, tuple(dict.fromkeys(named)))

    def _is_mark(self, found: re.Match[str]) -> bool:
        title = set(re.findall(r"\w+", (found["title"] or "").casefold()))
        numbers = ids(found["ids"])
        return (
            found.group() not in self.text
            and (not title or title <= self._paths.get(numbers[0], set()))
            and (not self._is_bare(found) or all(number in self._paths for number in numbers))
        )

    def _is_bare(self, found: re.Match[str]) -> bool:
        """Whether it is a number alone, in brackets that mean something else."""
        return found.group()[0] != "[" and not _LETTER.search(found.group())

    def _ends(self, text: str, row: Sequence[re.Match[str]], said: str) -> bool:
        """Whether the row stands where marks stand."""
        end = row[-1].end()
        if all(_PLAIN.fullmatch(found.group()) for found in row):
            # The one form that `numbered` reads itself.
            return False
        stops = _STOP.match(text, end) is not None
        if all(map(self._is_bare, row)):
            opens = not said.strip(_ITEM) or said.rstrip(_ITEM).endswith("\n")
            stops = _LINE_END.match(text, end) is not None if _AFTER_STOP.search(said) else stops
            return stops and not opens and _BLANK.search(said) is not None
        # A link may be the first word of a sentence.
        is_link = row[-1].group().endswith(")") and row[-1].group().startswith("[")
        return stops or bool(_PAUSE.match(text, end)) or (not is_link and bool(_AFTER_STOP.search(said)))


class Wordings:
    """Writes such marks of a text that comes in pieces as "[1]"; what may become one waits."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._known = KnownMarks(passages)
        self._fences = Fences()
        self._waiting = ""
        self._before = ""
        self._length = 0

    def read(self, text: str, *, last: bool = False) -> str:
        """Return what is certain now that `text` has come."""
        self._waiting += text
        at, out = 0, list[str]()
        while opening := _OPENING.search(self._waiting, at):
            out.append(self._passed(self._waiting[at : opening.start()]))
            at = opening.start()
            self._fences.end_run(self._length)
            found: Wording | None = Wording(at + 1, ())
            if not self._fences.is_code:
                found = self._known.wording(self._waiting, at, before=self._before, last=last)
            if found is None:
                break
            out += [f"[{number}]" for number in found.ids] or [self._passed(self._waiting[at : found.end])]
            at = found.end
        else:
            out.append(self._passed(self._waiting[at:]))
            at = len(self._waiting)
        self._before, self._waiting = (self._before + self._waiting[:at])[-_BEFORE:], self._waiting[at:]
        return "".join(out)

    def _passed(self, text: str) -> str:
        self._fences.read(text, self._length, [])
        self._length += len(text)
        return text


def ids(listed: str) -> list[str]:
    """Return the ids of "1, 2" or "1-3"."""
    found: list[str] = []
    for number in _NUMBERS.finditer(listed):
        first, end = int(number[1]), int(number[2] or number[1])
        found += map(str, range(first, end + 1) if 0 <= end - first < _WIDEST else (first, end))
    return found


def _mark(text: str, at: int) -> re.Match[str] | None:
    pattern = _MARKS.get(text[at : at + 1])
    return pattern.match(text, at) if pattern else None


def _blanks(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _is_undecided(text: str, start: int, row: Sequence[re.Match[str]]) -> bool:
    """Whether the row of marks may go on, or what tells of it is still to come."""
    if not row:
        return _BEGUN.match(text, start) is not None
    end = row[-1].end()
    if _UNDECIDED.match(text, end) or _BEGUN.match(text, row[-1].start()):
        return True
    following = _blanks(text, end)
    return following == len(text) or (len(row) < _ROW and _BEGUN.match(text, following) is not None)
