"""The live index while a store is damaged, hangs, or can't be reached."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from api.index.live import PLACE, asked, broken_artefact, later, live, names, pack, publish, put, settle, slow
from chapterverse.errors import (
    ConfigurationError,
    IndexCorrupt,
    IndexFault,
    IndexMismatch,
)
from chapterverse.ext.s3.bucket import Bucket
from chapterverse.ext.s3.cache import Cache
from chapterverse.ext.s3.store import S3Store
from chapterverse.model import EmbedderCard, Scope
from chapterverse.store.shard import Shard
from chapterverse_api.index.live_index import LiveIndex
from fakes.clocks import Clock
from fakes.instead import instead
from fakes.s3_server import S3Server, refused, unanswered

# What is damaged, gone, or out of reach


@pytest.mark.parametrize("how", ["corrupt", slow("truncated"), "missing"])
def test_the_old_generation_serves_while_the_new_one_is_damaged(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    publish(bucket, "a")
    asked(index)
    publish(bucket, "b")
    broken_artefact(server, bucket, how)
    damaged = pack(bucket)
    server.requests.clear()
    with caplog.at_level(logging.ERROR, "chapterverse"):
        for _ in range(4):
            assert names(later(index, clock)) == ["a"]
    assert isinstance(index.trouble, IndexCorrupt)
    assert [json.loads(r.message)["code"] for r in caplog.records] == ["index_unavailable"]
    # What is damaged is not fetched again and again, and what comes after it is at the next look.
    assert len([r for r in server.requests if damaged in r]) == 1
    publish(bucket, "c")
    assert names(later(index, clock)) in (["a", "b", "c"], ["c"])
    assert index.trouble is None


@pytest.mark.slow
def test_a_damaged_artefact_that_is_mended_in_place_is_found_after_a_while(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server
) -> None:
    publish(bucket, "a")
    asked(index)
    publish(bucket, "b")
    whole = server.client().get_object(Bucket=bucket.name, Key=bucket.prefix + pack(bucket))["Body"].read()
    broken_artefact(server, bucket, "corrupt")
    later(index, clock)
    put(server, bucket, pack(bucket), whole)
    assert names(later(index, clock)) == ["a"]
    assert names(later(index, clock, 120)) == ["a", "b"]


@pytest.mark.parametrize("body", [slow(b""), slow(b"{"), b'{"head": {"format": 1}}', None])
def test_the_last_generation_serves_while_its_head_is_damaged_or_gone(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server, body: bytes | None
) -> None:
    publish(bucket, "a")
    asked(index)
    if body is None:
        bucket.remove(f"{PLACE}/head.json")
    else:
        put(server, bucket, f"{PLACE}/head.json", body)
    assert names(later(index, clock)) == ["a"]
    assert isinstance(index.trouble, IndexFault)
    publish(bucket, "b")
    later(index, clock)
    assert index.trouble is None


FAULTS = [
    [unanswered] * 9, slow([refused("503 Slow Down", "SlowDown")] * 9), [refused("403 Forbidden", "AccessDenied")] * 9,
]  # fmt: skip


@pytest.mark.parametrize("faults", FAULTS, ids=["unreachable", "busy", "denied"])
def test_the_last_generation_serves_while_the_bucket_is_out_of_reach(
    index: LiveIndex,
    clock: Clock,
    bucket: Bucket,
    server: S3Server,
    caplog: pytest.LogCaptureFixture,
    faults: list[Any],
) -> None:
    publish(bucket, "a")
    asked(index)
    server.faults.extend(faults)
    with caplog.at_level(logging.ERROR, "chapterverse"):
        assert names(later(index, clock)) == ["a"]
        assert names(later(index, clock)) == ["a"]
    assert len(caplog.records) == 1
    assert "testing-secret" not in caplog.text
    assert index.key_refused == isinstance(index.trouble, ConfigurationError)
    server.faults.clear()
    later(index, clock)
    assert index.trouble is None


def test_a_generation_of_another_embedder_does_not_take_over(index: LiveIndex, clock: Clock, bucket: Bucket) -> None:
    publish(bucket, "a")
    asked(index)
    publish(bucket, "b", embedder=EmbedderCard("other", 4))
    assert names(later(index, clock)) == ["a"]
    assert isinstance(index.trouble, IndexMismatch)


def test_a_full_disk_leaves_the_old_generation(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server
) -> None:
    publish(bucket, "a")
    asked(index)
    publish(bucket, "b")
    found = bucket.read(f"{PLACE}/head.json")
    assert found
    document = json.loads(found.body)
    document["artefact"]["size"] = 1 << 60
    put(server, bucket, f"{PLACE}/head.json", json.dumps(document).encode())
    assert names(later(index, clock)) == ["a"]
    assert "No space left on device" in str(index.trouble)
    assert "TMPDIR" in str(index.trouble)


def test_where_nothing_was_ever_opened_the_reason_is_told_and_not_asked_for_at_every_question(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server
) -> None:
    server.requests.clear()
    server.faults.extend([refused("403 Forbidden", "AccessDenied")])
    for _ in range(3):
        with pytest.raises(ConfigurationError, match="S3 denies access"):
            index.heads()
    assert len(server.requests) == 1
    assert index.key_refused
    publish(bucket, "a")
    clock.now += 10
    assert names(asked(index)) == ["a"]
    assert not index.key_refused


def test_a_first_generation_that_is_damaged_is_fetched_once(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server
) -> None:
    publish(bucket, "a")
    broken_artefact(server, bucket, "corrupt")
    server.requests.clear()
    for _ in range(3):
        with pytest.raises(IndexCorrupt):
            asked(index)
    assert len([r for r in server.requests if ".pack" in r]) == 1


def misfit(server: S3Server, bucket: Bucket) -> None:
    """Replace the artefact by one that is a pack, with its right hash, and holds no index."""
    found = bucket.read(f"{PLACE}/head.json")
    assert found
    raw, document = b"CVPACK1\nE", json.loads(found.body)
    document["artefact"] |= {"size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    put(server, bucket, pack(bucket), raw)
    put(server, bucket, f"{PLACE}/head.json", json.dumps(document).encode())


@pytest.mark.parametrize("how", ["misfit", "refused by the system"])
def test_the_same_trouble_is_told_once_whatever_its_folder_is_called(
    index: LiveIndex,
    clock: Clock,
    bucket: Bucket,
    server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    how: str,
) -> None:
    publish(bucket, "a")
    asked(index)
    publish(bucket, "b")
    if how == "misfit":
        misfit(server, bucket)
    else:
        monkeypatch.setattr("qdrant_edge.EdgeShard", RefusedBySystem)
    with caplog.at_level(logging.ERROR, "chapterverse"):
        for _ in range(3):
            # So much later that it is fetched again.
            assert later(index, clock, 120).head.generation == 1
    (record,) = caplog.records
    named = f"{bucket}/{pack(bucket)} is missing or damaged" if how == "misfit" else f"in {tmp_path / 'reader'} can't"
    assert named in json.loads(record.message)["message"]


class RefusedBySystem:
    """An engine that may open no more files."""

    @staticmethod
    def load(place: str) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


class Unforeseen(S3Store):
    """A store that fails for a reason that nobody thought of while it `breaks`."""

    breaks, tries = False, 0

    def snapshot(self, scope: Scope) -> Shard:
        if not self.breaks:
            return super().snapshot(scope)
        self.tries += 1
        raise RecursionError(f"at try {self.tries}")


def test_what_nobody_foresaw_in_a_generation_leaves_the_old_one(
    clock: Clock, bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    publish(bucket, "a")
    store = Unforeseen(bucket, Cache(tmp_path / "reader"))
    index = live(store, clock)
    asked(index)
    publish(bucket, "b")
    store.breaks = True
    with caplog.at_level(logging.ERROR, "chapterverse"):
        for _ in range(3):
            assert names(later(index, clock)) == ["a"]
        assert isinstance(index.trouble, RecursionError)
        # It is not fetched at every look, and told once.
        assert store.tries == 1
        later(index, clock, 120)
        assert store.tries == 2
        assert [json.loads(r.message)["code"] for r in caplog.records] == ["internal"]
        next_process = live(store, clock)
        assert names(asked(next_process)) == ["a"]
    store.breaks = False
    publish(bucket, "c")
    for process in (index, next_process):
        assert names(later(process, clock)) == ["a", "b", "c"]
        assert process.trouble is None


# Whether what is published is whole


def held(thawed: threading.Event) -> Any:
    """Return a fault by which the store hangs until then."""

    def hangs(environ: Any, start: Any, app: Any) -> Any:
        thawed.wait(30)
        return app(environ, start)

    return hangs


def test_whether_the_store_is_whole_is_asked_every_ten_seconds_at_most(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server
) -> None:
    publish(bucket, "a")
    heads = index.live_heads()
    server.requests.clear()
    assert all(index.intact(heads) for _ in range(20))
    assert [r.partition(" ")[0] for r in server.requests] == ["GET", "HEAD"]
    broken_artefact(server, bucket, "missing")
    clock.now += 10
    index.intact(heads)
    settle()
    assert not index.intact(heads)
    # A generation that takes over is looked at at once.
    publish(bucket, "b")
    later(index, clock)
    assert index.intact(index.live_heads())


def test_a_store_that_hangs_is_asked_by_one_thread_and_waited_for_by_none(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server
) -> None:
    publish(bucket, "a")
    heads, thawed = index.live_heads(), threading.Event()
    assert index.intact(heads)
    server.faults.append(held(thawed))
    clock.now += 10
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(lambda _: index.intact(heads), range(64)))
        assert [t.name for t in threading.enumerate()].count("chapterverse-intact") == 1
    finally:
        thawed.set()
    settle()


def test_a_store_that_never_answered_is_not_said_to_be_whole(
    index: LiveIndex, bucket: Bucket, server: S3Server
) -> None:
    publish(bucket, "a")
    heads, thawed = index.live_heads(), threading.Event()
    server.faults.append(held(thawed))
    assert not index.intact(heads)
    thawed.set()
    settle()
    assert index.intact(heads)


def test_a_look_that_nobody_foresaw_to_fail_is_told(
    clock: Clock, bucket: Bucket, reader: S3Store, caplog: pytest.LogCaptureFixture
) -> None:
    publish(bucket, "a")
    index = live(instead(reader, is_complete=lambda _: 1 / 0), clock)
    with caplog.at_level(logging.ERROR, "chapterverse"):
        assert not index.intact(index.live_heads())
    assert [json.loads(r.message)["type"] for r in caplog.records] == ["ZeroDivisionError"]
