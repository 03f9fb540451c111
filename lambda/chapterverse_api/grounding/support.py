"""Measures how far a passage supports a sentence: words in one place, numbers, names, no negation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise

from chapterverse.text import lexical
from chapterverse_api.generation import Passage
from chapterverse_api.grounding import polarity
from chapterverse_api.grounding.literals import Token, in_digits, tokens
from chapterverse_api.grounding.passage_sentences import PassageSentence, flat, sentences
from chapterverse_api.grounding.sentences import Kind

#: A passage whose best window holds less of a sentence's words, by idf, does not carry it. Chosen on 1,733 sentences
#: that raters of IBM's mt-rag-benchmark found faithful.
SUPPORT = 0.5
#: The same for a citation that nobody claimed.
DERIVED = 0.6
#: What of them two neighboring sentences must hold.
_CLOSE = 0.5
#: How many words in a row that a passage has nowhere make a claim of their own.
_STRAY = 3
#: Words of a window, and how far the next one is from it.
_WINDOW, _STEP = 60, 15
#: How much of a sentence a passage's sentence must hold to be about the same.
_SAME, _ALIKE = 0.6, 0.4
#: Words to each side of a number that say what it is about, and how much better they may fit elsewhere.
_NEAR, _MARGIN = 4, 0.25
#: Characters in which these words are looked for, and the most numbers and names that an honest sentence has.
_AROUND, _MOST = 120, 60

#: Where a word may begin, and where one has ended that is no part of another word or number.
_BEGINS, _ENDS = re.compile(r"(?<!\w)"), re.compile(r"(?!\w|\.\d)")
#: Words of a part of a sentence that must stand together in a clause of the passage, more than half of them.
_APPENDED = 5
_AND = re.compile(r"(?:,\s|\s)(?:and|or|then|und|oder|dann|et|ou|puis|y|o|luego)\s(?:then\s)?|;\s")

# "Don't do X" may be advice drawn from what X leads to.
_ADVICE = ("don", "do not", "never", "avoid")

#: Gives the idf of each term of a text in this index; terms that it leaves out weigh 1.
Weigh = Callable[[str], Mapping[int, float]]


class Claim:
    """A sentence as it is checked: its terms with their weights, its numbers and names, and what it denies."""

    def __init__(self, said: str, kind: Kind, language: str, weigh: Weigh) -> None:
        self.said = said = polarity.unanswered(said) if kind == "prose" else said
        self.kind, self.language = kind, language
        self.flat = flat(said)
        counted = in_digits(said, language)
        self.terms = tuple(w.terms[0] for w in lexical.words(counted, language))
        idf = weigh(counted) if self.terms else {}
        self.weights = {t: idf.get(t, 1.0) for t in self.terms}
        self.total = sum(self.weights.values())
        self.pairs = tuple(pairwise(self.terms))

    @cached_property
    def hard(self) -> tuple[Token, ...]:
        if self.kind != "code":
            # One more than may stand says enough of a sentence that is made of them.
            return tuple(islice(tokens(self.said, self.language), _MOST + 1))
        return tuple(Token(line, "", 0, number=False) for line in _lines(self.said))

    @cached_property
    def appended(self) -> tuple[frozenset[int], ...]:
        """The words of each part behind the first that is long enough to say something and too short to be weighed."""
        found = _AND.split(self.said, maxsplit=_MOST + 1)[1:]
        parts = [frozenset(self._terms(part)) for part in found]
        return tuple(part for part in parts if 2 <= len(part) <= _APPENDED or len(found) > _MOST)

    @cached_property
    def polarity(self) -> polarity.Polarity:
        return polarity.read(self.said, self.language)

    def share(self, terms: AbstractSet[int]) -> float:
        """Return the share of the claim's words, by idf, that are among these terms."""
        return sum(self.weights[t] for t in self.weights.keys() & terms) / self.total if self.total else 0.0

    def near(self, token: Token) -> dict[int, float]:
        """Return the words that say what a number or a name is about, with their weights."""
        end = token.at + len(token.form)
        before = self._terms(self.said[max(0, token.at - _AROUND) : token.at])
        after = self._terms(self.said[end : end + _AROUND])
        own = {t for w in lexical.words(token.form, self.language) for t in w.terms}
        around = (*[t for t in before if t not in own][-_NEAR:], *[t for t in after if t not in own][:_NEAR])
        return {t: self.weights.get(t, 1.0) for t in around}

    def before(self, token: Token) -> int | None:
        """Return the word that stands directly before a number."""
        found = re.search(r"([^\W\d][\w-]{0,60})\s{1,3}\Z", self.said[max(0, token.at - _AROUND) : token.at])
        return next(iter(self._terms(found.group(1))), None) if found else None

    def _terms(self, text: str) -> list[int]:
        return [w.terms[0] for w in lexical.words(in_digits(text, self.language), self.language)]


@dataclass(frozen=True, slots=True)
class Support:
    """How far one claim rests on one passage.

    Attributes:
        window: greatest share of its words, by idf, in any window.
        close: the same in any two neighboring sentences.
        hard: share of its numbers and names that stand where the passage speaks of the same.
        denied: the passage says the opposite.
    """

    window: float
    close: float
    hard: float
    denied: bool

    def holds(self, floor: float) -> bool:
        return self.window >= floor and self.close >= _CLOSE and self.hard == 1.0 and not self.denied


class PassageText:
    """A passage as claims are checked against it; read only for what is no quote."""

    def __init__(self, passage: Passage, language: str) -> None:
        self.id = passage.id
        self._language = language
        self._short: dict[str, bool] = {}
        self._path = " › ".join(passage.path)
        self._section = passage.section if len(passage.section) >= len(passage.text) else passage.text

    @cached_property
    def flat(self) -> str:
        return flat(f"{self._path}\n\n{self._section}")

    @cached_property
    def _words(self) -> tuple[lexical.Word, ...]:
        return tuple(word for unit in self._units for word in unit.words)

    @cached_property
    def terms(self) -> tuple[int, ...]:
        return tuple(w.terms[0] for w in self._words)

    @cached_property
    def _all(self) -> frozenset[int]:
        return frozenset(t for w in self._words for t in w.terms)

    @cached_property
    def pairs(self) -> frozenset[tuple[int, int]]:
        return frozenset(pairwise(self.terms))

    @cached_property
    def _windows(self) -> tuple[frozenset[int], ...]:
        return self._windows_of(_WINDOW)

    def _windows_of(self, size: int) -> tuple[frozenset[int], ...]:
        words = self._words
        starts = range(0, max(1, len(words) - size + _STEP), _STEP)
        return tuple(frozenset(t for w in words[at : at + size] for t in w.terms) for at in starts)

    @cached_property
    def _units(self) -> tuple[PassageSentence, ...]:
        path = head = PassageSentence(self._path, self._language)
        units = [path]
        for text, announced in sentences(self._section):
            unit = PassageSentence(text, self._language, (path, head) if announced else (path,))
            head = head if announced else unit
            units.append(unit)
        return tuple(units)

    @cached_property
    def _said(self) -> frozenset[str]:
        return frozenset(unit.flat for unit in self._units)

    @cached_property
    def _clauses(self) -> dict[int, frozenset[int]]:
        """The clauses that each word stands in, by their numbers."""
        held: dict[int, set[int]] = {}
        for i, part in enumerate(part for unit in self._units for part in unit.clauses):
            for term in part:
                held.setdefault(term, set()).add(i)
        return {term: frozenset(parts) for term, parts in held.items()}

    @cached_property
    def _spoken(self) -> tuple[frozenset[int], ...]:
        """The words of each clause and of what stands above it."""
        return tuple(part | (unit.terms - unit.own) for unit in self._units for part in unit.clauses)

    def quotes(self, text: str) -> bool:
        """Whether the text stands here to the letter, and not as a part of other words or numbers."""
        at = self.flat.find(text) if text else -1
        while at >= 0:
            if _BEGINS.match(self.flat, at) and _ENDS.match(self.flat, at + len(text)):
                return True
            at = self.flat.find(text, at + 1)
        return False

    def says(self, claim: Claim) -> bool:
        """Whether a claim of a word or two stands here: all of it in one clause, and not the opposite."""
        if claim.flat not in self._short:
            self._short[claim.flat] = self.quotes(claim.flat) or self._says(claim)
        return self._short[claim.flat]

    def _says(self, claim: Claim) -> bool:
        terms, negations = frozenset(claim.terms), claim.polarity.hard
        if not terms or not all(cue.around for cue in negations) or not all(map(self.holds, claim.hard)):
            return False
        parts = [self._clauses.get(term, frozenset()) for term in terms]
        return bool(frozenset.intersection(*parts)) and not self.denies(claim)

    def window(self, claim: Claim) -> float:
        """Return the greatest share of a claim's words in any window; a long claim gets one that could hold it."""
        if not claim.total:
            return 0.0
        # What stands here to the letter stands in one place: the words need not be read.
        if self.quotes(claim.flat):
            return 1.0
        size = 2 * len(claim.terms)
        windows = self._windows if size <= _WINDOW else self._windows_of(size)
        return max((claim.share(window) for window in windows), default=0.0)

    def close(self, claim: Claim) -> float:
        """Return the greatest share of a claim's words in two neighboring sentences."""
        units = self._units
        if len(units) < 3:
            return self.window(claim)
        return max(claim.share(one.terms | other.terms) for one, other in pairwise(units))

    def _strays(self, claim: Claim) -> bool:
        """Whether a claim goes on for some words of which this passage has none: a lie behind a truth."""
        run = 0
        for term in claim.terms:
            run = 0 if term in self._all else run + 1
            if run >= _STRAY:
                return True
        return False

    def _adds(self, claim: Claim) -> bool:
        """Whether a part of a claim, behind an "and", says of this passage's words what none of its clauses says."""
        parts = claim.appended
        if len(parts) > _MOST:
            return True
        return not all(any(2 * len(part & said) > len(part) for said in self._spoken) for part in parts)

    def best(self, claim: Claim) -> frozenset[int]:
        """Return the claim's words that the window with most of them holds."""
        return max((frozenset(claim.weights.keys() & w) for w in self._windows), key=claim.share, default=frozenset())

    def support(self, claim: Claim) -> Support:
        """Return how far a claim rests on this passage."""
        if claim.flat in self._said:
            return Support(1.0, 1.0, 1.0, denied=False)
        window = self.window(claim)
        if claim.kind == "code":
            return self._code(claim, window)
        hard = claim.hard
        if len(hard) > _MOST or self._strays(claim) or self._adds(claim):
            return Support(window, 0.0, 0.0, denied=False)
        held = sum(self.stands(token, claim) for token in hard) / len(hard) if hard else 1.0
        denied = window >= SUPPORT and held == 1.0 and self.denies(claim)
        return Support(window, self.close(claim) if window < 1.0 else 1.0, held, denied)

    def holds(self, token: Token) -> bool:
        """Whether a number or a name stands anywhere here."""
        return any(unit.holds(token) for unit in self._units)

    def stands(self, token: Token, claim: Claim) -> bool:
        """Whether a name stands here, or a number where this passage speaks of what the claim says of it.

        It does unless the words around it fit another sentence, without it, clearly better. A name is often said once
        and meant again.
        """
        if "." in token.form and self._renamed(token, claim):
            return False
        if not token.number:
            return any(unit.holds(token) or self._parts(token, unit) for unit in self._units)
        near = claim.near(token)
        total = sum(near.values())
        fits = {True: -1.0, False: -1.0}
        for unit in self._units:
            held = unit.holds(token)
            fits[held] = max(fits[held], sum(near[t] for t in near.keys() & unit.terms) / total if total else 1.0)
        return fits[True] >= 0 and (fits[True] >= fits[False] - _MARGIN or self._units[0].holds(token))

    def _renamed(self, token: Token, claim: Claim) -> bool:
        """Whether a version is said of what this passage has nowhere, and has here of what the claim hasn't."""
        last = claim.before(token)
        if last is None or last in self._all:
            return False
        named = [unit.before(token.form) for unit in self._units if unit.holds(token)]
        return bool(named) and all(term is not None and term not in claim.weights for term in named)

    def _parts(self, token: Token, unit: PassageSentence) -> bool:
        """Whether all words of a command stand in one sentence."""
        parts = [part.strip("\"'") for part in token.form.split()]
        if len(parts) < 2 or not all(unit.holds(Token(part, "", 0, number=False)) for part in parts):
            return False
        # A number belongs to what it stands behind.
        pairs = (f"{a} {b}" for a, b in pairwise(parts) if a.isdigit() or b.isdigit())
        return all(pair in unit.bare for pair in pairs)

    def _code(self, claim: Claim, window: float) -> Support:
        """Return how far a block rests on this passage: each line must stand here, or all words of it in one place."""
        lines = claim.hard
        if not lines:
            return Support(0.0, 0.0, 0.0, denied=False)
        held = sum(self._has_line(line.form) for line in lines) / len(lines)
        return Support(1.0 if held == 1.0 else window, 1.0, held, denied=False)

    def _has_line(self, line: str) -> bool:
        return self.quotes(line) or any(self._parts(Token(line, "", 0, number=False), unit) for unit in self._units)

    def denies(self, claim: Claim) -> bool:
        """Whether the sentences that are most like a claim say the opposite."""
        said, terms = claim.polarity, frozenset(claim.terms)
        units = [(claim.share(unit.terms), unit) for unit in self._units]
        like = [(share, unit) for share, unit in units if share >= _ALIKE or unit.within(terms)]
        best = max((share for share, _ in like), default=0.0)
        nearest = [unit for share, unit in like if share >= best - _MARGIN or unit.within(terms)]
        denied = self._denied(terms, said, nearest) or any(self._unheard(cue, said, units) for cue in said.hard)
        turned = [cue for unit in nearest for cue in unit.polarity.turned]
        return denied != polarity.swapped(said.turned, turned, self._language)

    def _denied(self, terms: AbstractSet[int], said: polarity.Polarity, nearest: Sequence[PassageSentence]) -> bool:
        """Whether the sentences that are most like a claim, or their heading, deny what it says of its words."""
        headed = bool(nearest) and not any(unit.polarity.hard for unit in nearest)
        for unit in (*nearest, *([self._units[0]] if headed else [])):
            for cue in unit.polarity.hard:
                speaks = cue.around and len(cue.around & terms) >= 0.6 * len(cue.around)
                if speaks and polarity.differ(unit.polarity, said, cue):
                    return True
        return False

    def _unheard(
        self, cue: polarity.Cue, said: polarity.Polarity, units: Sequence[tuple[float, PassageSentence]]
    ) -> bool:
        """Whether the sentence that speaks most of what a claim denies does not deny it, nor the heading above it."""
        if not cue.around:
            return False
        shares = [(len(cue.around & unit.terms) / len(cue.around), share, unit) for share, unit in units]
        best = max(shares, key=lambda found: found[0] + found[1])
        heading = self._units[0].polarity
        advice = said.hard[0] is cue and cue.form.startswith(_ADVICE) and bool(best[2].polarity.soft)
        if advice or heading.denies(cue) or heading.soft:
            return False
        if best[0] < 0.6:
            # Of what it speaks less plainly, something of it must be denied anywhere.
            return not any(unit.polarity.denies(cue) or unit.polarity.may_deny(cue) for _, _, unit in shares)
        return polarity.differ(said, best[2].polarity, cue)


def _lines(code: str) -> Iterable[str]:
    """Yield what a block of code says, line by line, without prompts; also what stands behind its language."""
    first, *lines = code.split("\n")
    for line in (first.lstrip("`~").partition(" ")[2], *lines):
        said = " ".join(re.sub(r"^\s*(?:[$>#]|>>>)\s+", "", line).split())
        if re.search(r"\w", said):
            yield said


def together(claim: Claim, sources: Sequence[PassageText]) -> tuple[PassageText, ...]:
    """Return the passages that carry a claim between them, each adding to it; nothing where they don't.

    Each holds a quarter of its words, by idf, and a fifth that none of the others holds; all of them together 70 % and
    each number and name, and none denies it.
    """
    if claim.kind != "code" and len(claim.hard) > _MOST:
        return ()
    held = [(source, source.best(claim)) for source in sources]
    held = [(source, words) for source, words in held if claim.share(words) >= 0.25]
    adding = []
    for source, words in held:
        others = frozenset().union(*(w for s, w in held if s is not source))
        if claim.share(words - others) >= 0.2:
            adding.append((source, words))
    if len(adding) < 2 or claim.share(frozenset().union(*(w for _, w in adding))) < 0.7:
        return ()
    group = tuple(source for source, _ in adding)
    stands = all(any(source.stands(token, claim) for source in group) for token in claim.hard)
    return group if stands and not any(source.denies(claim) for source in group) else ()
