"""Embeds texts that have no vector yet, and saves paid vectors until they are published."""

from __future__ import annotations

import contextlib
import zlib
from array import array
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from chapterverse.build_cache import find_paid, keep_paid
from chapterverse.embedding import Embedder
from chapterverse.errors import TextTooLong
from chapterverse.model import PERSONA, Chunk
from chapterverse.progress import Progress
from chapterverse.text import tokens

#: Texts per call of the embedder, so that progress is visible; the embedder splits further for its API.
_BATCH = 96
_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (embed_hash TEXT PRIMARY KEY, vector BLOB, checksum INTEGER)"


class EmbeddingRejected(Exception):
    """The model rejected the text of `chunk` as too long; `__cause__` is its `TextTooLong`."""

    def __init__(self, chunk: Chunk) -> None:
        super().__init__(chunk.chunk_id)
        self.chunk = chunk


class Vectors:
    """Vectors by `embed_hash`, as 32-bit floats like in stores. The value is None for a persona, and without an
    embedder.

    Attributes:
        new_hashes: hashes that the index did not hold, made by this run or an unfinished one.
        embedded: number of vectors that this run made itself.
        tokens: cl100k tokens sent to a model that has a price.
    """

    def __init__(self, checkpoint: UnfinishedVectors) -> None:
        self.new_hashes: set[str] = set()
        self.embedded = 0
        self.tokens = 0
        self._by_hash: dict[str, array[float] | None] = {}
        self._unfinished = checkpoint

    def __getitem__(self, embed_hash: str) -> tuple[float, ...] | None:
        vector = self._by_hash[embed_hash]
        return None if vector is None else tuple(vector)

    def find_missing(self, chunks: Sequence[Chunk]) -> dict[str, Chunk]:
        """Return the chunks without a vector, one for each hash."""
        return {c.embed_hash: c for c in chunks if c.embed_hash not in self._by_hash}

    def reuse(self, vectors: Mapping[str, Sequence[float] | None]) -> None:
        """Add vectors that a store or an export holds."""
        self._by_hash.update({h: None if v is None else array("f", v) for h, v in vectors.items()})

    @property
    def reusable_hashes(self) -> Collection[str]:
        """The hashes whose vector this run did not have to make."""
        return self._by_hash.keys() - self.new_hashes

    def make(self, chunks: Sequence[Chunk], embedder: Embedder | None, progress: Progress) -> None:
        """Make the vector of each chunk that lacks one.

        Raises:
            EmbeddingRejected: a text is too long; the vectors made before it are kept.
            ProviderError: the model failed; the vectors made before are kept for the next run.
        """
        missing = self.find_missing(chunks)
        self.new_hashes |= missing.keys()
        self._by_hash.update(dict.fromkeys(h for h, c in missing.items() if c.type == PERSONA))
        if embedder is None:
            self._by_hash.update(dict.fromkeys(missing))
            self.embedded += len(missing)
            return
        self._by_hash.update(self._unfinished.read(missing))
        unpaid = list(self.find_missing(list(missing.values())).values())
        for at in range(0, len(unpaid), _BATCH):
            progress("Embedding chunks", at, len(unpaid))
            self._embed(unpaid[at : at + _BATCH], embedder)
        progress("Embedding chunks", len(unpaid), len(unpaid))

    def _embed(self, batch: Sequence[Chunk], embedder: Embedder) -> None:
        try:
            vectors = embedder.embed_documents([c.expanded_text for c in batch])
        except TextTooLong as error:
            raise EmbeddingRejected(batch[error.position]) from error
        by_hash = {c.embed_hash: array("f", v) for c, v in zip(batch, vectors, strict=True)}
        self._by_hash.update(by_hash)
        self._unfinished.keep(by_hash)
        self.embedded += len(by_hash)
        if embedder.price:
            self.tokens += count_tokens(batch)


def count_tokens(chunks: Collection[Chunk]) -> int:
    """Return the cl100k tokens of the embedded texts. A model's own tokenizer differs by some tenths."""
    return sum(tokens.count(c.expanded_text) for c in chunks)


class UnfinishedVectors:
    """A file with the vectors of an interrupted run, so that they are paid for only once.

    A vector with a wrong checksum is made again.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def read(self, embed_hashes: Collection[str]) -> dict[str, array[float] | None]:
        """Return the stored vectors of these hashes."""
        vectors: dict[str, array[float] | None] = {}
        for embed_hash, data, check in find_paid(self._path, "SELECT embed_hash, vector, checksum FROM vectors"):
            if embed_hash in embed_hashes and isinstance(data, bytes) and _checksum(embed_hash, data) == check:
                # A value that is not an array of 32-bit floats is ignored too.
                with contextlib.suppress(ValueError):
                    vectors[embed_hash] = array("f", data)
        return vectors

    def keep(self, vectors: Mapping[str, array[float]]) -> None:
        rows = [(h, data, _checksum(h, data)) for h, v in vectors.items() if (data := v.tobytes())]
        keep_paid(self._path, _SCHEMA, "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def forget(self, embed_hashes: Collection[str]) -> None:
        """Remove published vectors, and the file once it is empty."""
        if self._path is not None and self._path.exists():
            keep_paid(self._path, _SCHEMA, "DELETE FROM vectors WHERE embed_hash = ?", ((h,) for h in embed_hashes))
            if [*find_paid(self._path, "SELECT count(*) FROM vectors")] == [(0,)]:
                with contextlib.suppress(OSError):
                    self._path.unlink(missing_ok=True)


def _checksum(embed_hash: str, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(embed_hash.encode()))
