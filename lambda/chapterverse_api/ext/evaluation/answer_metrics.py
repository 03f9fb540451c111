"""Scores answers without a judging model: citations, facts, refusals, confidence.

An answer is stored as counts (see `EvaluationSession.judge_answer`); figures are derived from them. All figures are
from 0 to 1, higher is better, averaged over the questions that they are defined for:

    citation_validity      share of the citations that name a source of this answer, are in the index and pass a second
                           check on their own; below 1 is a defect
    citation_precision     share of the pairs of a sentence and one of its citations whose section supports it
    citation_recall        share of the sentences that a section cited there supports
    nuggets                share of the expected facts in the answer; 0 for a refusal
    cited.page             1 if any citation leads to an expected page; 0 for a refusal
    cited.section          the same for an expected section
    key                    1 if the words that answer are quoted; 0 for a refusal
    key.first              1 if they are in the first quote
    key.marked             1 if the first quote marks them
    begins                 1 if their block is quoted
    quotes.whole           1 if no list, table or code of a section is cut without saying so
    quotes.once            1 if no two quotes share a line
    refused@unanswerable   share of the unanswerable questions that were refused, at any stage
    answered@answerable    share of the answerable ones that were not

Precision and recall are those of Liu, Zhang and Liang, "Evaluating verifiability in generative search engines" (2023),
with the service's lexical check in place of human judges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from chapterverse_api.contract import AnswerStatus
from chapterverse_api.ext.evaluation.metrics import AnswerOutcome

Count: TypeAlias = Annotated[int, Field(ge=0)]

VALIDITY, PRECISION, RECALL = "citation_validity", "citation_precision", "citation_recall"
NUGGETS, _CITED_PAGE, _CITED_SECTION = "nuggets", "cited.page", "cited.section"
_BEGINS, KEY, _KEY_FIRST, _KEY_MARKED = "begins", "key", "key.first", "key.marked"
_QUOTES_WHOLE, _QUOTES_ONCE = "quotes.whole", "quotes.once"
_REFUSED_QUESTIONS, _ANSWERED_QUESTIONS = "refused@unanswerable", "answered@answerable"

#: Every figure of answers that may have a bar.
ANSWER_METRICS = (
    VALIDITY, PRECISION, RECALL, NUGGETS, _CITED_PAGE, _CITED_SECTION, _BEGINS, KEY, _KEY_FIRST, _KEY_MARKED,
    _QUOTES_WHOLE, _QUOTES_ONCE, _REFUSED_QUESTIONS, _ANSWERED_QUESTIONS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CitationCounts:
    """A cited address, and whether it is in an expected section ("anchor") or only on its page ("page")."""

    url: str
    match: Literal["anchor", "page"] | None = None


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """The answer to one question.

    Attributes:
        citations, valid: number of citations in all segments, and of valid ones.
        sentences, carried: number of sentences with a claim, and of those that a section cited there supports.
        pairs, precise: number of pairs of a sentence and its citation, and of those whose section supports it.
        nuggets, contained: number of expected facts, and of those in the answer.
        quotes, silent_cuts, repeated: number of quotes, of pieces that they cut without saying so, and of lines that
            two of them share.
        key: the figures of `quoting.AnswerKey`; empty if the row states no key.
        seconds: the seconds until the sources (`retrieve`), the first words (`first`) and the end (`total`).
        degraded: the reason why the answer was not made as configured, or None; with one it counts for no figure.
    """

    status: AnswerStatus
    confidence: Annotated[float, Field(ge=0, le=1)]
    text: str
    cited: tuple[CitationCounts, ...] = ()
    citations: Count = 0
    valid: Count = 0
    sentences: Count = 0
    carried: Count = 0
    pairs: Count = 0
    precise: Count = 0
    nuggets: Count = 0
    contained: Count = 0
    quotes: Count = 0
    silent_cuts: Count = 0
    repeated: Count = 0
    key: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    degraded: str | None = None

    @property
    def refused(self) -> bool:
        return self.status == "not_in_docs"

    def figures(self, answerable: bool) -> dict[str, float]:
        """Return the figures that are defined for this answer, by name."""
        if self.degraded:
            return {}
        counts = {VALIDITY: (self.valid, self.citations), PRECISION: (self.precise, self.pairs)}
        counts[RECALL] = (self.carried, self.sentences)
        integrity = {_QUOTES_WHOLE: float(not self.silent_cuts), _QUOTES_ONCE: float(not self.repeated)}
        quoted = integrity if self.quotes else {}
        if not answerable:
            return {**_shares(counts), **quoted, _REFUSED_QUESTIONS: float(self.refused)}
        counts[NUGGETS] = (self.contained, self.nuggets)
        return {
            **_shares(counts),
            **quoted,
            **self.key,
            _CITED_PAGE: float(any(c.match for c in self.cited)),
            _CITED_SECTION: float(any(c.match == "anchor" for c in self.cited)),
            _ANSWERED_QUESTIONS: float(not self.refused),
        }

    def outcome(self, answerable: bool) -> AnswerOutcome | None:
        """Return confidence and correctness, None for a refusal.

        An answer is right if it contains any expected fact; without expected facts, if it cites an expected page.
        """
        if self.refused or self.degraded:
            return None
        right = self.contained > 0 if self.nuggets else any(c.match for c in self.cited)
        return AnswerOutcome(self.confidence, answerable and right)


@dataclass(frozen=True, slots=True)
class MutationCounts:
    """Number of false sentences given to the check, and of those that it rejected."""

    tried: Annotated[int, Field(ge=1)]
    caught: Count

    @property
    def share(self) -> float:
        return self.caught / self.tried


def figure_of(kind: str) -> str:
    """Return the name of the figure for a kind of mutation."""
    return f"caught@{kind}"


def mean_seconds(answers: Sequence[AnswerResult]) -> dict[str, float]:
    """Return the mean seconds until each stage, over the answers that reached it."""
    by_stage: dict[str, list[float]] = {}
    for answer in answers:
        for stage, values in answer.seconds.items():
            by_stage.setdefault(stage, []).append(values)
    return {stage: sum(values) / len(values) for stage, values in by_stage.items()}


def _shares(counts: Mapping[str, tuple[int, int]]) -> dict[str, float]:
    return {name: part / total for name, (part, total) in counts.items() if total}
