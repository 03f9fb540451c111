"""Features by which the model decides whether sources support a sentence: numbers over the sentence and its alignment.

All are shares, small counts or sums. The sentence's words are compared with those of its sources and, more strictly,
with those of the aligned excerpts (`AnalyzedSentence.align`). In the names, a `missing` word is in no source, and an
`unaligned` one is in no aligned excerpt. `added` is what only the sentence has, and `omitted` what only the excerpts
have. A `coverage` is the share of the sentence's idf that is found, and a `rarity` the sum of the rarities of terms.
`GROUPS` says which features belong together. The ablation of `benchmarks/grounding.py` leaves out one group at a time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple, TypeVar

from chapterverse_api.grounding import cues
from chapterverse_api.grounding.analyzed_text import (
    SHARED_PREFIX_CHARS,
    AlignedClause,
    Alignment,
    AnalyzedPassage,
    AnalyzedSentence,
    AnalyzedText,
    Excerpt,
)
from chapterverse_api.grounding.literals import LiteralMatch

#: How rare a term is in documentation of any kind, 0 to 1; 1 for one that is not listed.
Rarity = Callable[[int], float]

# The model is trained on features with the following values, so another value needs new weights. All are set by hand.

#: The value of a synonym of an aligned word, or of a word with the same beginning.
_SIMILAR_VALUE = 0.7
#: The least share of a cue's surroundings that the other side must contain to be the same statement.
_MIN_CUE_CONTEXT = 0.4
#: The value of a missing cue if the other side has its kind at another word, and if it is missing in another excerpt
#: than the best one.
_MOVED_CUE_VALUE, _OTHER_EXCERPT_VALUE = 0.6, 0.7
#: The words of a sentence and of its best excerpt that are compared in order.
_MAX_SENTENCE_WORDS, _MAX_EXCERPT_WORDS = 80, 160
#: The content words of a sentence that are searched for replacements, and its cues.
_MAX_REPLACED_WORDS, _MAX_CUES = 120, 60
#: The characters of a sentence that are searched for capitalized words.
_MAX_CAPITALS_CHARS = 2_000

#: If only one of two clauses is negated, the likeness that makes it a clash: in general, and if the best excerpt
#: contains at least `_MIN_SHARED_WORDS` of the sentence's words.
_MIN_LIKENESS, _MIN_LIKENESS_OF_SHARED, _MIN_SHARED_WORDS = 0.85, 0.75, 0.6
#: Languages in which two negations are one: "ne … pas", "no … nadie".
_CONCORD = ("es", "fr")
# The options and names in a piece of code.
_NAMES = re.compile(r"--?[a-z][\w-]*|[^\W\d]\w*(?:-\w+)*")
# A capitalized word that does not begin the sentence.
_CAPITALIZED = re.compile(r"(?<=[a-z,] )[A-Z][A-Za-z]{2,30}(?![\w-])")
_T = TypeVar("_T")


class _Cue(NamedTuple):
    """A cue: its index in `cues.KINDS`, and the terms around it."""

    kind: int
    context: frozenset[int]


def measure_support(
    sentence: AnalyzedSentence, sources: Sequence[AnalyzedPassage], rivals: Sequence[AnalyzedPassage], rarity: Rarity
) -> dict[str, float]:
    """Return the features of a sentence and the sources that it cites, among the others that were sent."""
    alignment = sentence.align(sources)
    values = _coverage_features(sentence, sources, rivals, alignment)
    values |= _gap_features(sentence, sources, rivals, alignment, rarity)
    values |= _literal_features(sentence, sources, alignment)
    values |= _cue_features(sentence, alignment)
    values |= _opposite_features(sentence, alignment)
    values |= _replacement_features(sentence, alignment, rarity)
    values |= _alignment_features(sentence, alignment)
    values["max_clause_missing_share"] = _max_clause_missing_share(sentence, sources)
    values |= _edit_features(sentence, alignment.best)
    values["clash_count"] = _clash_count(values)
    return values


def _clash_count(values: Mapping[str, float]) -> float:
    """Count the properties that a supported sentence hardly ever has."""
    counts = ("missing_names", "missing_capitalized", "opposite_count", "replaced_numbers", "exchanged_words")
    shares_words = values["negation_mismatch"] >= _MIN_SHARED_WORDS
    denied = values["clause_negation_mismatch"] >= (_MIN_LIKENESS_OF_SHARED if shares_words else _MIN_LIKENESS)
    return float(sum(values[name] > 0 for name in counts) + denied)


def _coverage_features(
    sentence: AnalyzedSentence,
    sources: Sequence[AnalyzedPassage],
    rivals: Sequence[AnalyzedPassage],
    alignment: Alignment,
) -> dict[str, float]:
    """Return the shares of the sentence's idf that its sources and the excerpts of them cover."""
    idf, total = sentence.idf, sentence.total_idf or 1.0
    source_terms = _union([s.terms for s in sources])
    best: frozenset[int] = alignment.best.terms_with_context if alignment.best else frozenset()
    aligned_coverage = sum(idf[t] for t in idf if t in alignment.terms) / total
    return {
        "window_coverage": max((_window_idf(sentence, s) for s in sources), default=0.0) / total,
        # The sources contain a name if they contain its parts.
        "source_coverage": sum(idf[t] for t in idf if _has_term(sentence, t, source_terms)) / total,
        "aligned_coverage": aligned_coverage,
        "soft_coverage": _soft_idf(sentence, alignment) / total,
        "best_excerpt_coverage": sum(idf[t] for t in idf if t in best) / total,
        "rival_coverage_gain": _rival_coverage(sentence, rivals, total) - aligned_coverage,
        "log_word_count": math.log1p(len(sentence.content_terms)),
        "source_count": float(len(sources)),
    }


def _gap_features(
    sentence: AnalyzedSentence,
    sources: Sequence[AnalyzedPassage],
    rivals: Sequence[AnalyzedPassage],
    alignment: Alignment,
    rarity: Rarity,
) -> dict[str, float]:
    """Count and weigh the words that the sources, or the excerpts of them, lack.

    A missing word that begins like a word of a source is counted in `similar_missing_count`, and its rarity is not in
    `missing_rarity`. The rarity of missing words that another source contains is in `elsewhere_rarity`.
    """
    idf, terms, words = sentence.idf, sentence.content_terms, max(1, len(sentence.content_terms))
    source_terms = _union([s.terms for s in sources])
    missing = [t for t in idf if not _has_term(sentence, t, source_terms)]
    rarities = sorted((rarity(t) for t in idf if t not in alignment.terms), reverse=True)
    surfaces, prefixes = _surfaces_by_term(sentence), _union([s.prefixes for s in sources])
    unlike = [t for t in missing if surfaces[t][:SHARED_PREFIX_CHARS] not in prefixes]
    other_terms = _union([s.terms for s in rivals])
    max_missing = max((idf[t] * rarity(t) for t in missing), default=0.0)
    return {
        "missing_share": sum(t not in source_terms for t in terms) / words,
        "unaligned_share": sum(t not in alignment.terms for t in terms) / words,
        "second_unaligned_rarity": rarities[1] if len(rarities) > 1 else 0.0,
        "max_missing_idf": max_missing * len(idf) / (sentence.total_idf or 1.0),
        "missing_rarity": sum(map(rarity, unlike)),
        "similar_missing_count": float(len(missing) - len(unlike)),
        "unaligned_rarity": sum(rarity(t) for t in idf if t not in alignment.terms),
        "missing_run": float(_longest_run(terms, source_terms)),
        "unaligned_run": float(_longest_run(terms, alignment.terms)),
        "elsewhere_rarity": sum(rarity(t) for t in missing if t in other_terms),
    }


def _surfaces_by_term(sentence: AnalyzedSentence) -> dict[int, str]:
    """Return for each content term of a sentence the last word that has it."""
    return {sentence.content_terms[i]: sentence.surfaces[p] for i, p in enumerate(sentence.content_positions)}


def _soft_idf(sentence: AnalyzedSentence, alignment: Alignment) -> float:
    """Return the idf of the aligned terms, with a part of it for a synonym or a word of the same beginning."""
    surfaces = _surfaces_by_term(sentence)
    size = SHARED_PREFIX_CHARS
    prefixes = frozenset(s[:size] for e in alignment.excerpts for s in e.surfaces if len(s) >= size)
    groups = _union([e.synonym_groups for e in alignment.excerpts])
    synonyms = cues.synonyms() if sentence.language_code == "en" else {}
    similar = {t for t, s in surfaces.items() if s[:size] in prefixes or synonyms.get(s) in groups}
    values = ((1.0 if t in alignment.terms else _SIMILAR_VALUE if t in similar else 0.0, t) for t in sentence.idf)
    return sum(sentence.idf[t] * value for value, t in values)


def _rival_coverage(sentence: AnalyzedSentence, rivals: Sequence[AnalyzedPassage], total: float) -> float:
    """Return the greatest share of the sentence's idf that one of the other sources covers."""
    coverage, idf = 0.0, sentence.idf
    for rival in rivals:
        if rival.terms & idf.keys():
            terms = sentence.align([rival]).terms
            coverage = max(coverage, sum(idf[t] for t in idf if t in terms) / total)
    return coverage


def _window_idf(sentence: AnalyzedSentence, source: AnalyzedPassage) -> float:
    """Return the greatest idf of the sentence's terms in three excerpts in a row, with the headings above them."""
    windows: dict[int, set[int]] = {}
    for term in sentence.idf:
        for n in source.excerpts_by_term.get(term, ()):
            for start in (n - 2, n - 1, n):
                windows.setdefault(start, set()).add(term)
    above = {t for t in sentence.idf if t in source.path.term_set}
    return max((sum(sentence.idf[t] for t in terms | above) for terms in windows.values()), default=0.0)


def _edit_features(sentence: AnalyzedSentence, best: Excerpt | None) -> dict[str, float]:
    """Count the edits that make the best excerpt the sentence, each times the share of words in the same order."""
    in_order_share = replaced = added = omitted = small = 0.0
    exchanged = False
    if best is not None:
        words, excerpt_words = sentence.surfaces[:_MAX_SENTENCE_WORDS], best.surfaces[:_MAX_EXCERPT_WORDS]
        edits = SequenceMatcher(None, words, excerpt_words, autojunk=False).get_opcodes()
        equal = [edit for edit in edits if edit[0] == "equal"]
        in_order_share = sum(end - start for _, start, end, _, _ in equal) / max(1, len(words))
        # What precedes the first common word and what follows the last one is no edit.
        inner = edits[edits.index(equal[0]) : edits.index(equal[-1]) + 1] if equal else []
        replacements = [
            ({w for w, t in zip(words[a:b], sentence.terms[a:b], strict=True) if t},
             {w for w, t in zip(excerpt_words[c:d], best.terms[c:d], strict=True) if t})
            for kind, a, b, c, d in edits if kind == "replace"
        ]  # fmt: skip
        exchanged = any(here and (there, here) in replacements for here, there in replacements)
        for kind, start, end, excerpt_start, excerpt_end in inner:
            if kind == "equal":
                continue
            new = sum(1 for i in range(start, end) if sentence.terms[i] and words[i] not in best.surface_set)
            excerpt_range = range(excerpt_start, excerpt_end)
            gone = sum(1 for i in excerpt_range if best.terms[i] and excerpt_words[i] not in sentence.surface_set)
            replaced += min(new, gone)
            added += max(0, new - gone)
            omitted += max(0, gone - new)
            small += end - start <= 2 and excerpt_end - excerpt_start <= 2
    return {
        "exchanged_words": float(exchanged),
        "in_order_share": in_order_share,
        "replaced_words": replaced * in_order_share,
        "added_words": added * in_order_share,
        "omitted_words": omitted * in_order_share,
        "small_edits": small * in_order_share,
    }


def _union(sets: Sequence[frozenset[_T]]) -> frozenset[_T]:
    if len(sets) == 1:
        return sets[0]
    return frozenset().union(*sets)


def _has_term(sentence: AnalyzedSentence, term: int, present: frozenset[int]) -> bool:
    """Whether a term is present, or it is a name of several parts which all are."""
    if term in present:
        return True
    for position in sentence.content_positions:
        terms = sentence.terms[position]
        if terms[0] == term:
            return len(terms) > 2 and all(t in present for t in terms[1:])
    return False


def _longest_run(sequence: Sequence[int], terms: frozenset[int]) -> int:
    """Return how many terms in a row are not among these, at most."""
    longest = run = 0
    for term in sequence:
        run = 0 if term in terms else run + 1
        longest = max(longest, run)
    return longest


def _literal_features(
    sentence: AnalyzedSentence, sources: Sequence[AnalyzedPassage], alignment: Alignment
) -> dict[str, float]:
    """Count the numbers, units, identifiers and capitalized words that the sources or the aligned excerpts lack."""
    numbers = [m for m in sentence.literals if m.is_number]
    names = [m for m in sentence.literals if not m.is_number]
    texts = [s.normalized for s in sources]
    excerpt_texts = [e.normalized for e in alignment.excerpts]
    aligned_numbers: set[tuple[str, str]] = {n for e in alignment.excerpts for n in e.numbers}
    source_digits = _union([s.digits for s in sources])
    unaligned_numbers = [m for m in numbers if not _contain_number(m, aligned_numbers, excerpt_texts)]
    other_numbers = alignment.best.numbers - {(m.form, m.unit) for m in numbers} if alignment.best else frozenset()
    unaligned_names = [m for m in names if not any(_contains_form(m.form, text) for text in excerpt_texts)]
    excerpt_forms = {m.form.lower() for e in alignment.excerpts[:2] for m in e.literals}
    excerpt_forms = {form for form in excerpt_forms if form not in sentence.normalized}
    capitalized = (word.lower() for word in _CAPITALIZED.findall(sentence.plain[:_MAX_CAPITALS_CHARS]))
    return {
        "missing_digits": float(sum(d not in source_digits for d in dict.fromkeys(sentence.digits))),
        "missing_names": float(sum(not any(_contains_literal(text, m.form) for text in texts) for m in names)),
        "missing_capitalized": float(sum(not any(word in text for text in texts) for word in capitalized)),
        "unaligned_names": float(len(unaligned_names)),
        # Numbers for which the place that says the rest has another.
        "replaced_numbers": float(min(len(unaligned_numbers), len(other_numbers))),
        # Literals that may stand for another one there.
        "swapped_literals": float(min(len(unaligned_names) + len(unaligned_numbers), len(excerpt_forms))),
        "literal_count": float(len(sentence.literals)),
    }


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
    """Weigh, for each kind of cue, those that only the sentence has and those that only its excerpts have."""
    sentence_cues = _locate_cues(sentence)
    excerpt_cues = [_locate_cues(e) for e in alignment.excerpts]
    terms = frozenset(sentence.idf)
    added, omitted = [0.0] * len(cues.KINDS), [0.0] * len(cues.KINDS)
    for kind, value in _lacking(sentence_cues, [cue for located in excerpt_cues for cue in located], alignment.terms):
        added[kind] += value
    for excerpt, located in zip(alignment.excerpts, excerpt_cues, strict=True):
        weight = 1.0 if excerpt is alignment.best else _OTHER_EXCERPT_VALUE
        for kind, value in _lacking(located, sentence_cues, terms, weight):
            omitted[kind] = max(omitted[kind], value)
    values = {f"added_{name}_cues": added[i] for i, name in enumerate(cues.KINDS)}
    values |= {f"omitted_{name}_cues": omitted[i] for i, name in enumerate(cues.KINDS)}
    best_cues = _locate_cues(alignment.best) if alignment.best else []
    # What is denied of something that the other side doesn't name is no mismatch.
    best_terms = alignment.best.terms_with_context if alignment.best else frozenset()
    both = ((sentence_cues, best_terms), (best_cues, terms))
    negations = sum(cue.kind == cues.NEGATION and bool(cue.context & other) for own, other in both for cue in own)
    values["negation_mismatch"] = float(negations % 2) * (len(terms & alignment.terms) / max(1, len(terms)))
    values["clause_negation_mismatch"] = max(
        (_negation_mismatch(sentence, clause) for clause in alignment.clauses), default=0.0
    )
    # A cell holds too few words to be like a clause: that it denies what the sentence states is enough.
    if alignment.best and alignment.best.kind == "row" and values["negation_mismatch"]:
        whole = any(cue.kind == cues.NEGATION and cue.context <= other for own, other in both for cue in own)
        values["clause_negation_mismatch"] = max(values["clause_negation_mismatch"], float(whole))
    return values


def _lacking(
    located: Sequence[_Cue], counterparts: Sequence[_Cue], terms: frozenset[int], weight: float = 1.0
) -> Iterator[tuple[int, float]]:
    """Yield the kind and the value of each cue that has no counterpart on the other side, which has these terms."""
    kinds = {other.kind for other in counterparts}
    for cue in located:
        if not cue.context:
            continue
        share = len(cue.context & terms) / len(cue.context)
        meets = any(other.kind == cue.kind and cue.context & other.context for other in counterparts)
        if not meets and share >= _MIN_CUE_CONTEXT:
            yield cue.kind, weight * share * (1.0 if cue.kind not in kinds else _MOVED_CUE_VALUE)


def _locate_cues(text: AnalyzedText) -> list[_Cue]:
    return [_Cue(kind, frozenset(text.nearby_terms(position))) for kind, position in text.cues[:_MAX_CUES]]


def _negation_mismatch(sentence: AnalyzedSentence, aligned: AlignedClause) -> float:
    """Return the likeness of a clause and the clause most like it in its excerpt, if only one of them is negated."""
    excerpt, terms = aligned.excerpt, set(sentence.terms_between(aligned.start, aligned.end))
    if excerpt is None or not terms:
        return 0.0
    likeness, best = 0.0, (0, 0)
    for clause in excerpt.clauses:
        clause_terms = set(excerpt.terms_between(*clause))
        like = 2 * len(terms & clause_terms) / (len(terms) + len(clause_terms)) if clause_terms else 0.0
        if like > likeness:
            likeness, best = like, clause
    counts = [sentence.count_negations(aligned.start, aligned.end), excerpt.count_negations(*best)]
    if sentence.language_code in _CONCORD:
        counts = [min(count, 1) for count in counts]
    return likeness if sum(counts) % 2 else 0.0


def _opposite_features(sentence: AnalyzedSentence, alignment: Alignment) -> dict[str, float]:
    """Count the words whose opposite is in the excerpts, and return the largest share of surroundings in common."""
    opposites = cues.opposites() if sentence.language_code == "en" else {}
    count, context_share = 0.0, 0.0
    surfaces = _union([e.surface_set for e in alignment.excerpts])
    for position, surface in enumerate(sentence.surfaces):
        opposite = opposites.get(surface)
        if not opposite or surface in surfaces or not opposite & surfaces:
            continue
        if any(e.is_denied(word) != sentence.is_denied(surface) for e in alignment.excerpts for word in opposite):
            continue
        count += 1
        context = set(sentence.nearby_terms(position))
        for excerpt in alignment.excerpts:
            for i, other in enumerate(excerpt.surfaces):
                if other in opposite and context:
                    shared = context & set(excerpt.nearby_terms(i))
                    context_share = max(context_share, len(shared) / len(context))
    return {"opposite_count": count, "opposite_context_share": context_share}


class _Replacement(NamedTuple):
    """Whether an excerpt has other words between the same two neighbors, and whether beside one of them."""

    between_neighbors: bool
    beside_neighbor: bool


def _replacement_features(sentence: AnalyzedSentence, alignment: Alignment, rarity: Rarity) -> dict[str, float]:
    """Weigh the words that replace others of an excerpt, and the words of the best excerpt that are left out."""
    replaced, half_replaced = 0.0, 0.0
    terms, sequence = frozenset(sentence.content_terms), sentence.content_terms[:_MAX_REPLACED_WORDS]
    start = 0
    while start < len(sequence):
        end = start
        while end < len(sequence) and sequence[end] not in alignment.terms:
            end += 1
        if end > start:
            before = sequence[start - 1] if start else None
            after = sequence[end] if end < len(sequence) else None
            weight = sum(map(rarity, sequence[start:end]))
            replacement = _find_replacement(before, after, terms, alignment.excerpts, end - start)
            replaced += replacement.between_neighbors * weight
            half_replaced += (replacement.beside_neighbor and not replacement.between_neighbors) * weight
        start = end + 1
    best_terms = alignment.best.content_terms if alignment.best else []
    omitted_rarity = sum(rarity(t) for t in dict.fromkeys(best_terms) if t not in terms)
    return {
        "replaced_rarity": replaced,
        "half_replaced_rarity": half_replaced,
        "omitted_rarity": omitted_rarity,
        "mean_omitted_rarity": omitted_rarity / max(1, len(best_terms)),
    }


def _find_replacement(
    before: int | None, after: int | None, terms: frozenset[int], excerpts: Sequence[Excerpt], length: int
) -> _Replacement:
    between = beside = False
    for excerpt in excerpts:
        sequence = excerpt.content_terms
        for i, term in enumerate(sequence):
            if before is not None and term == before:
                following = sequence[i + 1 : i + 3 + length]
                if after in following:
                    between |= any(t not in terms for t in following[: following.index(after)])
                elif following and following[0] not in terms:
                    beside = True
            elif after is not None and term == after and i and sequence[i - 1] not in terms:
                beside = True
    return _Replacement(between, beside)


def _alignment_features(sentence: AnalyzedSentence, alignment: Alignment) -> dict[str, float]:
    """Return how well the clauses are covered, and how many excerpts and sources they are aligned with."""
    shares = []
    for clause in alignment.clauses:
        terms, excerpt = set(sentence.terms_between(clause.start, clause.end)), clause.excerpt
        total = sum(sentence.idf.get(t, 1.0) for t in terms)
        if total:
            covered = (t for t in terms if excerpt and t in excerpt.terms_with_context)
            shares.append(sum(sentence.idf.get(t, 1.0) for t in covered) / total)
    kinds = [e.kind for e in alignment.excerpts]
    return {
        "min_clause_coverage": min(shares, default=0.0),
        "mean_clause_coverage": sum(shares) / len(shares) if shares else 0.0,
        "clause_count": float(len(shares)),
        "excerpt_count": float(len(alignment.excerpts)),
        "aligned_source_count": float(len({id(c.source) for c in alignment.clauses if c.source is not None})),
        "row_count": float(min(kinds.count("row"), 3)),
        "in_code": float("code" in kinds),
    }


def _max_clause_missing_share(sentence: AnalyzedSentence, sources: Sequence[AnalyzedPassage]) -> float:
    """Return the largest share of a clause's words that the sources lack, of clauses of at least three such words."""
    source_terms = _union([s.terms for s in sources])
    clauses = (sentence.terms_between(start, end) for start, end in sentence.clauses)
    return max((sum(t not in source_terms for t in c) / len(c) for c in clauses if len(c) >= 3), default=0.0)


#: The features of the model. The verdict uses others as well.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "coverage": (
        "window_coverage", "soft_coverage", "source_coverage", "aligned_coverage", "best_excerpt_coverage",
        "min_clause_coverage", "mean_clause_coverage", "log_word_count", "source_count",
    ),
    "gaps": (
        "missing_share", "unaligned_share", "second_unaligned_rarity", "max_missing_idf", "missing_rarity",
        "similar_missing_count", "unaligned_rarity", "missing_run", "unaligned_run", "elsewhere_rarity",
        "rival_coverage_gain",
    ),
    "names": ("unaligned_names", "swapped_literals", "literal_count"),
    "quantifiers": (
        "added_all_cues", "omitted_all_cues", "added_only_cues", "omitted_only_cues", "added_may_cues",
        "omitted_may_cues", "added_must_cues", "omitted_must_cues",
    ),
    "edits": ("in_order_share", "replaced_words", "added_words", "omitted_words", "small_edits"),
    "replaced words": ("replaced_rarity", "half_replaced_rarity", "omitted_rarity", "mean_omitted_rarity"),
    "places": ("clause_count", "excerpt_count", "aligned_source_count", "row_count", "in_code"),
    "clash": ("clash_count",),
}  # fmt: skip
NAMES = tuple(name for group in GROUPS.values() for name in group)
