"""A plan of steps: its wire format, the check before it runs, and its run from one step that a reader sees to the next.

Nothing of a plan is code: a step that computes knows four operations on two numbers, and a step that decides compares.
These models stand apart from `chapterverse_api.contract`, since they take 7 ms to build: each start of the service
would pay for them, and few services are asked for a plan.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from chapterverse.errors import InputError
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
from chapterverse_api.ext.agents.data import DataProblem

#: Steps of a plan.
MAX_STEPS = 20
#: Characters of a plan's title, of a step's text, and of a reader's answer or a tool's result.
MAX_TITLE_CHARS, MAX_TEXT_CHARS, _MAX_VALUE_CHARS = 200, 600, 500
#: Characters of a state: a plan of twenty long steps with its sources.
_MAX_STATE_CHARS = 60_000
#: A float is an exact integer up to 2**53, which is nine times as much.
_MAX_NUMBER = 1e15
_ARITHMETIC = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
}
StepKind = Literal["ask_user", "call_tool", "decide", "action", "compute"]
#: Kinds of steps that a reader sees. All others run by themselves.
INTERACTIVE_KINDS: tuple[StepKind, ...] = ("ask_user", "action")

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
    input: Annotated[str, StringConstraints(max_length=_MAX_VALUE_CHARS)] | None = None

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
        return rejections.make_query(**self.model_dump(exclude={"state", "input"}))


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


#: A variable's value is text or a number.
Values: TypeAlias = dict[str, str | float]
#: Calls a tool by name with arguments.
CallTool: TypeAlias = Callable[[str, Mapping[str, str | float]], ToolOutcome]


def check_plan(plan: Plan, tools: Collection[str]) -> None:
    """Check that a plan can be run to its end.

    Args:
        tools: names of the tools that a step may call.

    Raises:
        DataProblem: it can't.
    """
    ids, first = [step.id for step in plan.steps], plan.steps[0]
    if len(set(ids)) < len(ids):
        raise DataProblem("two steps have the same id")
    variables = {step.variable for step in plan.steps if step.variable}
    for step in plan.steps:
        if reason := _find_problem(step, tools, variables):
            raise DataProblem(f"the step {step.id} {reason}")
        if not {*step.targets} <= {*ids, None}:
            raise DataProblem(f"the step {step.id} leads to a step that does not exist")
    if unused := {*ids} - {first.id} - _find_following(plan, first):
        raise DataProblem(f"no step leads to {min(unused)}")
    for step in plan.steps:
        if None not in _find_following(plan, step):
            raise DataProblem(f"the step {step.id} never reaches the end")
    for step in plan.steps:
        if step.kind not in INTERACTIVE_KINDS and step.id in _find_following(plan, step, until=INTERACTIVE_KINDS):
            raise DataProblem(f"the step {step.id} comes back to itself without asking or telling the reader anything")


def _find_problem(step: PlanStep, tools: Collection[str], variables: Collection[str]) -> str:
    """Return the first problem of a step, as the end of a sentence; empty if the step can run."""
    problems = (
        ("says nothing", step.kind in INTERACTIVE_KINDS and not step.text.strip()),
        ("has options and asks nothing", step.kind != "ask_user" and step.options),
        ("decides nothing", step.kind == "decide" and not step.conditions),
        ("has conditions and does not decide", step.kind != "decide" and step.conditions),
        ("computes nothing", step.kind == "compute" and not (step.operation and step.variable)),
        ("calls a tool that does not exist", step.kind == "call_tool" and step.tool not in tools),
        ("reads a variable that nothing sets", not _find_variables(step) <= {*variables}),
    )
    return next((problem for problem, applies in problems if applies), "")


def _find_variables(step: PlanStep) -> set[str]:
    """Return the variables that a step reads."""
    operands = (step.operation.left, step.operation.right) if step.operation else ()
    return {
        *(condition.variable for condition in step.conditions),
        *filter(None, map(_variable, step.arguments.values())),
        *(operand for operand in operands if _number(operand) is None),
    }


def _find_following(plan: Plan, start: PlanStep, *, until: Collection[StepKind] = ()) -> set[str | None]:
    """Return the steps that may follow a step, and None if the end may; behind those of the kinds `until` none."""
    found, queue = set[str | None](), [start]
    while queue:
        targets = {*queue.pop().targets} - found
        found |= targets
        following = (plan.step(target) for target in targets if target is not None)
        queue += [step for step in following if step.kind not in until]
    return found


@dataclass(slots=True)
class Position:
    """A reader's position in a plan.

    Attributes:
        step_id: id of the step that is shown; None at the end.
        outcomes: the outcomes of the tools that were called since the step before.
    """

    step_id: str | None
    values: Values = field(default_factory=dict)
    outcomes: list[ToolOutcome] = field(default_factory=list)


def begin(plan: Plan, call: CallTool) -> Position:
    """Return the first step that a reader sees.

    Raises:
        InputError: as `advance` says.
    """
    return _run_steps(plan, Position(plan.steps[0].id), call)


def advance(plan: Plan, position: Position, reader_input: str | None, call: CallTool) -> Position:
    """Return the reader's position after the step that is shown.

    Args:
        reader_input: the answer to a question; None after an action.

    Raises:
        InputError: there is no such answer, or a step can't be computed.
    """
    if position.step_id is None:
        raise InputError("The plan has ended: ask for another one.", field="state")
    step, values = plan.step(position.step_id), dict(position.values)
    following = step.next
    if step.kind == "ask_user":
        chosen = _choose(step, reader_input)
        following = chosen.next if chosen else step.next
        if step.variable:
            values[step.variable] = chosen.label if chosen else str(reader_input)[:_MAX_VALUE_CHARS]
    return _run_steps(plan, Position(following, values), call)


def _choose(step: PlanStep, reader_input: str | None) -> StepOption | None:
    """Return the option that a reader means, by its words or its number; None if the step has no options."""
    text = (reader_input or "").strip()
    if not text:
        raise InputError("input is missing: this step asks something.", field="input")
    if not step.options:
        return None
    for number, option in enumerate(step.options, 1):
        if text.casefold() in (option.label.casefold(), str(number)):
            return option
    raise InputError("input must be one of the options of this step.", field="input")


def _run_steps(plan: Plan, position: Position, call: CallTool) -> Position:
    """Run steps up to the next one that is shown. A plan that was checked has no loop without one."""
    while position.step_id is not None and (step := plan.step(position.step_id)).kind not in INTERACTIVE_KINDS:
        position.step_id = step.next
        if step.kind == "decide":
            condition = next((c for c in step.conditions if _holds(c, position.values)), None)
            position.step_id = condition.next if condition else step.next
        elif step.operation and step.variable and step.kind == "compute":
            position.values[step.variable] = _compute(step.operation, position.values)
        elif step.tool:
            outcome = call(step.tool, {n: _argument(text, position.values) for n, text in step.arguments.items()})
            position.outcomes.append(outcome)
            if step.variable:
                position.values[step.variable] = outcome.text[:_MAX_VALUE_CHARS] if outcome.ok else ""
    return position


def _variable(text: str) -> str:
    """Return the variable that an argument names; empty if it is a value."""
    return text[1:-1] if text.startswith("{") and text.endswith("}") else ""


def _argument(text: str, values: Values) -> str | float:
    return values.get(_variable(text), "") if _variable(text) else text


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and abs(number) <= _MAX_NUMBER else None


def _holds(condition: StepCondition, values: Values) -> bool:
    value, other = values.get(condition.variable, ""), condition.value
    if condition.operator == "contains":
        return other.casefold() in str(value).casefold()
    a, b = _number(value), _number(other)
    if a is None or b is None:
        same = str(value).strip().casefold() == other.strip().casefold()
        # A text that is not a number is neither less nor more.
        return same if condition.operator == "eq" else condition.operator == "ne" and not same
    return bool(getattr(operator, condition.operator)(a, b))


def _compute(operation: Operation, values: Values) -> float:
    a, b = (_number(values.get(operand, operand)) for operand in (operation.left, operation.right))
    if a is None or b is None or (operation.operator == "divide" and b == 0):
        raise InputError("The plan can't go on: a step computes with what is no number.", field="input")
    result = _number(_ARITHMETIC[operation.operator](a, b))
    if result is None:
        raise InputError("The plan can't go on: a number in it grew too large.", field="input")
    return result
