"""What a turn may use of the models of a service: each is paid from the day's budget, and skipped after failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.answer.resources import BudgetLevel, Models
from chapterverse_api.draft.draft import MAX_VOTES, AnswerGenerator, Writer
from chapterverse_api.draft.extractive import Extractive
from chapterverse_api.ext.budget.circuit_breaker import CircuitBreaker
from chapterverse_api.ext.budget.daily_budget import DailyBudget, TurnBudget
from chapterverse_api.ext.budget.metering import Metered, MeteredWriter, usual_cost
from chapterverse_api.ext.budget.prices import FREE, Price, Prices, economy_generator_name
from chapterverse_api.ext.models.prompts import MAX_REASONING_TOKENS

#: The models that have a circuit breaker, by their names in `degraded` of the status.
_PARTS = ("generator", "embedder", "reranker", "checker")
#: The generator at the economy level has one of its own.
_CHEAPER = "cheaper generator"


@dataclass(frozen=True, slots=True)
class Meter:
    """Prices, budget and circuit breakers of the models of one service. Implements `answer.resources.Meter`.

    Attributes:
        economy: the generator when most of the budget is gone; None if it is the usual one.
        circuits: by part.
    """

    prices: Prices
    budget: DailyBudget
    economy: AnswerGenerator | None
    circuits: Mapping[str, CircuitBreaker]

    @classmethod
    def open(cls, settings: Settings, models: Models) -> Self | None:
        """Return the meter of these models; None if none can fail or cost anything. Nothing is sent yet.

        Raises:
            ConfigurationError: a setting of the budget, or what it names, can't be used.
        """
        name, economy = economy_generator_name(settings), None
        if name != settings.generator:
            setting = "CHAPTERVERSE_ECONOMY_GENERATOR"
            economy = open_offer("generator", settings.override(generator=name), setting)
        prices = Prices.from_settings(settings, models.embedder.price if models.embedder else None)
        circuits = {part: CircuitBreaker(part) for part in (*_PARTS, _CHEAPER)}
        meter = cls(prices, DailyBudget.from_settings(settings), economy, circuits)
        return meter if models.may_fail or economy else None

    @property
    def key_refused(self) -> bool:
        return any(self.circuits[part].key_refused for part in _PARTS)

    @property
    def conditions(self) -> Mapping[str, bool]:
        return {**{part: self.circuits[part].is_open for part in _PARTS}, "budget": self.budget.level != "full"}

    @contextmanager
    def reserving(self, models: Models, question: str | None, *, drafts: bool, votes: bool) -> Iterator[Models]:
        usual = usual_cost(self.prices, question, drafts=drafts, votes=MAX_VOTES if votes else 0)
        with self.budget.reserving(usual) as turn_budget:
            yield self.paid_from(turn_budget, models)

    def without_limit(self, models: Models) -> Models:
        return self.paid_from(TurnBudget(), models)

    def inherit_from(self, before: Meter) -> Meter:
        return replace(self, budget=before.budget)

    def paid_from(self, budget: TurnBudget, models: Models) -> Models:
        """Return those of these models that a turn may use at the level of its budget, each paid from it."""
        prices, is_full = self.prices, budget.level == "full"

        def paid(part: str, price: Price, is_allowed: bool, thoughts: int = 0) -> Any:
            model = getattr(models, part) if is_allowed else None
            return Metered(model, price, budget, self.circuits[part], thoughts) if model else None

        part, generator, price = self._choose_generator(models.generator, budget.level)
        if not isinstance(generator, Extractive):
            metered = MeteredWriter if isinstance(generator, Writer) else Metered
            generator = metered(generator, price, budget, self.circuits[part], prices.thoughts)
        return replace(
            models,
            # A model on one's own machine costs nothing, so it stays when the budget is gone.
            embedder=paid("embedder", prices.embedder, budget.level != "free" or prices.embedder == FREE),
            reranker=paid("reranker", prices.reranker, is_full),
            checker=paid("checker", prices.checker, is_full or prices.checker == FREE, MAX_REASONING_TOKENS),
            generator=generator,
            drafting=self.circuits[part].calling,
            spending=budget,
        )

    def _choose_generator(self, usual: AnswerGenerator, level: BudgetLevel) -> tuple[str, AnswerGenerator, Price]:
        """Return the generator for a level of the budget, after its part and before its price."""
        if level == "free" and self.prices.generator != FREE:
            return "generator", Extractive(), FREE
        if level == "economy" and self.economy:
            return _CHEAPER, self.economy, self.prices.economy
        return "generator", usual, self.prices.generator
