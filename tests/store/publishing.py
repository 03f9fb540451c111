"""Publications of small generations to any store."""

from __future__ import annotations

from chapterverse.model import EmbedderCard, Head
from chapterverse.store import Store
from fakes.docs import SCOPE, point, prose

NONE = EmbedderCard()


def publish(store: Store, *names: str, delete: tuple[str, ...] = ()) -> Head:
    """Add a page for each name and remove the others named; return the new head."""
    with store.publish(SCOPE, NONE) as publication:
        publication.write([point(name, prose(name)) for name in names])
        publication.delete([point(name, prose(name)).chunk.chunk_id for name in delete])
        found = publication.preview().head
        live = publication.previous.head.generation if publication.previous else 0
        head = Head("docs", "", live + 1, found.pages, found.chunks, "test", languages=found.languages)
        publication.commit(head)
    return head


def names_in(store: Store) -> list[str]:
    """Return the names of the live pages, sorted."""
    return sorted(p.chunk.source_file_path.removesuffix(".md") for p in store.snapshot(SCOPE).points())
