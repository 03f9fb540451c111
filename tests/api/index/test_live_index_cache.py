"""The live index over the cache of earlier and other processes."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api import quill
from api.index.live import PLACE, asked, broken_artefact, later, live, names, publish, settle, slow
from chapterverse.errors import (
    IndexCorrupt,
    IndexFault,
    IndexMissing,
)
from chapterverse.ext.s3.bucket import Bucket
from chapterverse.ext.s3.cache import Cache
from chapterverse.ext.s3.store import S3Store
from chapterverse.indexing import sync
from chapterverse.indexing.chunking import ChunkSizes
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.model import Scope
from chapterverse.settings import Settings
from chapterverse_api.index.live_index import LiveIndex
from fakes.clocks import Clock
from fakes.docs import SCOPE
from fakes.s3_server import S3Server, unanswered

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
    assert len(reader.open_cached()) == 2
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
from chapterverse_api.commands import ServiceSession
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
    target = Target(quill.SCOPE, S3Store(bucket), open_ledger(settings), None, ChunkSizes(), quill.BASE)
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
    assert store.open_cached() == []
    os.utime(next(root.iterdir()), (0, 0))
    assert names(store.snapshot(SCOPE)) == ["a"]
    assert not list(root.glob("*.new"))
