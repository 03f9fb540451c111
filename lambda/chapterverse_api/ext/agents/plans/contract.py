"""The wire format of plans: requests, responses, and the steps of a plan.

These models stand apart from `chapterverse_api.contract`, since they take 7 ms to build: each start of the service
would pay for them, and few services are asked for a plan.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from chapterverse_api import rejections
from chapterverse_api.contract import (
    ChatQuery,
    LanguageTag,
    Nearest,
    PageUrl,
    QuestionText,
    RequestModel,
    ResponseModel,
    SourceChunk,
    VersionName,
)

#: Steps of a plan.
MAX_STEPS = 20
#: Characters of a plan's title, of a step's text, and of a reader's answer or a tool's result.
MAX_TITLE_CHARS, MAX_TEXT_CHARS, MAX_VALUE_CHARS = 200, 600, 500
#: Characters of a state: a plan of twenty long steps with its sources.
_MAX_STATE_CHARS = 60_000

StepKind = Literal["ask_user", "call_tool", "decide", "action", "compute"]
ComparisonOperator = Literal["eq", "ne", "lt", "le", "gt", "ge", "contains"]
ArithmeticOperator = Literal["add", "subtract", "multiply", "divide"]
PlannedBy = Literal["model", "page"]

StepId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,40}$")]
PlanVariable = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
Operand = Annotated[str, StringConstraints(min_length=1, max_length=80)]


class StepOption(ResponseModel):
    """An answer that a reader may give. `next` is null if the plan ends."""

    label: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    next: StepId | None = None


class StepCondition(ResponseModel):
    """Where to go on if a variable compares so."""

    variable: PlanVariable
    operator: ComparisonOperator
    value: Operand
    next: StepId | None = None


class Operation(ResponseModel):
    """An operation on two numbers, each written out or the name of a variable."""

    left: Operand
    operator: ArithmeticOperator
    right: Operand


class PlanStep(ResponseModel):
    """One step. What its kind does not use is left out.

    Attributes:
        text: the words for the reader, of `ask_user` and `action`.
        citations: ids of the sources that say it.
        next: the step behind it, null at the end.
        options: answers to `ask_user`; without any, the reader writes.
        variable: takes the answer, the tool's output or the result.
        arguments: of a tool; a value in braces, `{name}`, is a variable's.
        conditions: of `decide`, in order; `next` follows if none holds.
    """

    id: StepId
    kind: StepKind
    text: Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS)] = ""
    citations: list[str] = Field(default=[], max_length=8)
    next: StepId | None = None
    options: list[StepOption] = Field(default=[], max_length=6)
    variable: PlanVariable | None = None
    tool: str | None = None
    arguments: dict[str, Annotated[str, StringConstraints(max_length=200)]] = Field(default={}, max_length=8)
    conditions: list[StepCondition] = Field(default=[], max_length=6)
    operation: Operation | None = None

    @property
    def targets(self) -> list[str | None]:
        """The steps that may follow; None is the end."""
        if self.options:
            return [option.next for option in self.options]
        return [*(condition.next for condition in self.conditions), self.next]


class Plan(ResponseModel):
    """Steps with their transitions; the first one begins."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TITLE_CHARS)]
    steps: Annotated[list[PlanStep], Field(min_length=1, max_length=MAX_STEPS)]

    def step(self, step_id: str) -> PlanStep:
        return next(step for step in self.steps if step.id == step_id)


class PlanRequest(RequestModel):
    """A question to plan for, or the state of a plan and what its reader says."""

    query: QuestionText | None = None
    page_url: PageUrl | None = None
    language: LanguageTag | None = None
    version: VersionName | None = None
    filters: dict[str, Any] = Field(default_factory=dict)
    state: Annotated[str, StringConstraints(min_length=1, max_length=_MAX_STATE_CHARS)] | None = None
    input: Annotated[str, StringConstraints(max_length=MAX_VALUE_CHARS)] | None = None

    @model_validator(mode="after")
    def _one(self) -> PlanRequest:
        if (self.query is None) == (self.state is None):
            raise ValueError("query or state must be given, and not both")
        return self

    def as_query(self) -> ChatQuery:
        """Return the question as one of the chat.

        Raises:
            InputError: a filter or the question is invalid.
        """
        return rejections.make_query(**self.model_dump(include={"query", "page_url", "language", "version", "filters"}))


class ToolOutcome(ResponseModel):
    """What a tool said on the way to a step."""

    name: str
    ok: bool
    text: str


class PlanResponse(ResponseModel):
    """A step of a plan.

    Attributes:
        step: what the reader does or answers now; None at the end, or without a plan.
        plan: all steps, in the first response.
        planned_by: a model, or the numbered steps of a page.
        state: to be sent back with the next request.
        sources: what the steps cite.
    """

    status: Literal["open", "ended", "not_in_docs"]
    title: str = ""
    step: PlanStep | None = None
    plan: list[PlanStep] = Field(default_factory=list)
    planned_by: PlannedBy | None = None
    state: str | None = None
    sources: list[SourceChunk] = Field(default_factory=list)
    results: list[ToolOutcome] = Field(default_factory=list)
    nearest: list[Nearest] = Field(default_factory=list)
    degraded_reason: str | None = None
