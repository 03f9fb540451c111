"""A draft, text in spans with the citations that its generator gives, and the interfaces of generators."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.requests import GenerationRequest, ModelRequest, ResponseSchema, ToolCall, Usage

#: What a quote leaves out between two blocks, or before its first sentence or line; begins each line that states it.
OMISSION = "…"

#: Sentences of one answer that a checker is asked about, and bytes of such a request: longer ones are not asked.
MAX_VOTES, MAX_VOTE_BYTES = 6, 12_000

Check: TypeAlias = Literal["confirmed", "unconfirmed", "none"]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a draft and the passages that it cites.

    Attributes:
        citations: the ids of the passages that say it.
        kind: `quote` is one passage of one source, `framing` our own words, which are no claim about the documentation,
            `prose` a model's.
        mark: the part of the text that answers; None if it is not known.
        cut: whether the model's limit of length ended the draft here.
        check: `confirmed` if its citations hold, `unconfirmed` if it is a claim without any, `none` if it is no claim.
    """

    text: str
    citations: tuple[str, ...] = ()
    kind: Literal["quote", "prose", "framing"] = "prose"
    mark: str | None = None
    cut: bool = False
    check: Check = "none"


Draft = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class ShownDraft:
    """A draft, as far as the reader has it, with the citations that hold.

    Attributes:
        generator: name of the one that wrote it.
        failure: sentences about what did not work as configured; None if all did.
        quoted: whether it consists of quotes, without a model's words.
        not_in_docs: whether it ends with the statement that the sources hold no answer.
        confidence: the probability, 0 to 1, that the sources say its claims; a quote says what its source says.
        partial_reason: why it answers only in part; None if it doesn't.
        dropped: how many citations of its generator do not hold.
        checks: the results for its sentences; empty for quotes, which need no check.
    """

    spans: Draft
    generator: str
    failure: str | None = None
    quoted: bool = False
    not_in_docs: bool = False
    confidence: float = 1.0
    partial_reason: Literal["cut", "left_open", "unconfirmed"] | None = None
    dropped: int = 0
    checks: Sequence[SentenceCheck] = ()

    @property
    def citations(self) -> tuple[str, ...]:
        """The ids of the sources that are cited, in order."""
        return tuple(dict.fromkeys(i for span in self.spans for i in span.citations))


class SentenceCheck(Protocol):
    """The result of the check for one sentence."""

    def as_json(self) -> dict[str, Any]:
        """Return it as a trace prints it."""
        ...


class AnswerGenerator(Protocol):
    """Drafts answers."""

    @property
    def name(self) -> str: ...

    def generate(self, request: GenerationRequest) -> Generator[Span | ToolCall, None, None]:
        """Yield the draft with its citations, as it comes.

        Spans of prose are pieces of one text and may end anywhere. They may contain the marks by which a model cites,
        "[1]". A span of a quote or of our own words is complete. Closing the generator ends the model's work. A model
        that calls tools of the request yields the calls at the end.

        Raises:
            ProviderError: the model could not be reached, broke off, or took longer than the deadline.
        """
        ...


@runtime_checkable
class Writer(Protocol):
    """A generator with a language model, which also writes short texts without sources, and data."""

    def write(self, request: ModelRequest) -> str:
        """Return the model's whole text.

        Raises:
            ProviderError: the model could not be reached, broke off, or took longer than the deadline.
        """
        ...

    def write_data(self, request: ModelRequest, schema: ResponseSchema) -> str:
        """Return the model's whole text, which should be JSON that fits the schema. The caller has to check that.

        Raises:
            ProviderError: as above.
        """
        ...


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
    """A model that votes a second time on a claim which the words leave undecided. Safe to share between threads.

    A vote can only take a citation away, so a page that persuades a checker gains nothing.
    """

    @property
    def name(self) -> str: ...

    def supports(self, request: CheckRequest) -> bool:
        """Return whether the document supports the claim.

        Raises:
            ProviderError: the model could not be reached in time, refused, or answered with something that is no
                verdict.
        """
        ...
