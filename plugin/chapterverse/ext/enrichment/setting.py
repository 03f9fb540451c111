"""The setting that names the model. A build without changes loads no more than this."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from chapterverse.errors import ConfigurationError
from chapterverse.extensions import load
from chapterverse.indexing.additions import Enrichment
from chapterverse.model import Chunk
from chapterverse.settings import Settings

#: Raise it with every change of the prompt, of the schema or of what is kept; every page is then enriched again.
PROMPT = "enrich/1"

#: Gives the idf of each term of a text.
Weigh: TypeAlias = Callable[[str], Mapping[int, float]]


class Enricher(Protocol):
    """A language model of the service, and the check of citations. Safe to share between threads."""

    def write(self, instructions: str, text: str, schema: Mapping[str, Any], tokens: int) -> str:
        """Return the model's reply, of at most so many tokens, which should be JSON that fits the schema.

        Raises:
            ProviderError: the model could not be reached, refused, or broke off.
        """
        ...

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """Return the US dollars of so many tokens by the list price. Unknown models cost as the most expensive one."""
        ...

    def carries(self, question: str, path: Sequence[str], text: str, language: str, weigh: Weigh) -> bool:
        """Return whether a section, as the source of an answer, carries what a question names."""
        ...


@dataclass(frozen=True)
class EnricherSetting:
    """The configured model, which opens when the first page needs it: a build without changes loads nothing of it.

    Attributes:
        name: as configured, `cohere:MODEL`, `openai:MODEL` or `bedrock:MODEL`.
        cache: SQLite file of the model's replies; None keeps none.
    """

    name: str
    settings: Settings
    cache: Path | None = None

    @classmethod
    def from_settings(cls, settings: Settings, _: str) -> EnricherSetting:
        return cls(settings.enricher, settings, settings.local_folder / "enrichments.sqlite")

    def enrich(self, chunks: Mapping[str, list[Chunk]], stored_chunks: Sequence[Chunk], **run: Any) -> Enrichment:
        """Return the chunks of the pages that were read, with expansions; see `PageEnricher.enrich`."""
        # A build without changes does without it.
        enriched: Enrichment = load("chapterverse.ext.enrichment.pages:enrich")(chunks, stored_chunks, self, **run)
        return enriched

    @property
    def fingerprint(self) -> str:
        """The part of the pipeline's fingerprint: one word."""
        return f"{PROMPT}/{'_'.join(self.name.split())}"

    @cached_property
    def model(self) -> Enricher:
        """The model behind the service's own client.

        Raises:
            ConfigurationError: the service is not installed, or the provider's key is missing.
        """
        # Another part's keys, prices and databases are not needed here.
        other_parts = {"embedder": "none", "reranker": "none", "records": "", "prices": "", "limiter": "memory"}
        settings = self.settings.override(generator=self.name, economy_generator=self.name, **other_parts)
        try:
            opened: Enricher = load("chapterverse_api.ext.enrichment:open_enricher")(settings)
            return opened
        except ConfigurationError as error:
            raise ConfigurationError(f"CHAPTERVERSE_ENRICHER={self.name} can't be used: {error}") from None
