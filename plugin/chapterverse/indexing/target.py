"""The destination of an index run: a scope of a store, its ledger, and the settings that shape chunks."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from chapterverse.embedding import Embedder, open_embedder
from chapterverse.errors import ConfigurationError, IndexFault
from chapterverse.extensions import open_offer
from chapterverse.indexing.chunking import ChunkSizes
from chapterverse.indexing.options import check_chunk_tokens
from chapterverse.ledger import Ledger, open_ledger
from chapterverse.model import (
    ENCODER,
    MAX_CHUNK_TOKENS,
    READER,
    TARGET_CHUNK_TOKENS,
    EmbedderCard,
    Head,
    Scope,
    Source,
    replace_unstorable,
)
from chapterverse.settings import Settings
from chapterverse.store import Store, open_store

if TYPE_CHECKING:
    from chapterverse.indexing.additions import PageEnricher


@dataclass(frozen=True, slots=True)
class Target:
    """The destination that `sync.index` writes to.

    Attributes:
        base_url: stored in the head, so that `serve` can rewrite citations to its own origin.
        made_by: the card of the vectors' model where `embedder` is None.
        unfinished: SQLite file for the vectors of an interrupted run; without it they are lost.
        workers: number of processes that read pages; above 1 only if the main module can be imported again.
        enricher: the model that enriches changed pages, if any.
    """

    scope: Scope
    store: Store
    ledger: Ledger
    embedder: Embedder | None = None
    sizes: ChunkSizes = field(default_factory=ChunkSizes)
    base_url: str = ""
    made_by: EmbedderCard = field(default_factory=EmbedderCard)
    unfinished: Path | None = None
    workers: int = 1
    enricher: PageEnricher | None = None

    @classmethod
    def open(
        cls, settings: Settings, scope: Scope, base_url: str, chunk_tokens: int = TARGET_CHUNK_TOKENS, workers: int = 1
    ) -> Target:
        """Return the target that the settings describe.

        Raises:
            ConfigurationError: a name is unknown, a key is missing, or the chunk size is out of range.
            IndexFault: the ledger can't be used.
        """
        check_chunk_tokens(chunk_tokens)
        if replace_unstorable(str(scope)) != str(scope):
            raise ConfigurationError("The names of a site and of its version must be text without control characters.")
        store = open_store(settings)
        ledger = open_ledger(settings)
        embedder = open_embedder(settings, _card_of_index(store, scope))
        # The model's tokenizer counts otherwise, but a text far above its limit would certainly be rejected.
        limit = (embedder.card.limit if embedder else 0) or MAX_CHUNK_TOKENS
        sizes = ChunkSizes(min(chunk_tokens, limit), min(MAX_CHUNK_TOKENS, limit))
        enricher, name = None, settings.enricher.strip()
        if name:
            enricher = open_offer("enricher", settings.override(enricher=name))
        return cls(
            scope,
            store,
            ledger,
            embedder,
            sizes,
            base_url,
            unfinished=settings.local_folder / "unfinished.sqlite",
            workers=workers,
            enricher=enricher,
        )

    @property
    def card(self) -> EmbedderCard:
        return self.embedder.card if self.embedder else self.made_by

    @property
    def pipeline(self) -> str:
        fingerprint = f"{READER} {ENCODER} {self.sizes.fingerprint} {self.card.fingerprint}"
        return f"{fingerprint} {self.enricher.fingerprint}" if self.enricher else fingerprint

    def head(self) -> Head | None:
        """Return the live head, None before the first publication."""
        return self.store.head(self.scope)

    def matches(self, head: Head) -> bool:
        """Whether a head has the address and pipeline that a publication would write now."""
        return head.base_url == self.base_url and head.pipeline == self.pipeline


def row_pipeline(pipeline: str, source: Source) -> str:
    """Return a SHA-256 (64 hex digits) of all inputs of a file's points besides its content."""
    return hashlib.sha256(f"{pipeline}\n{source.context}".encode(errors="surrogatepass")).hexdigest()


def _card_of_index(store: Store, scope: Scope) -> EmbedderCard | None:
    # The caller that reads the index reports its faults.
    with contextlib.suppress(IndexFault):
        head = store.head(scope)
        return head.embedder if head else None
    return None
