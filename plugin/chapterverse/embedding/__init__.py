"""Embedders turn text into dense vectors. A setting chooses one by name."""

from __future__ import annotations

from chapterverse.embedding.factory import open_embedder
from chapterverse.embedding.protocols import Embedder, LazySize, Vector

__all__ = ["Embedder", "LazySize", "Vector", "open_embedder"]
