"""What the tests of the service share."""

from __future__ import annotations

from pathlib import Path

import pytest

from api import quill


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the example site, for tests that only read it."""
    root = tmp_path_factory.mktemp("index")
    quill.publish(root)
    return root
