"""The interface of checkers: models that vote a second time on sentences that the words leave undecided.

A vote can only take a citation away, so a page that persuades a checker gains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.requests import Usage


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """A sentence of an answer and its cited source.

    Attributes:
        document: headings and text of the cited sections.
        claim: the sentence, without marks of sources.
        question: the question that the answer is for, at most 1,000 characters; may be empty.
        deadline: when the vote must be there.
        usage: filled in by the checker, as far as its service reports it.
    """

    document: str
    claim: str
    question: str
    deadline: Deadline = field(default_factory=Deadline)
    usage: Usage = field(default_factory=Usage, compare=False)

    @property
    def characters(self) -> int:
        return len(self.document) + len(self.claim) + len(self.question)


class Checker(Protocol):
    """A model that checks claims. Safe to share between threads."""

    @property
    def name(self) -> str: ...

    def supports(self, request: CheckRequest) -> bool:
        """Return whether the document supports the claim.

        Raises:
            ProviderError: the model could not be reached in time, refused, or answered with something that is no
                verdict.
        """
        ...
