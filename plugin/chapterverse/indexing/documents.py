"""The documents beside the pages, which the room of knowledge finds: persona, FAQ, memories."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from chapterverse.extensions import load_part
from chapterverse.model import FAQ, MEMORY, PERSONA, Source
from chapterverse.settings import Settings

#: The usual places of their files, below the documentation's sources.
PERSONA_FILE, KNOWLEDGE_FOLDER = "persona.md", "knowledge"
_PLACES = (PERSONA_FILE, *(f"{KNOWLEDGE_FOLDER}/{kind}" for kind in (PERSONA, FAQ, MEMORY)))


@dataclass(frozen=True, slots=True)
class Documents:
    """The files of a site that are indexed beside its pages; none, unless the room has some.

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
