"""Implements the command line's session. Nothing is charged here, because the budget is for the public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from chapterverse.session import AnswerJudgement, CitedClaim, Examination, History, SearchRow, WeightTrial
from chapterverse.store import Snapshot
from chapterverse_api.answering.pipeline import answer_query
from chapterverse_api.commands import answer_eval
from chapterverse_api.commands.search import collect_features, measure_search, search_rows
from chapterverse_api.commands.trace import trace_answer
from chapterverse_api.contract import dump
from chapterverse_api.deadline import Deadline
from chapterverse_api.service import Service
from chapterverse_api.validation import make_query, parse_request

if TYPE_CHECKING:
    from chapterverse_api.commands.enrichment import ServiceEnricher


class ServiceSession(Service):
    """The service for its owner. Implements `chapterverse.session.Session`."""

    __slots__ = ()

    def enricher(self) -> ServiceEnricher:
        # Lazy: only needed when pages are enriched.
        from chapterverse_api.commands.enrichment import ServiceEnricher

        return ServiceEnricher.from_resources(self.resources)

    def snapshot(self, version: str | None = None) -> Snapshot:
        return self.resources.index.snapshot(version)

    def answer(self, **fields: Any) -> dict[str, Any]:
        query, deadline = make_query(**_without_none(fields)), Deadline()
        *_, response = answer_query(query, self.resources, deadline=deadline, tools=self.turn_tools(deadline))
        return response.model_dump(mode="json")

    def plan(self, **fields: Any) -> dict[str, Any]:
        # Lazy: only needed for plans.
        from chapterverse_api.answering.plans.contract import PlanRequest
        from chapterverse_api.answering.plans.requests import respond

        request, deadline = parse_request(PlanRequest, _without_none(fields)), Deadline()
        return dump(respond(request, self.resources, deadline=deadline, tools=self.turn_tools(deadline)))

    def trace(self, **fields: Any) -> dict[str, Any]:
        return trace_answer(self.resources, make_query(**_without_none(fields)))

    def search(self, question: str, top_k: int, filters: Mapping[str, Any], history: History = None) -> list[SearchRow]:
        return search_rows(self.resources, question, top_k, filters, history)

    def examine(self, question: str, history: History, top_k: int) -> Examination:
        return measure_search(self.resources, question, history, top_k)

    def weigh(self, question: str, history: History, weights: Sequence[float]) -> WeightTrial:
        return collect_features(self.resources, question, history, weights)

    def judge_answer(self, question: str, history: History) -> AnswerJudgement:
        return answer_eval.judge_answer(self.resources, question, history)

    def serve_mcp(self, read: BinaryIO, write: BinaryIO) -> None:
        # Lazy: only needed by this command.
        from chapterverse_api.commands import mcp

        mcp.serve(self, read, write)

    def holds(self, claims: Sequence[CitedClaim]) -> list[bool]:
        return answer_eval.holds(self.resources, claims)


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
