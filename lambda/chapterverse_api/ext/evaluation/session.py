"""The service as an evaluation asks it. Nothing is charged."""

from __future__ import annotations

from collections.abc import Sequence

from chapterverse_api.commands.search import Examination, History, WeightTrial, collect_features, measure_search
from chapterverse_api.commands.session import ServiceSession
from chapterverse_api.ext.evaluation import answer_eval
from chapterverse_api.ext.evaluation.answer_eval import AnswerJudgement, CitedClaim


class EvaluationSession(ServiceSession):
    """Every method raises `InputError` for an invalid question and `IndexFault` if no index can be read."""

    __slots__ = ()

    def examine(self, question: str, history: History, top_k: int) -> Examination:
        """Return the results of a search and their figures."""
        return measure_search(self.resources, question, history, top_k)

    def weigh(self, question: str, history: History, weights: Sequence[float]) -> WeightTrial:
        """Search with each fusion weight, and return the candidates. Raises `ProviderError` if the embedder failed."""
        return collect_features(self.resources, question, history, weights)

    def judge_answer(self, question: str, history: History) -> AnswerJudgement:
        """Answer a question, and check its citations, sentences and claims again in the index."""
        return answer_eval.judge_answer(self.resources, question, history)

    def holds(self, claims: Sequence[CitedClaim]) -> list[bool]:
        """Return for each claim whether its section supports it."""
        return answer_eval.holds(self.resources, claims)
