"""A live index over a bucket of S3, and publishers to it from another machine."""

from __future__ import annotations

import json
import secrets
import threading
from typing import Any

import pytest

from chapterverse.errors import (
    IndexMismatch,
)
from chapterverse.ext.s3.bucket import Bucket
from chapterverse.ext.s3.store import S3Store
from chapterverse.model import EmbedderCard, Head, Scope
from chapterverse.store import Snapshot
from chapterverse_api.index.live_index import LiveIndex
from fakes.clocks import Clock
from fakes.docs import SCOPE, point, prose
from fakes.s3_server import S3Server

PLACE = "docs/@"


def slow(value: object) -> Any:
    """Leave a further case to the nightly run: each publishes twice."""
    return pytest.param(value, marks=pytest.mark.slow)


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


def broken_artefact(server: S3Server, bucket: Bucket, how: str) -> None:
    key = pack(bucket)
    if how == "missing":
        bucket.remove(key)
        return
    raw = server.client().get_object(Bucket=bucket.name, Key=bucket.prefix + key)["Body"].read()
    put(server, bucket, key, raw[: len(raw) // 2] if how == "truncated" else raw[:-9] + bytes(9))
