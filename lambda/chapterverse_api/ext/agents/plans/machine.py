"""Checks a plan as a state machine before it runs, and runs it from one step that a reader sees to the next.

Nothing of a plan is code: a step that computes knows four operations on two numbers, and a step that decides compares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from chapterverse.errors import InputError
from chapterverse_api.ext.agents.plans.contract import (
    MAX_VALUE_CHARS,
    Operation,
    Plan,
    PlanStep,
    StepCondition,
    StepOption,
    ToolOutcome,
)
from chapterverse_api.ext.agents.structured_output.data import DataProblem

#: A float is an exact integer up to 2**53, which is nine times as much.
_MAX_NUMBER = 1e15
#: Kinds of steps that a reader sees. All others run by themselves.
INTERACTIVE_KINDS = ("ask_user", "action")

#: A variable's value is text or a number.
Values: TypeAlias = dict[str, str | float]


class PlanProblem(DataProblem):
    """A plan can't be run; the message says why, for the model."""


def check_plan(plan: Plan, tools: Collection[str]) -> None:
    """Check that a plan can be run to its end.

    Args:
        tools: names of the tools that a step may call.

    Raises:
        PlanProblem: it can't.
    """
    ids = [step.id for step in plan.steps]
    if len(set(ids)) < len(ids):
        raise PlanProblem("two steps have the same id")
    variables = {step.variable for step in plan.steps if step.variable}
    for step in plan.steps:
        if reason := _find_problem(step, tools, variables):
            raise PlanProblem(f"the step {step.id} {reason}")
        if any(target is not None and target not in ids for target in step.targets):
            raise PlanProblem(f"the step {step.id} leads to a step that does not exist")
    if unused := set(ids) - _find_reachable(plan, plan.steps[0].id):
        raise PlanProblem(f"no step leads to {min(unused)}")
    if endless := [step.id for step in plan.steps if None not in _find_reachable(plan, step.id)]:
        raise PlanProblem(f"the step {endless[0]} never reaches the end")
    if silent := next(_silent_loops(plan), None):
        raise PlanProblem(f"the step {silent} comes back to itself without asking or telling the reader anything")


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
        *(name for name in map(_variable, step.arguments.values()) if name),
        *(operand for operand in operands if _number(operand) is None),
    }


def _find_reachable(plan: Plan, start: str) -> set[str | None]:
    """Return the steps that may follow a step, itself included, and None if that is the end."""
    reached, queue = set[str | None](), list[str | None]([start])
    while queue:
        step_id = queue.pop()
        if step_id not in reached:
            reached.add(step_id)
            queue += plan.step(step_id).targets if step_id is not None else []
    return reached


def _silent_loops(plan: Plan) -> Iterator[str]:
    """Yield steps that can come back to themselves without a step that is shown."""
    for first in plan.steps:
        visited, queue = set[str](), [first]
        while queue and first.kind not in INTERACTIVE_KINDS:
            for target in queue.pop().targets:
                if target == first.id:
                    yield first.id
                if target is not None and target not in visited:
                    visited.add(target)
                    following = plan.step(target)
                    queue += [following] if following.kind not in INTERACTIVE_KINDS else []


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


#: Calls a tool by name with arguments.
CallTool: TypeAlias = Callable[[str, Mapping[str, str | float]], ToolOutcome]


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
            values[step.variable] = chosen.label if chosen else str(reader_input)[:MAX_VALUE_CHARS]
    return _run_steps(plan, Position(following, values), call)


def _choose(step: PlanStep, reader_input: str | None) -> StepOption | None:
    """Return the option that a reader means, by its words or its number; None if the step has no options."""
    text = (reader_input or "").strip()
    if not text:
        raise InputError("input is missing: this step asks something.", field="input")
    if not step.options:
        return None
    for number, option in enumerate(step.options, 1):
        if text.casefold() == option.label.casefold() or text == str(number):
            return option
    raise InputError("input must be one of the options of this step.", field="input")


def _run_steps(plan: Plan, position: Position, call: CallTool) -> Position:
    """Run steps up to the next one that is shown. A plan that was checked has no loop without one."""
    while position.step_id is not None and (step := plan.step(position.step_id)).kind not in INTERACTIVE_KINDS:
        position.step_id = step.next
        if step.kind == "decide":
            condition = next((c for c in step.conditions if _holds(c, position.values)), None)
            position.step_id = condition.next if condition else step.next
        elif step.kind == "compute" and step.operation and step.variable:
            position.values[step.variable] = _compute(step.operation, position.values)
        elif step.kind == "call_tool" and step.tool:
            outcome = call(step.tool, {n: _argument(text, position.values) for n, text in step.arguments.items()})
            position.outcomes.append(outcome)
            if step.variable:
                position.values[step.variable] = outcome.text[:MAX_VALUE_CHARS] if outcome.ok else ""
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
    compared = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
    return compared[condition.operator]


def _compute(operation: Operation, values: Values) -> float:
    a, b = (_number(values.get(operand, operand)) for operand in (operation.left, operation.right))
    if a is None or b is None or (operation.operator == "divide" and b == 0):
        raise InputError("The plan can't go on: a step computes with what is no number.", field="input")
    results = {"add": a + b, "subtract": a - b, "multiply": a * b, "divide": a / b if b else 0.0}
    result = _number(results[operation.operator])
    if result is None:
        raise InputError("The plan can't go on: a number in it grew too large.", field="input")
    return result
