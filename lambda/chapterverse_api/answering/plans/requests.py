"""Leads a reader through a plan: the first step for a question, then the next one for each answer.

The plan and the reader's place in it travel with each reply, signed, so that the service stores nothing.
"""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from chapterverse.errors import InputError
from chapterverse_api import validation
from chapterverse_api.answering.plans.draft import draft_plan
from chapterverse_api.answering.plans.machine import (
    MOST_VALUE,
    CallTool,
    Plan,
    PlanStep,
    Position,
    ToolOutcome,
    advance,
    begin,
)
from chapterverse_api.answering.resources import Resources
from chapterverse_api.answering.sources import find_sources
from chapterverse_api.answering.tool_use import TurnTools
from chapterverse_api.answering.turn import Turn
from chapterverse_api.budget.daily_budget import TurnBudget
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
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation.requests import ToolCall
from chapterverse_api.grounding.links.address_filter import AddressFilter

#: Seconds for which a reader may go on with a plan.
LIFETIME = 24 * 60 * 60
#: Characters of a state: a plan of twenty long steps with its sources.
_STATE = 60_000
_PURPOSE = b"chapterverse/plan/1"


class PlanRequest(RequestModel):
    """A question to plan for, or the state of a plan and what its reader says."""

    query: QuestionText | None = None
    page_url: PageUrl | None = None
    language: LanguageTag | None = None
    version: VersionName | None = None
    filters: dict[str, Any] = Field(default_factory=dict)
    state: Annotated[str, StringConstraints(min_length=1, max_length=_STATE)] | None = None
    input: Annotated[str, StringConstraints(max_length=MOST_VALUE)] | None = None

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
        return validation.valid_query(
            **self.model_dump(include={"query", "page_url", "language", "version", "filters"})
        )


def read_request(document: object) -> PlanRequest:
    """Return a request from a parsed body.

    Raises:
        InputError: it does not fit the contract.
    """
    return validation.parse_request(PlanRequest, document)


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
        InputError: the state is not ours or has expired, or the step does not offer the reader's answer.
        IndexFault: there is no index that can be read.
    """
    if request.state is not None:
        return _continue(request.state, request.input, resources, deadline, tools)
    turn = Turn(request.as_query(), resources, deadline, origins, turn_budget)
    turn.log_query()
    context = find_sources(turn)
    plan, planned_by, degraded = draft_plan(context, turn, tools)
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


def _continue(
    state: str, said: str | None, resources: Resources, deadline: Deadline, tools: TurnTools | None
) -> PlanResponse:
    kept = _unseal(state, resources)
    plan, position = Plan.model_validate(kept["plan"]), Position(kept["at"], kept["values"])
    sources = [SourceChunk.model_validate(source) for source in kept["sources"]]
    return _response(plan, advance(plan, position, said, _caller(tools, deadline)), sources, resources)


def _response(plan: Plan, position: Position, sources: Sequence[SourceChunk], resources: Resources) -> PlanResponse:
    step = plan.step(position.at) if position.at is not None else None
    return PlanResponse(
        status="open" if step else "ended",
        title=plan.title,
        step=step,
        state=_seal(plan, position, sources, resources) if step else None,
        sources=list(sources),
        results=[PlanResult(**asdict(one)) for one in position.outcomes],
    )


def _seal(plan: Plan, position: Position, sources: Sequence[SourceChunk], resources: Resources) -> str:
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


def _unseal(state: str, resources: Resources) -> dict[str, Any]:
    foreign = InputError("state was not issued by this service or has expired: ask for the plan again.", field="state")
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


def _caller(tools: TurnTools | None, deadline: Deadline) -> CallTool:
    def call(name: str, arguments: Mapping[str, str | float]) -> ToolOutcome:
        if tools is None:
            return ToolOutcome(name, False, "The site has no tools.")
        parameters = next((spec.parameters for spec in tools.specs if spec.name == name), {})
        typed = {n: _to_type(value, parameters.get("properties", {}).get(n, {})) for n, value in arguments.items()}
        result = tools.run(ToolCall(name, json.dumps(typed)), deadline)
        deadline.check()
        links = AddressFilter(())
        text = "\n\n".join(one.text if one.url else links.without_foreign(one.text) for one in result.output)
        return ToolOutcome(name, result.ok, (text if result.ok else result.error)[:2000])

    return call


def _to_type(value: str | float, schema: Mapping[str, Any]) -> str | float:
    """Return a variable's value as a parameter takes it: readers write numbers as text, and sums are no integers."""
    if schema.get("type") not in ("integer", "number"):
        return f"{value:g}" if isinstance(value, float) else value
    try:
        number = float(value)
        return int(number) if number.is_integer() else number
    except (ValueError, OverflowError):
        return value
