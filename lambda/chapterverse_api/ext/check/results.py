"""The results of the check: of one sentence, and of a draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from chapterverse_api.draft.draft import Check, Draft, Span
from chapterverse_api.ext.check.analyzed_text import AnalyzedPassage, AnalyzedSentence
from chapterverse_api.ext.check.verdict import Outcome

#: Returns the idf of each term of a text in this index; a term that is not in the result counts 1.
IdfFunction: TypeAlias = Callable[[str], Mapping[int, float]]

#: An answer with more unconfirmed claims, and at least so many, is partial; both set by hand.
_MAX_UNCONFIRMED_SHARE, _MIN_UNCONFIRMED_CLAIMS = 0.2, 2


@dataclass(frozen=True, slots=True)
class SourceVerdict:
    """The passages' verdict on one sentence.

    Attributes:
        is_claim: whether the sentence needs a source.
        id: the id of the passage that supports or contradicts it; None if all are silent.
        quote: the sentence, item, row or line of that passage that decides, verbatim; "" without one.
        probability: the probability, 0 to 1, that the passages say the sentence.
    """

    outcome: Outcome
    is_claim: bool
    id: str | None = None
    quote: str = ""
    probability: float = 0.0


@dataclass(slots=True)
class CheckedSentence:
    """A sentence, or a quote that is verbatim in its passage, with the citations that hold.

    Attributes:
        claimed: the ids that the generator cites.
        citations: the ids that hold.
        is_claim: whether it needs a source.
        outcome: the verdict of the nearest passage; None if no passage was checked.
        support_probability: the probability, 0 to 1, that the passages say it; 0 if none was checked.
        analyzed: the sentence; None for a quote.
        dropped: how many citations do not hold.
        needs_second_vote: whether the citations hold by a score that the words alone leave undecided.
        is_damaged: whether a part of a character was lost on its way, so that the words around it are not the model's.
        contradicting_source: the passage that most likely contradicts it; None if none does.
    """

    text: str
    claimed: tuple[str, ...]
    citations: tuple[str, ...]
    is_claim: bool
    outcome: Outcome | None
    support_probability: float
    analyzed: AnalyzedSentence | None = field(default=None, compare=False)
    dropped: int = 0
    needs_second_vote: bool = False
    is_damaged: bool = False
    contradicting_source: AnalyzedPassage | None = field(default=None, compare=False)

    @classmethod
    def of_quote(cls, span: Span) -> CheckedSentence:
        """Return the result for a quote that stands verbatim in its source."""
        return cls(
            span.text, span.citations, span.citations, is_claim=True, outcome="supports", support_probability=1.0
        )

    @property
    def is_unsupported(self) -> bool:
        """Whether it is a claim, and no source was found to say it."""
        return self.is_claim and not self.citations

    @property
    def check(self) -> Check:
        return "confirmed" if self.citations else "unconfirmed" if self.is_unsupported else "none"

    @property
    def probability(self) -> float | None:
        """The probability that the sources say the sentence; None if it needs no source."""
        return self.support_probability if self.is_claim or self.citations else None

    def as_json(self) -> dict[str, Any]:
        """Return the result as a trace prints it."""
        names = ("text", "claimed", "citations", "check", "outcome", "probability")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class VerifiedDraft:
    """A draft that was checked.

    Attributes:
        spans: the draft's text, unchanged, sentence by sentence.
        dropped: how many citations of the generator do not hold.
        confidence: the mean probability, 0 to 1, over the sentences that need a source; 0 without any.
        unsupported_count: how many claims no passage supports.
        claim_count: how many sentences are claims, or have a citation that holds.
        leaves_open: whether the draft says that the documentation leaves a part open.
        checks: the results for each sentence, and for each quote that is verbatim in its passage as a whole.
    """

    spans: Draft
    dropped: int
    confidence: float
    unsupported_count: int = 0
    claim_count: int = 0
    leaves_open: bool = False
    checks: tuple[CheckedSentence, ...] = ()

    @property
    def cited(self) -> bool:
        """Whether any citation holds."""
        return any(span.citations for span in self.spans)

    @property
    def partial_reason(self) -> Literal["cut", "left_open", "unconfirmed"] | None:
        """Why the draft answers only in part: it was cut, says so itself, or too much of it is unconfirmed."""
        if any(span.cut for span in self.spans):
            return "cut"
        if self.leaves_open:
            return "left_open"
        unconfirmed = self.unsupported_count >= _MIN_UNCONFIRMED_CLAIMS
        unconfirmed &= self.unsupported_count > _MAX_UNCONFIRMED_SHARE * self.claim_count
        return "unconfirmed" if unconfirmed else None
