"""What the tests of the service share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api import quill
from fakes import dynamodb_server
from fakes.dynamodb_server import DynamoServer


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the example site, for tests that only read it."""
    root = tmp_path_factory.mktemp("index")
    quill.publish(root)
    return root


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[DynamoServer]:
    """The server, which this process's environment names."""
    server = dynamodb_server.shared()
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    yield server
    server.reset()
