"""What each request to a model reserves at most, and is charged."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from api.draft.drafts import make_request
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import ChatMessage, GenerationRequest, ModelRequest, ToolSpec, Usage
from chapterverse_api.ext.budget.circuit_breaker import CircuitBreaker
from chapterverse_api.ext.budget.daily_budget import TurnBudget
from chapterverse_api.ext.budget.meter import MeteredWriter, usual_cost
from chapterverse_api.ext.budget.prices import Price, Prices
from chapterverse_api.limits import Reservation

LONG = ToolSpec("long", "─" * 5_000, {})


def metered(part: object, price: Price, *, thoughts: int = 0) -> tuple[MeteredWriter, TurnBudget]:
    """Return a part in a turn that reserves from an endless day."""
    budget = TurnBudget(reserve=lambda micros: Reservation("", "", micros, 0))
    return MeteredWriter(part, price, budget, CircuitBreaker("any"), thoughts), budget


def reserved(budget: TurnBudget) -> int:
    return sum(reservation.micros for reservation in budget.reservations)


class Saying:
    """A generator that reports this usage."""

    name = "any"

    def __init__(self, usage: tuple[int, int] = (0, 0)) -> None:
        self.usage = usage

    def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
        request.usage.input_tokens, request.usage.output_tokens = self.usage
        yield Span("Here.")


def test_a_part_keeps_its_name() -> None:
    assert metered(Saying(), Price(1))[0].name == "any"


def test_what_is_too_long_for_a_short_text_loses_its_middle() -> None:
    @dataclass
    class Repeating:
        told: str = ""

        def write(self, request: ModelRequest) -> str:
            self.told = "".join(said.content for said in request.messages)
            return ""

    repeating = Repeating()
    writer, _ = metered(repeating, Price(1))
    writer.write(ModelRequest("", (ChatMessage("user", "é" * 8000),), 1, Deadline()))
    assert repeating.told == "é" * 8000
    writer.write(ModelRequest("", (ChatMessage("user", "first" + "é" * 9000 + "last"),), 1, Deadline()))
    assert repeating.told.startswith("firsté")
    assert repeating.told.endswith("élast")
    assert 15_990 < len(repeating.told.encode()) <= 16_000


def test_a_long_question_is_as_many_searches_as_it_is_billed_for() -> None:
    class Ranking:
        def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
            return [0.5] * len(texts)

    prices = Prices(reranker=Price(search=1))
    for question in ("a", "─" * 1300, "job " + "─" * 3880, "x" * 4000):
        for text in ("", "x" * 1000, "x" * 3400, "─" * 9000):
            reranker, budget = metered(Ranking(), prices.reranker)
            reranker.rerank(question, [text] * 100)
            assert 0 < budget.micros == reserved(budget) <= usual_cost(prices, question).full
    assert usual_cost(prices, "job " + "─" * 3880).full > usual_cost(prices, "a").full


@pytest.mark.parametrize(("usage", "written"), [((20, 10), 10), ((0, 0), 2000 + 200 + 2)])
def test_where_nobody_tells_what_was_billed_there_may_have_been_thoughts(
    usage: tuple[int, int], written: float
) -> None:
    generator, budget = metered(Saying(usage), Price(output_token=1), thoughts=2000)
    list(generator.generate(make_request(usage=Usage())))
    assert budget.micros == written
    assert reserved(budget) == 600 + 2000


@pytest.mark.parametrize(
    ("more", "tokens"),
    [
        # What a reader writes may be a token a byte; what the documentation holds is not.
        ({"question": "─" * 1000}, 2900),
        ({"history": (ChatMessage("user", "─" * 1000),)}, 3000),
        ({"context": "─" * 500}, 1500),
        ({"tools": (LONG,)}, 5000 * 6 / 2.5),
    ],
)
def test_all_that_a_prompt_holds_is_reserved(more: dict[str, Any], tokens: float) -> None:
    def most(**fields: Any) -> int:
        generator, budget = metered(Saying((1, 1)), Price(input_token=1))
        list(generator.generate(make_request(usage=Usage(), **fields)))
        assert budget.micros == 1
        return reserved(budget)

    assert most(**more) >= most() + tokens


def test_a_usual_turn_is_a_search_a_draft_and_the_second_votes() -> None:
    prices = Prices(embedder=Price(1), reranker=Price(search=10), generator=Price(100, 100), checker=Price(7, 7))
    search = usual_cost(prices, "four")
    assert (search.full, search.economy) == (204 + 20, 204)
    assert usual_cost(prices, "four", drafts=1).full > search.full + 100 * 5_000
    assert usual_cost(prices, votes=6).full == 6 * usual_cost(prices, votes=1).full > 0
    assert usual_cost(Prices(), "four", drafts=1, votes=6).full == 0


def test_the_dearer_of_two_generators_is_reserved() -> None:
    prices = Prices(embedder=Price(1), generator=Price(1, 1), economy=Price(5, 5))
    dear = usual_cost(prices, "why?", drafts=1)
    assert dear.full == dear.economy > usual_cost(Prices(generator=Price(1, 1)), "why?", drafts=1).full
