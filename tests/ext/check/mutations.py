"""Sentences as a language model writes them about documentation, and lies made of them.

`faithful.json` holds sections of documentation, each with sentences that say what it says in other words. They were
written by hand, to be true: reordered, shortened, with other words, two facts in one.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from chapterverse.text import lexical
from chapterverse_api.draft.requests import Passage

#: How many passages are sent with each sentence: its own and others, mostly of its page.
SENT = 5


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence, and the passages that a generator would have had; the first is the one that it cites."""

    sentence: str
    passages: tuple[Passage, ...]
    page: str


def load() -> tuple[Case, ...]:
    """Return every faithful sentence with its own passage and others beside it."""
    sections = json.loads(Path(__file__).with_name("faithful.json").read_text())
    made = [Passage("", tuple(s["path"]), s["text"], s["text"]) for s in sections]
    pages = [s["page"] for s in sections]
    cases = []
    for i, section in enumerate(sections):
        others = sorted((j for j in range(len(made)) if j != i), key=lambda j: (pages[j] != pages[i], abs(i - j)))
        sent = tuple(_numbered(made[j], n) for n, j in enumerate((i, *others[: SENT - 1]), 1))
        cases += [Case(sentence, sent, section["page"]) for sentence in section["sentences"]]
    return tuple(cases)


def _numbered(passage: Passage, number: int) -> Passage:
    return Passage(str(number), passage.path, passage.text, passage.section)


class Weights:
    """The idf of terms over the sections, as an index of them would give it."""

    def __init__(self, cases: tuple[Case, ...]) -> None:
        texts = dict.fromkeys((c.passages[0].path, c.passages[0].text) for c in cases)
        self._counts: Counter[int] = Counter()
        for path, text in texts:
            self._counts.update(lexical.terms_of(lexical.words(f"{' '.join(path)} {text}")))
        self._sections = len(texts)

    def weigh(self, text: str) -> Mapping[int, float]:
        terms = lexical.terms_of(lexical.words(text))
        return {t: math.log(1 + (self._sections - n + 0.5) / (n + 0.5)) for t in terms for n in [self._counts[t]]}


def foreign(case: Case, cases: tuple[Case, ...], chance: Random, *, same_site: bool) -> str:
    """Return a true sentence of another page, of the same documentation or of another one."""
    site = case.page.startswith("quill/")
    sent = {p.text for p in case.passages}
    others = [
        c.sentence
        for c in cases
        if c.page != case.page and (c.page.startswith("quill/") == site) is same_site and c.passages[0].text not in sent
    ]
    return chance.choice(others)


_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w])|\b(?:two|three|five|six|ten)\b")
_WORDS = {
    "two": "four",
    "three": "seven",
    "five": "nine",
    "six": "eight",
    "sixth": "sixth",
    "ten": "twenty",
    "half": "half",
}
_NAME = re.compile(r"`([^`]+)`")


def changed_numbers(sentence: str, chance: Random) -> Iterator[str]:
    """Yield the sentence with each of its numbers changed."""
    for found in _NUMBER.finditer(sentence):
        old = found.group()
        new = _WORDS[old] if old in _WORDS else _other(old, chance)
        if new != old:
            yield sentence[: found.start()] + new + sentence[found.end() :]


def _other(number: str, chance: Random) -> str:
    digits = [i for i, c in enumerate(number) if c.isdigit()]
    at = chance.choice(digits)
    fresh = chance.choice([d for d in "123456789" if d != number[at]])
    return number[:at] + fresh + number[at + 1 :]


def changed_names(case: Case, cases: tuple[Case, ...], chance: Random) -> Iterator[str]:
    """Yield the sentence with each of its code spans replaced by one of another passage."""
    names = [n for c in cases if c.passages[0].text != case.passages[0].text for n in _NAME.findall(c.sentence)]
    for found in _NAME.finditer(case.sentence):
        others = [n for n in names if n not in case.passages[0].text]
        if others:
            yield f"{case.sentence[: found.start()]}`{chance.choice(others)}`{case.sentence[found.end() :]}"
