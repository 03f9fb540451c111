"""What rooms add to the pages of a site: documents beside them, sources beyond them, and a model's words in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from chapterverse.extensions import load_part
from chapterverse.model import FAQ, MEMORY, PERSONA, Chunk, Point, Source
from chapterverse.progress import Progress
from chapterverse.settings import Settings

#: The usual places of the documents' files, below the documentation's sources.
PERSONA_FILE, KNOWLEDGE_FOLDER = "persona.md", "knowledge"
_PLACES = (PERSONA_FILE, *(f"{KNOWLEDGE_FOLDER}/{kind}" for kind in (PERSONA, FAQ, MEMORY)))

#: Whether a file of the index stays of which no source is offered, by its path.
Keep: TypeAlias = Callable[[str], bool]


def keep_none(path: str) -> bool:  # noqa: ARG001 one signature for all
    """Keep nothing: the index holds exactly the sources of the run."""
    return False


def keep_all(path: str) -> bool:  # noqa: ARG001
    """Keep everything: the sources of the run are added."""
    return True


@dataclass(slots=True)
class ExternalSources:
    """The sources beyond the site, as the room of the option `also` finds them.

    Attributes:
        warnings: a sentence for each that could not be fetched or read.
        left_out: the reason for each that was read and is not indexed.
        keep: selects the files that stay in the index without a source: all of a host whose sitemap could not be read.
    """

    sources: list[Source] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    keep: Keep = keep_none


@dataclass(frozen=True, slots=True)
class Documents:
    """The files of a site that are indexed beside its pages (persona, FAQ, memories); none, unless the room has some.

    Attributes:
        docs: the folder of the documentation's sources, if available; paths are relative to it.
    """

    docs: Path | None = None

    @property
    def entries(self) -> frozenset[str]:
        """The paths of those that may be published as pages too, as the index has them."""
        return frozenset()

    def hidden_paths(self, nav: object) -> frozenset[str]:  # noqa: ARG002
        """Return the paths below `docs` that are neither pages nor published.

        Args:
            nav: the site's navigation, a tree of lists, mappings and texts. It may name some of `entries`.
        """
        return frozenset((PERSONA_FILE,)) if self.docs else frozenset()

    @property
    def no_pages(self) -> frozenset[str]:
        """The paths below `docs` that are not pages."""
        return self.hidden_paths(None)

    def sources(self, pages: Iterable[Source], base_url: str) -> tuple[list[Source], list[str]]:  # noqa: ARG002
        """Return the files as sources of the index, and warnings: a bad name, an unknown page.

        Args:
            pages: of the site; a document may name one of them, and most of them set its language.

        Raises:
            InputError: a folder can't be listed.
        """
        return [], []


def find_documents(settings: Settings, docs: Path | None, beside: Path) -> Documents:
    """Return the files that settings name, or those at the usual places.

    Args:
        beside: the folder of the site's configuration, or the working directory.

    Raises:
        ConfigurationError: a setting names a missing file or folder, or there are two personas.
    """
    usual = (beside / PERSONA_FILE, *(docs / place for place in _PLACES if docs))
    if not (settings.persona or settings.knowledge or any(map(os.path.lexists, usual))):
        return Documents(docs)
    found: Documents = load_part("documents")(settings, docs, beside)
    return found


class EnrichmentReport(Protocol):
    """What a model did in one run, as one line by `str`."""

    @property
    def calls(self) -> int:
        """Replies that the model was asked for, in a dry run those that it would be asked for."""
        ...

    @property
    def cost(self) -> float:
        """Estimated US dollars of the calls."""
        ...

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Enrichment:
    """What a model adds to the pages of one run.

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
