"""The models of the process, and those that one turn may use at its level of the budget."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from chapterverse.embedding import Embedder, open_embedder
from chapterverse.errors import ConfigurationError, IndexMismatch, ProviderError
from chapterverse.model import EmbedderCard, Head
from chapterverse.reading.factory import open_reading_model
from chapterverse.settings import Settings
from chapterverse_api.answering.metering import (
    MeteredChecker,
    MeteredDataWriter,
    MeteredEmbedder,
    MeteredGenerator,
    MeteredReranker,
    MeteredWriter,
    ModelCall,
)
from chapterverse_api.budget.daily_budget import BudgetLevel, TurnBudget
from chapterverse_api.budget.prices import FREE, Price, Prices, economy_generator_name
from chapterverse_api.circuit_breaker import CircuitBreaker
from chapterverse_api.generation import prompts
from chapterverse_api.generation.extractive import Extractive
from chapterverse_api.generation.factory import open_generator
from chapterverse_api.generation.protocols import AnswerGenerator, DataWriter, LoadedModel, Writer
from chapterverse_api.observability import log
from chapterverse_api.retrieval.rerankers.factory import open_reranker
from chapterverse_api.retrieval.rerankers.protocols import Reranker

if TYPE_CHECKING:
    from chapterverse.reading.model import ReadingModel
    from chapterverse_api.generation.model_loader import ModelLoader
    from chapterverse_api.grounding.checkers.protocols import Checker


_Metered = TypeVar("_Metered", MeteredEmbedder, MeteredReranker, MeteredChecker)


@dataclass(frozen=True, slots=True)
class EconomyGenerator:
    """The cheaper generator, with a circuit breaker of its own."""

    generator: AnswerGenerator
    circuit: CircuitBreaker


def open_economy_generator(settings: Settings) -> EconomyGenerator | None:
    """Return the generator for the last fifth of the day's budget; None if it is the usual one.

    Raises:
        ConfigurationError: see `open_generator`.
    """
    name = economy_generator_name(settings)
    if name == settings.generator:
        return None
    return EconomyGenerator(open_generator(settings.override(generator=name)), CircuitBreaker("cheaper generator"))


def _open_checker(settings: Settings) -> MeteredChecker | None:
    """Return the checker for second votes; None if the words decide.

    Raises:
        ConfigurationError: see `open_checker`.
    """
    if settings.checker == "words":
        return None
    # Lazy: only needed with a checker.
    from chapterverse_api.grounding.checkers.factory import open_checker

    reasoning_tokens = prompts.MAX_REASONING_TOKENS if settings.checker.startswith("openai:") else 0
    return MeteredChecker(
        open_checker(settings), ModelCall(CircuitBreaker("checker"), reasoning_tokens=reasoning_tokens)
    )


def _open_reader(settings: Settings) -> ReadingModel | None:
    """Return the reading model; None without one, and if the installed one is damaged, which is logged.

    Raises:
        ConfigurationError: the settings name a folder that holds none.
    """
    try:
        return open_reading_model(settings.reading_model)
    except ConfigurationError as error:
        if settings.reading_model != "auto":
            raise
        log.event("error", code="reading_model_ignored", message=str(error))
        return None


@dataclass(frozen=True, slots=True)
class Models:
    """The models of this process, each behind its circuit breaker, and their prices.

    Attributes:
        circuit: the circuit breaker of the generator.
        checker: gives a second vote on citations; None if the words decide.
        reader: reads the first candidates of a search; None if there is none.
    """

    embedder: MeteredEmbedder | None
    reranker: MeteredReranker | None
    generator: AnswerGenerator
    circuit: CircuitBreaker
    economy: EconomyGenerator | None
    prices: Prices
    checker: MeteredChecker | None = None
    reader: ReadingModel | None = None

    @classmethod
    def open(cls, settings: Settings) -> Models:
        """Return the models that the settings name; nothing is sent yet.

        Raises:
            ConfigurationError: a name is unknown, or a chosen provider's key or package is missing.
        """
        embedder, generator, reranker = open_embedder(settings), open_generator(settings), open_reranker(settings)
        return cls.from_parts(settings, embedder, generator, reranker)

    @classmethod
    def from_parts(
        cls, settings: Settings, embedder: Embedder | None, generator: AnswerGenerator, reranker: Reranker | None = None
    ) -> Models:
        """Return these models behind circuit breakers, with the checker that the settings name."""
        return cls(
            embedder=MeteredEmbedder(embedder, ModelCall(CircuitBreaker("embedder"))) if embedder else None,
            reranker=MeteredReranker(reranker, ModelCall(CircuitBreaker("reranker"))) if reranker else None,
            generator=generator,
            circuit=CircuitBreaker("generator"),
            economy=open_economy_generator(settings),
            prices=Prices.from_settings(settings, embedder.price if embedder else None),
            checker=_open_checker(settings),
            reader=_open_reader(settings),
        )

    def open_loaders(self) -> list[ModelLoader]:
        """Return what loads the models that write, where they are on servers of one's own."""
        generators = (self.generator, *([self.economy.generator] if self.economy else []))
        loaders = (generator.open_loader() for generator in generators if isinstance(generator, LoadedModel))
        return [loader for loader in loaders if loader]

    @property
    def circuits(self) -> dict[str, CircuitBreaker]:
        """The circuit breakers by the part that they guard."""
        circuits = {"generator": self.circuit}
        circuits |= {"embedder": self.embedder.call.circuit} if self.embedder else {}
        circuits |= {"reranker": self.reranker.call.circuit} if self.reranker else {}
        return circuits | ({"checker": self.checker.call.circuit} if self.checker else {})

    def card(self, head: Head) -> EmbedderCard:
        """Return the embedder's card beside an index's; this calls no model, because no budget is reserved for it."""
        return self.embedder.beside(head.embedder) if self.embedder else EmbedderCard()

    def check_index(self, head: Head) -> None:
        """Check that an index was made by the configured embedder, as far as that is known without asking a model.

        Raises:
            IndexMismatch: it was made by another one.
        """
        with suppress(ProviderError):
            card = self.card(head)
            if head.embedder.fingerprint != card.fingerprint:
                raise IndexMismatch(
                    f"The index was made with the embedder {head.embedder.name!r} and the settings say {card.name!r}: "
                    f"set CHAPTERVERSE_EMBEDDER={head.embedder.name}, or index again."
                )


@dataclass(frozen=True, slots=True)
class TurnModels:
    """The models that one turn may use, each counting its cost.

    Attributes:
        circuit: the circuit breaker of the generator.
        turn_budget: takes the costs of the calls.
    """

    embedder: Embedder | None
    reranker: Reranker | None
    generator: AnswerGenerator
    writer: Writer | None
    data_writer: DataWriter | None
    checker: Checker | None
    reader: ReadingModel | None
    circuit: CircuitBreaker
    turn_budget: TurnBudget

    @classmethod
    def for_budget(cls, models: Models, turn_budget: TurnBudget | None = None) -> TurnModels:
        """Return the models that a turn may use at its level of the budget; without a budget, all."""
        turn_budget, prices = turn_budget or TurnBudget(), models.prices
        level = turn_budget.level
        generator, circuit, price = _choose_generator(models, level)
        # A model on one's own machine costs nothing, so it stays when the budget is gone.
        embedder = None if level == "free" and prices.embedder != FREE else models.embedder
        reranker = models.reranker if level == "full" else None
        checker = models.checker if level == "full" or prices.checker == FREE else None
        call = ModelCall(circuit, price, turn_budget, prices.thoughts)
        return cls(
            embedder=_charge(embedder, prices.embedder, turn_budget),
            reranker=_charge(reranker, prices.reranker, turn_budget),
            generator=generator if price == FREE else MeteredGenerator(generator, call),
            writer=MeteredWriter(generator, call) if isinstance(generator, Writer) else None,
            data_writer=MeteredDataWriter(generator, call) if isinstance(generator, DataWriter) else None,
            checker=_charge(checker, prices.checker, turn_budget),
            reader=models.reader,
            circuit=circuit,
            turn_budget=turn_budget,
        )


def _choose_generator(models: Models, level: BudgetLevel) -> tuple[AnswerGenerator, CircuitBreaker, Price]:
    """Return the generator for a level of the budget, with its circuit breaker and price."""
    if level == "free" and models.prices.generator != FREE:
        return Extractive(), CircuitBreaker("generator"), FREE
    if level == "economy" and models.economy:
        return models.economy.generator, models.economy.circuit, models.prices.economy
    return models.generator, models.circuit, models.prices.generator


def _charge(part: _Metered | None, price: Price, turn_budget: TurnBudget) -> _Metered | None:
    """Return a part whose calls are charged to one turn at this price."""
    return replace(part, call=replace(part.call, price=price, turn_budget=turn_budget)) if part else None
