"""Numbers and identifiers of a sentence, which a source must hold to the letter in any notation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from chapterverse.text import lexical

# All are bounded, for a text may be one endless word.
_CODE = re.compile(r"(`{1,3})([^`\n]{1,200})\1")
_NUMBER = re.compile(
    r"""(?<![\w.,/])(?P<sign>[-−–])?[$€£]?
        (?P<digits>\d{1,3}(?:[,'\u00a0\u202f]\d{3}){1,4}(?:\.\d{1,9})?|\d{1,15}(?:\.\d{1,15})?|\.\d{1,15})
        (?P<unit>\s?%|(?:st|nd|rd|th)\b|[a-zA-Zµ]{1,3}\b)?(?![\w]|[.,:/-]\w)""",
    re.VERBOSE,
)
_RUN = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]{0,60}|[\w./:$~{}@+#*=-]{2,120}(?![\w./:$~{}@+#*=-])")
# With a digit, an underscore, a slash or a dot inside, in camel case, in capitals, an option or a variable.
_NAMED = re.compile(r"\d|\w_\w|^_\w|/|\w[.:]\w|[a-z][A-Z]|^[A-Z][A-Z0-9]{2,}$|^--?[a-zA-Z]|^\$")
_ALTERNATIVE = re.compile(r"[A-Za-zÀ-ÿ]{1,30}/[A-Za-zÀ-ÿ]{1,30}")

_WORDS = {
    "en": "zero - two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty",
    "de": "null - zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn zwanzig",
    "fr": "zéro - deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize "
    "dix-sept dix-huit dix-neuf vingt",
    "es": "cero - dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
    "diecisiete dieciocho diecinueve veinte",
}
_LARGER = {
    "en": {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "hundred": 100, "thousand": 1000},
    "de": {"dreißig": 30, "vierzig": 40, "fünfzig": 50, "sechzig": 60, "hundert": 100, "tausend": 1000},
    "fr": {"trente": 30, "quarante": 40, "cinquante": 50, "soixante": 60, "cent": 100, "mille": 1000},
    "es": {"treinta": 30, "cuarenta": 40, "cincuenta": 50, "sesenta": 60, "cien": 100, "mil": 1000},
}
_VALUES = {
    code: {word: str(i) for i, word in enumerate(words.split()) if word != "-"}
    | {word: str(value) for word, value in _LARGER[code].items()}
    for code, words in _WORDS.items()
}

_SPELLED = re.compile(r"[^\W\d]{2,20}(?:-[^\W\d]{2,20})?")

#: Units of numbers, each form with its name; numbers with different units are different.
_UNITS = {
    form: name
    for name, forms in {
        "ms": "ms millisecond milliseconds millisekunden millisecondes milisegundos",
        "s": "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos",
        "min": "min mins minute minutes minuten minuto minutos",
        "h": "h hour hours stunde stunden heure heures hora horas",
        "d": "d day days tag tage tagen jour jours día días",
        "week": "week weeks woche wochen semaine semaines semana semanas",
        "month": "month months monat monate monaten mois mes meses",
        "year": "year years jahr jahre jahren an ans année années año años",
        "%": "% percent prozent pourcent",
        "b": "b byte bytes octet octets",
        "kb": "kb kib kilobyte kilobytes ko",
        "mb": "mb mib megabyte megabytes mo",
        "gb": "gb gib gigabyte gigabytes go",
        "tb": "tb tib terabyte terabytes",
        "token": "token tokens",
        "char": "char chars character characters zeichen caractère caractères carácter caracteres",
        "digit": "digit digits ziffer ziffern chiffre chiffres dígito dígitos",
        "letter": "letter letters buchstabe buchstaben lettre lettres letra letras",
        "word": "word words wörter wort mots palabras",
        "px": "px pixel pixels",
    }.items()
    for form in forms.split()
}
_NEXT = re.compile(r"[\s-]{0,3}([^\W\d]{1,20}|%)")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a sentence that a source must hold.

    Attributes:
        form: a number without its separators, or an identifier as it is written.
        unit: of a number; empty for numbers without one, and for identifiers.
        at: the place of the token in the sentence.
    """

    form: str
    unit: str
    at: int
    number: bool


def literal_tokens(text: str, language: str) -> Iterator[Token]:
    """Yield the numbers and identifiers of a sentence; a code span counts as one identifier."""
    blank = list(text)
    for span in _CODE.finditer(text):
        blank[span.start() : span.end()] = " " * (span.end() - span.start())
        code = " ".join(span.group(2).split())
        if code:
            yield _number(code, span.start()) or Token(code, "", span.start(), number=False)
    rest = "".join(blank)
    yield from numbers(rest, language)
    taken = [m.span() for m in _NUMBER.finditer(rest)]
    for match in _RUN.finditer(rest):
        form = match.group().rstrip(".:/=*#") if match.group()[0] in "-/" else match.group().strip(".:/=*#-")
        start = match.start() + match.group().find(form)
        named = len(form) > 1 and _NAMED.search(form) and not _ALTERNATIVE.fullmatch(form)
        if named and not any(a < match.end() and match.start() < b for a, b in taken):
            yield Token(form, "", start, number=False)


def numbers(text: str, language: str) -> Iterator[Token]:
    """Yield the numbers of a text, digits and words alike."""
    for match in _NUMBER.finditer(text):
        yield _token(match, text)
    values = _values(language)
    for word in _SPELLED.finditer(text) if values else ():
        if value := _value(word.group().lower(), values):
            yield Token(value, _unit(text, word.end()), word.start(), number=True)


def in_digits(text: str, language: str) -> str:
    """Return a text with its number words as digits: as words, too, "seven daily" and "7 daily" are the same."""
    values = _values(language)
    return _SPELLED.sub(lambda word: values.get(word.group().lower(), word.group()), text) if values else text


def _values(language: str) -> dict[str, str]:
    return _VALUES.get(lexical.primary_subtag(language), {})


def _value(word: str, values: dict[str, str]) -> str | None:
    first, _, second = word.partition("-")
    if word not in values and second in values:
        return None
    return values.get(word) or values.get(first)


def _number(code: str, at: int) -> Token | None:
    match = _NUMBER.fullmatch(code)
    found = _token(match, code) if match else None
    return Token(found.form, found.unit, at, number=True) if found else None


def _token(match: re.Match[str], text: str) -> Token:
    digits = re.sub(r"[,'\u00a0\u202f](?=\d{3})", "", match.group("digits"))
    digits = f"0{digits}" if digits.startswith(".") else digits
    unit = (match.group("unit") or "").strip().lower()
    known = _UNITS.get(unit, "" if unit in ("st", "nd", "rd", "th") else unit)
    sign = "-" if match.group("sign") else ""
    return Token(sign + digits, known or _unit(text, match.end()), match.start(), number=True)


def _unit(text: str, at: int) -> str:
    following = _NEXT.match(text, at)
    return _UNITS.get(following.group(1).lower(), "") if following else ""
