"""What all questions of a process share, opened once: settings, index, models and their meter, signing key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from chapterverse.embedding import Embedder, LazySize, open_embedder
from chapterverse.errors import ChapterVerseError, ConfigurationError, IndexMismatch, ProviderError
from chapterverse.extensions import foreign, load_listeners, load_part, open_offer
from chapterverse.manifests import EXTENSIONS, SETTINGS
from chapterverse.model import EmbedderCard, Head
from chapterverse.reading import ReadingModel, open_reading_model
from chapterverse.settings import Settings
from chapterverse.store import Store, open_store
from chapterverse_api import log
from chapterverse_api.answer.event import KeptConversations, Listener, parse_days
from chapterverse_api.contract import IndexStatus, ServiceStatus
from chapterverse_api.conversation.transcript import Signer
from chapterverse_api.draft.draft import AnswerGenerator, Writer
from chapterverse_api.draft.extractive import Extractive
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.search.rerankers import Reranker

if TYPE_CHECKING:
    from chapterverse_api.draft.draft import Checker

#: The settings of money: what they say is checked even if no model can cost any.
_MONEY = ("limiter", "daily_budget_usd", "prices", "economy_generator")

#: full: all models. economy: no reranker, no paid checker, and the cheaper generator. free: nothing that is paid for.
BudgetLevel = Literal["full", "economy", "free"]


@dataclass(slots=True)
class Spending:
    """What the models of one turn may cost, and did.

    Attributes:
        level: see `BudgetLevel`.
        reason: a sentence for the reader; None if the turn may use all models.
        micros: the cost so far, in microdollars.
    """

    level: BudgetLevel = "full"
    reason: str | None = None
    micros: float = 0.0

    @property
    def usd(self) -> float:
        """The cost so far, in US dollars."""
        return round(self.micros / 1_000_000, 6)


@dataclass(frozen=True, slots=True)
class Models:
    """The models of this process, or those that one turn may use.

    Attributes:
        checker: gives a second vote on citations; None if the words decide.
        reading_model: reads the first candidates of a search; None if there is none.
        drafting: returns the context in which a draft is requested and read.
        spending: of the turn.
    """

    embedder: Embedder | None
    reranker: Reranker | None
    generator: AnswerGenerator
    checker: Checker | None
    reading_model: ReadingModel | None
    drafting: Callable[[], AbstractContextManager[None]] = nullcontext
    spending: Spending = field(default_factory=Spending)

    @classmethod
    def open(cls, settings: Settings) -> Models:
        """Return the models that the settings name; nothing is sent yet.

        Raises:
            ConfigurationError: a name is unknown, or a chosen provider's key or package is missing.
        """
        generator, reranker = open_offer("generator", settings), open_offer("reranker", settings)
        return cls(
            open_embedder(settings), reranker, generator, open_offer("checker", settings), _open_reading_model(settings)
        )

    @property
    def writer(self) -> Writer | None:
        """The generator, if it writes other texts than answers too."""
        return self.generator if isinstance(self.generator, Writer) else None

    @property
    def only_quotes(self) -> bool:
        """Whether no model writes answers."""
        return isinstance(self.generator, Extractive)

    @property
    def may_fail(self) -> bool:
        """Whether one of them can fail or cost anything: the reading model and what quotes can do neither."""
        return not self.only_quotes or any((self.embedder, self.reranker, self.checker))

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


class Meter(Protocol):
    """Pays for the models of a service within the day's budget, and skips those that fail.

    Attributes:
        key_refused: whether a model does not know our key.
        economy: the generator when most of the budget is gone; None if it is the usual one.
        conditions: whether each model is skipped, and whether the day's budget is nearly spent, by the names of the
            status.
    """

    @property
    def economy(self) -> AnswerGenerator | None: ...

    @property
    def key_refused(self) -> bool: ...

    @property
    def conditions(self) -> Mapping[str, bool]: ...

    def reserving(
        self, models: Models, question: str | None, *, drafts: bool, votes: bool
    ) -> AbstractContextManager[Models]:
        """Give what one turn may use of these models; see `Resources.reserving`."""
        ...

    def without_limit(self, models: Models) -> Models:
        """Return all these models for one turn, whatever it costs."""
        ...

    def inherit_from(self, before: Any) -> Meter:
        """Return this meter with the budget of `before`."""
        ...


def _open_meter(settings: Settings, models: Models) -> Meter | None:
    if not models.may_fail and all(settings[SETTINGS[name]] == SETTINGS[name].default for name in _MONEY):
        return None
    meter: Meter | None = load_part("meter")(settings, models)
    return meter


def _open_reading_model(settings: Settings) -> ReadingModel | None:
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
class Resources:
    """What every question of this process shares.

    Attributes:
        meter: None if no model can fail or cost anything.
        threads: the kept conversations; None if none are kept.
        listeners: are called with each answer, in this order.
    """

    settings: Settings
    index: SiteIndex
    models: Models
    meter: Meter | None
    signer: Signer
    threads: KeptConversations | None
    listeners: tuple[Listener, ...]

    @classmethod
    def open(cls, settings: Settings, store: Store | None = None, models: Models | None = None) -> Resources:
        """Return what these settings describe, but for a part that is given. The index opens at the first question.

        Raises:
            ConfigurationError: a name is unknown, or a chosen provider's key or package is missing.
        """
        store, models = store or open_store(settings), models or Models.open(settings)
        threads = _open_threads(settings)
        ours = *load_listeners(settings, EXTENSIONS), *([threads.keep] if threads else [])
        return cls(
            settings,
            SiteIndex(store, settings, models.check_index),
            models,
            _open_meter(settings, models),
            Signer.from_settings(settings),
            threads,
            # Others come last: they may be slow, and what is kept must be stored before the turn ends.
            (*ours, *load_listeners(settings, foreign())),
        )

    @contextmanager
    def reserving(self, question: str | None = None, *, drafts: bool = False, votes: bool = False) -> Iterator[Models]:
        """Give the models that a turn may use, after reserving the most that it usually costs; then settle its cost.

        Args:
            question: what is searched for; None without a search.
            drafts: whether the turn writes an answer.
            votes: whether it asks for second votes.
        """
        if self.meter:
            with self.meter.reserving(self.models, question, drafts=drafts, votes=votes) as models:
                yield models
            return
        try:
            yield self.models
        finally:
            log.measure(CostUsd=0.0, InputTokens=0, OutputTokens=0)

    @property
    def unlimited_models(self) -> Models:
        """The models for a turn of the owner's, whatever it costs."""
        return self.meter.without_limit(self.models) if self.meter else self.models

    @property
    def key_refused(self) -> bool:
        """Whether a model or the store does not know our key: another may have taken its place."""
        return self.index.key_refused or (self.meter is not None and self.meter.key_refused)

    def inherit_from(self, before: Resources) -> Resources:
        """Return these resources with what new keys don't change: the budget, and a signing key that was made up."""
        signed = self.settings.signing_key or before.settings.signing_key
        meter = self.meter.inherit_from(before.meter) if self.meter and before.meter else self.meter
        return replace(self, meter=meter, signer=self.signer if signed else before.signer)

    def status(self, *, has_tools: bool) -> ServiceStatus:
        """Return the state of indexes, models and budget. A broken index is reported, not raised.

        Args:
            has_tools: whether the site has tools of its own.
        """
        index, models, settings, threads = self.index, self.models, self.settings, self.threads
        heads, is_index_sound, embedder = list[Head](), False, settings.embedder
        with suppress(ChapterVerseError):
            heads = index.live_heads()
            embedder = models.card(heads[0]).name if heads else embedder
            for head in heads:
                models.check_index(head)
            is_index_sound = bool(heads) and index.intact(heads)
        conditions = {
            "index": not is_index_sound,
            **(self.meter.conditions if self.meter else {}),
            # A model that calls none leaves the site's tools unused.
            "tools": has_tools and not models.writer,
            "records": threads is not None and not threads.works,
            # A question was not read, because others took its time.
            "reading_model": models.reading_model is not None and models.reading_model.queue.is_late,
        }
        degraded = [part for part, is_degraded in conditions.items() if is_degraded]
        return ServiceStatus(
            status="degraded" if degraded else "ok",
            indexes=[IndexStatus.model_validate(head, from_attributes=True) for head in heads],
            models={
                "embedder": embedder,
                "reranker": settings.reranker,
                "generator": models.generator.name,
                "reading_model": models.reading_model.name if models.reading_model else "none",
                "checker": models.checker.name if models.checker else settings.checker,
            },
            degraded=degraded,
            mcp=settings.mcp,
        )
