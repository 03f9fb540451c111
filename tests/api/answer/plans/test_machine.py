"""Plans as state machines: which ones run, and how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from chapterverse.errors import InputError
from chapterverse_api.ext.agents.data import DataProblem
from chapterverse_api.ext.agents.plans.plan import Plan, Position, ToolOutcome, advance, begin, check_plan


def plan(*steps: dict[str, Any]) -> Plan:
    return Plan.model_validate({"title": "t", "steps": list(steps)})


def act(name: str, following: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": name, "kind": "action", "text": f"Do {name}.", "next": following, **more}


def decide(name: str, variable: str, operator: str, value: str, then: str | None, other: str | None) -> dict[str, Any]:
    condition = {"variable": variable, "operator": operator, "value": value, "next": then}
    return {"id": name, "kind": "decide", "conditions": [condition], "next": other}


def compute(name: str, left: str, operator: str, right: str, following: str | None) -> dict[str, Any]:
    operation = {"left": left, "operator": operator, "right": right}
    return {"id": name, "kind": "compute", "variable": "n", "operation": operation, "next": following}


ASK = {"id": "ask", "kind": "ask_user", "text": "How many?", "variable": "n", "next": "d"}
SYSTEM = {
    "id": "system",
    "kind": "ask_user",
    "text": "Which system?",
    "options": [{"label": "Linux", "next": "a"}, {"label": "Windows", "next": "b"}],
}


def never(name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
    raise AssertionError


def test_a_reader_takes_the_way_of_their_answers() -> None:
    made = plan(SYSTEM, act("a", "b"), act("b"))
    check_plan(made, ())
    first = begin(made, never)
    assert first.step_id == "system"
    for said, way in (("linux", ["a", "b", None]), ("2", ["b", None])):
        position, walked = advance(made, first, said, never), list[str | None]()
        walked.append(position.step_id)
        while position.step_id:
            position = advance(made, position, None, never)
            walked.append(position.step_id)
        assert walked == way


@pytest.mark.parametrize("said", [None, "", "  ", "macOS", "0", "3"])
def test_any_other_answer_is_one_sentence(said: str | None) -> None:
    made = plan(SYSTEM, act("a"), act("b"))
    with pytest.raises(InputError, match=r"^input [^\n]+\.$"):
        advance(made, begin(made, never), said, never)


@pytest.mark.parametrize(
    ("operator", "value", "said", "taken"),
    [("gt", "4", "5", "a"), ("gt", "4", "04.0", "b"), ("eq", "yes", " YES ", "a"), ("ne", "yes", "no", "a"),
     ("lt", "4", "many", "b"), ("contains", "ERR", "an err 7", "a"), ("le", "4", "nan", "b"), ("eq", "4", "4.0", "a")],
)  # fmt: skip
def test_it_decides_by_comparing(operator: str, value: str, said: str, taken: str) -> None:
    made = plan(ASK, decide("d", "n", operator, value, "a", "b"), act("a"), act("b"))
    check_plan(made, ())
    assert advance(made, begin(made, never), said, never).step_id == taken


def test_it_computes_and_evaluates_nothing() -> None:
    ask = {**ASK, "next": "c"}
    steps = [ask, compute("c", "n", "multiply", "2.5", "d"), decide("d", "n", "gt", "9", "a", None), act("a")]
    made = plan(*steps)
    check_plan(made, ())
    assert advance(made, begin(made, never), "4", never).values == {"n": 10.0}
    for said in ("__import__('os')", "1e999", "nan", "9" * 400, ""):
        with pytest.raises(InputError, match=r"^(The plan can't go on: |input is missing)[^\n]+\.$"):
            advance(made, begin(made, never), said, never)
    divided = plan(ask, compute("c", "1", "divide", "n", None))
    with pytest.raises(InputError, match="no number"):
        advance(divided, begin(divided, never), "0", never)


def test_it_calls_tools_on_the_way() -> None:
    calls = list[tuple[str, dict[str, Any]]]()

    def call(name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        calls.append((name, dict(arguments)))
        return ToolOutcome(name=name, ok=True, text="- state: down")

    tool = {"id": "t", "kind": "call_tool", "tool": "state", "arguments": {"of": "{n}", "as": "x"}, "variable": "s"}
    made = plan({**ASK, "next": "t"}, {**tool, "next": "d"}, decide("d", "s", "contains", "down", "a", None), act("a"))
    check_plan(made, ["state"])
    position = advance(made, begin(made, never), "db", call)
    assert (position.step_id, calls) == ("a", [("state", {"of": "db", "as": "x"})])
    assert position.outcomes == [ToolOutcome(name="state", ok=True, text="- state: down")]
    with pytest.raises(DataProblem, match="a tool that does not exist"):
        check_plan(made, ())


BROKEN = {
    "the same id": [act("a", "a"), act("a")],
    "that does not exist": [act("a", "z")],
    "never reaches the end": [act("a", "b"), act("b", "a")],
    "no step leads to": [act("a"), act("b")],
    "says nothing": [act("a", text=" ")],
    "decides nothing": [{"id": "d", "kind": "decide"}],
    "computes nothing": [{"id": "c", "kind": "compute", "variable": "n"}],
    "that nothing sets": [decide("d", "z", "eq", "1", None, None)],
    "without asking or telling": [compute("c", "1", "add", "1", "d"), decide("d", "n", "gt", "3", None, "c")],
    "has options": [act("a", options=[{"label": "x"}])],
    "has conditions": [act("a", conditions=[{"variable": "n", "operator": "eq", "value": "1"}])],
}


@pytest.mark.parametrize("reason", [*BROKEN])
def test_a_plan_that_can_not_be_run_is_known_before(reason: str) -> None:
    with pytest.raises(DataProblem, match=reason):
        check_plan(plan(*BROKEN[reason]), ())


def test_a_loop_that_asks_the_reader_may_run() -> None:
    again = {**SYSTEM, "options": [{"label": "Again", "next": "system"}, {"label": "Done", "next": None}]}
    made = plan(again)
    check_plan(made, ())
    position = begin(made, never)
    for _ in range(50):
        position = advance(made, position, "Again", never)
    assert advance(made, position, "Done", never).step_id is None
    with pytest.raises(InputError, match="has ended"):
        advance(made, Position(None), None, never)


@pytest.mark.parametrize(
    "steps", [[], [act(f"s{n}", f"s{n + 1}") for n in range(21)], [{"id": "a", "kind": "shell"}], [act("a b")]]
)
def test_a_plan_of_another_form_is_none(steps: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match="steps"):
        plan(*steps)
