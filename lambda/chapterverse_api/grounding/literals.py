"""Numbers and identifiers of a sentence, which a source must contain verbatim, numbers in any notation."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

from chapterverse.text import lexical
from chapterverse.text.json_text import load_json

# All are bounded, for a text may be one endless word.
_CODE = re.compile(r"(`{1,3})([^`\n]{1,200})\1")
_NUMBER = re.compile(
    r"""(?<![\w.,/])(?P<sign>[-−–])?[$€£]?
        (?P<digits>\d{1,3}(?:[,'\u00a0\u202f]\d{3}){1,4}(?:\.\d{1,9})?|\d{1,15}(?:\.\d{1,15})?|\.\d{1,15})
        (?P<unit>\s?%|(?:st|nd|rd|th)\b|[a-zA-Zµ]{1,3}\b)?(?![\w]|[.,:/-]\w)""",
    re.VERBOSE,
)
_ORDINALS = ("st", "nd", "rd", "th")
_RUN = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]{0,60}|[\w./:$~{}@+#*=-]{2,120}(?![\w./:$~{}@+#*=-])")
# With a digit, an underscore, a slash or a dot inside, in camel case, in capitals, an option or a variable.
_IDENTIFIER = re.compile(r"\d|\w_\w|^_\w|/|\w[.:]\w|[a-z][A-Z]|^[A-Z][A-Z0-9]{2,}$|^--?[a-zA-Z]|^\$")
# "and/or" is no path.
_ALTERNATIVE = re.compile(r"[A-Za-zÀ-ÿ]{1,30}/[A-Za-zÀ-ÿ]{1,30}")
_SPELLED = re.compile(r"[^\W\d]{2,20}(?:-[^\W\d]{2,20})?")
_NEXT_WORD = re.compile(r"[\s-]{0,3}([^\W\d]{1,20}|%)")

# "One" is no number here, because it is also a pronoun.
_WORDS = load_json("chapterverse_api.grounding", "literals.json")
_VALUES = {code: {w: str(value) for w, value in values.items()} for code, values in _WORDS["number_words"].items()}
#: The unit that each of its forms names; numbers with different units are different.
_UNITS = {form: unit for unit, forms in _WORDS["units"].items() for form in forms.split()}


@dataclass(frozen=True, slots=True)
class LiteralMatch:
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
            yield replace(literal, start=span.start())
    rest = _CODE.sub(lambda span: " " * len(span.group()), text)
    numbers = list(_NUMBER.finditer(rest))
    yield from (_read_number(number, rest) for number in numbers)
    yield from _find_number_words(rest, language)
    ends = [number.end() for number in numbers]
    for match in _RUN.finditer(rest):
        form = match.group().rstrip(".:/=*#") if match.group()[0] in "-/" else match.group().strip(".:/=*#-")
        is_identifier = len(form) > 1 and _IDENTIFIER.search(form) and not _ALTERNATIVE.fullmatch(form)
        # The first number that ends behind the beginning of the match begins behind its end, or there is none.
        following = bisect_right(ends, match.start())
        if is_identifier and (following == len(numbers) or numbers[following].start() >= match.end()):
            yield LiteralMatch(form, "", match.start() + match.group().find(form), is_number=False)


def _find_number_words(text: str, language: str) -> Iterator[LiteralMatch]:
    values = _values(language)
    for word in _SPELLED.finditer(text) if values else ():
        if value := _value(word.group().lower(), values):
            yield LiteralMatch(value, _read_unit(text, word.end()), word.start(), is_number=True)


def words_to_digits(text: str, language: str) -> str:
    """Return a text with its number words as digits, because "seven daily" and "7 daily" are the same."""
    values = _values(language)
    # Nearly all texts have none, and to call a function for each word takes longer than to list them.
    if not values or values.keys().isdisjoint(map(str.lower, _SPELLED.findall(text))):
        return text
    return _SPELLED.sub(lambda word: values.get(word.group().lower(), word.group()), text)


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
