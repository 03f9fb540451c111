"""What serves while the index moves, breaks or is out of reach: the S3 store against moto's server."""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from api import quill
from chapterverse import sync
from chapterverse.chunking import Budget
from chapterverse.errors import ChapterVerseError, ConfigurationError, IndexCorrupt, IndexFault, IndexMismatch
from chapterverse.ledger import open_ledger
from chapterverse.model import EmbedderCard, Head, Scope
from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse.store.edge import EdgeStore
from chapterverse.store.s3 import S3Store
from chapterverse.store.s3.bucket import Bucket
from chapterverse.store.s3.cache import Cache
from chapterverse.target import Target
from chapterverse_api.freshness import LiveIndex
from chapterverse_api.generation import open_generator
from chapterverse_api.service import Service
from fakes.docs import SCOPE, point, prose
from fakes.s3_server import S3Server, refused, shared, unanswered, well

PLACE = "docs/@"


def slow(value: object) -> Any:
    """Leave a further case to the nightly run: each publishes twice."""
    return pytest.param(value, marks=pytest.mark.slow)


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    with shared().entered(tmp_path) as entered:
        yield entered


@pytest.fixture
def bucket(server: S3Server) -> Bucket:
    return Bucket.open(f"s3://{server.bucket()}/index")


@pytest.fixture
def reader(bucket: Bucket, tmp_path: Path) -> S3Store:
    """A store with a cache of its own, as on a machine that publishes nothing."""
    return S3Store(bucket, Cache(tmp_path / "reader"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def index(reader: S3Store, clock: Clock) -> LiveIndex:
    return live(reader, clock)


def live(store: S3Store, clock: Clock, pinned: Scope | None = None, freezes: bool = False) -> LiveIndex:
    return LiveIndex(store, fits, pinned, clock=clock, freezes=freezes)


def fits(head: Head) -> None:
    if head.embedder != EmbedderCard():
        raise IndexMismatch("The index was made with another embedder: index again.")


def publish(bucket: Bucket, name: str, scope: Scope = SCOPE, embedder: EmbedderCard | None = None) -> Head:
    """Publish one more page, from a machine of its own."""
    store, card = S3Store(bucket), embedder or EmbedderCard()
    with store.publish(scope, card) as publication:
        publication.write([point(name, prose(name))] if card == EmbedderCard() else [])
        found = publication.preview().head
        before = publication.previous.head.generation if publication.previous else 0
        head = Head(
            scope.site, scope.version, before + 1, found.pages, found.chunks, "test", embedder=card,
            token=secrets.token_hex(4),
        )  # fmt: skip
        publication.commit(head)
    return head


def settle() -> None:
    """Wait for what works in the background."""
    for thread in threading.enumerate():
        if thread.name == "chapterverse-index":
            thread.join()


def asked(index: LiveIndex, version: str | None = None) -> Snapshot:
    (head,) = [h for h in index.heads(version) if h.version == (version or "")]
    return index.snapshot(head)


def names(snapshot: Snapshot) -> list[str]:
    return sorted(p.chunk.source_file_path.removesuffix(".md") for p in snapshot.points())


def later(index: LiveIndex, clock: Clock, seconds: float = 10.0) -> Snapshot:
    """Ask some seconds later, and again when what that began in the background is over."""
    clock.now += seconds
    asked(index)
    settle()
    return asked(index)


def pack(bucket: Bucket) -> str:
    found = bucket.read(f"{PLACE}/head.json")
    assert found
    return f"{PLACE}/{json.loads(found.body)['artefact']['name']}"


def put(server: S3Server, bucket: Bucket, key: str, body: bytes) -> None:
    server.client().put_object(Bucket=bucket.name, Key=f"{bucket.prefix}{key}", Body=body)


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


# What is damaged, gone, or out of reach


def broken_artefact(server: S3Server, bucket: Bucket, how: str) -> None:
    key = pack(bucket)
    if how == "missing":
        bucket.remove(key)
        return
    raw = server.client().get_object(Bucket=bucket.name, Key=bucket.prefix + key)["Body"].read()
    put(server, bucket, key, raw[: len(raw) // 2] if how == "truncated" else raw[:-9] + bytes(9))


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


# Another process on the same machine


def test_what_an_earlier_process_left_serves_while_the_bucket_is_out_of_reach(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server, tmp_path: Path
) -> None:
    publish(bucket, "a")
    asked(index)
    server.faults.extend([unanswered] * 9)
    next_process = live(S3Store(bucket, Cache(tmp_path / "reader")), clock)
    assert names(asked(next_process)) == ["a"]
    assert isinstance(next_process.trouble, IndexFault)
    server.faults.clear()
    publish(bucket, "b")
    assert names(later(next_process, clock)) == ["a", "b"]
    assert next_process.trouble is None


def test_what_an_earlier_process_left_serves_while_the_artefact_is_damaged(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server, tmp_path: Path
) -> None:
    publish(bucket, "a")
    asked(index)
    publish(bucket, "b")
    broken_artefact(server, bucket, "corrupt")
    next_process = live(S3Store(bucket, Cache(tmp_path / "reader")), clock)
    assert names(asked(next_process)) == ["a"]
    assert isinstance(next_process.trouble, IndexCorrupt)
    assert names(later(next_process, clock)) == ["a"]


@pytest.mark.parametrize("how", ["truncated", slow("gone"), "of another store", slow("unreadable")])
def test_what_is_not_whole_or_not_of_this_store_does_not_serve(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server, tmp_path: Path, how: str
) -> None:
    publish(bucket, "a")
    asked(index)
    (written,) = (tmp_path / "reader").glob("*.head")
    if how == "truncated":
        os.truncate(next((tmp_path / "reader").glob("*/*/terms.bin")), 3)
    elif how == "gone":
        shutil.rmtree(next((tmp_path / "reader").glob("*/*")))
    elif how == "unreadable":
        written.write_bytes(written.read_bytes()[:-40])
    place = f"s3://{bucket.name}/other" if how == "of another store" else str(bucket)
    server.faults.extend([unanswered] * 9)
    next_process = live(S3Store(Bucket.open(place), Cache(tmp_path / "reader")), clock)
    with pytest.raises(IndexFault, match="can't be reached"):
        asked(next_process)


READ = """
import sys
from chapterverse.settings import Settings
from chapterverse_api.service import open_service
service = open_service(Settings(store=sys.argv[1]))
answer = service.answer(query=sys.argv[2])
assert answer["status"] == "answered", answer
assert service.status().degraded == [], service.status()
print(sorted({"boto3", "botocore", "httpx", "requests", "urllib3"} & sys.modules.keys()))
"""


def process(program: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_two_processes_answer_at_once_and_load_no_sdk(bucket: Bucket, server: S3Server, tmp_path: Path) -> None:
    settings = Settings(store=str(bucket), ledger=f"sqlite:{tmp_path / 'ledger'}")
    target = Target(quill.SCOPE, S3Store(bucket), open_ledger(settings), None, Budget(), quill.BASE)
    sync.index([quill.source(path, text) for path, text in quill.PAGES.items()], target)
    (tmp_path / "other").mkdir()
    question, place = "How do I clear the cache?", str(tmp_path / "other")
    both = [process(READ, str(bucket), question, TMPDIR=place) for _ in range(2)]
    assert [one.communicate(timeout=100) for one in both] == [("[]\n", "")] * 2


def test_a_kill_in_the_middle_of_a_download_leaves_nothing_that_serves(
    bucket: Bucket, server: S3Server, tmp_path: Path
) -> None:
    publish(bucket, "a")
    (tmp_path / "other").mkdir()
    begun, over = threading.Event(), threading.Event()

    def half(environ: Any, start: Any, app: Any) -> Iterator[bytes]:
        whole = b"".join(app(environ, start))
        yield whole[: len(whole) // 2]
        begun.set()
        over.wait(30)

    def passing(environ: Any, start: Any, app: Any) -> Any:
        return half(environ, start, app) if ".pack" in environ["PATH_INFO"] else app(environ, start)

    server.faults.extend([passing] * 4)
    child = process(READ, str(bucket), "anything", TMPDIR=str(tmp_path / "other"))
    assert begun.wait(30)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    over.set()
    server.faults.clear()
    (root,) = (tmp_path / "other").glob("chapterverse-*")
    assert [path.suffix for path in root.iterdir()] == [".new"]
    store = S3Store(bucket, Cache(root))
    assert store.kept() == []
    os.utime(next(root.iterdir()), (0, 0))
    assert names(store.snapshot(SCOPE)) == ["a"]
    assert not list(root.glob("*.new"))


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
    service = Service(settings, reader, None, open_generator(settings))
    assert service.status().degraded == []
    service.snapshot()
    publish(bucket, "b")
    broken_artefact(server, bucket, "truncated")
    # The service's own clock is the machine's: let it believe that its last look was long ago.
    service._index._looked = 0.0
    service.snapshot()
    settle()
    status = service.status()
    assert status.degraded == ["index"]
    assert [i.generation for i in status.indexes] == [1]
    assert names(service.snapshot()) == ["a"]
    with pytest.raises(ChapterVerseError, match="no such version"):
        service.snapshot("9")
