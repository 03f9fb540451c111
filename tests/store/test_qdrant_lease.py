"""Two publishers: one wins, the other fails with one sentence, and readers never see a mix of both."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace

import pytest

from chapterverse.errors import IndexLocked
from chapterverse.model import Point, Scope
from fakes.clocks import Clock
from fakes.docs import SCOPE, point
from fakes.qdrant_server import QdrantServer, Request
from fakes.qdrant_server.stores import NONE, publish, store_on, texts

OLD, ONE, OTHER = (point(name, name) for name in ("old", "one", "other"))


class Intruder:
    """Publishes on its own when the server gets its so-many-th request from now on."""

    def __init__(self, server: QdrantServer, clock: Clock, at: int) -> None:
        self.came = False
        self.lost: list[IndexLocked] = []
        self._server, self._clock, self._at = server, clock, len(server.history) + at + 1
        server.before = self

    def __call__(self, _: Request) -> None:
        if len(self._server.history) == self._at and not self.came:
            self.came = True
            self.try_to([OTHER])

    def try_to(self, points: list[Point]) -> None:
        try:
            publish(store_on(self._server, self._clock), points)
        except IndexLocked as error:
            self.lost.append(error)


def test_whatever_moment_the_other_comes_one_wins() -> None:
    clock, results = Clock(), set()
    for at in range(100):
        with QdrantServer() as server:
            publish(store_on(server, clock), [OLD])
            intruder = Intruder(server, clock, at)
            intruder.try_to([ONE])
            server.before = None
            found = texts(store_on(server, clock))
            assert all("publishing docs" in str(e) for e in intruder.lost)
            # Who published and wasn't turned away is there.
            assert "old" in found
            assert len(found) == 2 + intruder.came - len(intruder.lost)
            results.add(frozenset(found))
            if not intruder.came:
                break
    assert not intruder.came
    # First come, first served; the other way round; one after the other.
    assert results == {frozenset({"old", "one"}), frozenset({"old", "other"}), frozenset({"old", "one", "other"})}


def test_many_at_once_one_after_the_other() -> None:
    clock = Clock()
    with QdrantServer() as server:
        publish(store_on(server, clock), [OLD])
        won: list[str] = []

        def run(name: str) -> None:
            try:
                publish(store_on(server, clock), [point(name, name)])
            except IndexLocked:
                return
            won.append(name)

        threads = [threading.Thread(target=run, args=(f"p{i}",)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert won
        assert texts(store_on(server, clock)) == {"old", *won}
        assert store_on(server, clock).snapshot(SCOPE).head.generation == 1 + len(won)


def test_a_publisher_that_was_silent_too_long_finds_itself_replaced() -> None:
    clock = Clock()
    with QdrantServer() as server:
        publish(store_on(server, clock), [OLD])
        with store_on(server, clock).publish(SCOPE, NONE) as slow:
            slow.write([ONE])
            slow.delete([OLD.chunk.chunk_id])
            clock.now += 121
            publish(store_on(server, clock), [OTHER])
            with pytest.raises(IndexLocked, match="Another process took over publishing docs"):
                slow.write([ONE])
        assert texts(store_on(server, clock)) == {"old", "other"}


def test_the_replaced_one_harms_nothing_while_the_other_is_at_work() -> None:
    clock = Clock()
    with QdrantServer() as server:
        publish(store_on(server, clock), [OLD])
        with store_on(server, clock).publish(SCOPE, NONE) as slow:
            slow.write([ONE])
            clock.now += 121
            with store_on(server, clock).publish(SCOPE, NONE) as quick:
                quick.write([OTHER])
                with pytest.raises(IndexLocked):
                    slow.renew()
                slow.discard()
                found = quick.preview().head
                assert found.chunks == 2
            with pytest.raises(IndexLocked):
                slow.commit(replace(found, site="docs", generation=2))
        assert texts(store_on(server, clock)) == {"old"}


def test_a_head_is_not_moved_by_who_lost_the_lease_on_the_way() -> None:
    clock = Clock()
    with QdrantServer() as server:
        publish(store_on(server, clock), [OLD])

        def take_over(request: Request) -> None:
            if "head" in ((request.body or {}).get("payload") or {}):
                server.before = None
                clock.now += 121
                publish(store_on(server, clock), [OTHER, point("more", "more")])

        server.before = take_over
        with pytest.raises(IndexLocked, match="Another process took over publishing docs"):
            publish(store_on(server, clock), [ONE])
        assert texts(store_on(server, clock)) == {"old", "other", "more"}
        assert store_on(server, clock).is_complete(SCOPE)


def test_who_renews_in_time_keeps_the_lease() -> None:
    clock = Clock()
    with QdrantServer() as server:
        with store_on(server, clock).publish(SCOPE, NONE) as publication:
            for _ in range(50):
                clock.now += 60
                publication.renew()
                with pytest.raises(IndexLocked):
                    publish(store_on(server, clock), [OTHER])
        assert not store_on(server, clock).is_publishing(SCOPE)


def test_renewing_is_cheap() -> None:
    clock = Clock()
    with QdrantServer() as server, store_on(server, clock).publish(SCOPE, NONE) as publication:
        asked = len(server.history)
        for _ in range(10_000):
            publication.renew()
        assert len(server.history) == asked
        clock.now += 21
        publication.renew()
        assert len(server.history) == asked + 2


def test_one_thread_renews_while_another_writes() -> None:
    seconds = itertools.count(1_000_000, 5)
    made = [point(f"p{i}", f"text {i}") for i in range(1500)]
    with QdrantServer() as server:
        store, done = store_on(server, lambda: float(next(seconds))), threading.Event()
        with store.publish(SCOPE, NONE) as publication:

            def beat() -> None:
                while not done.is_set():
                    publication.renew()

            pulse = threading.Thread(target=beat)
            pulse.start()
            try:
                publication.write(made)
                publication.commit(replace(publication.preview().head, site="docs", generation=1))
            finally:
                done.set()
                pulse.join()
        assert len(texts(store)) == 1500


def test_a_store_says_how_long_a_killed_publisher_keeps_others_out() -> None:
    with QdrantServer() as server:
        assert store_on(server).lease_seconds == 60


def test_a_lease_is_for_one_scope() -> None:
    clock = Clock()
    with QdrantServer() as server, store_on(server, clock).publish(SCOPE, NONE):
        assert not store_on(server, clock).is_publishing(Scope("docs", "2"))
        assert publish(store_on(server, clock), [ONE], scope=Scope("docs", "2")).generation == 1


def test_a_first_record_is_made_by_one_publisher_only() -> None:
    with QdrantServer() as server:

        def intrude(request: Request) -> None:
            if request.method == "PUT" and request.path.endswith("_heads/points"):
                server.before = None
                publish(store_on(server), [OTHER])

        server.before = intrude
        publish(store_on(server), [ONE])
        assert store_on(server).snapshot(SCOPE).head.generation == 2
        assert texts(store_on(server)) == {"one", "other"}


class Dozing:
    """A clock at whose so-many-th look its owner falls asleep for two leases, while another one publishes."""

    def __init__(self, server: QdrantServer, clock: Clock, at: int) -> None:
        self.slept = False
        self._server, self._clock, self._left = server, clock, at

    def __call__(self) -> float:
        self._left -= 1
        if self._left < 0 and not self.slept:
            self.slept = True
            self._clock.now += 120
            publish(store_on(self._server, self._clock), [OTHER])
        return self._clock()


def test_a_publisher_that_slept_writes_nothing_more() -> None:
    results = set()
    for at in range(100):
        clock = Clock()
        with QdrantServer() as server:
            publish(store_on(server, clock), [OLD])
            dozing, lost = Dozing(server, clock, at), False
            try:
                publish(store_on(server, dozing), [ONE])
            except IndexLocked:
                lost = True
            store = store_on(server, clock)
            assert store.is_complete(SCOPE)
            found = texts(store)
            # Whoever was not told to go is there.
            assert found == {"old"} | ({"other"} if dozing.slept else set()) | (set() if lost else {"one"})
            results.add(lost)
            if not dozing.slept:
                break
    assert not dozing.slept
    assert results == {True, False}
