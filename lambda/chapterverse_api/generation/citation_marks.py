"""Takes the marks by which a model cites, "Set `site_url` [1]." or "…【2】", out of a sentence.

A mark cites the sentence that it is in or follows. The sentence is shown without it, with the spaces corrected. Code
keeps its brackets, and so do an array's element that the sources hold, `argv[1]`, a link's text, and words of the
sources. Models also write "[Source 1]", "(doc 1)", "[1, Installation]", "[1](https://…)", "(1)", "<1>" and tags,
"<co: 1>". At the end of a sentence or of a clause these are marks; inside it they are its words. A number without a
word, "(1)" or "<1>", must precede the sentence's full stop and name a passage, because elsewhere it numbers a list
item, a callout or a section of a manual.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chapterverse_api.generation.passage import Passage

#: Characters of a title and of an address, and marks in a row, at most.
_TITLE, _ADDRESS, _ROW = 80, 300, 6
#: Characters before a mark by which the sources' own are known.
_BEFORE = 12

_ONE = r"(?:(?:sources?|documents?|docs?|refs?|s)[ .:_-]{0,2})?\^?\d{1,3}\^?"
_SEVERAL = rf"{_ONE}(?:(?: ?[,，、;&–-] ?| and ){_ONE}){{0,9}}"
_HEADED = rf" ?[,:–-] ?[^\W\d][^\[\]()<>\n]{{0,{_TITLE}}}"
_INSIDE = rf" ?(?:see )?(?P<ids>{_SEVERAL})(?P<title>{_HEADED})? ?"
_LINK = rf"\(https?://[^()\s]{{1,{_ADDRESS}}}\)"
_FORMS = {
    "[": re.compile(rf"(?<!\[)\[(?P<twice>\[)?{_INSIDE}\](?(twice)\])(?:{_LINK})?", re.IGNORECASE),
    "(": re.compile(rf"\({_INSIDE}\)", re.IGNORECASE),
    "<": re.compile(rf"<{_INSIDE}>", re.IGNORECASE),
    "【": re.compile(r"【 ?(?P<ids>\d{1,3}(?: ?[,，、;–-] ?\d{1,3}){0,9})(?P<title>)(?:†[^】\n]{0,24})? ?】"),
}
_PLAIN = re.compile(r"[\[【][^A-Za-z(]*(?:†[^】\n]*)?[\]】]")
_BEGUN = re.compile(r"(?:\[{1,2}|【)[\d ,;^–-]{0,9}\Z")
_NUMBERS = re.compile(r"(\d+)(?:\^? ?[–-] ?\^?(\d+))?")
#: "[1-9]" means all nine; of a wider range only the ends are taken at their word.
_WIDEST = 20
_TAG = re.compile(r"</?co ?: ?\d{1,3}(?: ?, ?\d{1,3}){0,9} ?>|</?co>", re.IGNORECASE)
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_OPENING = re.compile(r"[\[(<【]")
_GAP = re.compile(r"[ ,;]{0,2}")
_LETTER = re.compile(r"[^\W\d_]")
_ELEMENT = re.compile(r"(\w+)\[{1,2}(\d{1,3})\]")
_WORD = re.compile(r"\w+\Z")
# Characters before the first word of a line.
_ITEM = " \t>*+-"
_LINE_START = re.compile(r"(?:\A|\n)[ \t>]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?[*_]{0,3}\Z")
# A sentence's end after a mark, and the end of a part of it; with what closes quotes and stress.
_STOP = re.compile(r"""[)*_"'”’»]{0,4}[ \t]{0,3}(?:[.!?…。！？]|\n|\Z)""")
_PAUSE = re.compile(r"[)*_]{0,4}[ \t]{0,3}[,;:，；：|]")
_LINE_END = re.compile(r"""[)*_"'”’»]{0,4}\s*(?:\n|\Z)""")
_AFTER_STOP = re.compile(r"""[.!?…。！？]["'”’»)*_]{0,4}\s*\Z""")
_BLANK = re.compile(r"\s\Z")
# Characters that follow a word without a space.
_AFTER_WORDS = ".,;:!?)]}…。，、；：！？）"


@dataclass(frozen=True, slots=True)
class _MarkedRow:
    """Marks in a row: from where to where they go, with the blanks around; what stands there then; what they name."""

    start: int
    end: int
    instead: str
    ids: tuple[str, ...]


class CitationMarks:
    """Knows a mark from the words of these passages."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._text = " ".join(" ".join(p.section.split()) for p in passages)
        self._paths = {p.id: set(re.findall(r"\w+", " ".join(p.path).casefold())) for p in passages}
        self._elements = {m.groups() for p in passages for m in _ELEMENT.finditer(p.section)}

    def take_out(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return a sentence without its marks, and the ids that they name, whether there are such passages or not."""
        text = _TAG.sub(lambda tag: tag.group() if tag.group() in self._text else "", text)
        pieces, named, at = list[str](), dict[str, None](), 0
        for row in self._rows(text):
            pieces += [text[at : row.start], row.instead]
            named.update(dict.fromkeys(row.ids))
            at = row.end
        # The limit of the model's length may have cut a mark.
        left = "".join([*pieces, text[at:]])
        begun = _BEGUN.search(left, max(0, len(left) - _BEFORE))
        return left[: begun.start()].rstrip() if begun else left, tuple(named)

    def _rows(self, text: str) -> Iterator[_MarkedRow]:
        code = [found.span() for found in _CODE.finditer(text)]
        at = 0
        for opening in _OPENING.finditer(text):
            start = opening.start()
            while code and code[0][1] <= start:
                del code[0]
            if start < at or (code and code[0][0] < start):
                continue
            marks = list(self._marks(text, start))
            at = marks[-1].end() if marks else at
            if row := self._row(text, marks):
                yield row
                at = row.end

    def _marks(self, text: str, start: int) -> Iterator[re.Match[str]]:
        """Yield the marks in a row that begin there."""
        for _ in range(_ROW):
            form = _FORMS.get(text[start : start + 1])
            found = form.match(text, start) if form else None
            if found is None or not self._is_mark(found):
                return
            yield found
            gap = _GAP.match(text, found.end())
            start = gap.end() if gap else found.end()

    def _is_mark(self, found: re.Match[str]) -> bool:
        numbers, title = _ids(found), set(re.findall(r"\w+", (found["title"] or "").casefold()))
        if _PLAIN.fullmatch(found.group()):
            return "0" not in numbers or "0" in self._paths or len(numbers) == 1
        return (
            found.group() not in self._text
            and (not title or title <= self._paths.get(numbers[0], set()))
            and (not _is_bare(found) or all(number in self._paths for number in numbers))
        )

    def _row(self, text: str, marks: Sequence[re.Match[str]]) -> _MarkedRow | None:
        if not marks:
            return None
        start, end = marks[0].start(), marks[-1].end()
        ids = tuple(dict.fromkeys(number for found in marks for number in _ids(found)))
        plain = all(_PLAIN.fullmatch(found.group()) for found in marks)
        if not (self._cites(text, start, end, marks[0], ids) if plain else _ends(text, marks)):
            return None
        while text[:start].endswith("(") and text[end : end + 1] == ")":
            # "([1])" leaves nothing behind.
            start, end = start - 1, end + 1
        before = len(text[:start].rstrip(" \t"))
        after = len(text) - len(text[end:].lstrip(" \t"))
        return _MarkedRow(before, after, _between(text, before, start, end, after), ids)

    def _cites(self, text: str, start: int, end: int, first: re.Match[str], ids: Sequence[str]) -> bool:
        """Whether numbers in brackets are marks, and no element of an array, text of a link, or the sources' own."""
        word = _WORD.search(text, max(0, start - 64), start)
        following = text[end : end + 1]
        if following and (following in "({=_" or (word and following.isascii() and following.isalnum())):
            return False
        if first.group()[0] == "[" and start and not text[start - 1].isspace():
            if word is None and text[:start].endswith(("]", "()")):
                return False
            if word and (
                (len(word.group()) == 1 and word.group().isascii())
                or ids[0] == "0"
                or (word.group(), ids[0]) in self._elements
            ):
                return False
        if all(number in self._paths for number in ids):
            return True
        before = text[max(0, start - _BEFORE) : start]
        return not before.strip() or " ".join((before + text[start:end]).split()) not in self._text


def _ids(found: re.Match[str]) -> list[str]:
    """Return the ids of "1, 2" or "1-3"."""
    made: list[str] = []
    for number in _NUMBERS.finditer(found["ids"]):
        first, end = int(number[1]), int(number[2] or number[1])
        made += map(str, range(first, end + 1) if 0 <= end - first < _WIDEST else (first, end))
    return made


def _is_bare(found: re.Match[str]) -> bool:
    """Whether it is a number alone, in brackets that mean something else."""
    return found.group()[0] in "(<" and not _LETTER.search(found.group())


def _ends(text: str, marks: Sequence[re.Match[str]]) -> bool:
    """Whether words in brackets are at the place of marks."""
    start, end = marks[0].start(), marks[-1].end()
    before = text[max(0, start - _BEFORE) : start]
    stops = _STOP.match(text, end) is not None
    if all(map(_is_bare, marks)):
        opens = not before.strip(_ITEM) or before.rstrip(_ITEM).endswith("\n")
        stops = _LINE_END.match(text, end) is not None if _AFTER_STOP.search(before) else stops
        return stops and not opens and _BLANK.search(before) is not None
    # A link may be the first word of a sentence.
    is_link = marks[-1].group().startswith("[") and marks[-1].group().endswith(")")
    opens = is_link and not before.strip(_ITEM)
    return (stops and not opens) or bool(_PAUSE.match(text, end)) or (not is_link and bool(_AFTER_STOP.search(before)))


def _between(text: str, before: int, start: int, end: int, after: int) -> str:
    """Return the space between two words after the marks between them are removed."""
    following, gap = text[after : after + 1], text[before:start]
    if _LINE_START.search(text[:start]):
        return gap
    if not following or following == "\n" or following in _AFTER_WORDS or text[:before].endswith("("):
        return text[end:after] if not following else ""
    apart = following.isascii() and following.isalnum() and text[before - 1 : before].isascii()
    return text[end:after] or gap or (" " if apart else "")
