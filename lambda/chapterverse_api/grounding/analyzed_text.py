"""Reads a sentence or a passage as the check compares them: words with their terms, cues, clauses, units in context."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from chapterverse.text import lexical
from chapterverse.text.sentences import split
from chapterverse_api.generation.passage import Passage
from chapterverse_api.grounding import cues
from chapterverse_api.grounding.literals import Token, in_digits, literal_tokens

#: Words of a text that are read. No honest sentence has more, and further words count as missing.
MAX_WORDS = 400
#: Letters at the beginning of two words that make them forms of one; set by hand.
PREFIX = 5
#: Numbers and names of a text that are read.
_MAX_LITERALS = 60
#: Units of a passage that are read.
_MAX_UNITS = 1_500

_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^()\s]{0,500}\)")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,200}>")
_STRESS = re.compile(r"\*{1,3}|~~|(?<![^\W_])_{1,3}(?=\w)|(?<=\w)_{1,3}(?![^\W_])")
_WORD = re.compile(r"\w+(?:[.:/@'’-]{1,3}\w+)*(?:\+\+|#)?|[;:,.!?()—–|。，；：]")
_DIGITS = re.compile(r"(?<![\w.])\.\d+|\d+(?:\.\d+)*(?:,\d{3})*")
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})[\w+.-]{0,30}(?:\s+[\w-]{1,30}=\S{1,80})?\s*")
_CLAUSE_WORDS = frozenset("and but so because while whereas which unless if when although though or then".split())
_PAUSES = frozenset(";:,()—–|。，；：")
_NOT_ONLY = frozenset(("only", "just", "merely", "longer", "matter", "more", "later"))


def normal(text: str) -> str:
    """Return a text without what shows nothing, and without the marks of stress, links and tags."""
    text = _UNSEEN.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("’", "'")
        text = " ".join(map(cues.fold_lookalikes, text.split(" ")))
    return _STRESS.sub("", _TAG.sub(" ", _LINK.sub(r"\1", text)))


def flat(text: str) -> str:
    """Return a text in lower case on one line, without what marks code and stress: for comparing to the letter."""
    return " ".join(normal(text).replace("`", "").lower().split())


#: Words of a sentence about its sources, not about their subject.
_OF_SOURCES = re.compile(
    r"(?:according to |based on |as )?\b(?:the |these |this |your )?(?:provided |given )?"
    r"(?:docs?|documentation|sources?|passages?|pages?|sections?)(?: (?:that|which))?"
    r"(?: (?:also|only|here))? (?:say|state|describe|show|explain|recommend|list|mention|suggest|note|give|name)s?"
    r"(?: that)?\b|\baccording to the (?:docs|documentation|sources?)\b,?",
    re.IGNORECASE,
)


# "No, vaults can't be shared" answers a question; its sentence denies no more than it does without.
_ANSWER = re.compile(
    r"\A\s*(?:(?:unfortunately|sadly|leider|malheureusement|lamentablemente),?\s)?"
    r"(?:no|nope|not|yes|yeah|yep|nein|nicht|ja|doch|non|pas|oui|si|sí)(?:\s*[,;:.!]|\s+[-–—])\s",
    re.IGNORECASE,
)


@lru_cache(maxsize=65_536)
def _terms(word: str, language: str) -> tuple[int, ...]:
    return tuple(t for found in lexical.words(word, language) for t in found.terms)


class AnalyzedText:
    """Words of a text in order, with the terms of those that carry meaning.

    Attributes:
        surfaces: each word and pause in lower case.
        terms: the terms of each; empty for function words and pauses.
        content: the places of the words that carry meaning.
    """

    def __init__(self, text: str, language: str) -> None:
        self.plain, self.language = normal(text), language
        self.counted = in_digits(self.plain, language)
        words: list[str] = []
        for match in _WORD.finditer(self.counted):
            words.append(match.group())
            if len(words) == MAX_WORDS:
                break
        self.surfaces = [w.lower() for w in words]
        self.terms = [_terms(w, language) if len(w) <= 64 else () for w in words]
        self.content = [i for i, t in enumerate(self.terms) if t]
        self.sequence = [self.terms[i][0] for i in self.content]
        self.own = frozenset(t for terms in self.terms for t in terms)

    @cached_property
    def language_code(self) -> str:
        return lexical.primary_subtag(self.language)

    @cached_property
    def forms(self) -> frozenset[str]:
        return frozenset(self.surfaces)

    @cached_property
    def meanings(self) -> frozenset[str]:
        """The names that words share with their synonyms."""
        listed = cues.synonyms() if self.language_code == "en" else {}
        return frozenset(listed[s] for s in self.surfaces if s in listed)

    @cached_property
    def flat(self) -> str:
        return " ".join(self.plain.replace("`", "").lower().split())

    @cached_property
    def digits(self) -> list[str]:
        """Every number in it, those inside of names, versions and code, too."""
        numbers = (m.group().replace(",", "") for m in _DIGITS.finditer(self.counted))
        return [f"0{number}" if number.startswith(".") else number for number in numbers]

    @cached_property
    def clauses(self) -> list[tuple[int, int]]:
        """The places where each part begins and ends that says something of its own: two words of meaning or more."""
        bounds = [0]
        bounds += [i for i, s in enumerate(self.surfaces) if i and (s in _PAUSES or s in _CLAUSE_WORDS)]
        parts: list[tuple[int, int]] = []
        for start, end in zip(bounds, [*bounds[1:], len(self.surfaces)], strict=True):
            filled = sum(1 for i in range(start, end) if self.terms[i])
            if parts and (filled < 2 or sum(1 for i in range(*parts[-1]) if self.terms[i]) < 2):
                parts[-1] = (parts[-1][0], end)
            else:
                parts.append((start, end))
        return parts

    @cached_property
    def cues(self) -> list[tuple[int, int]]:
        """The kind and place of each cue."""
        listed = cues.kinds(self.language_code)
        places = []
        for i, surface in enumerate(self.surfaces):
            following = self.surfaces[i + 1] if i + 1 < len(self.surfaces) else ""
            if surface.endswith("n't"):
                places.append((0, i))
            elif surface in ("not", "no") and following in _NOT_ONLY:
                continue
            else:
                places += [(kind, i) for kind in listed.get(surface, ())]
        return places

    def around(self, at: int, left: int = 2, right: int = 3) -> list[int]:
        """Return the words of meaning beside a place: of the six before it and the seven behind it, the nearest."""
        before = [self.terms[i][0] for i in range(max(0, at - 6), at) if self.terms[i]][-left:]
        behind = [self.terms[i][0] for i in range(at + 1, min(len(self.terms), at + 8)) if self.terms[i]][:right]
        return before + behind

    @cached_property
    def literals(self) -> tuple[Token, ...]:
        literals = []
        for token in literal_tokens(self.plain, self.language):
            literals.append(token)
            if len(literals) == _MAX_LITERALS:
                break
        return tuple(literals)


class Unit(AnalyzedText):
    """A sentence, item, row or line of code; `above` are words of its heading, list introduction, head.

    Attributes:
        verbatim: the text as its section holds it.
    """

    def __init__(self, text: str, language: str, kind: str, above: frozenset[int], verbatim: str) -> None:
        super().__init__(text, language)
        self.kind, self.above, self.verbatim = kind, above, verbatim

    @cached_property
    def all(self) -> frozenset[int]:
        return self.own | self.above

    @cached_property
    def numbers(self) -> frozenset[tuple[str, str]]:
        return frozenset((t.form, t.unit) for t in self.literals if t.number)


class AnalyzedPassage:
    """A passage, read once for all sentences that are checked against it."""

    def __init__(self, passage: Passage, language: str) -> None:
        self.id = passage.id
        path = " . ".join(passage.path)
        self.path = AnalyzedText(path, language)
        self.text = passage.section
        self.units = list(_units(passage.section, language, self.path.own))
        self.units.append(Unit(path, language, "heading", frozenset(), next(reversed(passage.path), "")))
        self.flat = f"{flat(' › '.join(passage.path))} \n {flat(passage.section)}"
        self.index: dict[int, list[int]] = {}
        self.intro: dict[int, list[int]] = {}
        for n, unit in enumerate(self.units):
            for term in unit.own:
                self.index.setdefault(term, []).append(n)
            for term in unit.above - self.path.own:
                self.intro.setdefault(term, []).append(n)
        self.terms = frozenset(self.index)

    @cached_property
    def prefixes(self) -> frozenset[str]:
        return frozenset(s[:PREFIX] for unit in self.units for s in unit.surfaces if len(s) >= PREFIX)

    @cached_property
    def numbers(self) -> frozenset[tuple[str, str]]:
        return frozenset(n for unit in self.units for n in unit.numbers)

    @cached_property
    def digits(self) -> frozenset[str]:
        return frozenset(d for unit in self.units for d in unit.digits)

    @cached_property
    def lines(self) -> list[str]:
        """Every line without the marks of lists and the white space around, to compare code with."""
        bare = (re.sub(r"\A[\s>]*(?:[$>%]\s|[-*]\s)?", "", line) for line in self.text.split("\n"))
        return [" ".join(line.split()) for line in bare if line.strip()]


def _units(section: str, language: str, path: frozenset[int]) -> Iterator[Unit]:
    """Yield the units of a section, each with the terms of the headings, introduction and table head above it."""
    heading: frozenset[int] = frozenset()
    intro: frozenset[int] = frozenset()
    head: frozenset[int] = frozenset()
    count = 0
    for sentence in split(section):
        if not sentence.said or count > _MAX_UNITS:
            continue
        raw = section[sentence.start : sentence.end].lstrip()
        if sentence.kind == "code":
            for line in sentence.said.split("\n"):
                if line.strip() and not line.startswith(("```", "~~~")):
                    count += 1
                    yield Unit(line, language, "code", path | heading | intro, line.strip())
            continue
        row = raw.startswith("|")
        item = not row and re.match(r"(?:[-*+]|\d{1,3}[.)])\s", raw) is not None
        kind = "heading" if sentence.kind == "heading" else "row" if row else "item" if item else "prose"
        unit = Unit(sentence.said, language, kind, path | heading | (head if row else intro), raw.rstrip())
        count += 1
        yield unit
        if kind == "heading":
            if row:
                head = unit.own | intro
            else:
                heading, intro = unit.own, frozenset()
        elif kind == "prose" and (sentence.said.endswith((":", "：")) or not _continues(raw)):
            intro = unit.own if sentence.said.endswith((":", "：")) else frozenset()


def _continues(raw: str) -> bool:
    return raw.startswith(("|", "-", "*", "+"))


@dataclass(slots=True)
class Alignment:
    """The places of a sentence in its sources: the unit of each clause, and the unit most like the whole sentence."""

    best: Unit | None
    clauses: list[tuple[tuple[int, int], Unit | None, AnalyzedPassage | None]]
    units: list[Unit] = field(default_factory=list)


class Claim(AnalyzedText):
    """A sentence with the weight of its terms."""

    def __init__(self, said: str, kind: str, language: str, idf: Mapping[int, float]) -> None:
        super().__init__(_OF_SOURCES.sub(" ", _ANSWER.sub("", said, count=1)) if kind != "code" else said, language)
        self.said, self.kind = said, kind
        self.weights = {t: idf.get(t, 1.0) for t in self.sequence}
        self.total = sum(self.weights.values())

    @property
    def plain_lines(self) -> list[str]:
        """The lines of a block of code without its fence; text behind the fence's language is a line, too."""
        return [line for line in _UNSEEN.sub("", self.said).split("\n") if not _FENCE.fullmatch(line)]

    def share(self, terms: frozenset[int]) -> float:
        """Return the share of the sentence's words, by idf, that are among these terms."""
        return sum(w for t, w in self.weights.items() if t in terms) / self.total if self.total else 0.0

    def align(self, sources: Sequence[AnalyzedPassage]) -> Alignment:
        """Return the units of these sources that say most of the sentence, and of each of its clauses."""
        parts = []
        for start, end in self.clauses:
            terms = {self.terms[i][0] for i in range(start, end) if self.terms[i]}
            unit, source = self._best(terms, sources)
            parts.append(((start, end), unit, source))
        best, _ = self._best(set(self.weights), sources)
        units = list(dict.fromkeys(u for u in (best, *(u for _, u, _ in parts)) if u is not None))
        return Alignment(best, parts, units[:6])

    def _best(
        self, terms: Iterable[int], sources: Sequence[AnalyzedPassage]
    ) -> tuple[Unit | None, AnalyzedPassage | None]:
        top, unit, where = 0.0, None, None
        for source in sources:
            scores: dict[int, float] = {}
            for term in terms:
                weight = self.weights.get(term, 1.0)
                for n in source.index.get(term, ()):
                    scores[n] = scores.get(n, 0.0) + weight
                for n in source.intro.get(term, ()):
                    if term not in source.units[n].own:
                        scores[n] = scores.get(n, 0.0) + 0.4 * weight
            for n, score in scores.items():
                value = score - 0.01 * len(source.units[n].sequence) * (score > 0)
                if value > top:
                    top, unit, where = value, source.units[n], source
        return unit, where
