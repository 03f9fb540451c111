"""A passage's sentences with their words, numbers and negations, to compare claims with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from chapterverse.text import lexical
from chapterverse_api.grounding import polarity
from chapterverse_api.grounding.literals import Token, in_digits, numbers
from chapterverse_api.grounding.sentences import split

_CLAUSE = re.compile(
    r"[;:()—]\s|,\s(?:and|so|und|et|y)\s"
    r"|\s(?:but|because|while|whereas|aber|weil|während|mais|car|pero|porque)\s"
)
_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]")


def flat(text: str) -> str:
    """Return a text on one line: it may be broken wherever a word ends, and be the same."""
    return " ".join(_UNSEEN.sub("", text).split())


class PassageSentence:
    """A sentence of a passage; its context are the headings above it and the sentence that announces it."""

    def __init__(self, text: str, language: str, above: Sequence[PassageSentence] = ()) -> None:
        self.said, self._language, self._above = text, language, above
        self.flat = flat(text)
        self.bare = self.flat.replace("`", "").replace("*", "")
        self.lower = self.bare.lower()

    @cached_property
    def words(self) -> tuple[lexical.Word, ...]:
        return tuple(lexical.words(in_digits(self.said, self._language), self._language))

    @cached_property
    def own(self) -> frozenset[int]:
        return frozenset(t for word in self.words for t in word.terms)

    @cached_property
    def terms(self) -> frozenset[int]:
        return self.own.union(*(unit.own for unit in self._above))

    @cached_property
    def clauses(self) -> tuple[frozenset[int], ...]:
        """The words of each of its parts that say something of their own."""
        parts = _CLAUSE.split(in_digits(self.said, self._language))
        return tuple(frozenset(t for w in lexical.words(part, self._language) for t in w.terms) for part in parts)

    @cached_property
    def polarity(self) -> polarity.Polarity:
        return polarity.read(self.said, self._language)

    @cached_property
    def numbers(self) -> frozenset[tuple[str, str]]:
        return frozenset((n.form, n.unit) for n in numbers(self.said, self._language))

    def within(self, terms: AbstractSet[int]) -> bool:
        """Whether nearly all that this sentence says is among these terms."""
        return len(self.own) >= 3 and len(self.own & terms) >= 0.7 * len(self.own)

    def holds(self, token: Token) -> bool:
        """Whether a number or a name stands here, as a whole."""
        if token.number:
            return self._counts(token)
        form = re.sub(r"^v(?=\d)|[*`]", "", token.form)
        if not form or form.lower() not in self.lower:
            return not form
        return (
            re.search(
                rf"(?<!\w)(?<!\w-){'v?' if form[0].isdigit() else ''}{re.escape(form)}(?!\w|-\w|\.\d)",
                self.bare,
                re.IGNORECASE,
            )
            is not None
        )

    def before(self, form: str) -> int | None:
        """Return the word that stands directly before a number."""
        at = self.bare.find(form)
        found = re.search(r"([^\W\d][\w-]{0,60})\s+v?\Z", self.bare[max(0, at - 70) : max(0, at)])
        return next((w.terms[0] for w in lexical.words(found.group(1), self._language)), None) if found else None

    def _counts(self, token: Token) -> bool:
        if (token.form, token.unit) in self.numbers:
            return True
        units = {unit for form, unit in self.numbers if form == token.form}
        if not token.unit:
            return bool(units) or self._writes(token.form)
        # "30" of a table may measure whatever its head says, unless another number here measures that.
        return "" in units and all(unit != token.unit for _, unit in self.numbers)

    def _writes(self, form: str) -> bool:
        return re.search(rf"(?<![\w.,-])v?{re.escape(form)}(?!\w|[.,]\d)", self.bare) is not None


def sentences(section: str) -> Iterable[tuple[str, bool]]:
    """Yield the sentences of a passage, each line of code as one, and whether what came before announces it."""
    announcing = False
    for sentence in split(section):
        if sentence.kind == "code":
            for line in sentence.said.split("\n"):
                if line.strip() and not line.startswith(("```", "~~~")):
                    yield line.strip(), announcing
            continue
        row = section[sentence.start : sentence.end].lstrip().startswith(("|", "-", "*", "1", "2", "3", "4", "5", "6"))
        if sentence.said:
            yield sentence.said, announcing and row
        if sentence.said and not (announcing and row):
            announcing = sentence.said.endswith((":", "：")) or sentence.kind == "heading" or "|" in sentence.said
