"""An index of the made-up site."""

from __future__ import annotations

from pathlib import Path

import pytest

from ext.conversations.test_forget_command import run
from ext.report.made import write_site


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    write_site(tmp_path / "docs")
    assert run("index", "docs", "--base-url", "https://docs.example/", "-q")[0] == 0
