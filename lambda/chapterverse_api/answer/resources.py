"""What all questions of a process share, opened once: models, index, budget, signing key. And what one turn may use."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from chapterverse.embedding import Embedder, LazySize, open_embedder
from chapterverse.errors import ChapterVerseError, ConfigurationError, IndexMismatch, ProviderError
from chapterverse.extensions import foreign, load_listeners, load_part, open_offer
from chapterverse.manifests import EXTENSIONS
from chapterverse.model import EmbedderCard, Head
from chapterverse.reading import open_reading_model
from chapterverse.settings import Settings
from chapterverse.store import Store, open_store
from chapterverse_api import log
from chapterverse_api.answer.event import KeptConversations, Listener, parse_days
from chapterverse_api.answer.metering import Metered
from chapterverse_api.budget.daily_budget import BudgetLevel, DailyBudget, TurnBudget
from chapterverse_api.budget.prices import FREE, Price, Prices, economy_generator_name
from chapterverse_api.circuit_breaker import CircuitBreaker
from chapterverse_api.contract import IndexStatus, ServiceStatus
from chapterverse_api.conversation.transcript import Signer
from chapterverse_api.draft.draft import AnswerGenerator, Writer
from chapterverse_api.draft.extractive import Extractive
from chapterverse_api.draft.prompts import MAX_REASONING_TOKENS
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.search.rerankers import Reranker

if TYPE_CHECKING:
    from chapterverse.reading.model import ReadingModel
    from chapterverse_api.check.checkers import Checker

#: The parts that have a circuit breaker, by the names in `degraded` of the status.
_PARTS = ("generator", "embedder", "reranker", "checker")


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


def _open_threads(settings: Settings) -> KeptConversations | None:
    parse_days(settings)
    threads: KeptConversations | None = load_part("conversations")(settings) if settings.records else None
    return threads


@dataclass(frozen=True, slots=True)
class Models:
    """The models of this process, their prices and their circuit breakers.

    Attributes:
        economy: the generator when most of the budget is gone; None if it is the usual one.
        checker: gives a second vote on citations; None if the words decide.
        reader: reads the first candidates of a search; None if there is none.
        circuits: by part.
    """

    embedder: Embedder | None
    reranker: Reranker | None
    generator: AnswerGenerator
    economy: AnswerGenerator | None
    prices: Prices
    checker: Checker | None = None
    reader: ReadingModel | None = None
    circuits: Mapping[str, CircuitBreaker] = field(
        default_factory=lambda: {part: CircuitBreaker(part) for part in _PARTS}
    )
    economy_circuit: CircuitBreaker = field(default_factory=lambda: CircuitBreaker("cheaper generator"))

    @classmethod
    def open(cls, settings: Settings) -> Models:
        """Return the models that the settings name; nothing is sent yet.

        Raises:
            ConfigurationError: a name is unknown, or a chosen provider's key or package is missing.
        """
        generator, reranker = open_offer("generator", settings), open_offer("reranker", settings)
        return cls.from_parts(settings, open_embedder(settings), generator, reranker)

    @classmethod
    def from_parts(
        cls, settings: Settings, embedder: Embedder | None, generator: AnswerGenerator, reranker: Reranker | None = None
    ) -> Models:
        """Return these models, with the others that the settings name."""
        name, economy = economy_generator_name(settings), None
        if name != settings.generator:
            setting = "CHAPTERVERSE_ECONOMY_GENERATOR"
            economy = open_offer("generator", settings.override(generator=name), setting)
        return cls(
            embedder=embedder,
            reranker=reranker,
            generator=generator,
            economy=economy,
            prices=Prices.from_settings(settings, embedder.price if embedder else None),
            checker=open_offer("checker", settings),
            reader=_open_reader(settings),
        )

    def card(self, head: Head) -> EmbedderCard:
        """Return the embedder's card beside an index's; this calls no model, because no budget is reserved for it."""
        if (embedder := self.embedder) is None:
            return EmbedderCard()
        return embedder.beside(head.embedder) if isinstance(embedder, LazySize) else embedder.card

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
    """The models that one turn may use, each paid from its budget.

    Attributes:
        circuit: the circuit breaker of the generator.
    """

    embedder: Embedder | None
    reranker: Reranker | None
    generator: AnswerGenerator
    writer: Writer | None
    checker: Checker | None
    reader: ReadingModel | None
    circuit: CircuitBreaker
    turn_budget: TurnBudget

    @classmethod
    def for_budget(cls, models: Models, turn_budget: TurnBudget | None = None) -> TurnModels:
        """Return the models that a turn may use at its level of the budget; without a budget, all."""
        budget, prices, circuits = turn_budget or TurnBudget(), models.prices, models.circuits
        generator, circuit, price = _choose_generator(models, budget.level)
        model = Metered(generator, price, budget, circuit, prices.thoughts)

        def paid(part: str, price: Price, is_allowed: bool, thoughts: int = 0) -> Any:
            opened = getattr(models, part) if is_allowed else None
            return Metered(opened, price, budget, circuits[part], thoughts) if opened else None

        is_full = budget.level == "full"
        return cls(
            # A model on one's own machine costs nothing, so it stays when the budget is gone.
            embedder=paid("embedder", prices.embedder, budget.level != "free" or prices.embedder == FREE),
            reranker=paid("reranker", prices.reranker, is_full),
            checker=paid("checker", prices.checker, is_full or prices.checker == FREE, MAX_REASONING_TOKENS),
            generator=generator if price == FREE else model,
            writer=model if isinstance(generator, Writer) else None,
            reader=models.reader,
            circuit=circuit,
            turn_budget=budget,
        )


def _choose_generator(models: Models, level: BudgetLevel) -> tuple[AnswerGenerator, CircuitBreaker, Price]:
    """Return the generator for a level of the budget, with its circuit breaker and price."""
    if level == "free" and models.prices.generator != FREE:
        return Extractive(), CircuitBreaker("generator"), FREE
    if level == "economy" and models.economy:
        return models.economy, models.economy_circuit, models.prices.economy
    return models.generator, models.circuits["generator"], models.prices.generator


@dataclass(frozen=True, slots=True)
class Resources:
    """What every question of this process shares.

    Attributes:
        threads: the kept conversations; None if none are kept.
        listeners: are called with each answer, in this order.
    """

    settings: Settings
    index: SiteIndex
    models: Models
    budget: DailyBudget
    signer: Signer
    threads: KeptConversations | None
    listeners: tuple[Listener, ...]

    @classmethod
    def open(cls, settings: Settings) -> Resources:
        """Return what these settings describe. Cheap: the index opens at the first question.

        Raises:
            ConfigurationError: a name is unknown, or a chosen provider's key or package is missing.
        """
        return cls.from_parts(settings, open_store(settings), Models.open(settings))

    @classmethod
    def from_parts(cls, settings: Settings, store: Store, models: Models) -> Resources:
        """Return these models over this store, with what else the settings name."""
        threads = _open_threads(settings)
        ours = *load_listeners(settings, EXTENSIONS), *([threads.keep] if threads else [])
        return cls(
            settings,
            SiteIndex(store, settings, models.check_index),
            models,
            DailyBudget.from_settings(settings),
            Signer.from_settings(settings),
            threads,
            # Others come last: they may be slow, and what is kept must be stored before the turn ends.
            (*ours, *load_listeners(settings, foreign())),
        )

    @property
    def key_refused(self) -> bool:
        """Whether a model or the store does not know our key: another may have taken its place."""
        return self.index.key_refused or any(circuit.key_refused for circuit in self.models.circuits.values())

    def inherit_from(self, before: Resources) -> Resources:
        """Return these resources with what new keys don't change: the budget, and a signing key that was made up."""
        signed = self.settings.signing_key or before.settings.signing_key
        return replace(self, budget=before.budget, signer=self.signer if signed else before.signer)

    def status(self, *, has_tools: bool) -> ServiceStatus:
        """Return the state of indexes, models and budget. A broken index is reported, not raised.

        Args:
            has_tools: whether the site has tools of its own.
        """
        index, models, settings, threads = self.index, self.models, self.settings, self.threads
        heads, is_index_sound, embedder = list[Head](), False, settings.embedder
        with suppress(ChapterVerseError):
            heads = index.live_heads()
            cards = [models.card(head) for head in heads]
            embedder = cards[0].name if cards else embedder
            fits = all(head.embedder.fingerprint == card.fingerprint for head, card in zip(heads, cards, strict=True))
            is_index_sound = bool(heads) and fits and index.intact(heads)
        conditions = {
            "index": not is_index_sound,
            **{part: circuit.is_open for part, circuit in models.circuits.items()},
            "budget": self.budget.level != "full",
            # A model that calls none leaves the site's tools unused.
            "tools": has_tools and not isinstance(models.generator, Writer),
            "records": threads is not None and not threads.works,
            # A question was not read, because others took its time.
            "reading_model": models.reader is not None and models.reader.queue.is_late,
        }
        degraded = [part for part, is_degraded in conditions.items() if is_degraded]
        return ServiceStatus(
            status="degraded" if degraded else "ok",
            indexes=[IndexStatus.model_validate(head, from_attributes=True) for head in heads],
            models={
                "embedder": embedder,
                "reranker": settings.reranker,
                "generator": models.generator.name,
                "reading_model": models.reader.name if models.reader else "none",
                "checker": models.checker.name if models.checker else settings.checker,
            },
            degraded=degraded,
            mcp=settings.mcp,
        )
