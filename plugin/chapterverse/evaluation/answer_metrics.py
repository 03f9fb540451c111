"""Scores of answers without a judging model: citations, facts, refusals, confidence.

An answer is kept as facts that were counted (see `judging.judge` of the service), and figures follow from them as they
do for a search. All are from 0 to 1, the higher the better, and averaged over the questions that they are defined for:

    citation_validity      share of the citations that name a source of this answer, stand in the index and are verified
                           once more, each by itself; anything but 1 is a defect
    citation_precision     share of the pairs of a sentence and one of its citations in which the section carries it
    citation_recall        share of the sentences that a section cited there carries
    nuggets                share of the expected facts that the answer holds; 0 of a refusal
    cited.page             1 where any citation leads to an expected page; 0 of a refusal
    cited.section          the same for an expected section
    refused@unanswerable   share of the unanswerable questions that were refused, at whichever stage
    answered@answerable    share of the answerable ones that were not

Precision and recall are those of Liu, Zhang and Liang, "Evaluating verifiability in generative search engines" (2023),
with the lexical entailer that the service verifies by in place of people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from chapterverse.evaluation.confidence import AnswerOutcome

Status: TypeAlias = Literal["answered", "partial", "not_in_docs", "degraded"]
Count: TypeAlias = Annotated[int, Field(ge=0)]

VALIDITY, PRECISION, RECALL = "citation_validity", "citation_precision", "citation_recall"
NUGGETS, CITED_PAGE, CITED_SECTION = "nuggets", "cited.page", "cited.section"
REFUSED, ANSWERED = "refused@unanswerable", "answered@answerable"

#: Every figure of answers that may have a bar.
NAMES = (VALIDITY, PRECISION, RECALL, NUGGETS, CITED_PAGE, CITED_SECTION, REFUSED, ANSWERED)


@dataclass(frozen=True, slots=True)
class CitationCounts:
    """An address that an answer cites, and whether it stands in an expected section, or on the page of one."""

    url: str
    match: Literal["anchor", "page"] | None = None


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """What was answered to one question.

    Attributes:
        citations, valid: of all segments, and those of them that hold.
        sentences, carried: what says something, and what a section cited there carries.
        pairs, precise: a sentence with one of its citations, and those where that section carries it.
        nuggets, contained: expected facts, and those that the answer holds.
        seconds: until the sources (`retrieve`), the first words (`first`) and the end (`total`).
        degraded: why not all went as configured: then it counts for no figure.
    """

    status: Status
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
    seconds: dict[str, float] = field(default_factory=dict)
    degraded: str | None = None

    @property
    def refused(self) -> bool:
        return self.status == "not_in_docs"

    def figures(self, answerable: bool) -> dict[str, float]:
        """Return the figures that this answer counts for, by name."""
        if self.degraded:
            return {}
        found = {VALIDITY: (self.valid, self.citations), PRECISION: (self.precise, self.pairs)}
        found[RECALL] = (self.carried, self.sentences)
        if not answerable:
            return {**_shares(found), REFUSED: float(self.refused)}
        found[NUGGETS] = (self.contained, self.nuggets)
        return {
            **_shares(found),
            CITED_PAGE: float(any(c.match for c in self.cited)),
            CITED_SECTION: float(any(c.match == "anchor" for c in self.cited)),
            ANSWERED: float(not self.refused),
        }

    def outcome(self, answerable: bool) -> AnswerOutcome | None:
        """Return how sure it was and whether it is right; None of a refusal, which is sure of nothing.

        It is right if it holds any expected fact, or where none are written down, if it cites an expected page.
        """
        if self.refused or self.degraded:
            return None
        right = self.contained > 0 if self.nuggets else any(c.match for c in self.cited)
        return AnswerOutcome(self.confidence, answerable and right)


@dataclass(frozen=True, slots=True)
class MutationCounts:
    """How many sentences that were made wrong the verifier had before it, and how many it did not let stand."""

    tried: Annotated[int, Field(ge=1)]
    caught: Count

    @property
    def share(self) -> float:
        return self.caught / self.tried


def figure_of(kind: str) -> str:
    """Return the name of the figure for a kind of mutation."""
    return f"caught@{kind}"


def mean_seconds(answers: Sequence[AnswerResult]) -> dict[str, float]:
    """Return the mean seconds until each stage, over the answers that came to it."""
    found: dict[str, list[float]] = {}
    for answer in answers:
        for stage, taken in answer.seconds.items():
            found.setdefault(stage, []).append(taken)
    return {stage: sum(taken) / len(taken) for stage, taken in found.items()}


def _shares(counts: Mapping[str, tuple[int, int]]) -> dict[str, float]:
    return {name: part / whole for name, (part, whole) in counts.items() if whole}
