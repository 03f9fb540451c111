"""The live index: heads that move, Lambda, and the status of the service."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from api import quill
from api.index.live import asked, broken_artefact, fits, later, live, names, publish, settle
from chapterverse.errors import (
    ChapterVerseError,
)
from chapterverse.ext.s3.bucket import Bucket
from chapterverse.ext.s3.store import S3Store
from chapterverse.model import EmbedderCard, Head, Scope
from chapterverse.settings import Settings
from chapterverse.store.edge import EdgeStore
from chapterverse_api.index.live_index import LiveIndex, _CachedHeads
from fakes.clocks import Clock
from fakes.docs import SCOPE, point, prose
from fakes.instead import instead
from fakes.s3_server import S3Server, well

# Heads that move


def test_a_new_generation_takes_its_place_in_the_background(index: LiveIndex, clock: Clock, bucket: Bucket) -> None:
    publish(bucket, "a")
    assert names(asked(index)) == ["a"]
    publish(bucket, "b")
    assert names(asked(index)) == ["a"]
    clock.now += 10
    before = asked(index)
    assert names(before) == ["a"]
    settle()
    assert names(asked(index)) == ["a", "b"]
    # Whoever is still at it has the generation that they began with.
    assert names(before) == ["a"]
    assert index.trouble is None


def test_heads_are_looked_at_every_ten_seconds_at_most(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server
) -> None:
    publish(bucket, "a")
    asked(index)
    server.requests.clear()
    for _ in range(9):
        clock.now += 1
        asked(index)
    settle()
    assert server.requests == []
    clock.now += 1
    for _ in range(20):
        asked(index)
    settle()
    assert [r.partition(" ")[0] for r in server.requests] == ["GET"]
    assert "list-type" in server.requests[0]


def test_a_clock_that_is_put_back_does_not_stop_the_looks(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server
) -> None:
    publish(bucket, "a")
    asked(index)
    publish(bucket, "b")
    assert names(later(index, clock, -3600)) == ["a", "b"]


def test_where_the_settings_name_a_scope_its_head_alone_is_asked_for(
    reader: S3Store, clock: Clock, bucket: Bucket, server: S3Server
) -> None:
    publish(bucket, "a")
    publish(bucket, "old", Scope("docs", "1.0"))
    index = live(reader, clock, SCOPE)
    asked(index)
    server.requests.clear()
    later(index, clock)
    assert server.requests == [f"GET /{bucket.name}/index/docs/@/head.json?"]
    # Nobody is kept from another version, and naming versions that there are not costs one look in ten seconds.
    assert names(asked(index, "1.0")) == ["old"]
    server.requests.clear()
    for version in ("2.0", "3.0"):
        assert [h.version for h in index.heads(version)] == ["", "1.0"]
    assert server.requests == []


def test_readers_who_ask_at_once_share_one_download(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server
) -> None:
    publish(bucket, "a")
    server.requests.clear()
    with ThreadPoolExecutor(8) as pool:
        found = {id(s) for s in pool.map(lambda _: asked(index), range(24))}
        assert len(found) == 1
        publish(bucket, "b")
        server.requests.clear()
        clock.now += 10
        before = [*pool.map(lambda _: names(asked(index)), range(24))]
    settle()
    assert {tuple(n) for n in before} <= {("a",), ("a", "b")}
    assert names(asked(index)) == ["a", "b"]
    assert len([r for r in server.requests if ".pack" in r and r.startswith("GET")]) == 1


def test_while_one_reader_looks_the_others_take_what_was_seen(clock: Clock) -> None:
    looks, began, hangs = list[int](), threading.Event(), threading.Event()

    def look() -> list[Head]:
        looks.append(1)
        if looks[1:]:
            began.set()
            hangs.wait(20)
        return []

    memo = _CachedHeads(look, 10.0, clock)
    assert memo.value() == []
    clock.now += 11
    with ThreadPoolExecutor(2) as readers:
        first = readers.submit(memo.value)
        assert began.wait(5)
        assert readers.submit(memo.value).result(timeout=5) == []
        assert not first.done()
        hangs.set()
    assert len(looks) == 2


def test_a_version_that_is_new_is_there_after_a_look(index: LiveIndex, clock: Clock, bucket: Bucket) -> None:
    publish(bucket, "a")
    asked(index)
    publish(bucket, "b", Scope("docs", "2.0"))
    assert [h.version for h in index.heads()] == [""]
    later(index, clock)
    assert names(asked(index, "2.0")) == ["b"]


def test_an_embedded_store_is_looked_at_for_every_question(tmp_path: Path) -> None:
    store = EdgeStore(tmp_path)
    index = LiveIndex(store, fits)
    for generation, name in enumerate("ab", 1):
        with store.publish(SCOPE, EmbedderCard()) as publication:
            publication.write([point(name, prose(name))])
            publication.commit(Head("docs", "", generation, generation, generation, "test"))
        assert names(asked(index)) == ["a", "b"][:generation]


# Lambda


def test_a_thread_that_stands_still_between_questions_is_given_time(
    reader: S3Store, clock: Clock, bucket: Bucket, server: S3Server
) -> None:
    publish(bucket, "a")
    index = live(reader, clock, freezes=True)
    asked(index)
    publish(bucket, "b")
    thawed = threading.Event()

    def frozen(environ: Any, start: Any, app: Any) -> Any:
        thawed.wait(30)
        return app(environ, start)

    # The look passes, then the head is read again, and the artefact hangs.
    server.faults.extend([well, well, well, frozen])
    clock.now += 10
    assert names(asked(index)) == ["a"]
    while server.faults:
        time.sleep(0.01)
    clock.now += 31
    threading.Timer(0.1, thawed.set).start()
    assert names(asked(index)) == ["a", "b"]


def test_a_look_that_moves_nothing_is_over_before_the_question_that_set_it_off(
    reader: S3Store, clock: Clock, bucket: Bucket
) -> None:
    publish(bucket, "a")
    index = live(reader, clock, freezes=True)
    asked(index)
    clock.now += 10
    asked(index)
    settle()
    assert index.trouble is None


# The service


def test_status_tells_what_is_wrong_with_the_index(
    bucket: Bucket, reader: S3Store, server: S3Server, clock: Clock
) -> None:
    settings = Settings(store=str(bucket))
    publish(bucket, "a")
    # The service's own clock is the machine's, so the store has each question look anew.
    service = quill.service(settings, store=instead(reader, max_age=1e-9))
    assert service.status().degraded == []
    service.snapshot()
    settle()
    publish(bucket, "b")
    broken_artefact(server, bucket, "truncated")
    service.snapshot()
    settle()
    status = service.status()
    assert status.degraded == ["index"]
    assert [i.generation for i in status.indexes] == [1]
    assert names(service.snapshot()) == ["a"]
    with pytest.raises(ChapterVerseError, match="no such version"):
        service.snapshot("9")


def test_status_asks_the_store_once_in_a_while(bucket: Bucket, reader: S3Store, server: S3Server) -> None:
    settings = Settings(store=str(bucket), site="docs")
    publish(bucket, "a")
    service = quill.service(settings, store=reader)
    server.requests.clear()
    for _ in range(20):
        assert service.status().degraded == []
    # A listing, the head, its object again, and what is asked of the artefact.
    assert len(server.requests) == 4, server.requests
