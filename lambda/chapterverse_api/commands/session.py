"""The service as its owner's commands use it. Nothing is charged here, because the budget is for the public."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chapterverse.store import Snapshot
from chapterverse_api.answering.pipeline import answer_turn
from chapterverse_api.answering.turn import Turn
from chapterverse_api.commands.search import History, SearchRow, search_rows
from chapterverse_api.deadline import Deadline
from chapterverse_api.service import Service
from chapterverse_api.validation import make_query


class ServiceSession(Service):
    """The service for its owner."""

    __slots__ = ()

    def snapshot(self, version: str | None = None) -> Snapshot:
        return self.resources.index.snapshot(version)

    def answer(self, **fields: Any) -> dict[str, Any]:
        query, deadline = make_query(**without_none(fields)), Deadline()
        *_, response = answer_turn(Turn.open(query, self.resources, deadline=deadline, tools=self.turn_tools(deadline)))
        return response.model_dump(mode="json")

    def search(self, question: str, top_k: int, filters: Mapping[str, Any], history: History = None) -> list[SearchRow]:
        return search_rows(self.resources, question, top_k, filters, history)


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
