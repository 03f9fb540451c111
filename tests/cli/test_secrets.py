"""The commands read their secrets once at their start, from the place that the environment names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chapterverse.cli import main
from fakes.qdrant_server import KEY, QdrantServer
from fakes.s3_server import S3Server, shared
from fakes.secrets import secret

BASE = "https://tea.example/docs/"
CANARY = "canary-Zx9Qw8Er7Ty6Zx9Qw8Er7Ty6Zx9Q"


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    for name in [name for name in os.environ if name.startswith(("CHAPTERVERSE_", "QDRANT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site").mkdir()
    page = '<html lang="en"><main><h1 id="t">Tea</h1><p>Green tea takes three minutes.</p></main></html>'
    (tmp_path / "site/index.html").write_text(page)
    with shared().entered(tmp_path) as server:
        yield server


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return int(end.value.code or 0)


def test_a_key_for_the_store_comes_from_a_secret(
    aws: S3Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with QdrantServer() as server:
        monkeypatch.setenv("CHAPTERVERSE_STORE", f"qdrant:{server.url}")
        monkeypatch.setenv("CHAPTERVERSE_SECRETS_ARN", secret(aws, {"QDRANT_API_KEY": KEY, "QDRANT_URL": "x"}))
        aws.requests.clear()
        assert run("index", "site", "--base-url", BASE, "--site", "tea") == 0
        assert len(aws.requests) == 1
        assert "Warning: The secret docs/keys-" in capsys.readouterr().err
        assert run("search", "How long does green tea take?", "--json") == 0
        assert "three minutes" in json.loads(capsys.readouterr().out)[0]["results"][0]["text"]
        assert run("status") == 0
        monkeypatch.setenv("QDRANT_API_KEY", "not the key")
        assert run("status") == 1
        assert "refused the key" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [["index", "site"], ["status"], ["search", "tea"], ["ask", "tea"], ["serve", "--port", "0"], ["check", "site"],
     ["forget", "0" * 32], ["feedback"], ["repair"], ["export", "x"]],
    ids=lambda command: command[0],
)  # fmt: skip
def test_a_secret_that_can_not_be_used_ends_a_command_in_one_sentence(
    aws: S3Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.setenv("CHAPTERVERSE_SECRETS_ARN", secret(aws, CANARY))
    assert run(*command) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "of CHAPTERVERSE_SECRETS_ARN is no JSON object of strings" in said.err
    assert CANARY not in said.err


def test_what_a_secret_holds_must_not_be_in_the_site(
    aws: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHAPTERVERSE_SECRETS_ARN", secret(aws, {"CHAPTERVERSE_SIGNING_KEY": CANARY}))
    (tmp_path / "site/app.js").write_text(f"const key = '{CANARY}'")
    assert run("check", "site", "--no-index", "--base-url", BASE) == 3
    said = capsys.readouterr()
    assert "app.js line 1 holds the value of CHAPTERVERSE_SIGNING_KEY." in said.out
    assert CANARY not in said.out + said.err
