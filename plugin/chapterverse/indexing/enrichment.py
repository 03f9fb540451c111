"""What a model adds to the pages of a run: the interface of the room, and its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from chapterverse.model import Chunk, Point
from chapterverse.progress import Progress


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


@dataclass(frozen=True, slots=True)
class Enrichment:
    """The result for one run.

    Attributes:
        chunks: of each page that was read, widened by the lines that were kept.
        report: None without a model.
        unfinished: pages that a later run tries again, because the model could not be asked.
    """

    chunks: Mapping[str, list[Chunk]]
    report: EnrichmentReport | None = None
    unfinished: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()


class PageEnricher(Protocol):
    """The configured model. It opens when the first page needs it: a build without changes loads nothing of it."""

    @property
    def fingerprint(self) -> str:
        """The part of the pipeline's fingerprint: one word."""
        ...

    def enrich(
        self,
        chunks: Mapping[str, list[Chunk]],
        stored_chunks: Sequence[Chunk],
        *,
        other_points: Iterable[Point],
        fingerprint: str,
        cap: int,
        progress: Progress,
        dry_run: bool = False,
    ) -> Enrichment:
        """Return the chunks of the pages that were read, with expansions.

        Args:
            chunks: by path; documents beside the pages stay as they are.
            stored_chunks: the live index's chunks of the same pages, if the same model and prompt enriched it.
            other_points: the points of all other pages.
            fingerprint: the embedder's.
            cap: most tokens of a chunk as embedded.
            dry_run: ask nothing; pages without a cached reply stay plain and are counted as calls.

        Raises:
            ConfigurationError: the model can't be opened.
        """
        ...
