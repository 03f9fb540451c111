"""Shows a plan to its owner, on a terminal one step after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chapterverse.errors import InputError
from chapterverse_api.ext.agents.plans.requests import plan_for_owner
from chapterverse_api.service import Service


def walk_plan(
    service: Service,
    request: Mapping[str, Any],
    say: Callable[[str], object],
    complain: Callable[[InputError], object],
    read: Callable[[], str] | None,
) -> list[dict[str, Any]]:
    """Say the steps of a plan, and return the places that it cites or else the nearest ones.

    Args:
        complain: gets what is wrong with an input of the reader.
        read: returns the next input; None says all steps at once.
    """
    reply = plan_for_owner(service, **request)
    if reply["status"] == "not_in_docs":
        say("The documentation describes no steps for this.")
    else:
        say(f"{reply['title']}\n")
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
    say(f"{number}. {step['text']}{cited}")
    for at, choice in enumerate(step["options"], 1):
        say(f"   {at}) {choice['label']}")
    say("")
