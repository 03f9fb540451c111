"""After a killed publisher the next one on the same machine does not wait for the lease to expire."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chapterverse.errors import IndexLocked
from chapterverse.ext.qdrant.store import QdrantStore
from chapterverse.ext.s3.bucket import Bucket
from chapterverse.ext.s3.store import S3Store
from chapterverse.indexing import sync
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.settings import Settings
from fakes.docs import BASE_URL, SCOPE, page, point, prose, section, source
from fakes.qdrant_server import QdrantServer, Request
from fakes.qdrant_server.stores import NONE, publish, store_on, texts
from fakes.s3_server import S3Server, shared
from faults.commands import exported, indexing, write_site

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Elsewhere nobody tells one boot from another.")
TESTS = Path(__file__).parents[1]
#: Seconds that a takeover may take, on a busy machine.
SOON = 30

PUBLISHES = """
import sys, time
sys.path.insert(0, sys.argv[2])
from chapterverse.settings import Settings
from chapterverse.store import open_store
from chapterverse.ext.qdrant.store import QdrantStore
from chapterverse.ext.qdrant.lease import LeaseTimes
from chapterverse.ext.qdrant.server import QdrantRetry
from fakes.docs import SCOPE, point, prose
from fakes.qdrant_server.stores import NONE
store = open_store(Settings.from_environment(store=sys.argv[1]))
if isinstance(store, QdrantStore):
    # What it sends is waited for less long.
    store = QdrantStore(store.place, LeaseTimes(skew=2), QdrantRetry(try_seconds=3))
with store.publish(SCOPE, NONE) as publication:
    print("begins", flush=True)
    sys.stdin.readline()
    for i in range(1000):
        publication.write([point(f"dead-{i}", prose(i))])
        print("wrote", flush=True)
"""


@pytest.fixture
def server() -> Iterator[QdrantServer]:
    with QdrantServer() as server:
        yield server


@contextmanager
def publishing(store: str, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Give a process that has taken the lease, and writes once it is sent a line."""
    child = subprocess.Popen(
        [sys.executable, "-c", PUBLISHES, store, str(TESTS)],
        env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert child.stdout
        assert child.stdout.readline() == "begins\n"
        yield child
    finally:
        child.kill()
        child.communicate()


def on_qdrant(server: QdrantServer) -> AbstractContextManager[subprocess.Popen[str]]:
    return publishing(f"qdrant:{server.url}", {"QDRANT_API_KEY": server.key or ""})


def writes(child: subprocess.Popen[str], times: int = 1) -> None:
    """Let it write on, and return when it has done so often."""
    assert child.stdin
    assert child.stdout
    child.stdin.write("\n")
    child.stdin.flush()
    for _ in range(times):
        assert child.stdout.readline() == "wrote\n"


def real_time(server: QdrantServer) -> QdrantStore:
    """Return a store by the machine's own clock; a request takes four seconds at most."""
    return store_on(server, time.time, try_seconds=1)


def test_a_killed_publisher_to_a_server_is_taken_over_at_once(server: QdrantServer) -> None:
    store = real_time(server)
    publish(store, [point("old", "old")])
    with on_qdrant(server) as child:
        assert store.is_publishing(SCOPE)
        with pytest.raises(IndexLocked, match=r"if it was killed, in \d\d seconds") as caught:
            publish(store, [point("next", "next")])
        assert not caught.value.killed
        assert 40 < caught.value.seconds <= 60
        child.kill()
        child.wait()
        assert not store.is_publishing(SCOPE)
        started = time.perf_counter()
        publish(store, [point("next", "next")])
        assert time.perf_counter() - started < SOON
    assert texts(store) == {"old", "next"}


def test_what_it_had_sent_is_waited_for(server: QdrantServer, tmp_path: Path) -> None:
    store, stuck = real_time(server), threading.Event()
    publish(store, [point("old", "old")])
    with on_qdrant(server) as child:

        def slow(request: Request) -> None:
            if request.method == "PUT" and request.path.endswith("/points"):
                server.before = None
                stuck.set()
                # It arrives when its sender is long gone.
                time.sleep(3)

        server.before = slow
        assert child.stdin
        child.stdin.write("\n")
        child.stdin.flush()
        assert stuck.wait(20)
        child.kill()
        child.wait()
        with pytest.raises(IndexLocked, match="if it was killed, in") as caught:
            publish(store, [point("next", "next")])
        assert caught.value.killed
        # As long as a request of the killed one may take, which is less than its lease.
        assert 0 < caught.value.seconds <= 8
        told: list[str] = []
        ledger = open_ledger(Settings(ledger=f"sqlite:{tmp_path / 'ledger'}"))
        target = Target(SCOPE, store, ledger, base_url=BASE_URL)
        next_page = source(page("next.md", section("S", prose("next"))))
        report = sync.index([next_page], target, lambda stage, *_: told.append(stage))
    assert report.generation == 2
    assert told[0].startswith("Waiting until ")
    assert told[0].endswith(" UTC for what a killed publisher of docs may have sent")
    assert texts(store) == {prose("next")}
    points = [p["payload"] for name in server.collections if "heads" not in name for p in server.points(name)]
    assert not any("dead" in p["source_file_path"] for p in points)


@pytest.mark.parametrize("seed", range(3))
def test_of_those_who_come_after_a_kill_one_publishes_at_a_time(server: QdrantServer, seed: int) -> None:
    chance = random.Random(seed)
    publish(real_time(server), [point("old", "old")])
    with on_qdrant(server) as child:
        writes(child, chance.randrange(1, 20))
        time.sleep(chance.random() / 20)
        child.kill()
        child.wait()
    won: list[str] = []
    within = threading.Semaphore(1)

    def run(name: str) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                with real_time(server).publish(SCOPE, NONE) as publication:
                    assert within.acquire(blocking=False), "two publishers at once"
                    publication.write([point(name, name)])
                    head = publication.preview().head
                    live = publication.previous
                    assert live is not None
                    publication.commit(replace(head, site="docs", generation=live.head.generation + 1))
                    within.release()
                won.append(name)
                return
            except IndexLocked:
                time.sleep(0.2)

    threads = [threading.Thread(target=run, args=(f"p{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == ["p0", "p1", "p2", "p3"]
    assert texts(real_time(server)) == {"old", *won}


@pytest.fixture
def bucket_server(tmp_path: Path) -> Iterator[S3Server]:
    with shared().entered(tmp_path) as entered:
        yield entered


def test_a_killed_publisher_to_a_bucket_is_taken_over_at_once(bucket_server: S3Server) -> None:
    place = f"s3://{bucket_server.bucket()}/index"
    store = S3Store(Bucket.open(place))
    with publishing(place, bucket_server.environment) as child:
        assert store.is_publishing(SCOPE)
        with pytest.raises(IndexLocked, match=r"if it was killed, in (1\d|20) seconds") as caught:
            publish(store, [point("next", "next")])
        assert 10 < caught.value.seconds <= 20
        writes(child)
        child.kill()
        child.wait()
        assert not store.is_publishing(SCOPE)
        publish(store, [point("next", "next")])
    assert texts(store) == {"next"}


def test_a_run_says_until_when_it_waits_for_one_of_another_machine(server: QdrantServer, tmp_path: Path) -> None:
    site, place = write_site(tmp_path / "site", 1, 1), f"qdrant:{server.url}?collection=docs"
    server.key = None
    run = indexing(place, site, tmp_path)
    assert run.communicate()[1].startswith("Indexed")
    (head,) = server.points("docs_heads")

    def lease(until: int) -> None:
        held = {"lease": "of another machine", "lease_until": until}
        server.send("POST", "/collections/docs_heads/points/payload", {"payload": held, "points": [head["id"]]})

    ends = int(time.time()) + 50
    lease(ends)
    page = site / "page-0.html"
    page.write_text(page.read_text().replace("Part 0", "Part one"))
    with indexing(place, site, tmp_path) as run:
        assert run.stderr
        first = run.stderr.readline()
        # It takes a moment to say so.
        moments = [datetime.fromtimestamp(ends + late, UTC).strftime("%H:%M:%S") for late in range(5)]
        lines = [f"Waiting for another publisher of docs: until {at} UTC, if it was killed\n" for at in moments]
        assert first in lines
        # As it would, if the other one were at work.
        lease(0)
        assert run.stderr.read().startswith("Indexed")
    assert b"Part one" in exported(place, tmp_path)
