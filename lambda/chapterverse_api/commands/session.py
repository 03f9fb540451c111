"""Implements the command line's session. The budget is for the public, so nothing is charged here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from chapterverse.store import Snapshot
from chapterverse_api.answering.pipeline import answer_query
from chapterverse_api.commands import answer_eval
from chapterverse_api.commands import search as searches
from chapterverse_api.commands import trace as traces
from chapterverse_api.commands.search import History
from chapterverse_api.contract import dump
from chapterverse_api.deadline import Deadline
from chapterverse_api.service import Service
from chapterverse_api.validation import parse_request, valid_query

if TYPE_CHECKING:
    from chapterverse_api.commands.enrichment import ServiceEnricher


class ServiceSession(Service):
    """The service for its owner. Implements `chapterverse.session.Session`."""

    __slots__ = ()

    def enricher(self) -> ServiceEnricher:
        # Other commands do without it.
        from chapterverse_api.commands.enrichment import ServiceEnricher

        return ServiceEnricher.of(self.resources)

    def snapshot(self, version: str | None = None) -> Snapshot:
        return self.resources.index.snapshot(version)

    def answer(self, **fields: Any) -> dict[str, Any]:
        query = valid_query(**{k: v for k, v in fields.items() if v is not None})
        deadline = Deadline()
        *_, response = answer_query(query, self.resources, deadline=deadline, tools=self.turn_tools(deadline))
        return response.model_dump(mode="json")

    def plan(self, **fields: Any) -> dict[str, Any]:
        # Other commands do without it.
        from chapterverse_api.answering.plans.contract import PlanRequest
        from chapterverse_api.answering.plans.requests import respond

        document, deadline = {k: v for k, v in fields.items() if v is not None}, Deadline()
        request = parse_request(PlanRequest, document)
        return dump(respond(request, self.resources, deadline=deadline, tools=self.turn_tools(deadline)))

    def trace(self, **fields: Any) -> dict[str, Any]:
        return traces.trace(self.resources, valid_query(**{k: v for k, v in fields.items() if v is not None}))

    def search(
        self, question: str, top_k: int, filters: Mapping[str, Any], history: History = None
    ) -> list[dict[str, Any]]:
        return searches.search(self.resources, question, top_k, filters, history)

    def examine(self, question: str, history: History, top_k: int) -> dict[str, Any]:
        return searches.examine(self.resources, question, history, top_k)

    def weigh(self, question: str, history: History, weights: Sequence[float]) -> dict[str, Any]:
        return searches.weigh(self.resources, question, history, weights)

    def judge_answer(self, question: str, history: History) -> dict[str, Any]:
        return answer_eval.judge_answer(self.resources, question, history)

    def serve_mcp(self, read: BinaryIO, write: BinaryIO) -> None:
        # Other commands do without it.
        from chapterverse_api.commands import mcp

        mcp.serve(self, read, write)

    def holds(self, claims: Sequence[Mapping[str, str]]) -> list[bool]:
        return answer_eval.holds(self.resources, claims)
