"""What a generator gets and returns: passages and a question in, a draft with claimed citations out."""

from __future__ import annotations

import json
from collections.abc import Generator as Steps
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from chapterverse.calibration import Question
from chapterverse.knowledge.persona import Persona
from chapterverse_api.deadline import Deadline

Check: TypeAlias = Literal["confirmed", "unconfirmed", "none"]

#: More is no number of tokens.
_MOST_TOKENS = 10_000_000


@dataclass(frozen=True, slots=True)
class Passage:
    """A source as generators and grounding see it.

    Attributes:
        id: the string that a segment cites.
        path: headings from the chapter down.
        text: Markdown, verbatim.
        section: the text with what stands around it in its section; the text itself where nothing more is known.
        terms: hashed terms of path and text, for what can be said without reading them again.
        rank: its value in the order of the passages, 0 to 1; evidence saturates, and can't order what is all likely.
        score: calibrated evidence, 0 to 1.
        url: where it stands; None for a selection from a page that the index does not hold.
        whole: whether `section` is all of its section.
    """

    id: str
    path: tuple[str, ...]
    text: str
    section: str
    terms: frozenset[int]
    rank: float
    score: float
    url: str | None
    chunk_id: str | None
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """An earlier message of the conversation; "assistant" is only what we are known to have said."""

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
        """Take what a service says, where it can be so; some leave billed thoughts out of all but the total."""
        asked, said, both = (n if type(n) is int and 0 < n < _MOST_TOKENS else 0 for n in (read, written, total))
        # One of them alone may count anything.
        if asked and said:
            self.read, self.written = asked, max(said, both - asked)


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """What to answer, and from what.

    Attributes:
        question: as the reader asked; empty for "explain this".
        words: its words as the index weighs them.
        passages: best first.
        language: BCP 47 tag of the answer.
        unsure: whether the passages are only perhaps an answer.
        selected: whether the passage is what the reader selected, and not what was found.
        selection: what the reader selected, where the passages were found for it; its own words are no answer.
        history: what was said before, oldest first, cut to what a prompt may hold.
        summary: of what was said before that.
        recalled: earlier turns that speak of the question, as text.
        context: what the reader tells of themselves: their words, never a source.
        memories: the owner's notes on the subject, best first; never a source.
        persona: how the owner wants it said.
        deadline: until when, at the latest.
        usage: filled in by the generator.
    """

    question: str
    words: Question
    passages: tuple[Passage, ...]
    language: str
    unsure: bool = False
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
class Span:
    """A stretch of a draft and the ids that it claims to rest on.

    Attributes:
        kind: `quote` is one passage of one source, `framing` our own words, which claim nothing of the documentation,
            `prose` a model's.
        mark: the part of the text that answers, where it is known.
        cut: the model's limit of length ended the draft here.
        check: what was found out of it: citations hold, or it claims something that no source carries, or nothing.
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
    """A call that a model asks for; nothing of it was checked.

    Attributes:
        arguments: JSON as the model wrote it.
    """

    name: str
    arguments: str


def function_calls(listed: Any) -> tuple[ToolCall, ...]:
    """Return the calls in a reply's list of `{"function": {"name", "arguments"}}`; what is none is left."""
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

        Spans of prose are pieces of one text and may end anywhere; the marks by which a model cites, "[1]", may stand
        in them. A quote or a framing is whole. Closing it ends the model's work.

        Raises:
            ProviderError: the model could not be reached, broke off, or took longer than the deadline.
        """
        ...


@runtime_checkable
class Writer(Protocol):
    """What a generator with a language model can do besides: a short text without sources."""

    def write(self, instructions: str, messages: Sequence[ChatMessage], *, tokens: int, deadline: Deadline) -> str:
        """Return the model's whole text, of at most so many tokens.

        Raises:
            ProviderError: the model could not be reached, broke off, or took longer than the deadline.
        """
        ...


@runtime_checkable
class DataWriter(Protocol):
    """What a generator with a language model can do besides: data in the form of a schema."""

    def write_data(
        self,
        instructions: str,
        messages: Sequence[ChatMessage],
        schema: ResponseSchema,
        *,
        tokens: int,
        deadline: Deadline,
    ) -> str:
        """Return the model's whole text, which should be JSON that fits the schema; nobody guarantees that.

        Raises:
            ProviderError: the model could not be reached, broke off, or took longer than the deadline.
        """
        ...


@runtime_checkable
class ToolCaller(Protocol):
    """What a generator with a language model can do besides: ask for calls of tools."""

    def choose_tools(
        self,
        instructions: str,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolSpec],
        *,
        tokens: int,
        deadline: Deadline,
    ) -> tuple[ToolCall, ...] | None:
        """Return the calls that the model asks for, in order; None where this model takes no tools.

        Raises:
            ProviderError: the model could not be reached, broke off, or took longer than the deadline.
        """
        ...
