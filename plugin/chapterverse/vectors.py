"""Making the dense vectors that an index lacks; what a model finds too long is cut smaller by whoever asked."""

from __future__ import annotations

from collections.abc import Sequence

from chapterverse.embedding import Embedder, Vector
from chapterverse.errors import TextTooLong
from chapterverse.model import Chunk
from chapterverse.progress import Progress

#: Texts handed to the embedder at once, so that progress is seen; the embedder slices further as its API demands.
_BATCH = 96


class Refused(Exception):
    """The model refused the text of `chunk` as too long; `__cause__` is its `TextTooLong`."""

    def __init__(self, chunk: Chunk) -> None:
        super().__init__(chunk.chunk_id)
        self.chunk = chunk


def embed(
    missing: Sequence[Chunk], embedder: Embedder | None, made: dict[str, Vector | None], progress: Progress
) -> None:
    """Add the vector of each chunk to `made`, by its `embed_hash`; None without an embedder.

    Raises:
        Refused: a text is too long; what was made before stays in `made`.
        ProviderError: the model failed.
    """
    if embedder is None:
        made.update({c.embed_hash: None for c in missing})
        return
    for at in range(0, len(missing), _BATCH):
        progress("Embedding chunks", at, len(missing))
        batch = missing[at : at + _BATCH]
        try:
            found = embedder.embed_documents([c.embed_text for c in batch])
        except TextTooLong as error:
            raise Refused(batch[error.position]) from error
        made.update(zip((c.embed_hash for c in batch), found, strict=True))
    progress("Embedding chunks", len(missing), len(missing))
