"""Prepares sentences and passages for the support check: words with their terms, cues, clauses, literals."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple

from chapterverse.text import lexical
from chapterverse.text.sentences import split, strip_marks
from chapterverse_api.draft.requests import Passage
from chapterverse_api.ext.check import cues
from chapterverse_api.ext.check.cues import LiteralMatch, find_literals, words_to_digits

#: Words of a text that are read. No honest sentence has more, and further words count as missing.
_MAX_READ_WORDS = 400
#: Characters at the beginning of two words that make them forms of one; set by hand.
SHARED_PREFIX_CHARS = 5
#: Numbers and names of a text that are read.
_MAX_LITERALS = 60
#: Excerpts of a passage that are read.
_MAX_EXCERPTS = 1_500
#: Excerpts that a sentence is compared with.
_MAX_ALIGNED = 6
#: The words around a cue in which the nearest content words are looked for.
_WORDS_BEFORE, _WORDS_AFTER = 6, 7
#: The words behind a negation that it denies.
_DENIED_WORDS = 3
#: The content words of a cue's surroundings, before and after it.
_CONTEXT_BEFORE, _CONTEXT_AFTER = 2, 3
# The model is trained with these two values, so another value needs new weights: what a word of an excerpt's headings
# and introduction counts of one of its own, and what each word of an excerpt costs, so that of two the shorter is best.
_CONTEXT_WEIGHT, _LENGTH_PENALTY = 0.4, 0.01

#: How a line begins that opens or closes fenced code.
FENCE_MARKS = ("```", "~~~")
_ZERO_WIDTH = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^()\s]{0,500}\)")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,200}>")
_STRESS = re.compile(r"\*{1,3}|~~|(?<![^\W_])_{1,3}(?=\w)|(?<=\w)_{1,3}(?![^\W_])")
_WORD = re.compile(r"\w+(?:[.:/@'’-]{1,3}\w+)*(?:\+\+|#)?|[;:,.!?()—–|。，；：]")
_DIGITS = re.compile(r"(?<![\w.])\.\d+|\d+(?:\.\d+)*(?:,\d{3})*")
# A whole line of fenced code: "```python title=a.py".
_FENCE_LINE = re.compile(r"\s*(?:`{3,}|~{3,})[\w+.-]{0,30}(?:\s+[\w-]{1,30}=\S{1,80})?\s*")
_LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s")
_LINE_MARKS = re.compile(r"\A[\s>]*(?:[$%!*-]\s)?")
_CLAUSE_WORDS = frozenset("and but so because while whereas which unless if when although though or then".split())
_PAUSES = frozenset(";:,()—–|。，；：")
_NOT_ONLY = frozenset(("only", "just", "merely", "longer", "matter", "more", "later"))
# Words of a sentence about its sources, not about their subject: "according to the docs,", "the page says that".
_ATTRIBUTION = re.compile(
    r"(?:according to |based on |as )?\b(?:the |these |this |your )?(?:provided |given )?"
    r"(?:docs?|documentation|sources?|passages?|pages?|sections?)(?: (?:that|which))?"
    r"(?: (?:also|only|here))? (?:say|state|describe|show|explain|recommend|list|mention|suggest|note|give|name)s?"
    r"(?: that)?\b|\baccording to the (?:docs|documentation|sources?)\b,?",
    re.IGNORECASE,
)
# "No, vaults can't be shared" answers a question; its sentence denies no more than it does without.
_YES_OR_NO = re.compile(
    r"\A\s*(?:(?:unfortunately|sadly|leider|malheureusement|lamentablemente),?\s)?"
    r"(?:no|nope|not|yes|yeah|yep|nein|nicht|ja|doch|non|pas|oui|si|sí)(?:\s*[,;:.!]|\s+[-–—])\s",
    re.IGNORECASE,
)


def _strip_markup(text: str) -> str:
    """Return a text without characters of no width, and without the marks of stress, links and tags."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _ZERO_WIDTH.sub("", text)).replace("’", "'")
        text = " ".join(map(cues.fold_lookalikes, text.split(" ")))
    return _STRESS.sub("", _TAG.sub(" ", _LINK.sub(r"\1", text)))


def _normalize(plain: str) -> str:
    """Return a text without markup in lower case on one line, without the marks of code."""
    return " ".join(plain.replace("`", "").lower().split())


@lru_cache(maxsize=65_536)
def _terms(word: str, language: str) -> tuple[int, ...]:
    return tuple(t for part in lexical.words(word, language) for t in part.terms)


def _bare_lines(lines: Iterable[str]) -> list[str]:
    """Return lines that hold something, without the marks of items and prompts and the white space around."""
    bare = (_LINE_MARKS.sub("", _ZERO_WIDTH.sub("", line)) for line in lines)
    return [text for line in bare if (text := " ".join(line.split()))]


def holds(terms: frozenset[int], word: Sequence[int]) -> bool:
    """Whether a word is among these terms, or each of its parts is."""
    return word[0] in terms or (len(word) > 1 and terms.issuperset(word[1:]))


class AnalyzedText:
    """The words of a text in order, with the terms of the content words: those that carry meaning.

    A position is the index of a word or pause among all of them.

    Attributes:
        plain: the text without markup.
        text_with_digits: the same with number words as digits.
        surfaces: each word and pause in lower case.
        terms: the terms of each; empty for function words and pauses.
        content_positions: the positions of the content words.
        content_terms: the first term of each content word.
        term_set: all terms.
    """

    def __init__(self, text: str, language: str) -> None:
        self.plain, self.language = _strip_markup(text), language
        self.text_with_digits = words_to_digits(self.plain, language)
        words = [match.group() for match in islice(_WORD.finditer(self.text_with_digits), _MAX_READ_WORDS)]
        self.surfaces = [w.lower() for w in words]
        self.terms = [_terms(w, language) if len(w) <= 64 else () for w in words]
        self.content_positions = [i for i, t in enumerate(self.terms) if t]
        self.content_terms = [self.terms[i][0] for i in self.content_positions]
        self.term_set = frozenset(t for terms in self.terms for t in terms)

    @cached_property
    def language_code(self) -> str:
        return lexical.primary_subtag(self.language)

    @cached_property
    def surface_set(self) -> frozenset[str]:
        return frozenset(self.surfaces)

    @cached_property
    def normalized(self) -> str:
        """The text in lower case on one line, without marks of code: to find one text verbatim in another."""
        return _normalize(self.plain)

    @cached_property
    def digits(self) -> list[str]:
        """Every number in it, those inside of names, versions and code, too."""
        numbers = (m.group().replace(",", "") for m in _DIGITS.finditer(self.text_with_digits))
        return [f"0{number}" if number.startswith(".") else number for number in numbers]

    @cached_property
    def clauses(self) -> list[tuple[int, int]]:
        """The start and end of each clause with at least two content words."""
        bounds = [0]
        bounds += [i for i, s in enumerate(self.surfaces) if i and (s in _PAUSES or s in _CLAUSE_WORDS)]
        parts: list[tuple[int, int]] = []
        for start, end in zip(bounds, [*bounds[1:], len(self.surfaces)], strict=True):
            if parts and min(len(self.terms_between(start, end)), len(self.terms_between(*parts[-1]))) < 2:
                parts[-1] = (parts[-1][0], end)
            else:
                parts.append((start, end))
        return parts

    @cached_property
    def cues(self) -> list[tuple[int, int]]:
        """The kind and position of each cue."""
        kinds = cues.kinds(self.language_code)
        located = []
        for i, (surface, following) in enumerate(zip(self.surfaces, [*self.surfaces[1:], ""], strict=False)):
            if surface.endswith("n't"):
                located.append((cues.NEGATION, i))
            elif surface in ("not", "no") and following in _NOT_ONLY:
                continue
            else:
                found = (*kinds.get(surface, ()), *kinds.get(f"{surface}_{following}", ()))
                located += [(kind, i) for kind in found]
        return located

    @property
    def negation_count(self) -> int:
        return self.count_negations(0, len(self.surfaces))

    def count_negations(self, start: int, end: int) -> int:
        """Return how many negations are between two positions."""
        return sum(1 for kind, i in self.cues if kind == cues.NEGATION and start <= i < end)

    def is_denied(self, surface: str) -> bool:
        """Whether a negation stands among the few words before a word: "not required", "isn't yet required"."""
        if surface not in self.surface_set:
            return False
        end = self.surfaces.index(surface)
        return self.count_negations(max(0, end - _DENIED_WORDS), end) % 2 == 1

    def terms_between(self, start: int, end: int) -> list[int]:
        """Return the first term of each content word between two positions."""
        return [terms[0] for terms in self.terms[start:end] if terms]

    def nearby_terms(self, position: int) -> list[int]:
        """Return the first terms of the nearest content words before and after a position."""
        start, end = max(0, position - _WORDS_BEFORE), position + 1 + _WORDS_AFTER
        # A cell of a table says nothing of the words in others.
        start = next((i + 1 for i in range(position - 1, start - 1, -1) if self.surfaces[i] == "|"), start)
        end = next((i for i in range(position + 1, min(end, len(self.surfaces))) if self.surfaces[i] == "|"), end)
        before, after = self.terms_between(start, position), self.terms_between(position + 1, end)
        return before[-_CONTEXT_BEFORE:] + after[:_CONTEXT_AFTER]

    @cached_property
    def literals(self) -> tuple[LiteralMatch, ...]:
        return tuple(islice(find_literals(self.plain, self.language), _MAX_LITERALS))


class Excerpt(AnalyzedText):
    """A sentence, heading, item, row or line of code of a passage.

    Attributes:
        kind: `prose`, `heading`, `item`, `row` or `code`.
        context: the terms of its headings, of the introduction of its list, and of the head of its table.
        verbatim: the text as its section holds it.
    """

    def __init__(self, text: str, language: str, kind: str, context: frozenset[int], verbatim: str) -> None:
        super().__init__(text, language)
        self.kind, self.context, self.verbatim = kind, context, verbatim

    @cached_property
    def terms_with_context(self) -> frozenset[int]:
        return self.term_set | self.context

    @cached_property
    def numbers(self) -> frozenset[tuple[str, str]]:
        """The form and unit of each number."""
        return frozenset((m.form, m.unit) for m in self.literals if m.is_number)


class AnalyzedPassage:
    """A passage, read once for all sentences that are checked against it.

    Attributes:
        path: its heading path.
        excerpts: the sentences, items, rows and lines of its section, in order, and its heading path.
        normalized: path and section, to find a text verbatim.
        excerpts_by_term: for each term the indexes of the excerpts that contain it.
        excerpts_by_context: for each term the indexes of the excerpts that have it only in their context.
        terms: all terms of its excerpts.
    """

    def __init__(self, passage: Passage, language: str) -> None:
        self.id, self._section = passage.id, passage.section
        path = " . ".join(passage.path)
        self.path = AnalyzedText(path, language)
        self.excerpts = list(_read_excerpts(passage.section, language, self.path.term_set))
        self.excerpts.append(Excerpt(path, language, "heading", frozenset(), next(reversed(passage.path), "")))
        heading, section = (_normalize(_strip_markup(text)) for text in (" › ".join(passage.path), passage.section))
        self.normalized = f"{heading} \n {section}"
        self.excerpts_by_term: dict[int, list[int]] = {}
        self.excerpts_by_context: dict[int, list[int]] = {}
        for n, excerpt in enumerate(self.excerpts):
            for term in excerpt.term_set:
                self.excerpts_by_term.setdefault(term, []).append(n)
            for term in excerpt.context - self.path.term_set - excerpt.term_set:
                self.excerpts_by_context.setdefault(term, []).append(n)
        self.terms = frozenset(self.excerpts_by_term)

    @cached_property
    def prefixes(self) -> frozenset[str]:
        """The first `SHARED_PREFIX_CHARS` characters of each word that has so many."""
        size = SHARED_PREFIX_CHARS
        return frozenset(s[:size] for excerpt in self.excerpts for s in excerpt.surfaces if len(s) >= size)

    @cached_property
    def normalized_excerpts(self) -> frozenset[str]:
        """Each excerpt and the heading path, as `normalized` holds them, without the stop at their end."""
        texts = (_normalize(_strip_markup(strip_marks(excerpt.verbatim))) for excerpt in self.excerpts)
        return frozenset(text.strip(" .!…") for text in (*texts, self.normalized.partition(" \n ")[0]))

    @cached_property
    def digits(self) -> frozenset[str]:
        return frozenset(d for excerpt in self.excerpts for d in excerpt.digits)

    @cached_property
    def lines(self) -> list[str]:
        """Every line, to compare code with."""
        return _bare_lines(self._section.split("\n"))


def _read_excerpts(section: str, language: str, path: frozenset[int]) -> Iterator[Excerpt]:
    """Yield the excerpts of a section, each with the terms of its headings, its introduction or its table's head."""
    heading = introduction = table_head = frozenset[int]()
    columns, count = list[str](), 0
    for sentence in split(section):
        if not sentence.plain_text or count > _MAX_EXCERPTS:
            continue
        raw = section[sentence.start : sentence.end].lstrip()
        if sentence.kind == "code":
            for line in sentence.plain_text.split("\n"):
                if line.strip() and not line.startswith(FENCE_MARKS):
                    count += 1
                    yield Excerpt(line, language, "code", path | heading | introduction, line.strip())
            continue
        is_row = raw.startswith("|")
        kind = "row" if is_row else "item" if _LIST_ITEM.match(raw) else "prose"
        kind = sentence.kind if sentence.kind == "heading" else kind
        context = path | heading | (table_head if is_row else introduction)
        text = cues.read_row(raw, columns, language) if kind == "row" else sentence.plain_text
        excerpt = Excerpt(text, language, kind, context, raw.rstrip())
        count += 1
        yield excerpt
        if kind == "heading" and is_row:
            table_head, columns = excerpt.term_set | introduction, cues.split_row(raw)
        elif kind == "heading":
            heading, introduction = excerpt.term_set, frozenset()
        elif kind == "prose" and sentence.plain_text.endswith((":", "：")):
            introduction = excerpt.term_set
        elif kind == "prose" and not raw.startswith(("-", "*", "+")):
            introduction = frozenset()


class AlignedClause(NamedTuple):
    """A clause of a sentence, by its positions, and the excerpt that says most of it, with its source."""

    start: int
    end: int
    excerpt: Excerpt | None
    source: AnalyzedPassage | None


@dataclass(frozen=True)
class Alignment:
    """What sources say of a sentence.

    Attributes:
        best: the excerpt that says most of the whole sentence.
        excerpts: the best one and those of the clauses.
    """

    best: Excerpt | None
    clauses: list[AlignedClause]
    excerpts: list[Excerpt]

    @cached_property
    def terms(self) -> frozenset[int]:
        """All terms of the excerpts, with those of their context."""
        return frozenset[int]().union(*(excerpt.terms_with_context for excerpt in self.excerpts))


class AnalyzedSentence(AnalyzedText):
    """A sentence that is compared with passages.

    Attributes:
        text: its words without markup.
        kind: `prose`, `heading` or `code`.
        idf: the idf of each content term, 1 for one that the index does not know.
        total_idf: their sum.
    """

    def __init__(self, text: str, kind: str, language: str, idf: Mapping[int, float]) -> None:
        is_code = kind == "code"
        super().__init__(text if is_code else _ATTRIBUTION.sub(" ", _YES_OR_NO.sub("", text)), language)
        self.text, self.kind = text, kind
        self.idf = {t: idf.get(t, 1.0) for t in self.content_terms}
        self.total_idf = sum(self.idf.values())

    @property
    def is_empty(self) -> bool:
        """Whether there is no word in it that a source could contain."""
        return not (self.content_positions or self.literals)

    @property
    def code_lines(self) -> list[str]:
        """The lines of a block of code without its fence; text behind the fence's language is a line, too."""
        return _bare_lines(line for line in self.text.split("\n") if not _FENCE_LINE.fullmatch(line))

    def share(self, terms: frozenset[int]) -> float:
        """Return the share of the sentence's words, by idf, that are among these terms."""
        return sum(w for t, w in self.idf.items() if t in terms) / self.total_idf if self.total_idf else 0.0

    def align(self, sources: Sequence[AnalyzedPassage]) -> Alignment:
        """Return the excerpts of these sources that say most of the sentence, and of each of its clauses."""
        clauses = [
            AlignedClause(start, end, *self._best_excerpt(set(self.terms_between(start, end)), sources))
            for start, end in self.clauses
        ]
        best, _ = self._best_excerpt(set(self.idf), sources)
        excerpts = dict.fromkeys(e for e in (best, *(clause.excerpt for clause in clauses)) if e)
        return Alignment(best, clauses, list(excerpts)[:_MAX_ALIGNED])

    def _best_excerpt(
        self, terms: Iterable[int], sources: Sequence[AnalyzedPassage]
    ) -> tuple[Excerpt | None, AnalyzedPassage | None]:
        best, excerpt, excerpt_source = 0.0, None, None
        for source in sources:
            scores: dict[int, float] = {}
            for term in terms:
                weight = self.idf.get(term, 1.0)
                for n in source.excerpts_by_term.get(term, ()):
                    scores[n] = scores.get(n, 0.0) + weight
                for n in source.excerpts_by_context.get(term, ()):
                    scores[n] = scores.get(n, 0.0) + _CONTEXT_WEIGHT * weight
            for n, score in scores.items():
                value = score - _LENGTH_PENALTY * len(source.excerpts[n].content_terms) * (score > 0)
                if value > best:
                    best, excerpt, excerpt_source = value, source.excerpts[n], source
        return excerpt, excerpt_source
