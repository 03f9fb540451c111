"""The results of the check of a draft, and the weights that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from chapterverse_api.generation.draft import Check, Draft
from chapterverse_api.grounding.verdict import Outcome

#: Gives the idf of each term of a text in this index; terms that it leaves out weigh 1.
Weigh: TypeAlias = Callable[[str], Mapping[int, float]]

#: Of more unconfirmed claims, and at least so many, an answer is partial.
MAX_UNCONFIRMED_SHARE, MIN_UNCONFIRMED_CLAIMS = 0.2, 2


@dataclass(frozen=True, slots=True)
class SentenceCheck:
    """The result of the check of one sentence.

    Attributes:
        claimed: the ids that the generator gave.
        citations: the ids that hold.
        outcome: the verdict of the nearest passage; None where no passage was checked.
        probability: that the sources say the same, 0 to 1; None where the sentence claims nothing.
    """

    text: str
    claimed: tuple[str, ...]
    citations: tuple[str, ...]
    check: Check
    outcome: Outcome | None
    probability: float | None


@dataclass(frozen=True, slots=True)
class VerifiedDraft:
    """A draft that was checked.

    Attributes:
        checks: of each sentence, and of each quote that is verbatim in its passage as a whole.
        spans: the draft's text, unchanged, sentence by sentence.
        dropped: how many claimed citations did not hold.
        confidence: 0 to 1 over the sentences with a claim; 0 without any.
        flagged: how many sentences have a claim that no passage supports.
        claims: how many sentences claim something.
        leaves_open: whether the draft says that the documentation leaves a part open.
    """

    spans: Draft
    dropped: int
    confidence: float
    flagged: int = 0
    claims: int = 0
    leaves_open: bool = False
    checks: tuple[SentenceCheck, ...] = ()

    @property
    def cited(self) -> bool:
        """Whether any citation holds."""
        return any(span.citations for span in self.spans)

    @property
    def partial(self) -> bool:
        """Whether a part is left open by the draft's own words, or too much of it is unconfirmed."""
        unconfirmed = self.flagged >= MIN_UNCONFIRMED_CLAIMS and self.flagged > MAX_UNCONFIRMED_SHARE * self.claims
        return self.leaves_open or unconfirmed or any(span.cut for span in self.spans)


@dataclass(frozen=True, slots=True)
class SourceVerdict:
    """The passages' verdict on one sentence.

    Attributes:
        claims: whether the sentence claims anything that a passage could carry.
        id: the id of the passage that supports or contradicts it; None where all are silent.
        quote: the sentence, item, row or line of that passage that supports it, verbatim; "" without one.
        probability: 0 to 1, that the passages say it.
    """

    outcome: Outcome
    claims: bool
    id: str | None = None
    quote: str = ""
    probability: float = 0.0
