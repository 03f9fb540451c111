"""The maximum cost of a turn, which the budget reserves: the actual cost is never higher."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import pytest

from api.generation.drafts import make_request
from chapterverse_api.answering.metering import MeteredGenerator, MeteredReranker, MeteredWriter, ModelCall
from chapterverse_api.answering.turn_cost import max_search_cost, max_turn_cost
from chapterverse_api.budget.daily_budget import TurnBudget
from chapterverse_api.budget.prices import Price, Prices
from chapterverse_api.circuit_breaker import CircuitBreaker
from chapterverse_api.contract import ChatQuery, Message
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation.draft import Span
from chapterverse_api.generation.requests import ChatMessage, GenerationRequest, ModelRequest, Usage

QUESTION = "How do I clear the cache?"


def test_a_summary_that_may_be_due_is_set_aside_too() -> None:
    prices = Prices(embedder=Price(1), reranker=Price(search=1), generator=Price(1, 1), economy=Price(1, 1))
    query = ChatQuery(query=QUESTION, thread_id="t1")
    without = max_turn_cost(query, prices, keeps_threads=False).full
    assert max_turn_cost(query, prices, keeps_threads=True).full > without + 300
    # What begins now has no summary.
    assert max_turn_cost(ChatQuery(query=QUESTION), prices, keeps_threads=True).full == without


def test_what_was_not_set_aside_loses_its_middle() -> None:
    @dataclass
    class Repeating:
        told: str = ""

        def write(self, request: ModelRequest) -> str:
            self.told = "".join(said.content for said in request.messages)
            return ""

    repeating, turn_budget = Repeating(), TurnBudget()
    writer = MeteredWriter(repeating, ModelCall(CircuitBreaker("generator"), Price(1), turn_budget))
    writer.write(ModelRequest("", (ChatMessage("user", "é" * 8000),), 1, Deadline()))
    assert repeating.told == "é" * 8000
    writer.write(ModelRequest("", (ChatMessage("user", "first" + "é" * 9000 + "last"),), 1, Deadline()))
    assert repeating.told.startswith("firsté")
    assert repeating.told.endswith("élast")
    assert 15_990 < len(repeating.told.encode()) <= 16_000


def test_a_long_question_is_never_searched_for_more_than_was_set_aside() -> None:
    class Ranking:
        name = "any"

        def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
            return [0.5] * len(texts)

    prices = Prices(reranker=Price(search=1))
    for question in ("a", "─" * 1300, "job " + "─" * 3880, "x" * 4000):
        for text in ("", "x" * 1000, "x" * 3400, "─" * 9000):
            turn_budget = TurnBudget()
            call = ModelCall(CircuitBreaker("reranker"), prices.reranker, turn_budget)
            MeteredReranker(Ranking(), call).rerank(question, [text] * 100)
            assert 0 < turn_budget.micros <= max_search_cost(question, prices).full
            assert (
                turn_budget.micros
                <= max_turn_cost(ChatQuery.model_construct(query=question), prices, keeps_threads=False).full
            )
    assert max_search_cost("job " + "─" * 3880, prices).full > max_search_cost("a", prices).full


def test_the_question_that_a_follow_up_becomes_is_set_aside() -> None:
    prices = Prices(reranker=Price(search=1))
    alone = max_turn_cost(ChatQuery(query="why?"), prices, keeps_threads=False).full
    history = [Message(role="user", content="─" * 1200)] * 4
    assert (
        max_turn_cost(ChatQuery(query="why?", conversation_history=history), prices, keeps_threads=False).full > alone
    )
    assert max_turn_cost(ChatQuery(query="why?", thread_id="t1"), prices, keeps_threads=True).full > alone
    assert max_turn_cost(ChatQuery(query="why?", thread_id="t1"), prices, keeps_threads=False).full == alone


@pytest.mark.parametrize(("usage", "written"), [((20, 10), 10), ((0, 0), 2000 + 200 + 2)])
def test_where_nobody_tells_what_was_billed_there_may_have_been_thoughts(
    usage: tuple[int, int], written: float
) -> None:
    class Saying:
        name = "any"

        def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
            request.usage.input_tokens, request.usage.output_tokens = usage
            yield Span("Here.")

    turn_budget = TurnBudget()
    metered = MeteredGenerator(
        Saying(), ModelCall(CircuitBreaker("generator"), Price(output_token=1), turn_budget, reasoning_tokens=2000)
    )
    list(metered.generate(make_request(usage=Usage())))
    assert turn_budget.micros == written


def test_a_search_reserves_no_answer() -> None:
    prices = Prices(embedder=Price(1), reranker=Price(search=10), generator=Price(100, 100))
    worst = max_search_cost("four", prices)
    assert (worst.full, worst.economy) == (204 + 20, 204)
