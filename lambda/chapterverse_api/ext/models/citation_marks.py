"""Removes the marks by which a model cites, "Set `site_url` [1]." or "…【2】", from a sentence.

A mark cites the sentence that it is in or follows. The sentence is shown without it, with the spaces corrected. Code
keeps its brackets, and so do an array's element that the sources hold, `argv[1]`, a link's text, and words of the
sources. Models also write "[Source 1]", "(doc 1)", "[1, Installation]", "[1](https://…)", "(1)", "<1>" and tags,
"<co: 1>"; further forms are first written as "[1]". What only surrounds a mark goes with it, as in "**[1]**".
At the end of a sentence or of a clause these are marks; inside it they are its words. A number without a
word, "(1)" or "<1>", must precede the sentence's full stop and name a passage, because elsewhere it numbers a list
item, a callout or a section of a manual.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from chapterverse_api.draft.requests import Passage

#: Characters of a title and of an address in a mark, and marks in a group.
_MAX_TITLE_CHARS, _MAX_ADDRESS_CHARS, _MAX_GROUP_MARKS = 80, 300, 6
#: Characters before a mark that must be in the sources, too, for the mark to be the sources' own.
_CONTEXT_CHARS = 12
#: Characters at the end of a sentence in which an unfinished mark is looked for.
_MAX_UNFINISHED_CHARS = 12
#: Characters of the longest word that an array's element, `argv[1]`, may follow.
_MAX_ARRAY_CHARS = 64
#: "[1-9]" means all nine numbers; a wider range means its ends.
_MAX_RANGE = 20

_ONE = r"(?:(?:sources?|documents?|docs?|refs?|cite|citation|s)[ .:_-]{0,2})?[\^#]?\d{1,3}\^?"  # "1", "source 1", "#1"
_SEVERAL = rf"{_ONE}(?:(?: ?[,，、;&–-] ?| and ){_ONE}){{0,9}}"  # "1, 2", "1-3", "1 and 2"
_TITLE = rf" ?[,:–-] ?[^\W\d][^\[\]()<>\n]{{0,{_MAX_TITLE_CHARS}}}"  # ", Installation"
_CONTENT = rf" ?(?:see )?(?P<ids>{_SEVERAL})(?P<title>{_TITLE})? ?"
_LINK = rf"\((?:https?://|#)[^()\s]{{0,{_MAX_ADDRESS_CHARS}}}\)"
_NOTE = r"(?:†[^\]】\n]{0,24})?"  # "†source"
#: The forms of a mark, by its first character.
_FORMS = {
    "[": re.compile(rf"(?<!\[)\[(?P<twice>\[)?{_CONTENT}{_NOTE}\](?(twice)\])(?:{_LINK})?", re.IGNORECASE),
    "(": re.compile(rf"\({_CONTENT}\)", re.IGNORECASE),
    "<": re.compile(rf"<{_CONTENT}>", re.IGNORECASE),
    "【": re.compile(r"【 ?(?P<ids>\d{1,3}(?: ?[,，、;–-] ?\d{1,3}){0,9})(?P<title>)" + _NOTE + " ?】"),
}
_NUMBERED = re.compile(r"[\[【][^A-Za-z(†]*(?:†[^\]】\n]*)?[\]】]")  # "[1]", "【2†L3】", and not "[source 1]"
_UNFINISHED = re.compile(r"(?:\[{1,2}|【)[\d ,;^–-]{0,9}\Z")  # "… [1", at the end
_NUMBERS = re.compile(r"(\d+)(?:\^? ?[–-] ?\^?(\d+))?")  # "1", "1-3"
# "`[1]`", "\\[1\\]", "［1］", "<sup>1</sup>", and "¹" behind a word or a sentence.
_ALIAS = re.compile(
    r"""(`{1,2})(?P<code>(?>(?:\[\d{1,3}\][ ,]?){1,6}))\1
      | \\\[(?P<escaped>\d{1,3})\\\] | ［(?P<wide>\d{1,3})］
      | <sup>\s{0,2}\[?(?P<raised>\d{1,3}(?:\s?,\s?\d{1,3}){0,5})\]?\s{0,2}</sup>
      | (?=[¹²³⁴-⁹])
        (?:(?<=[^\W\d_]{4})|(?<=[.!?…。`*)]))(?P<power>[¹²³⁴-⁹][⁰¹²³⁴-⁹]?(?:[,\s\u02d2]?[¹²³⁴-⁹][⁰¹²³⁴-⁹]?){0,5})""",
    re.VERBOSE,
)
_POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
# What surrounds a mark and means nothing without it.
_LABEL = r"sources?|refs?|references?|citations?|quellen?|fuentes?|fonti?"
_OPEN = re.compile(rf"[(（](?:(?:{_LABEL}|(?P<verb>see|cf|siehe))[.:]?[ \t]?)?\Z", re.IGNORECASE)  # "(", "(Source: "
_LABEL_END = re.compile(rf"(?<!\w)(?:{_LABEL}):[ \t]?\Z", re.IGNORECASE)  # "Source: "
_STRESS = re.compile(r"(?:\*{1,3}|_{1,3}|~~|==)\Z")
_MAX_LABEL_CHARS = 14
_TAG = re.compile(r"</?co ?: ?\d{1,3}(?: ?, ?\d{1,3}){0,9} ?>|</?co>", re.IGNORECASE)  # "<co: 1>", "</co>"
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_OPENING = re.compile(r"[\[(<【]")
_GAP = re.compile(r"[ ,;]{0,2}")  # between the marks of a group
_LETTER = re.compile(r"[^\W\d_]")
_ELEMENT = re.compile(r"(?<!\w)(\w++)\[{1,2}(\d{1,3})\]")  # "argv[1]"
_WORD_END = re.compile(rf"\w{{1,{_MAX_ARRAY_CHARS}}}\Z")
_LINE_START_CHARACTERS = " \t>*+-"
_LINE_START = re.compile(r"(?:\A|\n)[ \t>]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?[*_]{0,3}\Z")  # "- **", before a mark
_STOP = re.compile(r"""[)*_"'”’»]{0,4}[ \t]{0,3}(?:[.!?…。！？]|\n|\Z)""")  # "**.", behind a mark
_PAUSE = re.compile(r"[)*_]{0,4}[ \t]{0,3}[,;:，；：|]")  # "**,", behind a mark
_LINE_END = re.compile(r"""[)*_"'”’»]{0,4}[^\S\n]*+(?:\n|\Z)""")
_AFTER_STOP = re.compile(r"""[.!?…。！？]["'”’»)*_]{0,4}\s*\Z""")  # "Done. ", before a mark
_BLANK_END = re.compile(r"\s\Z")
# Characters that follow a word without a space.
_AFTER_WORDS = ".,;:!?)]}…。，、；：！？）"


class _MarkGroup(NamedTuple):
    """Marks in a row: their range with the blanks around, what replaces them, and the ids that they cite."""

    start: int
    end: int
    replacement: str
    ids: Sequence[str]


class CitationMarks:
    """Tells the marks of a model from the words of these passages."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._path_words = {p.id: set(re.findall(r"\w+", " ".join(p.path).casefold())) for p in passages}

    # Lazy: quotes hold no marks.
    @cached_property
    def _text(self) -> str:
        return " ".join(" ".join(p.section.split()) for p in self._passages)

    @cached_property
    def _elements(self) -> set[tuple[str | None, ...]]:
        return {m.groups() for p in self._passages for m in _ELEMENT.finditer(p.section)}

    def remove(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return a sentence without its marks, and the ids that they cite, whether there are such passages or not."""
        text = _ALIAS.sub(self._plain, text)
        text = _TAG.sub(lambda tag: tag.group() if tag.group() in self._text else "", text)
        pieces, cited_ids, at = list[str](), dict[str, None](), 0
        for group in self._groups(text):
            pieces += [text[at : group.start], group.replacement]
            cited_ids.update(dict.fromkeys(group.ids))
            at = group.end
        rest = "".join([*pieces, text[at:]])
        # The limit of the model's length may have cut a mark.
        unfinished = _UNFINISHED.search(rest, max(0, len(rest) - _MAX_UNFINISHED_CHARS))
        return rest[: unfinished.start()].rstrip() if unfinished else rest, tuple(cited_ids)

    def _plain(self, alias: re.Match[str]) -> str:
        """Return a mark of another form as "[1]", unless the sources hold it or it names no passage."""
        if code := alias["code"]:
            return alias.group() if alias.group() in self._text else code
        numbers = alias["escaped"] or alias["wide"] or alias["raised"] or alias["power"].translate(_POWERS)
        ids = re.findall(r"\d+", numbers)
        known = alias["power"] is None or self._knows(ids)
        word = _WORD_END.search(alias.string, max(0, alias.start() - _MAX_ARRAY_CHARS), alias.start())
        context = f"{word.group() if word else ''}{alias.group()}"
        return f"[{', '.join(ids)}]" if known and context not in self._text else alias.group()

    def _groups(self, text: str) -> Iterator[_MarkGroup]:
        code = [match.span() for match in _CODE.finditer(text)]
        at = 0
        for opening in _OPENING.finditer(text):
            start = opening.start()
            while code and code[0][1] <= start:
                del code[0]
            if start < at or (code and code[0][0] < start):
                continue
            if marks := list(self._marks(text, start)):
                at = marks[-1].end()
                if group := self._group(text, marks):
                    yield group
                    at = group.end

    def _marks(self, text: str, start: int) -> Iterator[re.Match[str]]:
        """Yield the marks in a row that begin there."""
        for _ in range(_MAX_GROUP_MARKS):
            form = _FORMS.get(text[start : start + 1])
            mark = form.match(text, start) if form else None
            if mark is None or not self._is_mark(mark):
                return
            yield mark
            gap = _GAP.match(text, mark.end())
            start = gap.end() if gap else mark.end()

    def _is_mark(self, mark: re.Match[str]) -> bool:
        """Whether a mark is none of the sources' own texts, and its title, if it has one, is that of its passage."""
        ids, title = _ids(mark), set(re.findall(r"\w+", (mark["title"] or "").casefold()))
        if _NUMBERED.fullmatch(mark.group()):
            return "0" not in ids or "0" in self._path_words or len(ids) == 1
        return (
            mark.group() not in self._text
            and (not title or title <= self._path_words.get(ids[0], set()))
            and (not _is_bare(mark) or self._knows(ids))
        )

    def _group(self, text: str, marks: Sequence[re.Match[str]]) -> _MarkGroup | None:
        """Return marks in a row as a group; None if they are words of the sentence."""
        start, end = marks[0].start(), marks[-1].end()
        ids = list(dict.fromkeys(number for mark in marks for number in _ids(mark)))
        if all(_NUMBERED.fullmatch(mark.group()) for mark in marks):
            cites = not self._is_index(text, marks, ids) and not self._is_in_sources(text[:end], start, ids)
        else:
            cites = _are_at_end(text, marks)
        if not cites:
            return None
        start, end = _with_surroundings(text, start, end)
        if text[end : end + 1] in (":", "：") and _LINE_START.search(text[:start]):
            # "[1]: Set it." is no title.
            end += 1
        before = len(text[:start].rstrip(" \t"))
        after = len(text) - len(text[end:].lstrip(" \t"))
        return _MarkGroup(before, after, _gap_between(text, before, start, end, after), ids)

    def _is_index(self, text: str, marks: Sequence[re.Match[str]], ids: Sequence[str]) -> bool:
        """Whether numbers in brackets are an array's element or a link's text.

        [1](page.md)  [1]{.note}  [1]=x  [1]_    a link, or the syntax of another dialect
        argv[1]st                                followed by a letter, so that it is a part of a name
        x[1]  f()[1]  a[0]  rows[2][1]           an element by a short name, of a result, the first, or of a row
        argv[1]                                  an element that the sources contain
        """
        start, following = marks[0].start(), text[marks[-1].end() : marks[-1].end() + 1]
        word = _WORD_END.search(text, max(0, start - _MAX_ARRAY_CHARS), start)
        if following and following in "({=_":
            return True
        if word and following.isascii() and following.isalnum():
            return True
        if marks[0].group()[0] != "[":
            return False
        if word is None:
            return text[:start].endswith(("]", "()"))
        name = word.group()
        return ids[0] == "0" or (len(name) == 1 and name.isascii()) or (name, ids[0]) in self._elements

    def _is_in_sources(self, text: str, start: int, ids: Sequence[str]) -> bool:
        """Whether the end of a text from `start` on names no passage, and the sources contain it behind such words."""
        first = max(0, start - _CONTEXT_CHARS)
        is_behind_words = bool(text[first:start].strip())
        return not self._knows(ids) and is_behind_words and " ".join(text[first:].split()) in self._text

    def _knows(self, ids: Iterable[str]) -> bool:
        """Whether all of these ids name a passage."""
        return all(number in self._path_words for number in ids)


def _with_surroundings(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the range of a mark with the brackets, stress and label that would be left behind empty."""
    while True:
        before, following = text[max(0, start - _MAX_LABEL_CHARS) : start], text[end : end + 3]
        opening, stress = _OPEN.search(before), _STRESS.search(before)
        if opening and following[:1] in (")", "）") and (not opening["verb"] or _STOP.match(text, end + 1)):
            start, end = start - len(opening.group()), end + 1
        elif stress and following.startswith(stress.group()) and text.count(stress.group(), 0, start) % 2:
            start, end = start - len(stress.group()), end + len(stress.group())
        else:
            label = _LABEL_END.search(before) if _STOP.match(text, end) else None
            return start - len(label.group() if label else ""), end


def _ids(mark: re.Match[str]) -> list[str]:
    """Return the ids of "1, 2" or "1-3"."""
    ids: list[str] = []
    for number in _NUMBERS.finditer(mark["ids"]):
        first, last = int(number[1]), int(number[2] or number[1])
        ids += map(str, range(first, last + 1) if 0 <= last - first < _MAX_RANGE else (first, last))
    return ids


def _is_bare(mark: re.Match[str]) -> bool:
    """Whether a mark is a number without a word in brackets that mean something else: "(1)", "<1>"."""
    return mark.group()[0] in "(<" and not _LETTER.search(mark.group())


def _are_at_end(text: str, marks: Sequence[re.Match[str]]) -> bool:
    """Whether marks with words, "[source 1]", or in other brackets are where a sentence or a part of it ends."""
    start, end = marks[0].start(), marks[-1].end()
    before = text[max(0, start - _CONTEXT_CHARS) : start]
    follows_stop, precedes_stop = _AFTER_STOP.search(before) is not None, _STOP.match(text, end) is not None
    if all(map(_is_bare, marks)):
        begins_line = not before.strip(_LINE_START_CHARACTERS) or before.rstrip(_LINE_START_CHARACTERS).endswith("\n")
        at_end = _LINE_END.match(text, end) is not None if follows_stop else precedes_stop
        return at_end and not begins_line and _BLANK_END.search(before) is not None
    # A link may be the first word of a sentence.
    is_link = marks[-1].group().startswith("[") and marks[-1].group().endswith(")")
    begins_text = is_link and not before.strip(_LINE_START_CHARACTERS)
    return (precedes_stop and not begins_text) or bool(_PAUSE.match(text, end)) or (follows_stop and not is_link)


def _gap_between(text: str, before: int, start: int, end: int, after: int) -> str:
    """Return the space between two words after the marks between them are removed."""
    following, gap = text[after : after + 1], text[before:start]
    if _LINE_START.search(text[:start]):
        return gap
    if not following or following == "\n" or following in _AFTER_WORDS or text[:before].endswith("("):
        return text[end:after] if not following else ""
    if following == "*" and text[:before].endswith("*"):
        return " "
    are_words = following.isascii() and following.isalnum() and text[before - 1 : before].isascii()
    return text[end:after] or gap or (" " if are_words else "")
