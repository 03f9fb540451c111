"""Leads a reader through a plan: the first step for a question, then the next one for each answer. A terminal walks it.

The state of a plan travels with each reply. It is signed, so that the service stores nothing.
"""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chapterverse.errors import InputError
from chapterverse_api.answer.turn import Turn
from chapterverse_api.contract import SourceChunk, dump
from chapterverse_api.conversation.transcript import Signer
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.requests import ToolCall, TurnTools
from chapterverse_api.ext.agents.plans.draft import draft_plan
from chapterverse_api.ext.agents.plans.plan import (
    CallTool,
    Plan,
    PlanRequest,
    PlanResponse,
    Position,
    ToolOutcome,
    advance,
    begin,
)
from chapterverse_api.ext.check.links.address_filter import AddressFilter
from chapterverse_api.rejections import parse_request
from chapterverse_api.service import Service

#: Seconds for which a reader may go on with a plan.
PLAN_SECONDS = 24 * 60 * 60
#: Bytes of a state that are searched for a tool without its key: one that unpacks to more is taken to have one.
_MAX_SEARCHED_BYTES = 200_000
_PURPOSE = b"chapterverse/plan/1"
#: Characters of a tool's result or error that a reader sees.
_MAX_OUTCOME_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class PlanState:
    """A plan, its reader's position, and the sources that its steps cite."""

    plan: Plan
    position: Position
    sources: Sequence[SourceChunk]

    def seal(self, signer: Signer) -> str:
        """Return the state as text that only this service can write."""
        payload = {
            "expiry": int(time.time()) + PLAN_SECONDS,
            "plan": self.plan.model_dump(exclude_defaults=True),
            "at": self.position.step_id,
            "values": self.position.values,
            "sources": [source.model_dump() for source in self.sources],
        }
        data = zlib.compress(json.dumps(payload, separators=(",", ":")).encode())
        key_id, tag = signer.seal(_PURPOSE, data)
        return f"{base64.urlsafe_b64encode(data).decode()}.{key_id}.{tag}"

    @classmethod
    def unseal(cls, sealed: str, signer: Signer) -> PlanState:
        """Return the state that `seal` made a text of.

        Raises:
            InputError: this service did not make it, or it has expired.
        """
        invalid_state = InputError(
            "state was not issued by this service or has expired: ask for the plan again.", field="state"
        )
        try:
            text, key_id, tag = sealed.split(".")
            data = base64.b64decode(text, altchars=b"-_", validate=True)
        except ValueError:
            raise invalid_state from None
        # Nothing of it is read before its seal is verified.
        if not signer.is_sealed(_PURPOSE, data, key_id, tag):
            raise invalid_state
        payload = json.loads(zlib.decompress(data))
        if payload["expiry"] <= time.time():
            raise invalid_state
        sources = [SourceChunk.model_validate(source) for source in payload["sources"]]
        return cls(Plan.model_validate(payload["plan"]), Position(payload["at"], payload["values"]), sources)


def calls_tools(sealed: str) -> bool:
    """Whether a state may lead to a tool, as far as can be read without its key: such a request is counted."""
    try:
        reading = zlib.decompressobj()
        data = reading.decompress(base64.urlsafe_b64decode(sealed.partition(".")[0]), _MAX_SEARCHED_BYTES)
    except (ValueError, zlib.error):
        return True
    return bool(reading.unconsumed_tail) or b'"call_tool"' in data


def plan_step(
    service: Service, request: PlanRequest, *, deadline: Deadline, origins: Sequence[str] = ()
) -> PlanResponse:
    """Return the first step of a plan for a question, or the next one of a plan, within the day's budget.

    Raises:
        InputError: the state is invalid or has expired, or the step does not offer the reader's answer.
        IndexFault: there is no index that can be read.
    """
    if request.query is None:
        return _continue(service, request, deadline)
    with service.resources.reserving(request.query, drafts=True) as models:
        return _begin(service, request, deadline, origins=origins, models=models)


def plan_for_owner(service: Service, **fields: Any) -> dict[str, Any]:
    """Return a `PlanResponse` as JSON for the fields of a `PlanRequest`. Nothing is charged."""
    request = parse_request(PlanRequest, fields)
    return dump((_continue if request.query is None else _begin)(service, request, Deadline()))


def _begin(service: Service, request: PlanRequest, deadline: Deadline, **more: Any) -> PlanResponse:
    tools = service.turn_tools(deadline)
    turn = Turn.open(request.as_query(), service.resources, deadline=deadline, tools=tools, **more)
    with turn.running():
        sources = turn.search()
        draft = draft_plan(turn)
        plan = draft.plan
        cited = {i for step in plan.steps for i in step.citations} if plan else set()
        turn.complete("planned" if plan else "not_in_docs", len(cited))
        degraded = turn.explain_degradation(draft.failure, remembered=False)
        if plan is None:
            return PlanResponse(status="not_in_docs", nearest=list(sources.found.nearest), degraded_reason=degraded)
        position = begin(plan, _caller(tools, deadline))
        state = PlanState(plan, position, [source for source in sources.shown if source.id in cited])
        first = {"plan": plan.steps, "planned_by": draft.planned_by, "degraded_reason": degraded}
        return _response(state, service.resources.signer, **first)


def _continue(service: Service, request: PlanRequest, deadline: Deadline) -> PlanResponse:
    signer = service.resources.signer
    state = PlanState.unseal(request.state or "", signer)
    position = advance(state.plan, state.position, request.input, _caller(service.turn_tools(deadline), deadline))
    return _response(replace(state, position=position), signer)


def _response(state: PlanState, signer: Signer, **first: Any) -> PlanResponse:
    """Return the step at which a reader is, with the fields that only the first response has."""
    position = state.position
    step = None if position.step_id is None else state.plan.step(position.step_id)
    return PlanResponse(
        status="open" if step else "ended",
        title=state.plan.title,
        step=step,
        state=state.seal(signer) if step else None,
        sources=list(state.sources),
        results=position.outcomes,
        **first,
    )


def _caller(tools: TurnTools | None, deadline: Deadline) -> CallTool:
    def call(name: str, arguments: Mapping[str, str | float]) -> ToolOutcome:
        if tools is None:
            return ToolOutcome(name=name, ok=False, text="The site has no tools.")
        parameters = next((spec.parameters for spec in tools.specs if spec.name == name), {})
        typed = {n: _to_type(value, parameters.get("properties", {}).get(n, {})) for n, value in arguments.items()}
        result = tools.run(ToolCall(name, json.dumps(typed)), deadline)
        deadline.check()
        links = AddressFilter(())
        text = "\n\n".join(
            source.text if source.url else links.without_foreign(source.text) for source in result.output
        )
        return ToolOutcome(name=name, ok=result.ok, text=(text if result.ok else result.error)[:_MAX_OUTCOME_CHARS])

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


def walk_plan(
    service: Service,
    request: Mapping[str, Any],
    say: Callable[[str], object],
    complain: Callable[[InputError], object],
    read: Callable[[], str] | None,
) -> list[dict[str, Any]]:
    """Say the steps of a plan to its owner, and return the places that it cites or else the nearest ones.

    Args:
        complain: gets what is wrong with an input of the reader.
        read: returns the next input; None says all steps at once.
    """
    reply = plan_for_owner(service, **request)
    none = reply["status"] == "not_in_docs"
    say("The documentation describes no steps for this." if none else f"{reply['title']}\n")
    if read is None:
        for number, step in enumerate((s for s in reply["plan"] if s["text"]), 1):
            _say_step(number, step, say)
    number = 0
    while read is not None and (step := reply["step"]):
        number += 1
        for result in reply["results"]:
            say(f"{result['name']}: {result['text']}\n")
        _say_step(number, step, say)
        answer = {"input": text} if (text := read()) else {}
        try:
            reply = plan_for_owner(service, state=reply["state"], **answer)
        except InputError as error:
            number -= 1
            complain(error)
    places: list[dict[str, Any]] = reply["sources"] or reply["nearest"]
    return places


def _say_step(number: int, step: dict[str, Any], say: Callable[[str], object]) -> None:
    cited = "".join(f" [{i}]" for i in step["citations"])
    options = (f"\n   {at}) {choice['label']}" for at, choice in enumerate(step["options"], 1))
    say(f"{number}. {step['text']}{cited}{''.join(options)}\n")
