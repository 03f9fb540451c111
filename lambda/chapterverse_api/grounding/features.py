"""Features by which the model decides whether sources support a sentence: numbers over the sentence and its alignment.

All are shares or small counts. "Aligned" places are those of `Claim.align`, and "the best" is its `best`.
`GROUPS` names which belong together; the ablation in the documentation leaves out one group at a time.

    cover_*                 weight of the sentence's terms that are in: three units in a row (`window`), all sources
                            (`source`), the aligned places (`aligned`), these and their like (`soft`), the best (`best`)
    miss_share(_aligned)    share of the words that are in no source, or in no aligned place
    miss_most, miss_rare    the heaviest term that no source has; the rarity of all, without those of `miss_soft`
    miss_soft               terms that no source has, which begin like a word of one
    miss_aligned, second    rarity of the terms in no aligned place, added up; that of the second rarest
    miss_run(_aligned)      most words in a row that are in no source, or in no aligned place
    miss_elsewhere          rarity of the terms that no cited source has, but another one
    rival                   the greatest share that one other source covers, less `cover_aligned`
    digits_, unit_, name_, capital_missing
                            numbers, units, identifiers and words with a capital that no source has
    name_apart, _swapped    identifiers in no aligned place; those, and numbers, that may stand for another one there
    more_*, less_*          cues of a kind that the aligned places lack; cues there that the sentence lacks
    negation_odd, parity    the negations differ by an odd number; the likeness of two clauses that differ so
    opposite(_near)         words whose opposite stands in the aligned places; how alike their surroundings are
    replaced(_side)         rarity of the words between the same neighbors as others, or beside one of them
    left_out, left_share    rarity of the best place's words that the sentence leaves out; over their number
    clause_least, _mean, _missed
                            how well the weakest clause and all are covered; the most of one that no source has
    along, edit_*           share of the words in the same order as the best place; words replaced, added and so on
    clauses, places, spread, rows, in_code, literals, length, sources
                            how many there are, or whether the places are code; `length` is a logarithm
    clash                   how many of the properties hold that a supported sentence hardly ever has
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple, TypeVar

from chapterverse_api.grounding import cues
from chapterverse_api.grounding.analyzed_text import PREFIX, Alignment, AnalyzedPassage, AnalyzedText, Claim, Unit
from chapterverse_api.grounding.literals import Token

#: How rare a term is in documentation of any kind, 0 to 1; 1 for one that is not listed.
Rarity = Callable[[int], float]

#: If one of two clauses is negated, the likeness from which that alone contradicts the sentence: in general, and where
#: the best place contains at least `_SAME_WORDS` of the sentence's words.
_SAME_CLAUSE, _LIKE_CLAUSE, _SAME_WORDS = 0.85, 0.75, 0.6
#: Languages in which two negations are one: "ne … pas", "no … nadie".
_CONCORD = ("es", "fr")
#: What a synonym or a word of the same beginning counts of an aligned term. This and the numbers below are set by hand.
#: The model is trained on features with them, so another value needs new weights.
_SOFT = 0.7
#: Share of a cue's surroundings that the other side holds, from which it is the same statement.
_NEAR_CUE = 0.4
#: What a missing cue counts if the other side has its kind at another word, and if its place isn't the best.
_OTHER_WORD, _OTHER_PLACE = 0.6, 0.7
#: The options and names in a piece of code.
_NAMES = re.compile(r"--?[a-z][\w-]*|[^\W\d]\w*(?:-\w+)*")
_T = TypeVar("_T")


class _Cue(NamedTuple):
    """A cue: its index in `cues.KINDS`, and the terms around it."""

    kind: int
    around: frozenset[int]


def measure_support(
    claim: Claim, sources: Sequence[AnalyzedPassage], others: Sequence[AnalyzedPassage], rarity: Rarity
) -> dict[str, float]:
    """Return the features of a sentence and the sources that it cites, among the others that were sent."""
    alignment = claim.align(sources)
    values = _cover_features(claim, sources, others, alignment)
    values |= _gap_features(claim, sources, others, alignment, rarity)
    values |= _literals(claim, sources, alignment)
    values |= _cues(claim, alignment)
    values |= _opposites(claim, alignment)
    values |= _substitutions(claim, alignment, rarity)
    values |= _clauses(claim, alignment)
    values["clause_missed"] = _missed_clause_share(claim, sources)
    values |= _edits(claim, alignment.best)
    values["clash"] = _clash(values)
    return values


def _clash(values: Mapping[str, float]) -> float:
    """Count the properties that a supported sentence hardly ever has."""
    lacks = ("digits_missing", "unit_missing", "name_missing", "capital_missing", "opposite")
    denied = values["parity"] >= (_SAME_CLAUSE if values["negation_odd"] < _SAME_WORDS else _LIKE_CLAUSE)
    return float(sum(values[name] > 0 for name in lacks) + denied)


def _cover_features(
    claim: Claim,
    sources: Sequence[AnalyzedPassage],
    others: Sequence[AnalyzedPassage],
    alignment: Alignment,
) -> dict[str, float]:
    """Return the shares of the sentence's weight that its sources and the places in them cover."""
    weights, total = claim.weights, claim.total or 1.0
    everywhere = _union([s.terms for s in sources])
    aligned: frozenset[int] = _union([u.all for u in alignment.units])
    best: frozenset[int] = alignment.best.all if alignment.best else frozenset()
    cover = sum(weights[t] for t in weights if t in aligned) / total
    return {
        "cover_window": max((_window(claim, s) for s in sources), default=0.0) / total,
        # The sources contain a name if they contain its parts.
        "cover_source": sum(weights[t] for t in weights if _has_term(claim, t, everywhere)) / total,
        "cover_aligned": cover,
        "cover_soft": _soft_cover(claim, alignment, aligned) / total,
        "cover_best": sum(weights[t] for t in weights if t in best) / total,
        "rival": _rival(claim, others, total) - cover,
        "length": math.log1p(len(claim.sequence)),
        "sources": float(len(sources)),
    }


def _gap_features(
    claim: Claim,
    sources: Sequence[AnalyzedPassage],
    others: Sequence[AnalyzedPassage],
    alignment: Alignment,
    rarity: Rarity,
) -> dict[str, float]:
    """Count and weigh the words that the sources, or the places in them, lack."""
    weights, sequence, words = claim.weights, claim.sequence, max(1, len(claim.sequence))
    everywhere = _union([s.terms for s in sources])
    aligned: frozenset[int] = _union([u.all for u in alignment.units])
    missing = [t for t in weights if not _has_term(claim, t, everywhere)]
    rarities = sorted((rarity(t) for t in weights if t not in aligned), reverse=True)
    forms, prefixes = _forms(claim), _union([s.prefixes for s in sources])
    strange = [t for t in missing if forms[t][:PREFIX] not in prefixes]
    elsewhere = _union([s.terms for s in others])
    return {
        "miss_share": sum(t not in everywhere for t in sequence) / words,
        "miss_share_aligned": sum(t not in aligned for t in sequence) / words,
        "miss_second": rarities[1] if len(rarities) > 1 else 0.0,
        "miss_most": max((weights[t] * rarity(t) for t in missing), default=0.0) * len(weights) / (claim.total or 1.0),
        "miss_rare": sum(map(rarity, strange)),
        "miss_soft": float(len(missing) - len(strange)),
        "miss_aligned": sum(rarity(t) for t in weights if t not in aligned),
        "miss_run": float(_longest_run(sequence, everywhere)),
        "miss_run_aligned": float(_longest_run(sequence, aligned)),
        "miss_elsewhere": sum(rarity(t) for t in missing if t in elsewhere),
    }


def _forms(claim: Claim) -> dict[int, str]:
    """Return for each term of a sentence the last word that has it."""
    return {claim.sequence[i]: claim.surfaces[p] for i, p in enumerate(claim.content)}


def _soft_cover(claim: Claim, alignment: Alignment, aligned: frozenset[int]) -> float:
    """Return the weight of the aligned terms, with a part of it for a synonym or a word of the same beginning."""
    forms = _forms(claim)
    starts = frozenset(x[:PREFIX] for u in alignment.units for x in u.surfaces if len(x) >= PREFIX)
    meanings = _union([u.meanings for u in alignment.units])
    listed = cues.synonyms() if claim.language_code == "en" else {}
    alike = {t for t, form in forms.items() if form[:PREFIX] in starts or listed.get(form) in meanings}
    return sum(w * (1.0 if t in aligned else _SOFT if t in alike else 0.0) for t, w in claim.weights.items())


def _rival(claim: Claim, others: Sequence[AnalyzedPassage], total: float) -> float:
    """Return the greatest share of the sentence's weight that one of the other sources covers."""
    rival, weights = 0.0, claim.weights
    for other in others:
        if other.terms & weights.keys():
            terms = _union([u.all for u in claim.align([other]).units])
            rival = max(rival, sum(weights[t] for t in weights if t in terms) / total)
    return rival


def _window(claim: Claim, source: AnalyzedPassage) -> float:
    """Return the greatest weight of the sentence's terms in three units in a row, with the headings above them."""
    places: dict[int, set[int]] = {}
    for term in claim.weights:
        for n in source.index.get(term, ()):
            for at in (n - 2, n - 1, n):
                places.setdefault(at, set()).add(term)
    above = {t for t in claim.weights if t in source.path.own}
    return max((sum(claim.weights[t] for t in near | above) for near in places.values()), default=0.0)


def _edits(claim: Claim, unit: Unit | None) -> dict[str, float]:
    """Compare word by word with the best place: the share in the same order, and words replaced, added and left out."""
    if unit is None:
        return {"along": 0.0, "edit_replaced": 0.0, "edit_added": 0.0, "edit_removed": 0.0, "edit_small": 0.0}
    own, theirs = claim.surfaces[:80], unit.surfaces[:160]
    matcher = SequenceMatcher(None, own, theirs, autojunk=False)
    codes = matcher.get_opcodes()
    equal = [c for c in codes if c[0] == "equal"]
    along = sum(c[2] - c[1] for c in equal) / max(1, len(own))
    inner = codes[codes.index(equal[0]) : codes.index(equal[-1]) + 1] if equal else []
    replaced = added = removed = small = 0.0
    their_forms, own_forms = unit.forms, claim.forms
    for kind, a, b, c, d in inner:
        if kind == "equal":
            continue
        fresh = sum(1 for i in range(a, b) if claim.terms[i] and own[i] not in their_forms)
        gone = sum(1 for i in range(c, d) if unit.terms[i] and theirs[i] not in own_forms)
        replaced += min(fresh, gone)
        added += max(0, fresh - gone)
        removed += max(0, gone - fresh)
        small += b - a <= 2 and d - c <= 2
    return {
        "along": along,
        "edit_replaced": replaced * along,
        "edit_added": added * along,
        "edit_removed": removed * along,
        "edit_small": small * along,
    }


def _union(sets: Sequence[frozenset[_T]]) -> frozenset[_T]:
    if len(sets) == 1:
        return sets[0]
    return frozenset().union(*sets)


def _has_term(claim: Claim, term: int, present: frozenset[int]) -> bool:
    """Whether a term is present, or it is a name of several parts which all are."""
    if term in present:
        return True
    for at in claim.content:
        terms = claim.terms[at]
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


def _literals(claim: Claim, sources: Sequence[AnalyzedPassage], alignment: Alignment) -> dict[str, float]:
    """Count the numbers, units, identifiers and capitalized words that the sources or the aligned places lack."""
    numbers = [t for t in claim.literals if t.number]
    names = [t for t in claim.literals if not t.number]
    flats = [s.flat for s in sources]
    units = [u.flat for u in alignment.units]
    source_numbers: set[tuple[str, str]] = {n for s in sources for n in s.numbers}
    other_units = [t for t in numbers if t.unit and not _contains_number(t, source_numbers, flats)]
    aligned: set[tuple[str, str]] = {n for u in alignment.units for n in u.numbers}
    names_apart = [t for t in names if not any(_contains_form(t.form, f) for f in units)]
    theirs = {t.form.lower() for u in alignment.units[:2] for t in u.literals if t.form.lower() not in claim.flat}
    apart = [t for t in numbers if not _contains_number(t, aligned, units)]
    capitals = [
        w
        for w in re.findall(r"(?<=[a-z,] )[A-Z][A-Za-z]{2,30}(?![\w-])", claim.plain[:2_000])
        if not any(w.lower() in f for f in flats)
    ]
    names_missing = [t for t in names if not any(_contains_literal(f, t.form) for f in flats)]
    digits = list(dict.fromkeys(claim.digits))
    present = _union([s.digits for s in sources])
    return {
        "digits_missing": float(sum(d not in present for d in digits)),
        "unit_missing": float(len(other_units)),
        "name_missing": float(len(names_missing)),
        "name_apart": float(len(names_apart)),
        "name_swapped": float(min(len(names_apart) + len(apart), len(theirs))),
        "capital_missing": float(len(capitals)),
        "literals": float(len(claim.literals)),
    }


def _contains_form(form: str, flat: str) -> bool:
    form = " ".join(form.lower().replace("`", "").split())
    if form not in flat:
        return not form
    # A hyphen continues an option but ends a word: `x86_64-unknown-linux-gnu` contains `x86_64`.
    before, after = ("(?<!\\w)(?<!\\w-)", "(?!\\w|-\\w)") if form[0] == "-" else ("(?<!\\w)", "(?!\\w)")
    if not form[0].isalnum() and form[0] not in "_-":
        before = ""
    return re.search(before + re.escape(form) + after, flat) is not None


def _contains_literal(flat: str, form: str) -> bool:
    """Return whether a text contains an identifier, or each name in a longer piece of code such as `{ hash, path }`."""
    if _contains_form(form, flat):
        return True
    names = _NAMES.findall(form.lower())
    return bool(names) and all(_contains_form(name, flat) for name in names)


def _contains_number(token: Token, numbers: set[tuple[str, str]], flats: Sequence[str]) -> bool:
    """Whether sources hold a number with its unit; one without a unit on either side counts as the same."""
    if (token.form, token.unit) in numbers:
        return True
    units = {unit for form, unit in numbers if form == token.form}
    if units:
        return not token.unit or "" in units
    return not token.unit and any(re.search(rf"(?<![\w.,-])v?{re.escape(token.form)}(?!\w|[.,]\d)", f) for f in flats)


def _cues(claim: Claim, alignment: Alignment) -> dict[str, float]:
    """For each kind of cue: those of the sentence that its place lacks (`more`), and the other way round (`less`)."""
    own = _locate_cues(claim)
    theirs = [_locate_cues(u) for u in alignment.units]
    every, terms = _union([u.all for u in alignment.units]), frozenset(claim.weights)
    more, less = [0.0] * len(cues.KINDS), [0.0] * len(cues.KINDS)
    for kind, value in _lacking(own, [cue for unit in theirs for cue in unit], every):
        more[kind] += value
    for unit, located in zip(alignment.units, theirs, strict=True):
        weight = 1.0 if unit is alignment.best else _OTHER_PLACE
        for kind, value in _lacking(located, own, terms, weight):
            less[kind] = max(less[kind], value)
    values = {f"more_{name}": more[i] for i, name in enumerate(cues.KINDS)}
    values |= {f"less_{name}": less[i] for i, name in enumerate(cues.KINDS)}
    best = _locate_cues(alignment.best) if alignment.best else []
    ours, there = (sum(cue.kind == cues.NEGATION for cue in x) for x in (own, best))
    share = len(terms & every) / max(1, len(terms))
    values["negation_odd"] = float((ours + there) % 2) * share
    values["parity"] = _parity(claim, alignment)
    return values


def _lacking(
    located: Sequence[_Cue], others: Sequence[_Cue], terms: frozenset[int], weight: float = 1.0
) -> Iterator[tuple[int, float]]:
    """Yield the kind and the value of each cue that has no counterpart on the other side, which has these terms."""
    kinds = {other.kind for other in others}
    for kind, around in located:
        if not around:
            continue
        share = len(around & terms) / len(around)
        meets = any(other.kind == kind and around & other.around for other in others)
        if not meets and share >= _NEAR_CUE:
            yield kind, weight * share * (1.0 if kind not in kinds else _OTHER_WORD)


def _locate_cues(text: AnalyzedText) -> list[_Cue]:
    return [_Cue(kind, frozenset(text.around(at))) for kind, at in text.cues[:60]]


def _parity(claim: Claim, alignment: Alignment) -> float:
    """Return the greatest likeness of a clause and its counterpart of which only one is negated."""
    worst = 0.0
    for (start, end), unit, _ in alignment.clauses:
        if unit is None:
            continue
        terms = {claim.terms[i][0] for i in range(start, end) if claim.terms[i]}
        if not terms:
            continue
        best, at = 0.0, (0, 0)
        for first, last in unit.clauses:
            clause = {unit.terms[i][0] for i in range(first, last) if unit.terms[i]}
            like = 2 * len(terms & clause) / (len(terms) + len(clause)) if clause else 0.0
            if like > best:
                best, at = like, (first, last)
        ours = sum(1 for kind, i in claim.cues if kind == cues.NEGATION and start <= i < end)
        theirs = sum(1 for kind, i in unit.cues if kind == cues.NEGATION and at[0] <= i < at[1])
        if claim.language_code in _CONCORD:
            ours, theirs = min(ours, 1), min(theirs, 1)
        if best and (ours + theirs) % 2:
            worst = max(worst, best)
    return worst


def _opposites(claim: Claim, alignment: Alignment) -> dict[str, float]:
    """Count the words whose opposite stands in their place; the nearest is the share of surroundings that both have."""
    if claim.language_code != "en":
        return {"opposite": 0.0, "opposite_near": 0.0}
    listed, apart, near = cues.opposites(), 0.0, 0.0
    forms = _union([u.forms for u in alignment.units])
    for at, surface in enumerate(claim.surfaces):
        turned = listed.get(surface)
        if not turned or surface in forms or not turned & forms:
            continue
        apart += 1
        around = set(claim.around(at))
        for unit in alignment.units:
            for i, other in enumerate(unit.surfaces):
                if other in turned and around and around & set(unit.around(i)):
                    near = max(near, len(around & set(unit.around(i))) / len(around))
    return {"opposite": apart, "opposite_near": near}


def _substitutions(claim: Claim, alignment: Alignment, rarity: Rarity) -> dict[str, float]:
    """Count the words that replace others of the aligned place, between the same neighbors or beside one of them."""
    both, side = 0.0, 0.0
    aligned = _union([u.all for u in alignment.units])
    terms, sequence = frozenset(claim.sequence), claim.sequence[:120]
    at = 0
    while at < len(sequence):
        end = at
        while end < len(sequence) and sequence[end] not in aligned:
            end += 1
        if end == at:
            at += 1
            continue
        left = sequence[at - 1] if at else None
        right = sequence[end] if end < len(sequence) else None
        weight = sum(map(rarity, sequence[at:end]))
        two, one = _replacements(left, right, terms, alignment.units, end - at)
        both += two * weight
        side += (one and not two) * weight
        at = end + 1
    # The words of the best place that the sentence leaves out.
    own = alignment.best.sequence if alignment.best else []
    left_out = sum(rarity(t) for t in dict.fromkeys(own) if t not in terms)
    return {"replaced": both, "replaced_side": side, "left_out": left_out, "left_share": left_out / max(1, len(own))}


def _replacements(
    left: int | None, right: int | None, terms: frozenset[int], units: Sequence[Unit], length: int
) -> tuple[bool, bool]:
    """Return whether a unit has other words between two neighbors, and whether it has others beside one of them."""
    two = one = False
    for unit in units:
        own = unit.sequence
        for j, other in enumerate(own):
            if left is not None and other == left:
                behind = own[j + 1 : j + 3 + length]
                if right in behind:
                    two |= any(t not in terms for t in behind[: behind.index(right)])
                elif behind and behind[0] not in terms:
                    one = True
            elif right is not None and other == right and j and own[j - 1] not in terms:
                one = True
    return two, one


def _clauses(claim: Claim, alignment: Alignment) -> dict[str, float]:
    """Return how well the weakest clause is covered, and how far apart the places of the clauses are."""
    shares = []
    for (start, end), unit, _ in alignment.clauses:
        terms = {claim.terms[i][0] for i in range(start, end) if claim.terms[i]}
        total = sum(claim.weights.get(t, 1.0) for t in terms)
        if total:
            shares.append(sum(claim.weights.get(t, 1.0) for t in terms if unit and t in unit.all) / total)
    kinds = {u.kind for u in alignment.units}
    where = {id(source) for _, _, source in alignment.clauses if source is not None}
    rows = sum(1 for u in alignment.units if u.kind == "row")
    return {
        "clause_least": min(shares, default=0.0),
        "clause_mean": sum(shares) / len(shares) if shares else 0.0,
        "clauses": float(len(shares)),
        "places": float(len(alignment.units)),
        "spread": float(len(where)),
        "rows": float(min(rows, 3)),
        "in_code": float("code" in kinds),
    }


def _missed_clause_share(claim: Claim, sources: Sequence[AnalyzedPassage]) -> float:
    """Return the largest share of a clause's words that the sources lack, of clauses of at least three such words."""
    source_terms = _union([s.terms for s in sources])
    shares = []
    for start, end in claim.clauses:
        terms = [claim.terms[i][0] for i in range(start, end) if claim.terms[i]]
        if len(terms) >= 3:
            shares.append(sum(t not in source_terms for t in terms) / len(terms))
    return max(shares, default=0.0)


#: The features of the model. `clash` and the verdict use the others.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "coverage": (
        "cover_window", "cover_soft", "cover_source", "cover_aligned", "cover_best", "clause_least", "clause_mean",
        "length", "sources",
    ),
    "gaps": (
        "miss_share", "miss_share_aligned", "miss_second", "miss_most", "miss_rare", "miss_soft", "miss_aligned",
        "miss_run", "miss_run_aligned", "miss_elsewhere", "rival",
    ),
    "names": ("name_apart", "name_swapped", "literals"),
    "quantifiers": (
        "more_all", "less_all", "more_only", "less_only", "more_may", "less_may", "more_must", "less_must",
    ),
    "edits": ("along", "edit_replaced", "edit_added", "edit_removed", "edit_small"),
    "replaced words": ("replaced", "replaced_side", "left_out", "left_share"),
    "places": ("clauses", "places", "spread", "rows", "in_code"),
    "clash": ("clash",),
}  # fmt: skip
NAMES = tuple(name for group in GROUPS.values() for name in group)
