"""The setting that names the model, and what a run did. A build without changes loads no more than this."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from chapterverse.errors import ConfigurationError
from chapterverse.extensions import load
from chapterverse.settings import Settings

#: Raise it with every change of the prompt, of the schema or of what is kept; every page is then enriched again.
PROMPT = "enrich/1"

_PROVIDERS = ("cohere", "openai", "bedrock")


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
    def of(cls, settings: Settings, cache: Path | None) -> EnricherSetting | None:
        """Return the setting, None where enrichment is off.

        Raises:
            ConfigurationError: it names no model of a known provider.
        """
        name = settings.enricher.strip()
        if name in ("", "none"):
            return None
        provider, _, model = name.partition(":")
        if provider not in _PROVIDERS or not model:
            raise ConfigurationError(
                f"There is no enricher {name[:60]!r}: use none, cohere:MODEL, openai:MODEL or bedrock:MODEL."
            )
        return cls(name, settings, cache)

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
            opened: Enricher = load("chapterverse_api.commands.enrichment:open_enricher")(settings)
            return opened
        except ConfigurationError as error:
            raise ConfigurationError(f"CHAPTERVERSE_ENRICHER={self.name} can't be used: {error}") from None


@dataclass(frozen=True, slots=True)
class EnrichmentReport:
    """What enrichment did in one run.

    Attributes:
        enriched: pages with a valid reply, those from the cache included.
        calls: replies that the model was asked for, in a dry run those that it would be asked for.
        failed: pages that are indexed without enrichment.
        questions: valid questions of the model; `questions_kept` of them widen a chunk.
        keywords: likewise.
        cost: estimated US dollars of the calls.
    """

    enriched: int = 0
    calls: int = 0
    failed: int = 0
    questions: int = 0
    questions_kept: int = 0
    keywords: int = 0
    keywords_kept: int = 0
    cost: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "cost": round(self.cost, 6)}

    def __str__(self) -> str:
        return (
            f"{self.enriched} pages enriched by {self.calls} calls for about ${self.cost:.4f} ({self.failed} failed), "
            f"{self.questions_kept} of {self.questions} questions and {self.keywords_kept} of {self.keywords} keywords "
            "kept"
        )
