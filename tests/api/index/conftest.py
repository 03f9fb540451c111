"""Fixtures of the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.index.live import live
from chapterverse.ext.s3.bucket import Bucket
from chapterverse.ext.s3.cache import Cache
from chapterverse.ext.s3.store import S3Store
from chapterverse_api.index.live_index import LiveIndex
from fakes.clocks import Clock
from fakes.s3_server import S3Server, shared


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
