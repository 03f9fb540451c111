"""What the command line asks of the service. The budget is for the public, so nothing is counted here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse_api.answering.pipeline import answer_query
from chapterverse_api.answering.resources import Resources
from chapterverse_api.commands import answer_eval
from chapterverse_api.commands import search as searches
from chapterverse_api.commands.search import History
from chapterverse_api.conversation.threads import Threads
from chapterverse_api.validation import checked


class ServiceSession:
    """Implements `chapterverse.session.Session` over one set of resources."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    @classmethod
    def open(cls, settings: Settings) -> ServiceSession:
        """Return a session; raises as `Resources.open` does."""
        return cls(Resources.open(settings))

    @property
    def settings(self) -> Settings:
        return self._resources.settings

    @property
    def threads(self) -> Threads | None:
        return self._resources.threads

    def snapshot(self) -> Snapshot:
        return self._resources.index.snapshot()

    def answer(self, **fields: Any) -> dict[str, Any]:
        query = checked(**{k: v for k, v in fields.items() if v is not None})
        *_, response = answer_query(query, self._resources)
        return response.model_dump(mode="json")

    def search(
        self, question: str, top_k: int, filters: Mapping[str, Any], history: History = None
    ) -> list[dict[str, Any]]:
        return searches.search(self._resources, question, top_k, filters, history)

    def examine(self, question: str, history: History, top_k: int) -> dict[str, Any]:
        return searches.examine(self._resources, question, history, top_k)

    def weigh(self, question: str, history: History, weights: Sequence[float]) -> dict[str, Any]:
        return searches.weigh(self._resources, question, history, weights)

    def judge(self, question: str, history: History) -> dict[str, Any]:
        return answer_eval.judge(self._resources, question, history)

    def holds(self, claims: Sequence[Mapping[str, str]]) -> list[bool]:
        return answer_eval.holds(self._resources, claims)
