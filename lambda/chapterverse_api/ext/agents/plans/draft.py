"""Drafts a plan from the documentation: by a model, or from the numbered steps of a page.

A model plans from the passages. Without one, or if it fails, the numbered steps of the best section are the plan. Each
step that is shown cites a source that supports it, by the check of answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, get_args

from pydantic import ValidationError

from chapterverse.text import lexical
from chapterverse_api.answer.turn import Sources, Turn
from chapterverse_api.draft.requests import Passage, ResponseSchema
from chapterverse_api.ext.agents.data import DataProblem, DataTask, Leaf, LeafCheck, ask_for_data
from chapterverse_api.ext.agents.plans.plan import (
    INTERACTIVE_KINDS,
    MAX_STEPS,
    MAX_TEXT_CHARS,
    MAX_TITLE_CHARS,
    ArithmeticOperator,
    ComparisonOperator,
    Plan,
    PlannedBy,
    PlanStep,
    StepKind,
    check_plan,
)

#: Tokens of a plan of twenty steps.
_MAX_PLAN_TOKENS = 3000

_FENCE = re.compile(r" {0,3}(```|~~~)")
_ITEM = re.compile(r" {0,3}(\d{1,3})[.)]\s+(?=\S)")


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """A plan, if the documentation has one.

    Attributes:
        failure: a sentence about the model's failure; None if it did not fail.
    """

    plan: Plan | None = None
    planned_by: PlannedBy | None = None
    failure: str | None = None


def draft_plan(turn: Turn) -> PlanDraft:
    """Return the plan that a model makes of the passages, or else a page's numbered steps."""
    passages, failure = turn.sources.request.passages, None
    if not passages:
        return PlanDraft()
    if writer := turn.models.writer:
        specs = turn.tools.specs if turn.tools else ()

        def read(data: dict[str, Any]) -> Plan:
            plan = _read_plan(data)
            check_plan(plan, [spec.name for spec in specs])
            return _cite_steps(plan, turn.sources)

        unusable = "The model's plan could not be run, not even when it was asked once more."
        task = DataTask(SCHEMA, _MAX_PLAN_TOKENS, unusable, "You plan steps for a reader", _rules(turn))
        if plan := ask_for_data(turn, writer, task, read):
            return PlanDraft(plan, "model")
        # The budget has a reason of its own.
        spent = turn.models.spending.reason
        failure = None if spent else "The plan is a page's own, since the model failed."
    plan = _read_numbered_steps(passages) if turn.sources.may_be_quoted else None
    return PlanDraft(plan, "page" if plan else None, failure)


def _rules(turn: Turn) -> tuple[str, ...]:
    calls = "There is no tool to call: use no step of the kind call_tool."
    if turn.tools:
        tools = json.dumps([asdict(spec) for spec in turn.tools.specs])
        calls = f"call_tool calls one of these tools: {tools}. A value in braces is a variable's."
    return (
        (
            "The plan leads the reader through what the last question asks, one step at a time, in at most 20 steps. "
            "The first step begins. next names the step that follows; null ends the plan. Every step is reached, and "
            "from every step the end is."
        ),
        (
            "action tells the reader one thing to do, in the sources' own words. ask_user asks one thing that decides "
            "how to go on; give the answers as options, each with its next, or a variable for what the reader writes."
        ),
        (
            "decide compares a variable by its conditions, and takes next where none holds. compute calculates with "
            "two numbers or variables."
        ),
        calls,
        "citations holds the numbers of the sources that say the step. What a kind does not use is null.",
    )


def _read_plan(data: dict[str, Any]) -> Plan:
    """Return the plan in a model's data.

    Raises:
        DataProblem: a field has another form.
    """
    document: dict[str, Any] = _without_nulls(data)
    for step in document["steps"]:
        if "arguments" in step:
            step["arguments"] = {one["name"]: one["value"] for one in step["arguments"]}
    try:
        return Plan.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        raise DataProblem(f"{'.'.join(map(str, first['loc']))} {first['msg']}") from None


def _without_nulls(value: Any) -> Any:
    """Return a value without the members that are null, which a strict schema makes a model write."""
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _cite_steps(plan: Plan, sources: Sources) -> Plan:
    """Return a plan in which each step that is shown cites a source that supports it.

    Raises:
        DataProblem: no source says an action, or holds a word of a question.
    """
    request = sources.request
    check = LeafCheck(request.passages, request.language, sources.idf)

    def cite(step: PlanStep) -> PlanStep:
        if step.kind not in INTERACTIVE_KINDS:
            return step.model_copy(update={"citations": [], "text": ""})
        if step.kind == "action":
            source_id = check.find_source(Leaf(("step",), step.text))
        else:
            source_id = _find_source(step, request.passages, request.language)
        if source_id is None:
            raise DataProblem(f"no source says what the step {step.id} says")
        return step.model_copy(update={"citations": [source_id]})

    return plan.model_copy(update={"steps": [*map(cite, plan.steps)]})


def _find_source(step: PlanStep, passages: Sequence[Passage], language: str) -> str | None:
    """Return the source of a question to the reader: the one that it cites, if that shares a word, or the closest."""
    text = " ".join([step.text, *(option.label for option in step.options)])
    terms = lexical.terms_of(lexical.words(text, language))
    shared = {passage.id: len(terms & passage.terms) for passage in passages}
    best = max(shared, key=lambda source_id: shared[source_id])
    return next((source_id for source_id in (*step.citations, best) if shared.get(source_id)), None)


def _read_numbered_steps(passages: Sequence[Passage]) -> Plan | None:
    """Return the numbered steps of the best section that has any."""
    for passage in passages:
        texts = [*islice(_iterate_numbered_items(passage.section), MAX_STEPS)]
        if len(texts) > 1:
            steps = [
                PlanStep(
                    id=f"step-{n}",
                    kind="action",
                    text=text[:MAX_TEXT_CHARS],
                    citations=[passage.id],
                    next=f"step-{n + 1}" if n < len(texts) else None,
                )
                for n, text in enumerate(texts, 1)
            ]
            return Plan(title=" › ".join(passage.path)[:MAX_TITLE_CHARS], steps=steps)
    return None


def _iterate_numbered_items(markdown: str) -> Iterator[str]:
    """Yield the items of the first numbered list, each with the paragraphs and code that belong to it."""
    item, fenced, number = list[str](), False, 0
    for text in markdown.splitlines():
        match = None if fenced else _ITEM.match(text)
        if match and int(match[1]) == number + 1:
            if item:
                yield "\n".join(item).strip()
            item, number = [text[match.end() :]], number + 1
        elif item and not fenced and text.strip() and not text.startswith(" ") and not _FENCE.match(text):
            # Text at the margin ends the list, unless it continues the item's paragraph.
            if not item[-1].strip():
                break
            item.append(text)
        elif item:
            item.append(text.removeprefix("   "))
        fenced ^= bool(_FENCE.match(text.strip()))
    if item:
        yield "\n".join(item).strip()


def _nullable(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": [kind, "null"], **more}


def _enum(values: Any) -> dict[str, Any]:
    return {"type": "string", "enum": [*get_args(values)]}


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}


_TEXT = {"type": "string"}
_STEP = _object(
    id=_TEXT,
    kind=_enum(StepKind),
    text=_nullable("string"),
    citations=_nullable("array", items=_TEXT),
    next=_nullable("string"),
    options=_nullable("array", items=_object(label=_TEXT, next=_nullable("string"))),
    variable=_nullable("string"),
    tool=_nullable("string"),
    arguments=_nullable("array", items=_object(name=_TEXT, value=_TEXT)),
    conditions=_nullable(
        "array",
        items=_object(
            variable=_TEXT,
            operator=_enum(ComparisonOperator),
            value=_TEXT,
            next=_nullable("string"),
        ),
    ),
    operation={
        "anyOf": [
            _object(left=_TEXT, operator=_enum(ArithmeticOperator), right=_TEXT),
            {"type": "null"},
        ]
    },
)
#: The form of a model's plan. Services reject a free set of names, so a tool's arguments are a list.
SCHEMA = ResponseSchema("plan", _object(title=_TEXT, steps={"type": "array", "items": _STEP, "maxItems": MAX_STEPS}))
