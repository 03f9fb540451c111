"""Makes a plan from what the documentation says, and leads a reader through it.

A model plans from the sections found. Without one, the numbered steps of the best section are the plan. Each step that
is shown cites a source that carries it, by the check of answers. The plan and the reader's place in it travel with each
reply, signed, so that no instance keeps anything.
"""

from __future__ import annotations

import base64
import json
import re
import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError, model_validator

from chapterverse.errors import InputError, ProviderError
from chapterverse.text import lexical
from chapterverse_api import validation
from chapterverse_api.answering.context import AnswerContext, Weights, from_index
from chapterverse_api.answering.models import DATA_TRIES
from chapterverse_api.answering.plans import Call, Called, Plan, PlanProblem, PlanStep, Position, advance, begin, check
from chapterverse_api.answering.resources import Resources
from chapterverse_api.answering.structured import asked_again
from chapterverse_api.answering.tool_use import TurnTools
from chapterverse_api.answering.turn import Turn
from chapterverse_api.budget.daily_budget import TurnBudget
from chapterverse_api.contract import Nearest, Question, RequestModel, ResponseModel, SourceChunk
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation import DataWriter, Passage, ResponseSchema, ToolCall
from chapterverse_api.generation.prompts import PLAN_TOKENS, conversation, new_nonce, plan_instructions
from chapterverse_api.grounding.links import Links
from chapterverse_api.structured_output.data import DataProblem, Leaf, LeafCheck, read_data

#: Seconds for which a reader may go on with a plan.
LIFETIME = 24 * 60 * 60
#: Characters of a state: a plan of twenty long steps with its sources.
_STATE = 60_000
_PURPOSE = b"chapterverse/plan/1"

_FENCE = re.compile(r" {0,3}(```|~~~)")
_ITEM = re.compile(r" {0,3}(\d{1,3})[.)]\s+(?=\S)")


class PlanRequest(RequestModel):
    """A question to plan for, or the state of a plan and what its reader says."""

    query: Question | None = None
    page_url: Annotated[str, StringConstraints(max_length=2048)] | None = None
    language: Annotated[str, StringConstraints(max_length=35)] | None = None
    version: Annotated[str, StringConstraints(max_length=64)] | None = None
    filters: dict[str, Any] = Field(default_factory=dict)
    state: Annotated[str, StringConstraints(min_length=1, max_length=_STATE)] | None = None
    input: Annotated[str, StringConstraints(max_length=500)] | None = None

    @model_validator(mode="after")
    def _one(self) -> PlanRequest:
        if (self.query is None) == (self.state is None):
            raise ValueError("query or state must be given, and not both")
        return self


def read_request(document: object) -> PlanRequest:
    """Return a request from a parsed body.

    Raises:
        InputError: it does not fit the contract.
    """
    try:
        return PlanRequest.model_validate(document)
    except ValidationError as error:
        problems = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
        rejected = validation.rejection(problems, {*PlanRequest.model_fields})
        raise InputError(rejected.message, field=rejected.field) from None


class PlanResult(ResponseModel):
    """What a tool said on the way to a step."""

    name: str
    ok: bool
    text: str


class PlanResponse(ResponseModel):
    """A step of a plan.

    Attributes:
        step: what the reader does or answers now; None at the end, and where there is no plan.
        plan: all steps, in the first response.
        planned_by: a model, or the numbered steps of a page.
        state: to be sent back with the next request.
        sources: what the steps cite.
    """

    status: Literal["open", "ended", "not_in_docs"]
    title: str = ""
    step: PlanStep | None = None
    plan: list[PlanStep] = Field(default_factory=list)
    planned_by: Literal["model", "page"] | None = None
    state: str | None = None
    sources: list[SourceChunk] = Field(default_factory=list)
    results: list[PlanResult] = Field(default_factory=list)
    nearest: list[Nearest] = Field(default_factory=list)
    degraded_reason: str | None = None


def respond(
    request: PlanRequest,
    resources: Resources,
    *,
    deadline: Deadline,
    origins: Collection[str] = (),
    turn_budget: TurnBudget | None = None,
    tools: TurnTools | None = None,
) -> PlanResponse:
    """Return the first step of a plan for a question, or the next one of a plan.

    Raises:
        InputError: the state is none of ours, or the reader's answer none of the step's.
        IndexFault: there is no index that can be read.
    """
    if request.state is not None:
        return _continued(request.state, request.input, resources, deadline, tools)
    own = request.model_dump(include={"query", "page_url", "language", "version", "filters"})
    query = validation.checked(**own)
    turn = Turn(query, resources, deadline, origins, turn_budget)
    turn.log_query()
    context = from_index(turn)
    plan, planned_by, degraded = _planned(context, turn, tools)
    turn.progress.enter("completed")
    turn.log("response_sent", status="planned" if plan else "not_in_docs", cost_usd=turn.models.turn_budget.usd)
    reasons = " ".join(filter(None, (degraded, turn.models.turn_budget.reason, context.degraded))) or None
    if plan is None:
        return PlanResponse(status="not_in_docs", nearest=list(context.nearest), degraded_reason=reasons)
    cited = {i for step in plan.steps for i in step.citations}
    sources = [source for source in context.sources if source.id in cited]
    position = begin(plan, _caller(tools, deadline))
    response = _response(plan, position, sources, resources)
    return response.model_copy(update={"plan": plan.steps, "planned_by": planned_by, "degraded_reason": reasons})


def _continued(
    state: str, said: str | None, resources: Resources, deadline: Deadline, tools: TurnTools | None
) -> PlanResponse:
    kept = _opened(state, resources)
    plan, position = Plan.model_validate(kept["plan"]), Position(kept["at"], kept["values"])
    sources = [SourceChunk.model_validate(source) for source in kept["sources"]]
    return _response(plan, advance(plan, position, said, _caller(tools, deadline)), sources, resources)


def _response(plan: Plan, position: Position, sources: Sequence[SourceChunk], resources: Resources) -> PlanResponse:
    step = plan.step(position.at) if position.at is not None else None
    return PlanResponse(
        status="open" if step else "ended",
        title=plan.title,
        step=step,
        state=_sealed(plan, position, sources, resources) if step else None,
        sources=list(sources),
        results=[PlanResult(**asdict(one)) for one in position.called],
    )


def _sealed(plan: Plan, position: Position, sources: Sequence[SourceChunk], resources: Resources) -> str:
    """Return the state of a plan as text that only this service can write."""
    kept = {
        "expiry": int(time.time()) + LIFETIME,
        "plan": plan.model_dump(exclude_defaults=True),
        "at": position.at,
        "values": position.values,
        "sources": [source.model_dump() for source in sources],
    }
    data = zlib.compress(json.dumps(kept, separators=(",", ":")).encode())
    key_id, tag = resources.signer.seal(_PURPOSE, data)
    return f"{base64.urlsafe_b64encode(data).decode()}.{key_id}.{tag}"


def _opened(state: str, resources: Resources) -> dict[str, Any]:
    foreign = InputError("state is none of this service, or too old: ask for the plan again.", field="state")
    try:
        text, key_id, tag = state.split(".")
        data = base64.b64decode(text, altchars=b"-_", validate=True)
    except ValueError:
        raise foreign from None
    # Nothing of it is read before it is known to be ours.
    if not resources.signer.is_sealed(_PURPOSE, data, key_id, tag):
        raise foreign
    kept: dict[str, Any] = json.loads(zlib.decompress(data))
    if kept["expiry"] <= time.time():
        raise foreign
    return kept


def calls_tools(state: str) -> bool:
    """Whether a state may lead to a tool, as far as can be read without its key: such a request is counted."""
    try:
        reading = zlib.decompressobj()
        data = reading.decompress(base64.urlsafe_b64decode(state.partition(".")[0]), 200_000)
    except (ValueError, zlib.error):
        return True
    return bool(reading.unconsumed_tail) or b'"call_tool"' in data


def _caller(tools: TurnTools | None, deadline: Deadline) -> Call:
    def call(name: str, arguments: Mapping[str, str | float]) -> Called:
        if tools is None:
            return Called(name, False, "The site has no tools.")
        parameters = next((spec.parameters for spec in tools.specs if spec.name == name), {})
        typed = {n: _typed(value, parameters.get("properties", {}).get(n, {})) for n, value in arguments.items()}
        result = tools.run(ToolCall(name, json.dumps(typed)), deadline)
        deadline.check()
        links = Links(())
        text = "\n\n".join(one.text if one.url else links.without_foreign(one.text) for one in result.output)
        return Called(name, result.ok, (text if result.ok else result.error)[:2000])

    return call


def _typed(value: str | float, schema: Mapping[str, Any]) -> str | float:
    """Return a variable's value as a parameter takes it: readers write numbers as text, and sums are no integers."""
    if schema.get("type") not in ("integer", "number"):
        return f"{value:g}" if isinstance(value, float) else value
    try:
        number = float(value)
        return int(number) if number.is_integer() else number
    except (ValueError, OverflowError):
        return value


def _planned(
    context: AnswerContext, turn: Turn, tools: TurnTools | None
) -> tuple[Plan | None, Literal["model", "page"] | None, str | None]:
    """Return a plan, who made it, and what failed."""
    if not context.task.passages:
        return None, None, None
    failure = None
    if writer := turn.models.data_writer:
        try:
            with turn.models.circuit.asking(), turn.deadline.raising_on_disconnect():
                return _by_model(context, turn, writer, tools), "model", None
        except ProviderError as error:
            turn.log_failure("generator", error)
            failure = "The plan is a page's own, since the model failed."
    plan = _from_page(context.task.passages)
    return plan, "page" if plan else None, failure


def _by_model(context: AnswerContext, turn: Turn, writer: DataWriter, tools: TurnTools | None) -> Plan:
    names = [spec.name for spec in tools.specs] if tools else []
    nonce = new_nonce()
    offered = json.dumps([asdict(spec) for spec in tools.specs]) if tools else ""
    instructions = plan_instructions(context.task, nonce, SCHEMA, offered)
    messages, reason = conversation(context.task, nonce), ""
    for _ in range(DATA_TRIES):
        text = writer.write_data(
            instructions, asked_again(messages, reason), SCHEMA, tokens=PLAN_TOKENS, deadline=turn.deadline
        )
        try:
            data = read_data(text, SCHEMA, Links(context.task.passages))
            plan = Plan.model_validate(_read(data))
            check(plan, names)
            return _cited(plan, context)
        except (DataProblem, PlanProblem) as error:
            reason = str(error)
        except ValidationError as error:
            place = ".".join(str(part) for part in error.errors()[0]["loc"])
            reason = f"{place} {error.errors()[0]['msg']}"
    raise ProviderError("The model's plan could not be run, not even when it was asked once more.")


def _read(data: dict[str, Any]) -> dict[str, Any]:
    """Return a model's plan in the form of `Plan`."""
    document: dict[str, Any] = _without_nulls(data)
    for step in document["steps"]:
        if "arguments" in step:
            step["arguments"] = {one["name"]: one["value"] for one in step["arguments"]}
    return document


def _without_nulls(value: Any) -> Any:
    """Return a value without the members that are null, which a strict schema makes a model write."""
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _cited(plan: Plan, context: AnswerContext) -> Plan:
    """Return a plan in which each step that is shown cites what carries it.

    Raises:
        PlanProblem: no source says an action, or holds a word of a question.
    """
    task = context.task
    carriers, steps = LeafCheck(task.passages, task.language, Weights(context.snapshot)), list[PlanStep]()
    for step in plan.steps:
        carrier = None
        if step.kind == "action":
            carrier = carriers.carrier(Leaf(("step",), step.text))
        elif step.kind == "ask_user":
            carrier = _related(step, task.passages, task.language)
        elif step.citations or step.text:
            step = step.model_copy(update={"citations": [], "text": ""})
        if step.kind in ("action", "ask_user"):
            if carrier is None:
                raise PlanProblem(f"no source says what the step {step.id} says")
            step = step.model_copy(update={"citations": [carrier]})
        steps.append(step)
    return plan.model_copy(update={"steps": steps})


def _related(step: PlanStep, passages: Sequence[Passage], language: str) -> str | None:
    """Return the source that a question is about: the one it names, if that holds a word of it, or the closest."""
    text = " ".join([step.text, *(option.label for option in step.options)])
    terms = {term for word in lexical.words(text, language) for term in word.terms}
    shared = {p.id: len(terms & p.terms) for p in passages}
    named = [i for i in step.citations if shared.get(i)]
    best = max(shared, key=lambda i: shared[i])
    return named[0] if named else best if shared[best] else None


def _from_page(passages: Sequence[Passage]) -> Plan | None:
    """Return the numbered steps of the best section that has any."""
    for passage in passages:
        texts = list(_numbered(passage.section))
        if len(texts) > 1:
            kept = texts[:20]
            steps = [
                PlanStep(
                    id=f"step-{n}",
                    kind="action",
                    text=text[:600],
                    citations=[passage.id],
                    next=f"step-{n + 1}" if n < len(kept) else None,
                )
                for n, text in enumerate(kept, 1)
            ]
            return Plan(title=" › ".join(passage.path)[:200], steps=steps)
    return None


def _numbered(markdown: str) -> Iterator[str]:
    """Yield the items of the first numbered list, each with the paragraphs and code that belong to it."""
    item, fenced, number = list[str](), False, 0
    for text in markdown.splitlines():
        found = None if fenced else _ITEM.match(text)
        if found and int(found[1]) == number + 1:
            if item:
                yield "\n".join(item).strip()
            item, number = [text[found.end() :]], number + 1
        elif item and not fenced and text.strip() and not text.startswith(" ") and not _FENCE.match(text):
            # What stands at the margin is no part of an item any more, unless it goes on with its paragraph.
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


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}


_TEXT = {"type": "string"}
_STEP = _object(
    id=_TEXT,
    kind={"type": "string", "enum": ["ask_user", "call_tool", "decide", "action", "compute"]},
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
            operator={"type": "string", "enum": ["eq", "ne", "lt", "le", "gt", "ge", "contains"]},
            value=_TEXT,
            next=_nullable("string"),
        ),
    ),
    operation={
        "anyOf": [
            _object(
                left=_TEXT, operator={"type": "string", "enum": ["add", "subtract", "multiply", "divide"]}, right=_TEXT
            ),
            {"type": "null"},
        ]
    },
)
#: What a model fills in. Services reject a free set of names, so a tool's arguments are a list.
SCHEMA = ResponseSchema("plan", _object(title=_TEXT, steps={"type": "array", "items": _STEP, "maxItems": 20}))
