"""The interface of the tools that a model calls before it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from chapterverse_api.deadline import Deadline
from chapterverse_api.generation.passage import Passage
from chapterverse_api.generation.requests import ToolCall, ToolSpec


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
        """Check a call's arguments and make it. Every failure is a result. Threads may call it at once."""
        ...


class SiteTools(Protocol):
    """The tools of the site's owner."""

    def of_turn(self, service: Any, deadline: Deadline) -> TurnTools:
        """Return the tools that one turn of a service may use."""
        ...
