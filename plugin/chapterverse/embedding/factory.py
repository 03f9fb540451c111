"""Opens the embedder that a setting names."""

from __future__ import annotations

from chapterverse.embedding.protocols import Embedder, LazySize
from chapterverse.extensions import open_offer
from chapterverse.model import EmbedderCard
from chapterverse.settings import Settings


def open_embedder(settings: Settings, index_card: EmbedderCard | None = None) -> Embedder | None:
    """Return the embedder that `settings.embedder` names; None for `none`. Raises as `open_offer` does.

    Args:
        index_card: the card of the index, which states the size of the vectors of a model of that name.
    """
    opened = open_offer("embedder", settings)
    if index_card and isinstance(opened, LazySize):
        opened.beside(index_card)
    embedder: Embedder | None = opened
    return embedder
