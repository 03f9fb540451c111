"""The live index while its store changes, breaks or is unreachable: the S3 store against moto's server."""

from __future__ import annotations

import hashlib
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
from chapterverse.errors import (
    ChapterVerseError,
    ConfigurationError,
    IndexCorrupt,
    IndexFault,
    IndexMismatch,
    IndexMissing,
)
from chapterverse.indexing import sync
from chapterverse.indexing.chunking import Budget
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.model import EmbedderCard, Head, Scope
from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse.store.edge import EdgeStore
from chapterverse.store.s3 import S3Store
from chapterverse.store.s3.bucket import Bucket
from chapterverse.store.s3.cache import Cache
from chapterverse.store.shard import Shard
from chapterverse_api.index.live_index import LiveIndex, _CachedHeads
from fakes.clocks import Clock
from fakes.docs import SCOPE, point, prose
from fakes.s3_server import S3Server, refused, shared, unanswered, well

PLACE = "docs/@"


def slow(value: object) -> Any:
    """Leave a further case to the nightly run: each publishes twice."""
    return pytest.param(value, marks=pytest.mark.slow)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    with shared().entered(tmp_path) as entered:
        yield entered


@pytest.fixture
def bucket(server: S3Server) -> Bucket:
    return Bucket.open(f"s3://{server.bucket()}/index")


@pytest.fixture
def reader(bucket: Bucket, tmp_path: Path) -> S3Store:
    """A store with its own cache, as on a machine that publishes nothing."""
    return S3Store(bucket, Cache(tmp_path / "reader"))


@pytest.fixture
def clock() -> Clock:
    return Clock(1_800_000_000.0)


@pytest.fixture
def index(reader: S3Store, clock: Clock) -> LiveIndex:
    return live(reader, clock)


def live(store: S3Store, clock: Clock, pinned: Scope | None = None, site: str = "", freezes: bool = False) -> LiveIndex:
    return LiveIndex(store, fits, pinned, site, clock=clock, freezes=freezes)


def fits(head: Head) -> None:
    if head.embedder != EmbedderCard():
        raise IndexMismatch("The index was made with another embedder: index again.")


def publish(bucket: Bucket, name: str, scope: Scope = SCOPE, embedder: EmbedderCard | None = None) -> Head:
    """Publish one more page from another machine."""
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
        if thread.name in ("chapterverse-index", "chapterverse-intact"):
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
        monkeypatch.setattr(Shard, "load", refused_by_the_system)
    with caplog.at_level(logging.ERROR, "chapterverse"):
        for _ in range(3):
            # So much later that it is fetched again.
            assert later(index, clock, 120).head.generation == 1
    (record,) = caplog.records
    named = f"{bucket}/{pack(bucket)} is missing or damaged" if how == "misfit" else f"in {tmp_path / 'reader'} can't"
    assert named in json.loads(record.message)["message"]


def refused_by_the_system(folder: Path, _: int) -> Shard:
    raise IndexFault(f"The index in {folder} can't be opened (Too many open files): it is not harmed.")


def test_what_nobody_foresaw_in_a_generation_leaves_the_old_one(
    index: LiveIndex,
    clock: Clock,
    bucket: Bucket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    publish(bucket, "a")
    asked(index)
    publish(bucket, "b")
    tries = []

    def unforeseen(*_: object) -> None:
        tries.append(1)
        raise RecursionError(f"at try {len(tries)}")

    with caplog.at_level(logging.ERROR, "chapterverse"), monkeypatch.context() as patched:
        patched.setattr("chapterverse.store.s3.unpack", unforeseen)
        for _ in range(3):
            assert names(later(index, clock)) == ["a"]
        assert isinstance(index.trouble, RecursionError)
        # It is not fetched at every look, and told once.
        assert len(tries) == 1
        later(index, clock, 120)
        assert len(tries) == 2
        assert [json.loads(r.message)["code"] for r in caplog.records] == ["internal"]
        next_process = live(S3Store(bucket, Cache(tmp_path / "reader")), clock)
        assert names(asked(next_process)) == ["a"]
    publish(bucket, "c")
    for process in (index, next_process):
        assert names(later(process, clock)) == ["a", "b", "c"]
        assert process.trouble is None


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


OTHER = Scope("another site", "")


@pytest.mark.parametrize(
    ("pinned", "site", "others"),
    [(None, "", []), (SCOPE, "docs", []), (None, "docs", [OTHER]), (SCOPE, "docs", [OTHER, Scope("docs", "1.0")])],
    ids=["nothing", "scope", "site", "scope beside others"],
)
def test_what_an_earlier_process_left_serves_while_all_that_is_asked_about_is_gone(
    index: LiveIndex,
    clock: Clock,
    bucket: Bucket,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    pinned: Scope | None,
    site: str,
    others: list[Scope],
) -> None:
    publish(bucket, "a")
    asked(index)
    bucket.remove(f"{PLACE}/head.json")
    for scope in others:
        publish(bucket, "other", scope)

    def answer(process: LiveIndex) -> list[str]:
        (head,) = [h for h in process.heads() if h.scope == SCOPE]
        return names(process.snapshot(head))

    next_process = live(S3Store(bucket, Cache(tmp_path / "reader")), clock, pinned, site)
    with caplog.at_level(logging.ERROR, "chapterverse"):
        for _ in range(2):
            assert answer(next_process) == ["a"]
            assert isinstance(next_process.trouble, IndexMissing)
            clock.now += 10
            next_process.heads()
            settle()
    assert [json.loads(r.message)["message"] for r in caplog.records] == [
        "The index of docs is gone from the store: publish it again."
    ]
    publish(bucket, "b")
    clock.now += 10
    next_process.heads()
    settle()
    assert answer(next_process) == ["b"]
    assert next_process.trouble is None


def test_a_version_that_was_taken_away_does_not_come_back_with_a_new_process(
    index: LiveIndex, clock: Clock, bucket: Bucket, reader: S3Store, tmp_path: Path
) -> None:
    publish(bucket, "a")
    publish(bucket, "old", Scope("docs", "1.0"))
    assert (names(asked(index)), names(asked(index, "1.0"))) == (["a"], ["old"])
    bucket.remove("docs/1%2E0/head.json")
    next_process = live(S3Store(bucket, Cache(tmp_path / "reader")), clock, site="docs")
    assert len(reader.kept()) == 2
    assert [h.version for h in next_process.heads()] == [""]
    assert next_process.trouble is None
    # Whoever has it open can't know why it is gone.
    later(index, clock)
    assert names(asked(index, "1.0")) == ["old"]
    assert isinstance(index.trouble, IndexMissing)


def test_where_an_index_is_gone_and_nothing_was_left_of_it_there_is_none(index: LiveIndex, bucket: Bucket) -> None:
    publish(bucket, "a")
    bucket.remove(f"{PLACE}/head.json")
    assert index.heads() == []


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
from chapterverse_api.commands.session import ServiceSession
service = ServiceSession.open(Settings(store=sys.argv[1]))
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
    heads = index.serving()
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
    assert index.intact(index.serving())


def test_a_store_that_hangs_is_asked_by_one_thread_and_waited_for_by_none(
    index: LiveIndex, clock: Clock, bucket: Bucket, server: S3Server
) -> None:
    publish(bucket, "a")
    heads, thawed = index.serving(), threading.Event()
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
    index: LiveIndex, bucket: Bucket, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chapterverse_api.index.live_index._PATIENCE", 0.1)
    publish(bucket, "a")
    heads, thawed = index.serving(), threading.Event()
    server.faults.append(held(thawed))
    assert not index.intact(heads)
    thawed.set()
    settle()
    assert index.intact(heads)


def test_a_look_that_nobody_foresaw_to_fail_is_told(
    index: LiveIndex,
    bucket: Bucket,
    reader: S3Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    publish(bucket, "a")
    monkeypatch.setattr(reader, "intact", lambda _: 1 / 0)
    with caplog.at_level(logging.ERROR, "chapterverse"):
        assert not index.intact(index.serving())
    assert [json.loads(r.message)["type"] for r in caplog.records] == ["ZeroDivisionError"]


# The service


def test_status_tells_what_is_wrong_with_the_index(
    bucket: Bucket, reader: S3Store, server: S3Server, clock: Clock
) -> None:
    settings = Settings(store=str(bucket))
    publish(bucket, "a")
    service = quill.service(settings, store=reader)
    assert service.status().degraded == []
    service.snapshot()
    publish(bucket, "b")
    broken_artefact(server, bucket, "truncated")
    # The service's own clock is the machine's: let it believe that its last look was long ago.
    service.resources.index._live._looked = 0.0
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
