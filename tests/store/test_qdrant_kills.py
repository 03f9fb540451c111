"""A publisher that dies between two requests, or loses a reply: readers see the whole old index or the new.

Death is told to the server: from some request on it answers nobody, so nothing that a dying process would still send
arrives. Then it is back, the dead one's lease runs out, and the same publication is tried again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from chapterverse.errors import ChapterVerseError, IndexLocked
from chapterverse.ext.qdrant.store import QdrantStore
from chapterverse.model import EmbedderCard, Point
from fakes.clocks import Clock
from fakes.docs import SCOPE, point, prose
from fakes.qdrant_server import GOOD, Fault, QdrantServer
from fakes.qdrant_server.stores import DENSE, NONE, publish, store_on, texts

LASTS = {"never arrived": Fault(refuse=True), "done, reply lost": Fault(lost=True), "half a reply": Fault(cut=True)}


def states(embedders: tuple[EmbedderCard, ...]) -> Iterator[tuple[dict[str, Point], EmbedderCard]]:
    """Yield the states to publish in sequence: pages that stay, change, come and go."""
    for n in range(1000):
        embedder = embedders[n % len(embedders)]
        dense = (1.0, float(n), 2.0, 3.0) if embedder.size else None
        made = [point(f"stays-{i}", prose(i), dense=dense) for i in range(3)]
        made += [point(f"new-{n}-{i}", prose((n, i)), dense=dense) for i in range(2)]
        # The same chunk with another payload: replaced, not added.
        moved = point("moves", "a chunk that moves", dense=dense)
        made.append(replace(moved, chunk=replace(moved.chunk, tags=(str(n),))))
        yield {p.chunk.chunk_id: p for p in made}, embedder


def change(store: QdrantStore, state: Mapping[str, Point], embedder: EmbedderCard) -> None:
    """Publish this state, sending what `sync` would send."""
    here: dict[str, Point] = {}
    if any(h.scope == SCOPE for h in store.heads()):
        live = store.snapshot(SCOPE)
        if live.head.embedder.fingerprint == embedder.fingerprint:
            here = {p.chunk.chunk_id: p for p in live.points()}
    write = [p for i, p in state.items() if i not in here or here[i].chunk != p.chunk]
    publish(store, write, sorted(here.keys() - state.keys()), embedder=embedder)


def seen(store: QdrantStore) -> set[tuple[str, tuple[str, ...]]]:
    if not store.heads():
        return set()
    snapshot = store.snapshot(SCOPE)
    found = [(p.chunk.text, p.chunk.tags) for p in snapshot.points()]
    assert len(found) == snapshot.head.chunks
    return set(found)


def told(state: Mapping[str, Point]) -> set[tuple[str, tuple[str, ...]]]:
    return {(p.chunk.text, p.chunk.tags) for p in state.values()}


RUNS = [((NONE,), last) for last in LASTS] + [((NONE, DENSE), last) for last in LASTS]


@pytest.mark.parametrize(
    ("embedders", "last"), [RUNS[0], *(pytest.param(*run, marks=pytest.mark.slow) for run in RUNS[1:])]
)
def test_death_at_every_request(embedders: tuple[EmbedderCard, ...], last: str) -> None:
    clock = Clock()
    with QdrantServer() as server:
        old: set[tuple[str, tuple[str, ...]]] = set()
        killed = 0
        for n, (state, embedder) in enumerate(states(embedders)):
            server.die_after(n, LASTS[last])
            try:
                change(store_on(server, clock, tries=1), state, embedder)
            except ChapterVerseError:
                killed += 1
            alive = server.survived
            server.revive()
            reader = store_on(server, clock)
            assert seen(reader) in (old, told(state))
            clock.now += 200
            change(reader, state, embedder)
            assert seen(reader) == told(state)
            old = told(state)
            if alive:
                break
        assert killed >= 15
        # Nothing of all this is left behind.
        reader.sweep(SCOPE)
        points = [p for name in server.collections if not name.endswith("_heads") for p in server.points(name)]
        assert len(points) == len(old)
        assert not any("died" in p["payload"] for p in points)


def test_a_lost_reply_at_any_moment_is_made_good_by_another_try() -> None:
    clock = Clock()
    with QdrantServer() as server:
        before: set[str] = set()
        for n, (state, embedder) in zip(range(60), states((NONE,)), strict=False):
            server.play(*[GOOD] * n, Fault(lost=True))
            publish(store_on(server, clock), list(state.values()), sorted(before - state.keys()), embedder=embedder)
            server.faults.clear()
            assert seen(store_on(server, clock)) == told(state)
            before = set(state)


def test_what_a_killed_publisher_had_paid_for_is_undone_by_the_next() -> None:
    clock = Clock()
    old, new = point("old", "old"), point("new", "new")
    with QdrantServer() as server:
        publish(store_on(server, clock), [old])
        with store_on(server, clock, tries=1).publish(SCOPE, NONE) as dying:
            dying.write([new])
            dying.delete([old.chunk.chunk_id])
            server.die_after(0)
        server.revive()
        store = store_on(server, clock)
        assert store.is_publishing(SCOPE)
        with pytest.raises(IndexLocked, match="if it was killed, in 60 seconds"):
            publish(store, [])
        clock.now += 121
        assert not store.is_publishing(SCOPE)
        publish(store, [point("other", "other")])
        assert texts(store) == {"old", "other"}
