"""The interface of generators: passages and a question in, a draft with claimed citations out."""

from __future__ import annotations

import json
from collections.abc import Generator as Steps
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from chapterverse.calibration import Question
from chapterverse.knowledge.persona import Persona
from chapterverse_api.deadline import Deadline

Check: TypeAlias = Literal["confirmed", "unconfirmed", "none"]

#: A larger count of tokens is an error of the service.
_MOST_TOKENS = 10_000_000


class Subsection(NamedTuple):
    """The heading of a section directly below another one, and its address; "" where it has no text of its own."""

    heading: str
    url: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A source as generators and grounding see it.

    Attributes:
        id: the string that a segment cites.
        path: headings from the chapter down.
        text: Markdown, verbatim.
        section: the text with its surroundings in its section; the text itself where no more is known.
        terms: hashed terms of path and text, which saves reading them again.
        score: orders the passages, 0 to 1; evidence saturates, so it can't order the best ones.
        evidence: calibrated, 0 to 1.
        url: its address; None for a selection from a page that the index does not hold.
        whole: whether `section` is all of its section.
        subsections: those of its section, in order.
    """

    id: str
    path: tuple[str, ...]
    text: str
    section: str
    terms: frozenset[int]
    score: float
    evidence: float
    url: str | None
    chunk_id: str | None
    whole: bool = True
    subsections: tuple[Subsection, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """An earlier message of the conversation; "assistant" marks only answers that are proven to be ours."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(slots=True)
class Usage:
    """Tokens that a generator's service says it has billed, as far as it says so.

    Attributes:
        read: of the prompt, sources included.
        written: of the answer.
    """

    read: float = 0.0
    written: float = 0.0

    def take(self, read: object, written: object, total: object) -> None:
        """Take a service's counts if they are plausible. Some count billed thoughts in the total only."""
        asked, said, both = (n if type(n) is int and 0 < n < _MOST_TOKENS else 0 for n in (read, written, total))
        # One of them alone may count anything.
        if asked and said:
            self.read, self.written = asked, max(said, both - asked)


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """The question to answer, and the passages to answer it from.

    Attributes:
        question: as the reader asked; empty for "explain this".
        words: its words as the index weighs them.
        passages: best first.
        language: BCP 47 tag of the answer.
        unsure: whether the passages are only perhaps an answer.
        sides: ids of the passages that say what the sides of a comparison are; none where it is not known.
        selected: whether the passage is the reader's selection, and no search result.
        selection: the reader's selection, if the passages were found for it; its own words are no answer.
        history: the conversation, oldest message first, cut to the size of a prompt.
        summary: of the conversation before `history`.
        recalled: earlier turns that are about the question's subject, as text.
        context: the reader's words about themselves, never a source.
        memories: the owner's notes on the subject, best first; never a source.
        persona: the owner's settings of tone and language.
        deadline: when the answer must be complete.
        usage: filled in by the generator.
    """

    question: str
    words: Question
    passages: tuple[Passage, ...]
    language: str
    unsure: bool = False
    sides: tuple[str, ...] = ()
    selected: bool = False
    selection: str = ""
    history: tuple[ChatMessage, ...] = ()
    summary: str = ""
    recalled: str = ""
    context: str = ""
    memories: tuple[str, ...] = ()
    persona: Persona = field(default_factory=Persona)
    deadline: Deadline = field(default_factory=Deadline)
    usage: Usage = field(default_factory=Usage, compare=False)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a language model for another text than an answer: a summary, data, calls of tools, a verdict.

    Attributes:
        instructions: the system message.
        messages: oldest first; the last is the reader's.
        max_tokens: length limit of the model's text.
        deadline: when the request ends.
        usage: filled in by a model that reports it.
    """

    instructions: str
    messages: tuple[ChatMessage, ...]
    max_tokens: int
    deadline: Deadline
    usage: Usage | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a draft and the ids that it claims to rest on.

    Attributes:
        kind: `quote` is one passage of one source, `framing` our own words, which claim nothing of the documentation,
            `prose` a model's.
        mark: the part of the text that answers, where it is known.
        cut: the model's limit of length ended the draft here.
        check: the result of the check: its citations hold, or no source carries its claim, or it claims nothing.
    """

    text: str
    citations: tuple[str, ...] = ()
    kind: Literal["quote", "prose", "framing"] = "prose"
    mark: str | None = None
    cut: bool = False
    check: Check = "none"


Draft = tuple[Span, ...]


def spans(texts: Steps[str, None, bool]) -> Steps[Span, None, None]:
    """Yield a model's text as spans; `texts` returns whether its limit of length ended it, and is closed at the end."""
    with closing(texts):
        while True:
            try:
                yield Span(next(texts))
            except StopIteration as end:
                if end.value:
                    yield Span("", cut=True)
                return


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """What data must look like.

    Attributes:
        name: letters, digits, `-` and `_`, at most 64.
        document: a JSON Schema of an object, without references.
    """

    name: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is offered to a model.

    Attributes:
        name: small letters, digits and `_`, at most 64.
        description: what it does and when to call it.
        parameters: a JSON Schema of an object, without references.
    """

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model asks for, unchecked.

    Attributes:
        arguments: JSON as the model wrote it.
    """

    name: str
    arguments: str


def function_calls(listed: Any) -> tuple[ToolCall, ...]:
    """Return the calls in a reply's list of `{"function": {"name", "arguments"}}`; malformed ones are left out."""
    functions = [one.get("function") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    pairs = [(one.get("name"), one.get("arguments")) for one in functions if isinstance(one, dict)]
    # Some local servers send the arguments as an object.
    texts = ((name, json.dumps(text) if isinstance(text, dict) else text or "{}") for name, text in pairs)
    return tuple(ToolCall(name, text) for name, text in texts if isinstance(name, str) and isinstance(text, str))


class Generator(Protocol):
    """Drafts answers."""

    @property
    def name(self) -> str: ...

    def generate(self, task: GenerationRequest) -> Steps[Span, None, None]:
        """Yield the draft with its claimed citations, as it comes.

        Spans of prose are pieces of one text and may end anywhere. They may hold the marks by which a model cites,
        "[1]". A quote or a framing is whole. Closing the generator ends the model's work.

        Raises:
            ProviderError: the model could not be reached, broke off, or took longer than the deadline.
        """
        ...


@runtime_checkable
class Writer(Protocol):
    """A generator whose language model also writes short texts without sources."""

    def write(self, request: ModelRequest) -> str:
        """Return the model's whole text.

        Raises:
            ProviderError: the model could not be reached, broke off, or took longer than the deadline.
        """
        ...


@runtime_checkable
class DataWriter(Protocol):
    """A generator whose language model also writes data that fits a schema."""

    def write_data(self, request: ModelRequest, schema: ResponseSchema) -> str:
        """Return the model's whole text, which should be JSON that fits the schema. The caller has to check that.

        Raises:
            ProviderError: the model could not be reached, broke off, or took longer than the deadline.
        """
        ...


@runtime_checkable
class ToolCaller(Protocol):
    """A generator whose language model also asks for calls of tools."""

    def choose_tools(self, request: ModelRequest, tools: Sequence[ToolSpec]) -> tuple[ToolCall, ...] | None:
        """Return the calls that the model asks for, in order; None where this model takes no tools.

        Raises:
            ProviderError: the model could not be reached, broke off, or took longer than the deadline.
        """
        ...
