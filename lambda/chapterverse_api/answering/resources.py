"""What all questions of a process share, opened once: index, models, budget, signing key."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chapterverse.settings import Settings
from chapterverse.store import Store, open_store
from chapterverse_api.answering.models import Models
from chapterverse_api.budget.daily_budget import DailyBudget
from chapterverse_api.conversation.threads import Threads, open_threads
from chapterverse_api.conversation.transcript import Signer
from chapterverse_api.index.site_index import SiteIndex


@dataclass(frozen=True, slots=True)
class Resources:
    """What every question of this process shares.

    Attributes:
        threads: the stored conversations; None if none are stored.
    """

    settings: Settings
    index: SiteIndex
    models: Models
    budget: DailyBudget
    signer: Signer
    threads: Threads | None

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
        return cls(
            settings,
            SiteIndex(store, settings, models.check_index),
            models,
            DailyBudget.from_settings(settings),
            Signer.from_settings(settings),
            open_threads(settings),
        )

    @property
    def key_refused(self) -> bool:
        """Whether a model or the store does not know our key: another may have taken its place."""
        return self.index.key_refused or any(circuit.key_refused for circuit in self.models.circuits.values())

    def inherit_from(self, before: Resources) -> Resources:
        """Return these resources with what new keys don't change: the budget, and a signing key that was made up."""
        signed = self.settings.signing_key or before.settings.signing_key
        return replace(self, budget=before.budget, signer=self.signer if signed else before.signer)
