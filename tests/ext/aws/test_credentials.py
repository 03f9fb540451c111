"""Keys from the environment, from a container's endpoint on loopback, and from botocore's chain."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.ext.aws.environment import Credentials
from chapterverse.ext.aws.signing import AccessKeys
from fakes.loopback import Answer, Fault, LoopbackServer, Request

NAMES = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
)  # fmt: skip


class Container(LoopbackServer):
    """Gives keys that are numbered, for an hour each."""

    now = 0.0

    def answer(self, request: Request) -> Answer:
        ends = datetime.fromtimestamp(self.now + 3600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        number = len(self.history)
        return Answer(200, {"AccessKeyId": f"id{number}", "SecretAccessKey": "s", "Token": "t", "Expiration": ends})


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch) -> Iterator[Container]:
    with Container() as running:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{running.url}/role?name=x")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic testing-secret")
        yield running


def refused(**parts: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        Credentials("S3", **parts).keys()
    text = str(caught.value)
    assert text.endswith(".")
    assert "testing-secret" not in text
    assert caught.value.__cause__ is None
    return text


def test_the_environment_is_read_at_each_use(monkeypatch: pytest.MonkeyPatch, container: Container) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    credentials = Credentials("S3")
    assert credentials.keys() == AccessKeys("id", "s", "")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "t")
    assert credentials.keys() == AccessKeys("id", "s", "t")
    assert not container.history


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_half_a_key_is_none(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "testing-secret")
    assert "There are no AWS credentials for S3" in refused()


def test_a_key_with_a_line_break_is_told_and_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing-secret\n")
    assert "hold characters that no key has" in refused()


def test_a_container_is_asked_again_before_its_keys_end(container: Container) -> None:
    container.now = 1_800_000_000.0
    credentials = Credentials("S3", clock=lambda: container.now)
    first = credentials.keys()
    assert first == AccessKeys("id1", "s", "t")
    assert container.history[0].path == "/role?name=x"
    assert container.history[0].headers["authorization"] == "Basic testing-secret"
    container.now += 3600 - 301
    assert credentials.keys() == first
    container.now += 2
    assert credentials.keys().access == "id2"


def test_keys_serve_to_their_end_while_the_container_is_silent(container: Container) -> None:
    container.now = 1_800_000_000.0
    credentials = Credentials("S3", clock=lambda: container.now)
    first = credentials.keys()
    container.now += 3600 - 100
    container.play(Fault(500), Fault(500))
    assert credentials.keys() == first
    container.now += 200
    container.play(Fault(500), Fault(500))
    with pytest.raises(ConfigurationError, match="The container gives no AWS credentials for S3"):
        credentials.keys()


@pytest.mark.parametrize("body", [b"", b"null", b"{}", b'{"AccessKeyId": "a"}', b'{"Expiration": 7}', b"\xff"])
def test_an_answer_that_holds_no_keys(container: Container, body: bytes) -> None:
    container.play(Fault(change=lambda _: body))
    assert "The container gives no AWS credentials for S3" in refused()


def test_the_token_may_be_in_a_file(container: Container, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("newer\n")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    Credentials("S3").keys()
    assert container.history[0].headers["authorization"] == "newer"
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "none"))
    assert "The container gives no AWS credentials" in refused()


@pytest.mark.parametrize("url", ["http://example.org/x", "http://127.0.0.1.example.org/", "x", "http://["])
def test_a_token_is_not_sent_in_the_clear_to_another_machine(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url)
    assert refused() == "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or an address of this machine."


def test_a_profile_is_resolved_by_botocore(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[other]\naws_access_key_id = id\naws_secret_access_key = s\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert Credentials("S3").keys() == AccessKeys("id", "s", "")


def test_credentials_that_a_program_gives_are_renewed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "give.py"
    script.write_text(
        "import json, pathlib, time\n"
        f"count = pathlib.Path({str(tmp_path / 'count')!r})\n"
        "count.write_text(count.read_text() + 'x' if count.exists() else 'x')\n"
        "ends = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + 30))\n"
        "keys = {'AccessKeyId': count.read_text(), 'SecretAccessKey': 's', 'Expiration': ends}\n"
        "print(json.dumps({'Version': 1, **keys}))"
    )
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {sys.executable} {script}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    credentials = Credentials("S3")
    assert [credentials.keys().access for _ in range(2)] == ["xx", "xxx"]


def test_no_credentials_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "There are no AWS credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or "
    assert refused() == f"{said}give the machine a role."
    monkeypatch.setenv("AWS_PROFILE", "missing")
    assert refused() == f"{said}give the machine a role."


def test_without_botocore_only_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore", None)
    assert refused() == (
        "There are no AWS credentials for S3 in the environment: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
        'let botocore look further by pip install "chapterverse[aws]".'
    )


def test_keys_of_the_environment_load_no_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    program = (
        "import sys\nfrom chapterverse.ext.aws.environment import Credentials\nCredentials('S3').keys()\n"
        "print({'boto3', 'botocore'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
