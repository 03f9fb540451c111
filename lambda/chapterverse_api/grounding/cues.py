"""Small words that change a sentence's meaning: negations, quantifiers, duties, opposites.

A cue is recognized by its word alone, and `features` decides what it refers to. The words are data, in `cues.json`.
English has all kinds, German, French and Spanish have their negations, and other languages have no cues.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from chapterverse.text.json_text import load_json

#: Kinds of cues; each is compared with its own kind.
KINDS = ("negation", "all", "only", "must")
NEGATION = KINDS.index("negation")

# Cyrillic and Greek letters, and the Latin ones that they look like.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһкмтвнАЕОРСУХІЈЅКМТВНαοεικνρτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdhkmtbhAEOPCYXIJSKMTBHaoeiknptuxABEZHIKMNOPTYX",
)


def fold_lookalikes(word: str) -> str:
    """Return a word of mixed scripts with its Cyrillic and Greek look-alikes as Latin letters."""
    if word.isascii() or not any("a" <= c <= "z" or "A" <= c <= "Z" for c in word):
        return word
    return word.translate(_LOOKALIKES)


@cache
def kinds(language: str) -> dict[str, tuple[int, ...]]:
    """Return which kinds of cue each word is, or two words with a `_` between, by its index in `KINDS`."""
    words_by_kind = _words()["cues"].get(language, {})
    kinds_by_word: dict[str, tuple[int, ...]] = {}
    for index, kind in enumerate(KINDS):
        for word in words_by_kind.get(kind, "").split():
            kinds_by_word[word] = (*kinds_by_word.get(word, ()), index)
    return kinds_by_word


def negation(language: str) -> str:
    """Return a word that negates, "" where none is known."""
    return next(iter(_words()["cues"].get(language, {}).get("negation", "").split()), "")


@cache
def _cell_values() -> dict[str, bool]:
    values = _words()["cells"]
    return {sign: sign in values["yes"].split() for signs in values.values() for sign in signs.split()}


def cell_value(cell: str) -> bool | None:
    """Return what a cell of a table says of its column; None if it holds more than a yes or a no."""
    return _cell_values().get(cell.strip(" *_`\ufe0f").casefold())


@cache
def opposites() -> dict[str, frozenset[str]]:
    """Return the opposites of each English word that has some."""
    opposites_by_word: dict[str, frozenset[str]] = {}
    for group in _words()["opposites"]:
        first, *words = group.split("/")
        for word, opposite in (pair for other in words for pair in ((first, other), (other, first))):
            opposites_by_word[word] = opposites_by_word.get(word, frozenset()) | {opposite}
    return opposites_by_word


@cache
def _words() -> Any:
    return load_json("chapterverse_api.grounding", "cues.json")
