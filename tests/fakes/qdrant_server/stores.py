"""Stores on the fake server, with a clock for tests and retries without pauses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chapterverse.ext.qdrant.address import QdrantAddress
from chapterverse.ext.qdrant.lease import LeaseTimes
from chapterverse.ext.qdrant.server import QdrantRetry
from chapterverse.ext.qdrant.store import QdrantStore
from chapterverse.model import EmbedderCard, Head, Point, Scope
from chapterverse.settings import Settings
from chapterverse.store import Store
from fakes.clocks import Clock
from fakes.docs import SCOPE
from fakes.qdrant_server import KEY, QdrantServer

NONE = EmbedderCard()
DENSE = EmbedderCard("counting:a", 4, 0, "a")


def store_on(
    server: QdrantServer,
    clock: Callable[[], float] | None = None,
    *,
    options: str = "",
    key: str = KEY,
    sleep: Callable[[float], None] = lambda _: None,
    tries: int = 6,
    first_pause: float = 0.25,
    try_seconds: float = 5,
) -> QdrantStore:
    place = QdrantAddress.parse(server.url + options, Settings(qdrant_api_key=key))
    retry = QdrantRetry(sleep=sleep, tries=tries, first_pause=first_pause, try_seconds=try_seconds)
    return QdrantStore(place, LeaseTimes(clock=clock or Clock()), retry)


def publish(
    store: Store,
    write: Sequence[Point] = (),
    delete: Sequence[str] = (),
    scope: Scope = SCOPE,
    embedder: EmbedderCard = NONE,
) -> Head:
    """Publish as `sync` does, with a number of chunks that is known and not asked for."""
    with store.publish(scope, embedder) as publication:
        publication.write(write)
        publication.delete(delete)
        found = publication.preview().head
        live = publication.previous.head.generation if publication.previous else 0
        head = Head(scope.site, scope.version, live + 1, found.pages, found.chunks, "test", embedder, found.languages)
        publication.commit(head)
    return head


def texts(store: Store, scope: Scope = SCOPE) -> set[str]:
    """Return what a reader finds."""
    return {p.chunk.text for p in store.snapshot(scope).points()}
