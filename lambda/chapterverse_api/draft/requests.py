"""Requests for an answer with its sources, to models for another text or data, and the tools that these may call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from chapterverse.calibration import WeightedQuestion
from chapterverse.model import Persona
from chapterverse.text.tokens import PROMPT_TOKEN_BYTES, utf8_length
from chapterverse_api.deadline import Deadline

#: Tokens of the earlier conversation in a prompt, of its summary and of recalled turns, as `estimate_tokens` counts.
MAX_HISTORY_TOKENS, MAX_SUMMARY_TOKENS, MAX_RECALLED_TOKENS = 1200, 300, 500
#: Messages of the history, the newest.
MAX_PROMPT_MESSAGES = 5
#: Low, so that an answer stays close to its sources and is nearly always the same. At 0 some models repeat themselves.
TEMPERATURE = 0.1
#: A service that counts more tokens is in error.
MAX_COUNTED_TOKENS = 10_000_000


@dataclass(frozen=True, slots=True)
class PassageReading:
    """What the reading model makes of a passage, compared with the other passages of its question.

    Attributes:
        best: the probability that this passage answers best.
        parts: for each part of its text, without white space at its ends, the log-probability that it answers.
    """

    best: float
    parts: Mapping[str, float]


class Subsection(NamedTuple):
    """The heading of a section directly below another one, and its address; "" if it has no text of its own."""

    heading: str
    url: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A source.

    Attributes:
        id: the string that a segment cites.
        path: headings from the chapter down.
        text: the Markdown of the chunk, without the addresses of its links.
        section: the text with its surroundings in its section; the text alone if no more is known.
        terms: hashed terms of path and text, so that they need not be read again.
        score: the order of the passages, 0 to 1; evidence saturates, so it can't order the best ones.
        evidence: the calibrated evidence, 0 to 1.
        url: the address of the section; None for a selection from a page that the index does not hold.
        chunk_id: the id of the chunk in the index; None for a source that is not from there.
        is_whole_section: whether `section` is all of its section.
        subsections: the sections directly below its section, in order.
        reading: what the reading model makes of the text; None if it was not read.
    """

    id: str
    path: tuple[str, ...]
    text: str
    section: str
    terms: frozenset[int] = frozenset()
    score: float = 1.0
    evidence: float = 1.0
    url: str | None = None
    chunk_id: str | None = None
    is_whole_section: bool = True
    subsections: tuple[Subsection, ...] = ()
    reading: PassageReading | None = None


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """An earlier message of the conversation; "assistant" marks only answers that are proven to be ours."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(slots=True)
class Usage:
    """The tokens that a model service reports as billed; 0 if it reports none.

    Attributes:
        input_tokens: tokens of the prompt, sources included.
        output_tokens: tokens of the answer.
    """

    input_tokens: float = 0.0
    output_tokens: float = 0.0

    def take(self, prompt: object, answer: object, total: object) -> None:
        """Take a service's counts if they are plausible. Some count billed thoughts in the total only."""
        counts = [n if type(n) is int and 0 < n < MAX_COUNTED_TOKENS else 0 for n in (prompt, answer, total)]
        # One of them alone may count anything.
        if counts[0] and counts[1]:
            self.input_tokens, self.output_tokens = counts[0], max(counts[1], counts[2] - counts[0])


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """The question to answer, and the passages to answer it from.

    Attributes:
        question: the reader's question; empty for "explain this".
        words: the words of the question with their weights in the index.
        passages: the sources, best first.
        language: BCP 47 tag of the answer.
        may_help: whether it is doubtful that quotes of the first passages answer.
        compares: whether the question asks for a comparison.
        sides: ids of the passages that say what its sides are; empty if that is not known.
        selected: whether the one passage is the reader's selection, and no search result.
        selection: the reader's selection, if it was searched with; its own words are no answer.
        history: the conversation, oldest message first, cut to the size of a prompt.
        summary: a summary of the conversation before `history`.
        recalled: earlier turns about the question's subject, as text.
        context: the reader's words about themselves, never a source.
        memories: the owner's notes on the subject, best first; never a source.
        persona: the owner's settings of tone and language.
        documentation: the site and the docs version that the passages are of; empty for a selection.
        tools: what the model may call in place of an answer; empty if it must answer.
        looked_for: what it called them for already; the results are among the passages.
        from_tools: how many passages tools found, the last ones.
        deadline: when the answer must be complete.
        usage: filled in by the generator.
    """

    question: str
    words: WeightedQuestion
    passages: tuple[Passage, ...]
    language: str
    may_help: bool = False
    compares: bool = False
    sides: tuple[str, ...] = ()
    selected: bool = False
    selection: str = ""
    history: tuple[ChatMessage, ...] = ()
    summary: str = ""
    recalled: str = ""
    context: str = ""
    memories: tuple[str, ...] = ()
    persona: Persona = field(default_factory=Persona)
    documentation: str = ""
    tools: tuple[ToolSpec, ...] = ()
    looked_for: tuple[str, ...] = ()
    from_tools: int = 0
    deadline: Deadline = field(default_factory=Deadline)
    usage: Usage = field(default_factory=Usage, compare=False)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a language model, for any text.

    Attributes:
        instructions: the system message.
        messages: oldest first; the last is the reader's.
        max_tokens: length limit of the model's text.
        deadline: when the request ends.
        usage: filled in by a model that reports it.
        tools: what the model may call.
    """

    instructions: str
    messages: tuple[ChatMessage, ...]
    max_tokens: int
    deadline: Deadline
    usage: Usage | None = field(default=None, compare=False)
    tools: tuple[ToolSpec, ...] = ()


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


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The outcome of a call.

    Attributes:
        output: sources without ids; those without an address are what another server says.
        error: one sentence for readers about the failure, without the arguments and any host; empty if the call
            succeeded.
        cause: one sentence for the log, if it may say more.
    """

    ok: bool
    output: tuple[Passage, ...] = ()
    error: str = ""
    cause: str = ""


class TurnTools(Protocol):
    """The tools that one turn may use."""

    @property
    def specs(self) -> Sequence[ToolSpec]: ...

    def run(self, call: ToolCall, deadline: Deadline) -> ToolResult:
        """Check a call's arguments and make it. Every failure is a result. Threads may call it at once.

        Raises:
            ClientDisconnected: the reader left.
        """
        ...


def recent_messages(history: Iterable[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return the newest messages that a prompt holds, oldest first and without a gap; the very newest at any length."""
    recent: list[ChatMessage] = []
    tokens_left = float(MAX_HISTORY_TOKENS)
    for message in reversed([m for m in history if m.content.strip()][-MAX_PROMPT_MESSAGES:]):
        tokens_left -= estimate_tokens(message.content)
        if tokens_left < 0 and recent:
            break
        recent.append(message)
    return tuple(recent[::-1])


def estimate_tokens(text: str) -> float:
    """Return about how many tokens a text is: each model counts by rules of its own."""
    return utf8_length(text) / PROMPT_TOKEN_BYTES
