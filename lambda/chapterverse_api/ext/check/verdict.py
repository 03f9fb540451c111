"""Judges a sentence by passages: they support it, contradict it, or are silent. Every check uses `judge`.

The trained part is a logistic regression over `features`, in `weights.json`. `benchmarks/grounding.py DATA --train`
writes that file; its docstring says from what. Inference is plain Python.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

from chapterverse.calibration import logistic
from chapterverse.text.json_text import load_json
from chapterverse_api.ext.check.analyzed_text import AnalyzedPassage, AnalyzedSentence
from chapterverse_api.ext.check.features import measure_support

Outcome: TypeAlias = Literal["supports", "contradicts", "silent"]

#: A term that is in a smaller share of the sections of documentation of any kind is not listed.
MIN_SECTION_SHARE = 0.004

# All values below are set by hand.

#: A sentence of fewer content words can't be measured; one clause must contain them all.
MIN_WORDS = 3
#: The score of a sentence that is verbatim in a passage.
_VERBATIM_SCORE = 30.0
#: Scores of a sentence that is too short to be measured: whether a clause contains it all.
_BRIEF_SUPPORTED, _BRIEF_SILENT = 1.0, -2.0
#: How far below the threshold a sentence scores, at least, that is ruled out.
CLASH_PENALTY = 3.0
#: Sources that lack this share of a sentence's words never support it, nor those that lack this share of one clause's,
#: or so many words in a row: what "and" joins to a truth may be made up, and what follows it without "and", too.
_MAX_MISSING_SHARE, _MAX_CLAUSE_MISSING_SHARE, _MAX_MISSING_RUN = 0.6, 0.8, 4
#: Share of a sentence's words from which a passage has the same subject.
_MIN_SAME_SUBJECT = 0.6
#: Share of a sentence's words, by idf, that a passage must contain to be checked without being cited, and how many
#: passages are checked so.
_MIN_SIMILAR_SHARE, _MAX_SIMILAR = 0.45, 3
#: The characters that numbers, versions and dates are of.
_NUMBER_CHARS = "0123456789.,:-/"
# Placeholders in a line of code that the reader replaces: "<name>", "{name}", "$NAME", "YOUR_NAME".
_PLACEHOLDER = re.compile(
    r"<[\w .-]{1,40}>|\{[\w-]{1,40}\}|\$\{?[A-Z][A-Z_]{2,40}\}?|\b[A-Z]{2,}(?:_[A-Z]{2,})+\b|\.\.\.|…"
)
_TRAILING_COMMENT = re.compile(r"\s(?:#|//)\s.*")


@dataclass(frozen=True, slots=True)
class SupportModel:
    """The trained weights.

    Attributes:
        feature_names: the names of the features, in the order of the coefficients.
        coefficients, intercept: the regression.
        threshold: the score from which a sentence counts as supported.
        uncited_threshold: this score for a sentence that the generator gives no citation.
        vote_threshold: the score below which a second vote is requested.
        slope, offset: turn a score into a probability.
        section_shares: the share of sections, over sites of any kind, that contain each common term.
    """

    feature_names: tuple[str, ...]
    coefficients: tuple[float, ...]
    intercept: float
    threshold: float
    uncited_threshold: float
    vote_threshold: float
    slope: float
    offset: float
    section_shares: Mapping[int, float]

    def score(self, values: Mapping[str, float]) -> float:
        """Return the log odds that the sources say the sentence, before calibration."""
        return self.intercept + sum(
            weight * values[name] for name, weight in zip(self.feature_names, self.coefficients, strict=True)
        )

    def probability(self, score: float) -> float:
        return logistic(self.slope * score + self.offset)

    def rarity(self, term: int) -> float:
        """Return how rare a term is in documentation of any kind: 1 for one that is not listed, .15 for "use"."""
        share = self.section_shares.get(term)
        return 1.0 if share is None else max(0.15, min(1.0, 1 - 0.25 * math.log(share / MIN_SECTION_SHARE)))

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SupportModel:
        """Return the model that `weights.json` holds; shares of sections are in thousandths there."""
        lists = {name: tuple(document[name]) for name in ("feature_names", "coefficients")}
        shares = {int(term): share / 1000 for term, share in document["section_shares"].items()}
        return cls(**{**document, **lists, "section_shares": shares})


@cache
def load_model() -> SupportModel:
    """Return the model that comes with the service."""
    return SupportModel.from_json(load_json("chapterverse_api.ext.check", "weights.json"))


class Verdict(NamedTuple):
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
    sentence: AnalyzedSentence,
    sources: Sequence[AnalyzedPassage],
    rivals: Sequence[AnalyzedPassage],
    model: SupportModel,
    *,
    is_cited: bool = True,
) -> Verdict:
    """Return the judgement of all sources together on a sentence.

    Args:
        rivals: the other passages that were sent; a sentence that is verbatim in one of them is from there, and one
            that fits it better probably.
        is_cited: whether the generator cites the sources; otherwise the sentence needs a higher score.
    """
    if not sources or sentence.is_empty:
        return Verdict("silent", -_VERBATIM_SCORE)
    if sentence.kind == "code":
        lines = sentence.code_lines
        holds = bool(lines) and any(_in_order(lines, source.lines) for source in sources)
        return Verdict("supports", _VERBATIM_SCORE) if holds else Verdict("silent", -_VERBATIM_SCORE)
    text = sentence.normalized.strip(" .!…")
    if _holds_sentence(text, sources):
        return Verdict("supports", _VERBATIM_SCORE)
    # It is from there.
    if _holds_sentence(text, rivals):
        return Verdict("silent", -_VERBATIM_SCORE)
    words = len(sentence.content_positions)
    # Numbers alone say nothing of anything, but an item of a list may be one.
    is_number = words > 0 and not any(sentence.surfaces[i].strip(_NUMBER_CHARS) for i in sentence.content_positions)
    if is_number or (words < MIN_WORDS and not sentence.literals):
        # Nearly any passage holds a single word somewhere.
        supports = (is_cited or (words > 1 and not is_number)) and _contains_brief(sentence, sources)
        return Verdict("supports", _BRIEF_SUPPORTED) if supports else Verdict("silent", _BRIEF_SILENT)
    values = measure_support(sentence, sources, rivals, model.rarity)
    score = model.score(values)
    if is_ruled_out(values):
        score = min(score, model.threshold) - CLASH_PENALTY
    if score >= (model.threshold if is_cited else model.uncited_threshold):
        return Verdict("supports", score)
    return Verdict("contradicts" if _differs(values) else "silent", score)


def _holds_sentence(normalized: str, sources: Sequence[AnalyzedPassage]) -> bool:
    """Whether a passage has a whole sentence verbatim; a part isn't enough: "run it" of "never run it"."""
    return any(normalized in source.normalized and normalized in source.normalized_excerpts for source in sources)


def is_ruled_out(values: Mapping[str, float]) -> bool:
    """Whether a sentence with these features is hardly ever supported, however much of it the sources hold."""
    return bool(
        values["missing_digits"]
        or values["missing_names"]
        or values["missing_share"] >= _MAX_MISSING_SHARE
        or values["clause_missing_share"] >= _MAX_CLAUSE_MISSING_SHARE
        or values["missing_run"] >= _MAX_MISSING_RUN
        or _differs(values)
    )


def _differs(values: Mapping[str, float]) -> bool:
    """Whether the sources have the same subject and say something else of it."""
    same_subject = 1 - values["unaligned_share"] >= _MIN_SAME_SUBJECT
    return same_subject and bool(values["contradictions"] or values["missing_digits"])


def most_similar(sentence: AnalyzedSentence, sources: Sequence[AnalyzedPassage]) -> list[AnalyzedPassage]:
    """Return the few passages that contain most of a sentence's words, best first; for code however few."""
    shares = [(sentence.share(source.terms), -n, source) for n, source in enumerate(sources)]
    similar = [one for one in shares if one[0] >= _MIN_SIMILAR_SHARE or sentence.kind == "code"]
    return [source for *_, source in sorted(similar, key=lambda one: one[:2], reverse=True)[:_MAX_SIMILAR]]


def is_verbatim_in(source: AnalyzedPassage, normalized: str) -> bool:
    """Whether a passage contains a normalized text verbatim, as whole words."""
    text = normalized.strip(" .!…")
    if not text or text not in source.normalized:
        return False
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", source.normalized) is not None


def _contains_brief(sentence: AnalyzedSentence, sources: Sequence[AnalyzedPassage]) -> bool:
    """Whether a clause of a source contains all words of a short sentence, and is negated like it."""
    terms, is_negated = set(sentence.content_terms), sentence.negation_count > 0
    # The parts of a number are terms as well: "3.9" holds no 9.
    holding = (source for source in sources if source.digits.issuperset(sentence.digits))
    for excerpt in (excerpt for source in holding for excerpt in source.excerpts):
        for start, end in excerpt.clauses if terms <= excerpt.terms_with_context else ():
            clause_terms = excerpt.context.union(*excerpt.terms[start:end])
            if terms <= clause_terms and is_negated == (excerpt.count_negations(start, end) > 0):
                return True
    return False


def _in_order(lines: Sequence[str], source_lines: Sequence[str]) -> bool:
    """Whether a source has these lines of code, in order and verbatim, except placeholders."""
    rest = iter(source_lines)
    return all(any(_same_line(line, source_line) for source_line in rest) for line in lines)


def _same_line(line: str, source_line: str) -> bool:
    # A line of text may name a command, and a line of code may be explained behind it.
    said = _TRAILING_COMMENT.sub("", source_line) if line in source_line else source_line
    if line.rstrip(" ;\\,") in (said.rstrip(" ;\\,"), source_line.rstrip(" ;\\,")) or f"`{line}`" in source_line:
        return True
    return _PLACEHOLDER.sub("\0", line) == _PLACEHOLDER.sub("\0", source_line)
