"""What a source must share with a sentence: cues, numbers and identifiers.

A cue is a small word that changes the meaning: a negation, quantifier, duty or opposite. It is recognized by its word
alone, and `features` decides what it refers to. English has all kinds, German, French and Spanish have their negations,
and other languages have no cues. A source has a number in any notation, and an identifier verbatim. The words are data,
in `cues.json` and `literals.json`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from chapterverse.text import lexical
from chapterverse.text.json_text import load_json

#: Kinds of cues; each is compared with its own kind.
CUE_KINDS = ("negation", "all", "only", "must")
NEGATION = CUE_KINDS.index("negation")

# Cyrillic and Greek letters, and the Latin ones that they look like.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһкмтвнАЕОРСУХІЈЅКМТВНαοεικνρτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdhkmtbhAEOPCYXIJSKMTBHaoeiknptuxABEZHIKMNOPTYX",
)
_CELL_BORDER = re.compile(r"(?<!\\)\|")
# All are bounded, for a text may be one endless word.
_CODE = re.compile(r"(`{1,3})([^`\n]{1,200})\1")
_CUES: Any = load_json("chapterverse_api.ext.check", "cues.json")
#: Whether a cell of a table that holds nothing else says yes.
_CELLS = {sign: value == "yes" for value, signs in _CUES["cells"].items() for sign in signs.split()}
_WORDS = load_json("chapterverse_api.ext.check", "literals.json")
#: The unit that each of its forms names; numbers with different units are different.
_UNITS = {form: unit for unit, forms in _WORDS["units"].items() for form in forms.split()}
# Of "2-day" alone the number ends before the hyphen: "2-way" is a name.
_HYPHEN = rf"-(?!(?i:{'|'.join(map(re.escape, _UNITS))})\b)"
_NUMBER = re.compile(
    rf"""(?<![\w.,/])(?P<sign>[-−–])?[$€£]?
        (?P<digits>\d{{1,3}}(?:[,'\u00a0\u202f]\d{{3}}){{1,4}}(?:\.\d{{1,9}})?|\d{{1,15}}(?:\.\d{{1,15}})?|\.\d{{1,15}})
        (?P<unit>\s?%|(?:st|nd|rd|th)\b|[a-zA-Zµ]{{1,3}}\b)?(?![\w]|(?:[.,:/]|{_HYPHEN})\w)""",
    re.VERBOSE,
)
_ORDINALS = ("st", "nd", "rd", "th")
_RUN = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]{0,60}|[\w./:$~{}@+#*=-]{2,120}(?![\w./:$~{}@+#*=-])")
# With a digit, an underscore, a slash or a dot inside, in camel case, in capitals, an option or a variable.
_IDENTIFIER = re.compile(r"\d|\w_\w|^_\w|/|\w[.:]\w|[a-z][A-Z]|^[A-Z][A-Z0-9]{2,}$|^--?[a-zA-Z]|^\$")
_LETTERS = re.compile(r"[^\W\d]{2,20}")
_SPELLED = re.compile(rf"{_LETTERS.pattern}(?:-{_LETTERS.pattern})?")
_NEXT_WORD = re.compile(r"[\s-]{0,3}([^\W\d]{1,20}|%)")


def _number_words(values: Mapping[str, int]) -> dict[str, str]:
    """Return the digits of each number word, and of two that are one number: "twenty-two"."""
    tens = {word: value for word, value in values.items() if value in range(20, 100, 10)}
    units = {word: value for word, value in values.items() if value in range(1, 10)}
    pairs = {f"{ten}-{unit}": tens[ten] + units[unit] for ten in tens for unit in units}
    return {word: str(value) for word, value in {**values, **pairs}.items()}


# "One" is no number here, because it is also a pronoun.
_VALUES = {code: _number_words(values) for code, values in _WORDS["number_words"].items()}


def fold_lookalikes(word: str) -> str:
    """Return a word of mixed scripts with its Cyrillic and Greek look-alikes as Latin letters."""
    if word.isascii() or not any("a" <= c <= "z" or "A" <= c <= "Z" for c in word):
        return word
    return word.translate(_LOOKALIKES)


@cache
def kinds(language: str) -> dict[str, tuple[int, ...]]:
    """Return which kinds of cue each word is, or two words with a `_` between, by its index in `CUE_KINDS`."""
    words_by_kind = _CUES["cues"].get(language, {})
    kinds_by_word: dict[str, tuple[int, ...]] = {}
    for index, kind in enumerate(CUE_KINDS):
        for word in words_by_kind.get(kind, "").split():
            kinds_by_word[word] = (*kinds_by_word.get(word, ()), index)
    return kinds_by_word


def cell_value(cell: str) -> bool | None:
    """Return what a cell of a table says of its column; None if it holds more than a yes or a no."""
    return _CELLS.get(cell.strip(" *_`\ufe0f").casefold())


def split_row(row: str) -> list[str]:
    """Return the cells of a table's row."""
    return [cell.strip() for cell in _CELL_BORDER.split(row.strip().strip("|"))]


def read_row(row: str, columns: Sequence[str], language: str) -> str:
    """Return a row in which a bare "No" or "✓" is the value of its column: "not Required", "Required"."""
    negations = _CUES["cues"].get(lexical.primary_subtag(language), {}).get("negation", "")
    read = []
    for n, cell in enumerate(split_row(row)):
        value, column = cell_value(cell), columns[n] if n < len(columns) else ""
        denied = f"{negations.partition(' ')[0]} {column}" if column else ""
        read.append(cell if value is None else column if value else denied)
    return " | ".join(read)


@cache
def opposites() -> dict[str, frozenset[str]]:
    """Return the opposites of each English word that has some."""
    opposites_by_word: dict[str, frozenset[str]] = {}
    for group in _CUES["opposites"]:
        first, *words = group.split("/")
        for word, opposite in (pair for other in words for pair in ((first, other), (other, first))):
            opposites_by_word[word] = opposites_by_word.get(word, frozenset()) | {opposite}
    return opposites_by_word


class LiteralMatch(NamedTuple):
    """A number or identifier of a sentence.

    Attributes:
        form: a number without its separators, or an identifier as it is written.
        unit: the unit of a number; empty for numbers without one, and for identifiers.
        start: its place in the sentence.
    """

    form: str
    unit: str
    start: int
    is_number: bool


def find_literals(text: str, language: str) -> Iterator[LiteralMatch]:
    """Yield the numbers and identifiers of a sentence; a code span counts as one identifier."""
    for span in _CODE.finditer(text):
        code = " ".join(span.group(2).split())
        if code:
            number = _NUMBER.fullmatch(code)
            literal = _read_number(number, code) if number else LiteralMatch(code, "", 0, is_number=False)
            yield literal._replace(start=span.start())
    rest = _CODE.sub(lambda span: " " * len(span.group()), text)
    numbers = list(_NUMBER.finditer(rest))
    yield from (_read_number(number, rest) for number in numbers)
    values = _values(language)
    for word in _SPELLED.finditer(rest):
        spelled = word.group().lower()
        if value := _value(spelled, values):
            # The unit of "two-day" is within it.
            end = word.end() if spelled in values else word.start() + spelled.index("-")
            yield LiteralMatch(value, _read_unit(rest, end), word.start(), is_number=True)
    ends = [number.end() for number in numbers]
    for match in _RUN.finditer(rest):
        form = match.group().rstrip(".:/=*#") if match.group()[0] in "-/" else match.group().strip(".:/=*#-")
        is_identifier = len(form) > 1 and _IDENTIFIER.search(form)
        # The first number that ends behind the beginning of the match begins behind its end, or there is none.
        following = bisect_right(ends, match.start())
        if is_identifier and (following == len(numbers) or numbers[following].start() >= match.end()):
            yield LiteralMatch(form, "", match.start() + match.group().find(form), is_number=False)


def words_to_digits(text: str, language: str) -> str:
    """Return a text with its number words as digits: "7 daily" for "seven daily", "2-day" for "two-day"."""
    values = _values(language)
    # Nearly all texts have none, and to call a function for each word takes longer than to list them.
    if not values or values.keys().isdisjoint(map(str.lower, _LETTERS.findall(text))):
        return text

    def read(word: re.Match[str]) -> str:
        first, _, unit = word.group().partition("-")
        is_measured = unit.lower() in _UNITS and first.lower() in values
        return f"{values[first.lower()]}-{unit}" if is_measured else values.get(word.group().lower(), word.group())

    return _SPELLED.sub(read, text)


def _values(language: str) -> dict[str, str]:
    return _VALUES.get(lexical.primary_subtag(language), {})


def _value(word: str, values: dict[str, str]) -> str | None:
    first, _, second = word.partition("-")
    if word not in values and second in values:
        return None
    return values.get(word) or values.get(first)


def _read_number(match: re.Match[str], text: str) -> LiteralMatch:
    digits = re.sub(r"[,'\u00a0\u202f](?=\d{3})", "", match.group("digits"))
    digits = f"0{digits}" if digits.startswith(".") else digits
    letters = (match.group("unit") or "").strip().lower()
    unit = _UNITS.get(letters, "" if letters in _ORDINALS else letters)
    sign = "-" if match.group("sign") else ""
    return LiteralMatch(sign + digits, unit or _read_unit(text, match.end()), match.start(), is_number=True)


def _read_unit(text: str, end: int) -> str:
    """Return the unit that the word behind a number names; "" if it names none."""
    following = _NEXT_WORD.match(text, end)
    return _UNITS.get(following.group(1).lower(), "") if following else ""
