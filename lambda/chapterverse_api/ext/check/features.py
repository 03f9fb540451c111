"""Features by which the model decides whether sources support a sentence: numbers over the sentence and its alignment.

The sentence's words are compared with those of its sources and, more strictly, with those of the aligned excerpts
(`AnalyzedSentence.align`). A `missing` word is in no source, and an `unaligned` one is in no aligned excerpt. A
`rarity` is the sum of the rarities of words, and an `added` cue one that only the sentence has. The ablation of
`benchmarks/grounding.py` leaves out one feature at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher
from itertools import groupby

from chapterverse_api.ext.check import cues
from chapterverse_api.ext.check.analyzed_text import (
    SHARED_PREFIX_CHARS,
    AlignedClause,
    Alignment,
    AnalyzedPassage,
    AnalyzedSentence,
    AnalyzedText,
    Excerpt,
    holds,
)
from chapterverse_api.ext.check.cues import LiteralMatch

#: The features of the model. The verdict uses `contradictions`, `missing_names` and `missing_run` besides.
FEATURES = (
    "unaligned_share", "missing_share", "clause_missing_share", "missing_rarity", "elsewhere_rarity",
    "missing_digits", "clash_count", "clause_negation_mismatch",
    "added_all_cues", "added_only_cues", "added_must_cues", "in_code",
)  # fmt: skip

# The model is trained on features with the following values, so another value needs new weights. All are set by hand.

#: The words of the shortest clause whose missing ones are counted apart.
_MIN_CLAUSE_WORDS = 3
#: The least share of a cue's surroundings that the other side must contain to be the same statement.
_MIN_CUE_CONTEXT = 0.4
#: The value of a missing cue if the other side has its kind at another word.
_MOVED_CUE_VALUE = 0.6
#: The cues of a sentence that are compared.
_MAX_CUES = 60
#: The likeness of two clauses from which it is a contradiction if only one of them is negated: in general, and where
#: the whole sentence and its best excerpt differ in their negations as well.
_MIN_LIKENESS, _MIN_LIKENESS_OF_DENIED = 0.8, 0.75
#: The words of a sentence or an excerpt that are compared in order.
_MAX_ORDERED_WORDS = 160
#: Languages in which two negations are one: "ne … pas", "no … nadie".
_CONCORD = ("es", "fr")
# The options and names in a piece of code.
_NAMES = re.compile(r"--?[a-z][\w-]*|[^\W\d]\w*(?:-\w+)*")
# A capitalized word that does not begin the sentence.
_CAPITALIZED = re.compile(r"(?<=[a-z,] )[A-Z][A-Za-z]{2,30}(?![\w-])")
#: The characters of a sentence that are searched for capitalized words.
_MAX_CAPITALS_CHARS = 2_000


def measure_support(
    sentence: AnalyzedSentence,
    sources: Sequence[AnalyzedPassage],
    rivals: Sequence[AnalyzedPassage],
    rarity: Callable[[int], float],
) -> dict[str, float]:
    """Return the features of a sentence and the sources that it cites, among the others that were sent.

    Args:
        rarity: how rare a term is in documentation of any kind, 0 to 1; 1 for one that is not listed.
    """
    alignment = sentence.align(sources)
    values = _word_features(sentence, sources, rivals, alignment, rarity)
    digits = frozenset[str]().union(*(source.digits for source in sources))
    values["missing_digits"] = float(len({*sentence.digits} - digits))
    values |= _cue_features(sentence, alignment)
    values["in_code"] = float(any(e.kind == "code" for e in alignment.excerpts))
    values["clause_negation_mismatch"] = _clause_negation_mismatch(sentence, alignment)
    negations = sentence.negation_count + alignment.best.negation_count if alignment.best else 0
    min_likeness = _MIN_LIKENESS_OF_DENIED if negations % 2 else _MIN_LIKENESS
    contradictions = (
        any(_has_opposite(sentence, clause) for clause in alignment.clauses),
        _has_another_number(sentence, alignment),
        values["clause_negation_mismatch"] >= min_likeness,
        _is_exchanged(sentence, alignment),
    )
    values["contradictions"] = float(sum(contradictions))
    values["missing_names"] = float(_lacks_identifier(sentence, sources))
    values["clash_count"] = values["contradictions"] + values["missing_names"] + _lacks_name(sentence, sources)
    return values


def _word_features(
    sentence: AnalyzedSentence,
    sources: Sequence[AnalyzedPassage],
    rivals: Sequence[AnalyzedPassage],
    alignment: Alignment,
    rarity: Callable[[int], float],
) -> dict[str, float]:
    """Weigh the words that the sources, or the excerpts of them, lack.

    A missing word that begins like a word of a source is not in `missing_rarity`. `elsewhere_rarity` is of the missing
    words that another source contains.
    """
    terms, held = sentence.content_terms, frozenset[int]().union(*(source.terms for source in sources))
    missing = {terms[0] for terms in sentence.terms if terms and not holds(held, terms)}
    surfaces = {terms[0]: surface for surface, terms in zip(sentence.surfaces, sentence.terms, strict=True) if terms}
    unlike = (t for t in missing if not any(surfaces[t][:SHARED_PREFIX_CHARS] in s.prefixes for s in sources))
    elsewhere = frozenset[int]().union(*(rival.terms for rival in rivals))
    runs = (len(list(run)) for is_missing, run in groupby(terms, missing.__contains__) if is_missing)
    clauses = (sentence.terms_between(*clause) for clause in sentence.clauses)
    clause_share = max((_share(c, missing) for c in clauses if len(c) >= _MIN_CLAUSE_WORDS), default=0.0)
    return {
        "unaligned_share": 1 - _share(terms, alignment.terms),
        "missing_share": _share(terms, missing),
        "missing_run": float(max(runs, default=0)),
        "clause_missing_share": clause_share,
        "missing_rarity": sum(map(rarity, unlike)),
        "elsewhere_rarity": sum(rarity(t) for t in missing if t in elsewhere),
    }


def _share(terms: Sequence[int], among: frozenset[int] | set[int]) -> float:
    return sum(t in among for t in terms) / max(1, len(terms))


def _lacks_identifier(sentence: AnalyzedSentence, sources: Sequence[AnalyzedPassage]) -> bool:
    names = (m.form for m in sentence.literals if not m.is_number)
    return any(not any(_contains_literal(source.normalized, name) for source in sources) for name in names)


def _lacks_name(sentence: AnalyzedSentence, sources: Sequence[AnalyzedPassage]) -> bool:
    names = (word.lower() for word in _CAPITALIZED.findall(sentence.plain[:_MAX_CAPITALS_CHARS]))
    return any(not any(name in source.normalized for source in sources) for name in names)


def _has_another_number(sentence: AnalyzedSentence, alignment: Alignment) -> bool:
    """Whether the place that says the rest has another number, where no excerpt has one of the sentence's."""
    if alignment.best is None:
        return False
    numbers = [m for m in sentence.literals if m.is_number]
    aligned = {n for e in alignment.excerpts for n in e.numbers}
    texts = [e.normalized for e in alignment.excerpts]
    others = alignment.best.numbers - {(m.form, m.unit) for m in numbers}
    return bool(others) and any(not _contain_number(m, aligned, texts) for m in numbers)


def _contains_form(form: str, text: str) -> bool:
    form = " ".join(form.lower().replace("`", "").split())
    if form not in text:
        return not form
    # A hyphen continues an option but ends a word: `x86_64-unknown-linux-gnu` contains `x86_64`.
    before, after = ("(?<!\\w)(?<!\\w-)", "(?!\\w|-\\w)") if form[0] == "-" else ("(?<!\\w)", "(?!\\w)")
    if not form[0].isalnum() and form[0] not in "_-":
        before = ""
    return re.search(before + re.escape(form) + after, text) is not None


def _contains_literal(text: str, form: str) -> bool:
    """Return whether a text contains an identifier, or each name in a longer piece of code such as `{ hash, path }`."""
    if _contains_form(form, text):
        return True
    names = _NAMES.findall(form.lower())
    return bool(names) and all(_contains_form(name, text) for name in names)


def _contain_number(match: LiteralMatch, numbers: set[tuple[str, str]], texts: Sequence[str]) -> bool:
    """Whether sources contain a number with its unit; one without a unit on either side counts as the same."""
    if (match.form, match.unit) in numbers:
        return True
    units = {unit for form, unit in numbers if form == match.form}
    if units:
        return not match.unit or "" in units
    return not match.unit and any(re.search(rf"(?<![\w.,-])v?{re.escape(match.form)}(?!\w|[.,]\d)", t) for t in texts)


def _cue_features(sentence: AnalyzedSentence, alignment: Alignment) -> dict[str, float]:
    """Weigh, for each kind of cue, those that only the sentence has."""
    others = [cue for excerpt in alignment.excerpts for cue in _locate_cues(excerpt)]
    added = [0.0] * len(cues.CUE_KINDS)
    for kind, context in _locate_cues(sentence):
        share = len(context & alignment.terms) / max(1, len(context))
        alike = [other for other_kind, other in others if other_kind == kind]
        if share >= _MIN_CUE_CONTEXT and not any(context & other for other in alike):
            added[kind] += share * (_MOVED_CUE_VALUE if alike else 1.0)
    return {f"added_{name}_cues": value for name, value in zip(cues.CUE_KINDS, added, strict=True)}


def _locate_cues(text: AnalyzedText) -> list[tuple[int, frozenset[int]]]:
    """Return each cue's kind, and the terms around it."""
    return [(kind, frozenset(text.nearby_terms(position))) for kind, position in text.cues[:_MAX_CUES]]


def _clause_negation_mismatch(sentence: AnalyzedSentence, alignment: Alignment) -> float:
    """Return the greatest likeness of two clauses of which only one is negated."""
    # A cell holds too few words to be like a clause: that it denies what the sentence states is enough.
    if alignment.best and alignment.best.kind == "row" and _denies(sentence, alignment.best):
        return 1.0
    return max((_negation_mismatch(sentence, clause) for clause in alignment.clauses), default=0.0)


def _denies(sentence: AnalyzedSentence, row: Excerpt) -> bool:
    """Whether one side denies what the other states; what is denied of something that it doesn't name is no denial."""
    sides: tuple[tuple[AnalyzedText, AbstractSet[int]], ...] = (
        (sentence, row.terms_with_context),
        (row, sentence.idf.keys()),
    )
    denials = [
        (context, terms)
        for text, terms in sides
        for kind, context in _locate_cues(text)
        if kind == cues.NEGATION and context & terms
    ]
    return len(denials) % 2 == 1 and any(context <= other for context, other in denials)


def _most_like(sentence: AnalyzedSentence, aligned: AlignedClause) -> tuple[float, tuple[int, int]]:
    """Return the clause of the excerpt that is most like a clause of the sentence, and their likeness, 0 to 1."""
    excerpt, terms = aligned.excerpt, set(sentence.terms_between(aligned.start, aligned.end))
    # A heading states nothing, and of a row each cell by itself (`_denies`).
    if excerpt is None or excerpt.kind in ("heading", "row") or not terms:
        return 0.0, (0, 0)
    others = [(set(excerpt.terms_between(*clause)), clause) for clause in excerpt.clauses]
    return max((2 * len(terms & other) / (len(terms) + len(other)), clause) for other, clause in others)


def _negation_mismatch(sentence: AnalyzedSentence, aligned: AlignedClause) -> float:
    """Return the likeness of a clause and the clause most like it in its excerpt, if only one of them is negated."""
    likeness, clause = _most_like(sentence, aligned)
    if aligned.excerpt is None or not likeness:
        return 0.0
    counts = [sentence.count_negations(aligned.start, aligned.end), aligned.excerpt.count_negations(*clause)]
    if sentence.language_code in _CONCORD:
        counts = [min(count, 1) for count in counts]
    return likeness if sum(counts) % 2 else 0.0


def _is_exchanged(sentence: AnalyzedSentence, alignment: Alignment) -> bool:
    """Whether two words changed places, in the whole sentence or in one of its clauses."""
    pairs = [
        (clause.excerpt, (clause.start, clause.end), _most_like(sentence, clause)[1]) for clause in alignment.clauses
    ]
    pairs.append((alignment.best, (0, _MAX_ORDERED_WORDS), (0, _MAX_ORDERED_WORDS)))
    return any(
        excerpt is not None and _have_changed_places(sentence, own, excerpt, other) for excerpt, own, other in pairs
    )


def _have_changed_places(
    text: AnalyzedText, span: tuple[int, int], other: AnalyzedText, other_span: tuple[int, int]
) -> bool:
    """Whether each of two content words stands where the other text has the other one; the spans are of positions."""
    (start, end), (other_start, other_end) = span, other_span
    end, other_end = min(end, start + _MAX_ORDERED_WORDS), min(other_end, other_start + _MAX_ORDERED_WORDS)
    words, other_words = text.surfaces[start:end], other.surfaces[other_start:other_end]
    replaced = {
        pair
        for kind, a, b, c, d in SequenceMatcher(None, words, other_words, autojunk=False).get_opcodes()
        if kind == "replace"
        for pair in zip(
            text.terms_between(start + a, start + b),
            other.terms_between(other_start + c, other_start + d),
            strict=False,
        )
    }
    return any((there, here) in replaced for here, there in replaced if here != there)


def _has_opposite(sentence: AnalyzedSentence, aligned: AlignedClause) -> bool:
    """Whether the excerpt of a clause has the opposite of one of its words instead, both denied or neither."""
    opposites = cues.opposites() if sentence.language_code == "en" else {}
    excerpt, surfaces = aligned.excerpt, frozenset(sentence.surfaces[aligned.start : aligned.end])
    return excerpt is not None and any(
        all(excerpt.is_denied(word) == sentence.is_denied(surface) for word in opposites[surface])
        for surface in surfaces & opposites.keys() - excerpt.surface_set
        if opposites[surface] & excerpt.surface_set
    )
