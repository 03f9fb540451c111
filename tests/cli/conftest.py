"""A site for the commands, before and after it is indexed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A site that was never indexed."""
    return Shell.with_site(tmp_path)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A site that is indexed, for commands that only read."""
    return Shell.with_index(tmp_path_factory.mktemp("indexed"))
