"""Embedders turn text into dense vectors. A setting chooses one by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from chapterverse.extensions import open_offer
from chapterverse.model import EmbedderCard
from chapterverse.settings import Settings

Vector = tuple[float, ...]

#: Stores keep 32-bit floats and compare by angle, so the sum of the squares has to fit one.
MAX_COMPONENT = 1e15


class Embedder(Protocol):
    """What sync and the query path need of a model."""

    @property
    def card(self) -> EmbedderCard:
        """What the index remembers of this embedder."""
        ...

    @property
    def price(self) -> float:
        """US dollars for a million tokens as listed by the provider, by which a cost is estimated; 0 if none is."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector of `card.size` finite numbers for each text, in order.

        Raises:
            TextTooLong: one text is over the model's own limit; nothing is truncated in silence.
            ProviderError: the model could not be reached, refused, or answered with something that is no vector.
        """
        ...

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question. Raises `ProviderError` as above."""
        ...


@runtime_checkable
class LazySize(Protocol):
    """An embedder that may have to ask for a vector, which costs money, to know the size of its vectors."""

    def beside(self, index_card: EmbedderCard) -> EmbedderCard:
        """Return the card as far as it is known without asking; an index that this model made tells the size."""
        ...


def open_embedder(settings: Settings, index_card: EmbedderCard | None = None) -> Embedder | None:
    """Return the embedder that `settings.embedder` names; None for `none`. Raises as `open_offer` does.

    Args:
        index_card: the card of the index, which states the size of the vectors of a model of that name.
    """
    opened = open_offer("embedder", settings, protocol=Embedder)
    if index_card and isinstance(opened, LazySize):
        opened.beside(index_card)
    embedder: Embedder | None = opened
    return embedder
