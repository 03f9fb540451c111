"""The three limiters, behind one fixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chapterverse_api.ext.dynamodb.limiter import DynamoLimiter
from chapterverse_api.ext.limiter.sqlite import SqliteLimiter
from chapterverse_api.limits import Limiter, MemoryLimiter
from fakes import dynamodb_server

#: Returns a limiter over the same counters at every call, as another process would have it.
Open = Callable[[], Limiter]


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on a disk: in memory the clients are done before anybody can kill them."""
    return tmp_path_factory.mktemp("limits")


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Open]:
    opened: list[SqliteLimiter] = []

    def open_() -> SqliteLimiter:
        # A machine that is busy with other tests is slow, and that is no fault of the limiter.
        opened.append(SqliteLimiter(tmp_path / "limits.sqlite", lock_timeout=60.0))
        return opened[-1]

    yield open_
    for limiter in opened:
        limiter.close()


@pytest.fixture(params=["memory", "sqlite", "dynamodb"])
def place(request: pytest.FixtureRequest) -> Open:
    if request.param == "memory":
        limiter = MemoryLimiter()
        return lambda: limiter
    if request.param == "sqlite":
        opens: Open = request.getfixturevalue("sqlite")
        return opens
    table = request.getfixturevalue("dynamodb").table()
    return lambda: DynamoLimiter(dynamodb_server.patient(), table)
