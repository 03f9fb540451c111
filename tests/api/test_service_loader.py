"""The service and its secrets: read at the first question, renewed without a restart and without delay for readers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api import quill
from api.scripted import Client, Scripted, error_of
from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.app import (
    REFRESH_AFTER_REFUSED_KEY_SECONDS,
    REFRESH_SECONDS,
    RETRY_SECONDS,
    ServiceLoader,
    create_app,
)
from chapterverse_api.service import Service
from fakes.clocks import Clock
from fakes.cohere_server import KEY, CohereServer
from fakes.recorded_log import recorded_log
from fakes.s3_server import S3Server, shared
from fakes.secrets import change, refusing, secret

QUESTION = "Where does the cache live?"
CANARY = "canary-Zx9Qw8Er7Ty6Zx9Qw8Er7Ty6Zx9Q"
ABSENT = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:none-AbCdEf"


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[S3Server]:
    with shared().entered(tmp_path) as server:
        yield server


@pytest.fixture
def cohere() -> Iterator[CohereServer]:
    with CohereServer() as server:
        yield server


@pytest.fixture
def lines() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """The parsed lines of the log."""
    with recorded_log() as stream:
        yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
        assert CANARY not in stream.getvalue()


def settings(folder: Path, arn: str, cohere: CohereServer | None = None) -> Settings:
    published = quill.publish(folder / "index").override(secrets_arn=arn)
    return published.override(generator="cohere", cohere_url=cohere.url) if cohere else published


def opened(loader: ServiceLoader) -> Service:
    service = loader()
    assert isinstance(service, Service)
    return service


def replaced(loader: ServiceLoader, old: Service) -> Service:
    """Return the service that takes the place of the old one, which may take a moment."""
    deadline = time.monotonic() + 20
    while (service := opened(loader)) is old and time.monotonic() < deadline:
        time.sleep(0.01)
    assert service is not old
    return service


def settled(aws: S3Server, requests: int) -> None:
    deadline = time.monotonic() + 20
    while len(aws.requests) < requests and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(aws.requests) == requests


def test_secrets_are_asked_for_at_the_first_question_and_once(aws: S3Server, tmp_path: Path) -> None:
    arn = secret(aws, {"CHAPTERVERSE_SIGNING_KEY": CANARY})
    aws.requests.clear()
    app = create_app(settings=settings(tmp_path, arn))
    web = Client(app)
    assert web.get("/v1/health").status_code == 200
    assert aws.requests == []
    for _ in range(3):
        assert web.post("/v1/chat", {"query": QUESTION}).status_code == 200
    assert len(aws.requests) == 1
    assert app.state.service().settings.signing_key == CANARY


def test_a_rotated_key_is_taken_up_while_the_old_service_answers(
    aws: S3Server, cohere: CohereServer, tmp_path: Path
) -> None:
    arn = secret(aws, {"COHERE_API_KEY": "old"})
    clock = Clock()
    loader = ServiceLoader(settings(tmp_path, arn, cohere), clock=clock)
    old = opened(loader)
    change(aws, arn, {"COHERE_API_KEY": KEY})
    aws.requests.clear()
    clock.now += REFRESH_SECONDS - 1
    assert opened(loader) is old
    assert aws.requests == []
    clock.now += 1
    new = replaced(loader, old)
    assert (old.settings.cohere_api_key, new.settings.cohere_api_key) == ("old", KEY)
    assert quill.ask(new, QUESTION).status == "answered"
    assert len(aws.requests) == 1
    # What was counted goes on, and so does a signing key that nobody named.
    assert quill.meter_of(new).budget is quill.meter_of(old).budget
    assert new.resources.signer is old.resources.signer


def test_secrets_that_did_not_change_leave_the_service_as_it_is(aws: S3Server, tmp_path: Path) -> None:
    arn = secret(aws, {"CHAPTERVERSE_SIGNING_KEY": CANARY})
    clock = Clock()
    loader = ServiceLoader(settings(tmp_path, arn), clock=clock)
    aws.requests.clear()
    service = opened(loader)
    for rounds in range(1, 4):
        clock.now += REFRESH_SECONDS
        assert opened(loader) is opened(loader) is service
        settled(aws, 1 + rounds)
    assert opened(loader) is service


def test_a_key_that_is_refused_has_them_asked_for_at_most_once_a_minute(
    aws: S3Server, cohere: CohereServer, tmp_path: Path
) -> None:
    arn = secret(aws, {"COHERE_API_KEY": "old"})
    clock = Clock()
    loader = ServiceLoader(settings(tmp_path, arn, cohere), clock=clock)
    old = opened(loader)
    aws.requests.clear()
    assert quill.ask(old, QUESTION).status == "degraded"
    clock.now += REFRESH_AFTER_REFUSED_KEY_SECONDS - 1
    assert opened(loader) is old
    assert aws.requests == []
    clock.now += 1
    assert opened(loader) is old
    settled(aws, 1)
    clock.now += REFRESH_AFTER_REFUSED_KEY_SECONDS - 1
    assert opened(loader) is old
    assert len(aws.requests) == 1
    change(aws, arn, {"COHERE_API_KEY": KEY})
    clock.now += 1
    new = replaced(loader, old)
    assert quill.ask(new, QUESTION).status == "answered"
    clock.now += REFRESH_AFTER_REFUSED_KEY_SECONDS
    before = len(aws.requests)
    assert opened(loader) is new
    assert len(aws.requests) == before


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, "does not exist in its region: check the ARN."),
        (CANARY, "is no JSON object of strings"),
        ({"CHAPTERVERSE_SIGNING_KEY": [CANARY]}, "is no JSON object of strings"),
        ({"CHAPTERVERSE_SIGNING_KEY": "short"}, "A key in CHAPTERVERSE_SIGNING_KEY is shorter"),
    ],
)
def test_what_can_not_be_had_is_told_to_both_and_tried_again(
    aws: S3Server, tmp_path: Path, lines: Callable[[], list[dict[str, Any]]], value: object, sentence: str
) -> None:
    arn = secret(aws, value) if value else ABSENT
    web = Client(create_app(settings=settings(tmp_path, arn)))
    refused = web.post("/v1/chat", {"query": QUESTION})
    assert refused.status_code == 503
    assert error_of(refused) == {
        "code": "misconfigured",
        "message": "This service is not set up correctly: its owner has to fix it.",
    }
    (line,) = [line for line in lines() if line["event"] == "error"]
    assert (line["code"], line["type"]) == ("misconfigured", "ConfigurationError")
    assert sentence in line["message"]


def test_a_denied_secret_is_asked_for_again_but_not_for_every_reader(aws: S3Server, tmp_path: Path) -> None:
    arn = secret(aws, {"CHAPTERVERSE_SIGNING_KEY": CANARY})
    clock = Clock()
    loader = ServiceLoader(settings(tmp_path, arn), clock=clock)
    aws.faults.append(refusing("AccessDeniedException", CANARY))
    aws.requests.clear()
    for _ in range(5):
        with pytest.raises(ConfigurationError, match="may not be read with these credentials"):
            loader()
        clock.now += RETRY_SECONDS / 6
    assert len(aws.requests) == 1
    clock.now += RETRY_SECONDS
    assert opened(loader).settings.signing_key == CANARY


def test_where_they_can_not_be_had_again_the_old_service_goes_on(
    aws: S3Server, tmp_path: Path, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    arn = secret(aws, {"CHAPTERVERSE_SIGNING_KEY": CANARY})
    clock = Clock()
    loader = ServiceLoader(settings(tmp_path, arn), clock=clock)
    old = opened(loader)
    aws.requests.clear()
    aws.faults.append(refusing("AccessDeniedException", CANARY))
    clock.now += REFRESH_SECONDS
    assert opened(loader) is old
    deadline = time.monotonic() + 20
    while not lines() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "may not be read with these credentials" in lines()[0]["message"]
    change(aws, arn, {"CHAPTERVERSE_SIGNING_KEY": CANARY[::-1]})
    clock.now += RETRY_SECONDS
    assert replaced(loader, old).settings.signing_key == CANARY[::-1]


def test_what_else_a_secret_holds_is_logged_once(
    aws: S3Server, tmp_path: Path, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    arn = secret(aws, {"CHAPTERVERSE_STORE": CANARY})
    clock = Clock()
    loader = ServiceLoader(settings(tmp_path, arn), clock=clock)
    aws.requests.clear()
    service = opened(loader)
    clock.now += REFRESH_SECONDS
    loader()
    settled(aws, 2)
    clock.now += REFRESH_SECONDS
    loader()
    settled(aws, 3)
    assert opened(loader) is service
    (line,) = lines()
    assert line["code"] == "secret_left_out"
    assert "holds 1 name besides those of secrets, which is left out" in line["message"]


def test_conversations_may_be_kept_where_a_secret_says(aws: S3Server, tmp_path: Path) -> None:
    thread = "0" * 32
    kept = secret(aws, {"CHAPTERVERSE_RECORDS": f"sqlite:{tmp_path}/records"})
    none = secret(aws, {"QDRANT_API_KEY": "q"})
    for arn, status in ((kept, 204), (none, 404)):
        web = Client(create_app(settings=settings(tmp_path, arn)))
        assert web.request("DELETE", f"/v1/threads/{thread}").status_code == status


def test_a_service_that_was_given_asks_for_nothing(aws: S3Server) -> None:
    scripted = Scripted(settings=Settings(secrets_arn=ABSENT))
    clock = Clock()
    loader = ServiceLoader(scripted.settings, scripted, clock=clock)
    aws.requests.clear()
    assert loader() is scripted
    clock.now += REFRESH_SECONDS
    assert loader() is scripted
    assert aws.requests == []
