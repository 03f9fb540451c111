"""Judges a sentence by passages: they support it, contradict it, or are silent. Every check uses `judge`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from chapterverse_api.grounding.analyzed_text import AnalyzedPassage, Claim
from chapterverse_api.grounding.cues import NEGATION
from chapterverse_api.grounding.features import measure_support
from chapterverse_api.grounding.support_model import CLASH, SupportModel

Outcome: TypeAlias = Literal["supports", "contradicts", "silent"]

#: A sentence of fewer words of meaning can't be measured; one clause must hold them all.
MIN_WORDS = 3
#: The score of a quote to the letter.
QUOTED = 30.0
#: Scores of a sentence that is too short to be measured, set by hand: whether a clause holds it all.
_BRIEF_SUPPORTED, _BRIEF_SILENT = 1.0, -2.0
#: Sources that lack this share of a sentence's words, or so many of them in a row, never support it.
_MISSED, _RUN = 0.6, 4
#: The same share of one clause: what "and" joins to a true sentence may be made up.
_CLAUSE_MISSED = 0.8
#: Share of a sentence's words from which a passage has the same subject, and the features that then contradict it, from
#: this value on; both set by hand.
_SAME = 0.6
_CERTAIN = 0.5
_AGAINST = ("opposite_near", "digits_missing", "unit_missing", "negation_odd")
#: Placeholders in a line of code that the reader replaces.
_BLANK = re.compile(r"<[\w .-]{1,40}>|\{[\w-]{1,40}\}|\$\{?[A-Z][A-Z_]{2,40}\}?|\b[A-Z]{2,}(?:_[A-Z]{2,})+\b|\.\.\.|…")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of passages on a sentence.

    Attributes:
        outcome: `contradicts` if they have the same subject and differ, `silent` if they neither support nor
            contradict.
        score: log odds, before calibration, that they support it.
    """

    outcome: Outcome
    score: float

    @property
    def supports(self) -> bool:
        return self.outcome == "supports"


def judge(
    claim: Claim,
    sources: Sequence[AnalyzedPassage],
    others: Sequence[AnalyzedPassage],
    model: SupportModel,
    *,
    is_cited: bool = True,
) -> Verdict:
    """Return the judgement of all sources together on a sentence.

    Args:
        others: the other passages that were sent; a sentence that fits one of them better is probably from there.
        is_cited: whether the generator cites them; otherwise the sentence needs a higher score.
    """
    if not sources or not (claim.content or claim.literals):
        return Verdict("silent", -QUOTED)
    if claim.kind == "code":
        return _code(claim, sources)
    if any(is_verbatim_in(source, claim.flat) for source in sources):
        return Verdict("supports", QUOTED)
    if len(claim.content) < MIN_WORDS and not claim.literals:
        # Nearly any passage holds a single word somewhere.
        return _brief(claim, sources) if is_cited or len(claim.content) > 1 else Verdict("silent", _BRIEF_SILENT)
    values = measure_support(claim, sources, others, model.rarity)
    score = model.score(values)
    missed = values["miss_share"] >= _MISSED or values["miss_run"] >= _RUN or values["clause_missed"] >= _CLAUSE_MISSED
    if values["digits_missing"] or missed:
        score = min(score, model.threshold) - CLASH
    if score >= (model.threshold if is_cited else model.derived):
        return Verdict("supports", score)
    against = any(values[name] >= _CERTAIN for name in _AGAINST)
    return Verdict("contradicts" if values["cover_soft"] >= _SAME and against else "silent", score)


def is_verbatim_in(source: AnalyzedPassage, flat: str) -> bool:
    """Whether a passage holds a text verbatim, as whole words."""
    text = flat.strip(" .!…")
    return bool(text) and text in source.flat and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", source.flat) is not None


def _brief(claim: Claim, sources: Sequence[AnalyzedPassage]) -> Verdict:
    wanted = {claim.terms[i][0] for i in claim.content}
    denied = any(kind == NEGATION for kind, _ in claim.cues)
    for source in sources:
        for unit in source.units:
            for start, end in unit.clauses if wanted <= unit.all else ():
                clause = {t for i in range(start, end) for t in unit.terms[i]} | unit.above
                if wanted <= clause and denied == any(kind == NEGATION and start <= i < end for kind, i in unit.cues):
                    return Verdict("supports", _BRIEF_SUPPORTED)
    return Verdict("silent", _BRIEF_SILENT)


def _code(claim: Claim, sources: Sequence[AnalyzedPassage]) -> Verdict:
    """Compare code line by line, in order and verbatim, except placeholders."""
    lines = [" ".join(line.split()) for line in claim.plain_lines]
    lines = [re.sub(r"\A[$>%]\s", "", line) for line in lines if line]
    for source in sources:
        if lines and _in_order(lines, source.lines):
            return Verdict("supports", QUOTED)
    return Verdict("silent", -QUOTED)


def _in_order(lines: Sequence[str], source_lines: Sequence[str]) -> bool:
    at = 0
    for line in lines:
        found = next((n for n in range(at, len(source_lines)) if _same_line(line, source_lines[n])), None)
        if found is None:
            return False
        at = found + 1
    return True


def _same_line(line: str, source_line: str) -> bool:
    # A line of text may name a command.
    if line.rstrip(" ;\\,") == source_line.rstrip(" ;\\,") or f"`{line}`" in source_line:
        return True
    if not _BLANK.search(line) and not _BLANK.search(source_line):
        return False
    return _blank_placeholders(line) == _blank_placeholders(source_line)


def _blank_placeholders(line: str) -> str:
    return _BLANK.sub("\0", line)
